#include "scoring_rules.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace agora {

namespace {

constexpr int32_t kNone = -1;
constexpr int64_t kMost = 100;  // of an affinity, and of each of Kubernetes' scores
constexpr int8_t kService = 1;  // shared_state.tasks.TaskClass

int64_t share_of(int64_t saved, int64_t greatest) {
  if (saved <= 0) return 0;
  return std::max<int64_t>(kMost * saved / greatest, 1);
}

// Rows in an order that is drawn as it is needed (Fisher and Yates), from where they stood.
class ShuffledRows {
 public:
  explicit ShuffledRows(std::span<const int32_t> rows) : rows_(rows.begin(), rows.end()) {}
  explicit ShuffledRows(size_t machines) : rows_(machines) {
    std::iota(rows_.begin(), rows_.end(), 0);
  }

  size_t size() const { return rows_.size(); }
  size_t drawn() const { return swapped_.size(); }
  int32_t at(size_t place, Stream& stream) {
    while (swapped_.size() <= place) {
      const size_t next = swapped_.size();
      swapped_.push_back(next + stream.below(rows_.size() - next));
      std::swap(rows_[next], rows_[swapped_.back()]);
    }
    return rows_[place];
  }
  // As they stood before: a plan's order depends on its own draws alone.
  void restore() {
    for (; !swapped_.empty(); swapped_.pop_back())
      std::swap(rows_[swapped_.size() - 1], rows_[swapped_.back()]);
  }

 private:
  std::vector<int32_t> rows_;
  std::vector<size_t> swapped_;  // by place: with which
};

class Kubernetes final : public ScoringRule {
 public:
  explicit Kubernetes(int64_t percentage) : percentage_(percentage) {}

  int32_t choose(size_t task) override {
    const int64_t* request = plan().tasks.request_of(task);
    const size_t machines = plan().view.static_state().machines();
    const size_t enough = kubernetes_enough(machines, percentage_);
    passed_.clear();
    size_t looked_at = 0;
    for (; looked_at < machines && passed_.size() < enough; ++looked_at) {
      const int32_t row = static_cast<int32_t>(start_);
      if (++start_ == machines) start_ = 0;
      if (plan().passes(row, request)) passed_.push_back(row);
    }
    if (passed_.size() < 2) return passed_.empty() ? kNone : passed_.front();
    return best_of_passed(request);
  }

 private:
  int32_t best_of_passed(const int64_t* request) {
    const RowAffinity& affinity = plan().affinity;
    int64_t highest = 0;
    if (affinity.differs())
      for (const int32_t row : passed_) highest = std::max(highest, affinity.of(row));
    plan().work.scored += static_cast<int64_t>(passed_.size());
    int64_t best = -1;
    for (const int32_t row : passed_) {
      int64_t score = score_of(row, request);
      if (highest > 0) score += 2 * (kMost * affinity.of(row) / highest);
      if (score < best) continue;
      if (score > best) ties_.clear();
      best = score;
      ties_.push_back(row);
    }
    return ties_.size() == 1 ? ties_.front() : ties_[plan().stream.below(ties_.size())];
  }

  // Least-allocated + balanced-allocation with the task placed.
  int64_t score_of(int32_t row, const int64_t* request) {
    const StaticCellState& cell = plan().view.static_state();
    const size_t dimensions = cell.dimensions();
    const FreeAmount free = plan().view.free(row);
    const int64_t* limit = cell.limit.data() + static_cast<size_t>(row) * dimensions;
    int64_t least = 0, resources = 0;
    double sum = 0;
    fractions_.clear();
    for (size_t r = 0; r < dimensions; ++r) {
      if (limit[r] == 0) continue;
      const int64_t left = static_cast<const int64_t*>(free)[r] - request[r];
      least += left < 0 ? 0 : left * kMost / limit[r];
      ++resources;
      const double used = static_cast<double>(limit[r] - left) / static_cast<double>(limit[r]);
      fractions_.push_back(std::min(used, 1.0));
      sum += fractions_.back();
    }
    double deviation = 0;
    if (fractions_.size() == 2) {
      deviation = std::abs((fractions_[0] - fractions_[1]) / 2);
    } else if (fractions_.size() > 2) {
      const double count = static_cast<double>(fractions_.size()), mean = sum / count;
      double squares = 0;
      for (const double fraction : fractions_) squares += (fraction - mean) * (fraction - mean);
      deviation = std::sqrt(squares / count);
    }
    return least / std::max<int64_t>(resources, 1) +
           static_cast<int64_t>((1 - deviation) * static_cast<double>(kMost));
  }

  const int64_t percentage_;
  size_t start_ = 0;  // of the next search
  std::vector<int32_t> passed_;
  std::vector<int32_t> ties_;
  std::vector<double> fractions_;
};

class SwarmKit final : public ScoringRule {
 public:
  // Of n tasks the machines beyond the first n are not needed: each task makes one machine later in
  // the order, so one of the first n that none has taken comes before all others.
  void begin_group(size_t task, size_t count) override {
    const int64_t* request = plan().tasks.request_of(task);
    salt_ = plan().stream.below(uint64_t{1} << 62);
    count_by_row(plan().tasks.job[task]);
    first_.clear();
    const auto look_at = [&](int32_t row) {
      if (!plan().passes(row, request)) return;
      ++plan().work.scored;
      const Ranked ranked{rank_of(row), hash64(row, salt_), row};
      if (first_.size() == count) {
        if (!(ranked < first_.front())) return;
        std::pop_heap(first_.begin(), first_.end());
        first_.pop_back();
      }
      first_.push_back(ranked);
      std::push_heap(first_.begin(), first_.end());
    };
    if (plan().affinity.required()) {
      for (const int32_t row : plan().affinity.listed()) look_at(row);
    } else {
      const size_t machines = plan().view.static_state().machines();
      for (size_t row = 0; row < machines; ++row) look_at(static_cast<int32_t>(row));
    }
    std::make_heap(first_.begin(), first_.end(), Later{});
  }

  int32_t choose(size_t task) override {
    const int64_t* request = plan().tasks.request_of(task);
    while (!first_.empty()) {
      const int32_t row = first_.front().row;
      if (plan().passes(row, request)) return row;
      std::pop_heap(first_.begin(), first_.end(), Later{});
      first_.pop_back();
    }
    return kNone;
  }

  void took(int32_t) override {  // that of the first
    ++plan().work.scored;
    std::pop_heap(first_.begin(), first_.end(), Later{});
    first_.back().rank += kTaskOfJob + 1;
    std::push_heap(first_.begin(), first_.end(), Later{});
  }

 private:
  static constexpr int32_t kMaxFailures = 5;
  static constexpr uint64_t kTaskOfJob = uint64_t{1} << 24;
  static constexpr uint64_t kMostTasks = kTaskOfJob - 1;
  static constexpr uint64_t kFailure = uint64_t{1} << 48;
  static constexpr uint64_t kMostFailures = (uint64_t{1} << 16) - 1;

  struct Ranked {
    uint64_t rank;
    uint64_t tie;
    int32_t row;

    bool operator<(const Ranked& other) const {
      return std::tie(rank, tie, row) < std::tie(other.rank, other.tie, other.row);
    }
  };
  struct Later {
    bool operator()(const Ranked& a, const Ranked& b) const { return b < a; }
  };
  struct Counts {
    int32_t failures = 0;
    int32_t tasks = 0;
  };

  void count_by_row(int64_t job) {
    if (counts_.empty()) counts_.resize(plan().view.static_state().machines());
    for (const int32_t row : counted_) counts_[static_cast<size_t>(row)] = {};
    counted_.clear();
    if (const auto* failures = plan().failures.machines_of(job))
      for (const auto& [row, count] : *failures) {
        counts_[static_cast<size_t>(row)].failures = count;
        counted_.push_back(row);
      }
    if (const auto* tasks = plan().own.machines_of(job))
      for (const auto& [row, count] : *tasks) {
        counts_[static_cast<size_t>(row)].tasks = count;
        counted_.push_back(row);
      }
  }

  // Lowest first: failures where there are five or more, tasks of the job, all tasks.
  uint64_t rank_of(int32_t row) const {
    const Counts& counts = counts_[static_cast<size_t>(row)];
    const auto number = [](int32_t count, uint64_t most) {
      return std::min(static_cast<uint64_t>(count), most);
    };
    const int32_t failures = counts.failures < kMaxFailures ? 0 : counts.failures;
    return number(failures, kMostFailures) * kFailure +
           number(counts.tasks, kMostTasks / 2) * kTaskOfJob +
           number(plan().own.on_machine(row), kMostTasks / 2);
  }

  uint64_t salt_ = 0;
  std::vector<Ranked> first_;  // a heap: while it fills the last first, then the first first
  std::vector<Counts> counts_;
  std::vector<int32_t> counted_;  // rows with counts
};

class Nomad final : public ScoringRule {
 public:
  explicit Nomad(bool spread) : spread_(spread) {}

  void begin(ScoringPlan& plan) override {
    ScoringRule::begin(plan);
    wanted_.clear();
    for (size_t i = 0; i < plan.tasks.count(); ++i) ++wanted_[plan.tasks.job[i]];
    for (auto& [job, tasks] : wanted_) tasks += plan.own.of_job(job);
  }

  void begin_group(size_t task, size_t) override {
    const size_t machines = plan().view.static_state().machines();
    if (all_.size() != machines) all_ = ShuffledRows(machines);
    all_.restore();
    if (plan().affinity.required()) few_ = ShuffledRows(plan().affinity.listed());
    rows_ = plan().affinity.required() ? &few_ : &all_;
    next_ = 0;
    tasks_of_job_ = wanted_[plan().tasks.job[task]];
    limit_ = 2;
    if (plan().tasks.task_class[task] == kService)
      limit_ = std::max(limit_, static_cast<int64_t>(std::bit_width(machines - 1)));
    if (plan().affinity.differs()) limit_ = std::max(kWithAffinity, tasks_of_job_);
  }

  int32_t choose(size_t task) override {
    seen_ = 0;
    skipped_.clear();
    used_of_skipped_ = 0;
    Option best;
    for (int64_t offered = 0; offered < limit_; ++offered) {
      const Option option = next_option(task);
      if (option.row == kNone) break;
      if (best.row == kNone || option.score > best.score) best = option;
    }
    return best.row;
  }

 private:
  static constexpr size_t kMostSkipped = 3;
  static constexpr int64_t kWithAffinity = 100;
  static constexpr double kLogOfTen = 2.302585092994046;
  static constexpr double kMostFit = 18;

  struct Option {
    int32_t row = kNone;
    double score = 0;
  };

  // The next machine that passes, each once per task.
  Option next_passing(size_t task) {
    const int64_t* request = plan().tasks.request_of(task);
    while (seen_ < rows_->size()) {
      if (next_ == rows_->size()) next_ = 0;
      const int32_t row = rows_->at(next_, plan().stream);
      ++next_;
      ++seen_;
      if (plan().passes(row, request)) return {row, score_of(row, task)};
    }
    return {};
  }
  Option next_or_skipped(size_t task) {
    const Option option = next_passing(task);
    if (option.row != kNone || used_of_skipped_ == skipped_.size()) return option;
    return skipped_[used_of_skipped_++];
  }
  // The same, but some whose score is 0 or less are set aside.
  Option next_option(size_t task) {
    Option option = next_or_skipped(task);
    if (option.row == kNone) return option;
    while (option.row != kNone && option.score <= 0 && skipped_.size() < kMostSkipped) {
      skipped_.push_back(option);
      option = next_passing(task);
    }
    return option.row == kNone ? next_or_skipped(task) : option;
  }

  double score_of(int32_t row, size_t task) {
    ++plan().work.scored;
    double sum = fit_of(row, plan().tasks.request_of(task)), scores = 1;
    const int64_t beside = plan().own.of_job_on(plan().tasks.job[task], row);
    if (beside > 0) {
      sum -= static_cast<double>(beside + 1) / static_cast<double>(tasks_of_job_);
      ++scores;
    }
    const auto avoided = plan().avoided.of(plan().tasks.task[task]);
    if (std::find(avoided.begin(), avoided.end(), row) != avoided.end()) {
      sum -= 1;
      ++scores;
    }
    if (plan().affinity.differs()) {
      sum += static_cast<double>(plan().affinity.of(row)) / static_cast<double>(kMost);
      ++scores;
    }
    return sum / scores;
  }

  // Of two resources as Nomad has it; of others their mean stands for both.
  double fit_of(int32_t row, const int64_t* request) {
    const StaticCellState& cell = plan().view.static_state();
    const size_t dimensions = cell.dimensions();
    const FreeAmount free = plan().view.free(row);
    const int64_t* limit = cell.limit.data() + static_cast<size_t>(row) * dimensions;
    double sum = 0, resources = 0;
    for (size_t r = 0; r < dimensions; ++r) {
      if (limit[r] == 0) continue;
      const int64_t left = std::max<int64_t>(static_cast<const int64_t*>(free)[r] - request[r], 0);
      const double share = static_cast<double>(left) / static_cast<double>(limit[r]);
      sum += portable_exp(share * kLogOfTen);
      ++resources;
    }
    const double total = 2 * (sum / resources);
    return std::clamp(spread_ ? total - 2 : 20 - total, 0.0, kMostFit) / kMostFit;
  }

  const bool spread_;
  ShuffledRows all_{size_t{0}};
  ShuffledRows few_{size_t{0}};  // of a constraint
  ShuffledRows* rows_ = nullptr;
  size_t next_ = 0;  // in rows_
  size_t seen_ = 0;  // by the task
  int64_t limit_ = 2;
  int64_t tasks_of_job_ = 1;
  std::vector<Option> skipped_;
  size_t used_of_skipped_ = 0;
  std::unordered_map<int64_t, int64_t> wanted_;  // by job: tasks known, and of the plan
};

class Stranded final : public ScoringRule {
 public:
  explicit Stranded(size_t enough) : enough_(enough) {}

  void begin(ScoringPlan& plan) override {
    ScoringRule::begin(plan);
    const size_t machines = plan.view.static_state().machines();
    if (all_.size() != machines) all_ = ShuffledRows(machines);
    all_.restore();
    changes_.resize(machines);
    classes_.clear();
  }

  void begin_group(size_t task, size_t) override {
    const int64_t* request = plan().tasks.request_of(task);
    std::vector<int64_t> key(request, request + plan().tasks.dimensions);
    key.push_back(plan().tasks.preference[task]);
    const auto [found, is_new] = classes_.try_emplace(std::move(key));
    class_ = &found->second;
    if (!is_new) return;
    class_->start = all_.drawn() % std::max<size_t>(all_.size(), 1);
    class_->required = plan().affinity.required();
    if (class_->required) class_->few = ShuffledRows(plan().affinity.listed());
  }

  int32_t choose(size_t task) override {
    const int64_t* request = plan().tasks.request_of(task);
    refresh(request);
    ShuffledRows& rows = class_->required ? class_->few : all_;
    const size_t start = class_->required ? 0 : class_->start;
    std::vector<Candidate>& candidates = class_->candidates;
    for (; class_->seen < rows.size() && candidates.size() < enough_; ++class_->seen) {
      const int32_t row = rows.at((start + class_->seen) % rows.size(), plan().stream);
      if (plan().passes(row, request)) candidates.push_back(scored(row, request));
    }
    const auto best = std::min_element(candidates.begin(), candidates.end());
    return best == candidates.end() ? kNone : best->row;
  }

  void took(int32_t row) override { ++changes_[static_cast<size_t>(row)]; }
  // Machines that had left a class may have room again.
  void rolled_back() override { classes_.clear(); }

 private:
  static constexpr double kWhole = 0x1p20;  // of a machine's resource
  // What is stranded is rounded, so that the rounding of shares decides nothing.
  static constexpr int kBitsBelow = 10;
  static constexpr int64_t kHalf = int64_t{1} << (kBitsBelow - 1);

  struct Candidate {
    int32_t row;
    uint32_t changes;  // of the machine when it was scored
    int64_t affinity;
    int64_t stranded;  // how much more, in 1,024ths of a machine
    int64_t free;      // sum of shares left

    bool operator<(const Candidate& other) const {
      return std::tuple(-affinity, stranded, free) <
             std::tuple(-other.affinity, other.stranded, other.free);
    }
  };
  struct TaskClass {
    std::vector<Candidate> candidates;  // in the order in which they were found
    size_t seen = 0;                    // machines looked at
    size_t start = 0;                   // in the order of all machines
    bool required = false;
    ShuffledRows few{size_t{0}};  // of a constraint
  };
  struct Room {
    int64_t stranded;
    int64_t free;
  };

  // Those that the plan has changed are scored again; those that no longer pass leave.
  void refresh(const int64_t* request) {
    std::erase_if(class_->candidates, [&](Candidate& candidate) {
      if (candidate.changes == changes_[static_cast<size_t>(candidate.row)]) {
        ++plan().work.filtered;
        return false;
      }
      if (!plan().passes(candidate.row, request)) return true;
      candidate = scored(candidate.row, request);
      return false;
    });
  }

  Candidate scored(int32_t row, const int64_t* request) {
    ++plan().work.scored;
    const Room before = room_of(row, nullptr), after = room_of(row, request);
    return {row, changes_[static_cast<size_t>(row)], plan().affinity.of(row),
            (after.stranded - before.stranded + kHalf) >> kBitsBelow, after.free};
  }

  Room room_of(int32_t row, const int64_t* request) const {
    const StaticCellState& cell = plan().view.static_state();
    const size_t dimensions = cell.dimensions();
    const FreeAmount free = plan().view.free(row);
    const int64_t* limit = cell.limit.data() + static_cast<size_t>(row) * dimensions;
    int64_t sum = 0, resources = 0, scarcest = static_cast<int64_t>(kWhole);
    for (size_t r = 0; r < dimensions; ++r) {
      if (limit[r] == 0) continue;
      const int64_t left = static_cast<const int64_t*>(free)[r] - (request ? request[r] : 0);
      const double share =
          static_cast<double>(std::max<int64_t>(left, 0)) / static_cast<double>(limit[r]);
      const int64_t units = static_cast<int64_t>(share * kWhole);
      sum += units;
      scarcest = std::min(scarcest, units);
      ++resources;
    }
    return {sum - resources * scarcest, sum};
  }

  const size_t enough_;
  ShuffledRows all_{size_t{0}};
  std::map<std::vector<int64_t>, TaskClass> classes_;  // by request and set
  TaskClass* class_ = nullptr;                         // of the group
  std::vector<uint32_t> changes_;                      // by row: how often a plan took some of it
};

}  // namespace

void RowAffinity::use(const Catalog& catalog, int32_t set) {
  if (set == set_) return;
  set_ = set;
  for (const int32_t row : listed_) of_row_[static_cast<size_t>(row)] = kUnlisted;
  listed_.clear();
  required_ = catalog.is_constraint(set);
  differs_ = false;
  const uint32_t first = catalog.first_level(set), end = catalog.end_level(set);
  if (first == end) return;
  int64_t cheapest = catalog.level(first).cost, dearest = cheapest;
  for (uint32_t level = first; level < end; ++level) {
    cheapest = std::min(cheapest, catalog.level(level).cost);
    dearest = std::max(dearest, catalog.level(level).cost);
  }
  const int64_t without = required_ ? dearest : catalog.elsewhere_cost(set);
  for (uint32_t level = first; level < end; ++level) {
    const Catalog::Level& members = catalog.level(level);
    const auto affinity = static_cast<int8_t>(share_of(without - members.cost, without - cheapest));
    differs_ |= affinity > 0;
    const auto list = [&](int32_t row) {
      if (of_row_[static_cast<size_t>(row)] != kUnlisted) return;  // as a machine, before its rack
      of_row_[static_cast<size_t>(row)] = affinity;
      listed_.push_back(row);
    };
    if (members.racks) {
      for (const Catalog::RowRange& rack : catalog.rack_rows(members))
        for (int32_t row = rack.first; row < rack.end; ++row) list(row);
    } else {
      for (const int32_t row : catalog.members(members)) list(row);
    }
  }
  std::sort(listed_.begin(), listed_.end());
}

size_t kubernetes_enough(size_t n, int64_t percentage) {
  constexpr size_t kFewest = 100;
  if (n < kFewest) return n;
  const auto machines = static_cast<int64_t>(n);
  const int64_t share = percentage > 0 ? percentage : std::max<int64_t>(50 - machines / 125, 5);
  return std::max(static_cast<size_t>(machines * share / 100), kFewest);
}

std::unique_ptr<ScoringRule> kubernetes_rule(int64_t percentage) {
  return std::make_unique<Kubernetes>(percentage);
}
std::unique_ptr<ScoringRule> swarmkit_rule() { return std::make_unique<SwarmKit>(); }
std::unique_ptr<ScoringRule> nomad_rule(bool spread) { return std::make_unique<Nomad>(spread); }
std::unique_ptr<ScoringRule> stranded_rule(size_t enough) {
  return std::make_unique<Stranded>(enough);
}

}  // namespace agora
