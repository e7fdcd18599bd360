// Regret of random histories of a small cell: of every transaction against all placements of its
// tasks that there are, of the whole cell against the bounds that hold for it. Calls that nobody
// should make are refused.
#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <vector>

#include "check.hpp"
#include "parsync/metrics/native/regret.hpp"
#include "shared_state/native/observed_cell.hpp"

using namespace agora;

namespace {

using Ids = std::vector<int64_t>;
constexpr size_t kMachines = 3, kTasks = 60, kMostClaims = 3;
constexpr int64_t kEndUs = 400, kSettleUs = 20, kNowhere = -1;

template <class T>
SharedColumn<T> column(const std::vector<T>& values) {
  return SharedColumn<T>(std::span<const T>(values));
}
SharedTable<int64_t> ones(size_t rows) {
  auto [table, values] = SharedTable<int64_t>::make(rows, 1);
  std::fill_n(values, rows, 1);
  return table;
}

bool is_refused(const std::function<void()>& call) {
  try {
    call();
  } catch (const std::invalid_argument&) {
    return true;
  }
  return false;
}

// Set 1 prefers machine 0, at a third of what another machine costs.
struct Preferences {
  Ids machine_offsets{0, 0, 1}, machine_cost{2}, rack_offsets{0, 0, 0}, elsewhere{1, 6},
      unscheduled{9, 20};
  std::vector<int32_t> machine{0}, rack_of{0, 0, 0};

  PreferenceColumns columns() const {
    return {machine_offsets, machine,     machine_cost, rack_offsets, {}, {},
            elsewhere,       unscheduled, rack_of};
  }
  int64_t cost(int32_t set, int32_t on) const {
    int64_t cost = 0;
    bool preferred = false;
    placement_cost(columns(), {&set, 1}, {&on, 1}, &cost, &preferred);
    return cost;
  }
};

class World {
 public:
  explicit World(uint64_t seed, int64_t batches_per_phase = 1000) : draw_(seed) {
    for (size_t task = 0; task < kTasks; ++task) {
      preference_.push_back(static_cast<int32_t>(draw_(2)));
      arrivals_.push_back(static_cast<int64_t>(task));
    }
    watch_ = std::make_shared<RegretWatch>(
        best_,
        RegretWatch::Tasks{column(preference_), ones(kTasks), column(Ids{0}),
                           column(Ids{0, kTasks}), column(arrivals_), column(Ids{}), false},
        RegretWatch::Sampling{
            {{kSettleUs, 200}, {200 + kSettleUs, kEndUs}}, batches_per_phase, 5, seed});
    watch_->attach(cell_);
    observed_.add(watch_);
  }

  void run() {
    for (int64_t now_us = 0; now_us < kEndUs; now_us += static_cast<int64_t>(draw_(6))) {
      switch (draw_(5)) {
        case 0:
          release(now_us);
          break;
        case 1:
          if (draw_(4) == 0) change_machine(now_us);
          break;
        default:
          commit(now_us);
      }
    }
    watch_->end(kEndUs);
    watch_->end(kEndUs);  // once more changes nothing
  }

  void check() const {
    CHECK(watch_->decisions().size() == expected_.size());
    for (size_t i = 0; i < expected_.size(); ++i) {
      const RegretWatch::Decision& found = watch_->decisions()[i];
      CHECK(found.sequence == expected_[i].sequence && found.regret == expected_[i].regret);
      CHECK(found.regret >= 0 && found.losers <= found.tasks);
    }
    CHECK(watch_->systems().size() == 10);
    for (const RegretWatch::System& row : watch_->systems())
      CHECK(row.without_migration >= 0 && row.with_migration >= row.without_migration);
  }

  const std::vector<RegretWatch::Decision>& decisions() const { return watch_->decisions(); }
  int64_t regret() const {
    int64_t sum = 0;
    for (const auto& row : watch_->decisions()) sum += row.regret;
    return sum;
  }

  void abuse() {
    RegretWatch& watch = *watch_;
    const auto claims = std::make_shared<const Transaction>(transaction({0}, {0}));
    const auto answer = std::make_shared<const CommitResult>();
    CHECK(is_refused([&] { watch.on_commit(claims, answer, 1); }));
    const auto elsewhere = column(Ids{static_cast<int64_t>(kTasks)});
    const auto machine = column(std::vector<int32_t>{0});
    CHECK(is_refused([&] { watch.on_load({elsewhere, machine, ones(1), machine, elsewhere}); }));
    Released lost;
    lost.task = column(Ids{-1});
    CHECK(is_refused([&] { watch.on_machines(machine, {}, lost, 1); }));
    Cell other(kMachines + 1, 1, std::vector<int64_t>(kMachines + 1, 2), Ids{0, kMachines + 1});
    CHECK(is_refused([&] { watch.attach(other); }));
    RegretWatch::Tasks nothing;
    nothing.arrival_offsets = column(Ids{0});
    RegretWatch alone(best_, nothing, {{{0, 10}}, 1, 1, 0});
    CHECK(is_refused([&] { alone.end(20); }));
    const auto malformed = [&](auto change) {
      RegretWatch::Tasks tasks = nothing;
      RegretWatch::Sampling sampling{{}, 1, 1, 0};
      change(tasks, sampling);
      return is_refused([&] { RegretWatch(best_, tasks, sampling); });
    };
    CHECK(!malformed([](auto&, auto&) {}));
    CHECK(malformed([](auto&, auto& sampling) { sampling.instants_per_phase = 0; }));
    CHECK(malformed([](auto& tasks, auto&) { tasks.initial = column(Ids{0}); }));
    CHECK(malformed([](auto& tasks, auto&) { tasks.arrival_offsets = column(Ids{1}); }));
    CHECK(malformed([](auto& tasks, auto&) { tasks.arrival_offsets = {}; }));
    CHECK(malformed([](auto& tasks, auto&) { tasks.request = ones(1); }));
  }

 private:
  struct Expected {
    int64_t sequence, regret;
  };

  Transaction transaction(const Ids& task, const std::vector<int32_t>& machine) {
    Transaction made;
    made.sequence = sequence_;
    made.task = column(task);
    made.machine = column(machine);
    made.request = ones(task.size());
    made.synced_us = column(Ids(task.size(), 0));
    return made;
  }

  void commit(int64_t now_us) {
    Ids task;
    std::vector<int32_t> machine;
    for (size_t i = 0; i < 1 + draw_(kMostClaims); ++i) {
      const auto next = static_cast<int64_t>(draw_(kTasks));
      if (std::ranges::find(task, next) != task.end()) continue;
      task.push_back(next);
      machine.push_back(static_cast<int32_t>(draw_(kMachines)));
    }
    ++sequence_;
    Transaction claims = transaction(task, machine);
    std::vector<int64_t> room = room_now();
    const Released live = allocations(cell_, 0);
    std::optional<size_t> victim;
    if (live.size() && draw_(3) == 0) victim = draw_(live.size());
    if (victim) {
      claims.evict = column(Ids{live.allocation[*victim]});
      ++room[static_cast<size_t>(live.machine[*victim])];
    }
    const CommitResultPtr result =
        observed_.commit(std::make_shared<const Transaction>(claims), now_us);

    // what there was to place, what it got, and the least that it could have cost
    std::vector<int32_t> sets;
    int64_t got = 0;
    const bool stays = victim && result->evicted.size() == 0;
    bool is_claimed = false;
    for (size_t i = 0; i < task.size(); ++i) {
      const auto reason = static_cast<Reason>(result->reason[i]);
      if (reason == Reason::Duplicate) continue;
      sets.push_back(preference_[static_cast<size_t>(task[i])]);
      const bool moves = victim && live.task[*victim] == task[i];
      is_claimed |= moves;
      const int32_t home = moves && stays ? live.machine[*victim] : kNowhere;
      got += preferences_.cost(sets.back(), reason == Reason::Accepted ? machine[i] : home);
    }
    if (victim && !is_claimed) {
      sets.push_back(preference_[static_cast<size_t>(live.task[*victim])]);
      got += preferences_.cost(sets.back(), stays ? live.machine[*victim] : kNowhere);
    }
    const bool counts = (now_us >= kSettleUs && now_us < 200) || now_us >= 200 + kSettleUs;
    if (counts && !sets.empty()) expected_.push_back({sequence_, got - least(sets, room, 0)});
  }

  int64_t least(const std::vector<int32_t>& sets, std::vector<int64_t>& room, size_t from) const {
    if (from == sets.size()) return 0;
    int64_t cost = preferences_.cost(sets[from], kNowhere) + least(sets, room, from + 1);
    for (size_t m = 0; m < kMachines; ++m) {
      if (room[m] <= 0) continue;
      --room[m];
      cost = std::min(cost, preferences_.cost(sets[from], static_cast<int32_t>(m)) +
                                least(sets, room, from + 1));
      ++room[m];
    }
    return cost;
  }

  void release(int64_t now_us) {
    const Released live = allocations(cell_, 0);
    if (live.size() == 0) return;
    observed_.release(column(Ids{live.allocation[draw_(live.size())]}), std::nullopt, now_us);
  }

  void change_machine(int64_t now_us) {
    const auto machine = static_cast<int32_t>(draw_(kMachines));
    observed_.set_machines(column(std::vector<int32_t>{machine}),
                           SharedColumn<bool>::filled(1, draw_(2) == 0), now_us);
  }

  std::vector<int64_t> room_now() const {
    std::vector<int64_t> room;
    for (size_t m = 0; m < kMachines; ++m)
      room.push_back(cell_.rows()[m].up() ? cell_.limit()[m] - cell_.used_at(m, 0) : 0);
    return room;
  }

  Draws draw_;
  Preferences preferences_;
  const BestPlacement best_{preferences_.columns()};
  std::vector<int32_t> preference_;
  Ids arrivals_;
  Cell cell_{kMachines, 1, std::vector<int64_t>(kMachines, 2), Ids{0, kMachines}};
  ObservedCell observed_{cell_};
  std::shared_ptr<RegretWatch> watch_;
  int64_t sequence_ = 0;
  std::vector<Expected> expected_;
};

}  // namespace

int main() {
  size_t decisions = 0;
  int64_t regret = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    World world(seed);
    world.run();
    world.check();
    decisions += world.decisions().size();
    regret += world.regret();
    World few(seed, 7);
    few.run();
    CHECK(few.decisions().size() <= 14 &&
          std::ranges::is_sorted(few.decisions(), {}, &RegretWatch::Decision::at_us));
    world.abuse();
  }
  CHECK(decisions > 5000 && regret > 0);
}
