#include "estimators.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>

namespace agora {

namespace {

using Wide = __int128;

constexpr int64_t kChanceUnit = int64_t{1} << 16;  // of demand, before it is squared

[[noreturn]] void refuse(size_t set, const std::string& what) {
  throw std::invalid_argument("preference set " + std::to_string(set) + ": " + what);
}

int64_t kept(int64_t value, int64_t keep) { return static_cast<int64_t>(Wide{value} * keep >> 31); }

// Demand that never leaves its range, whatever others say.
int64_t counted(int64_t demand, int64_t more) {
  constexpr int64_t kMost = OfferedDemand::kMaxTask * OfferedDemand::kTask;
  return static_cast<int64_t>(std::clamp<Wide>(Wide{demand} + more, 0, kMost));
}

int64_t gain_of(const PreferenceColumns& c, size_t set, size_t entry) {
  const int64_t elsewhere = c.elsewhere_cost[set], here = c.machine_cost[entry];
  return elsewhere > here ? elsewhere - here : 0;
}

// Of which rounding has forgotten a little: so little demand may be left that it shows in the mean.
int64_t mean(Wide saving, Wide demand, int64_t highest) {
  return demand > 0 ? static_cast<int64_t>(std::min<Wide>(saving / demand, highest)) : 0;
}

}  // namespace

OfferedDemand::OfferedDemand(const PreferenceColumns& columns, size_t dimensions, size_t samples)
    : columns_(columns),
      dimensions_(dimensions),
      samples_(samples),
      since_(columns.sets()),
      squares_(columns.sets()),
      in_call_(columns.sets()),
      listed_(columns.sets()),
      sample_(samples * dimensions),
      sampled_set_(samples),
      demand_(columns.rack_of.size()),
      saving_(columns.rack_of.size()),
      highest_gain_(columns.rack_of.size()),
      members_(columns.rack_of.size()) {
  check_lengths(columns);
  if (dimensions == 0 || samples == 0)
    throw std::invalid_argument("expected at least one dimension and one sample");
  const auto& offsets = columns.machine_offsets;
  for (size_t set = 0; set < columns.sets(); ++set) {
    if (offsets[set] < 0 || offsets[set] > offsets[set + 1] ||
        offsets[set + 1] > static_cast<int64_t>(columns.machine.size()))
      refuse(set, "offsets out of range");
    for (auto entry = static_cast<size_t>(offsets[set]);
         entry < static_cast<size_t>(offsets[set + 1]); ++entry) {
      if (columns.machine[entry] < 0 ||
          static_cast<size_t>(columns.machine[entry]) >= columns.rack_of.size())
        refuse(set, "a machine the cell does not have");
      if (Wide{columns.elsewhere_cost[set]} - columns.machine_cost[entry] > kMaxGain)
        refuse(set,
               "elsewhere_cost: slot prices expect at most 2^32 more than a machine costs, "
               "got " +
                   std::to_string(columns.elsewhere_cost[set]));
    }
  }
}

void OfferedDemand::offered(std::span<const int64_t> task, std::span<const int32_t> preference,
                            const int64_t* request) {
  int64_t last = -1;
  for (size_t i = 0; i < task.size(); ++i) {
    if (task[i] < 0 || task[i] >= kMaxTask)
      throw std::invalid_argument("task[" + std::to_string(i) + "]: expected 0 to 2^30, got " +
                                  std::to_string(task[i]));
    if (preference[i] < 0 || static_cast<size_t>(preference[i]) >= since_.size())
      throw std::invalid_argument("preference[" + std::to_string(i) + "]: there is no set " +
                                  std::to_string(preference[i]));
    last = std::max(last, task[i]);
  }
  const auto words = static_cast<size_t>(last + 64) / 64;
  if (words > seen_.size()) seen_.resize(std::max(words, 2 * seen_.size()));
  for (size_t i = 0; i < task.size(); ++i) {
    if (!is_new(task[i])) continue;
    const auto set = static_cast<size_t>(preference[i]);
    if (since_[set]++ == 0) touched_.push_back(preference[i]);
    ++in_call_[set];
    const size_t at = static_cast<size_t>(tasks_) % samples_;
    std::copy_n(request + i * dimensions_, dimensions_, sample_.data() + at * dimensions_);
    remember(preference[i]);
    if (shares_) new_.push_back(task[i]);
    ++tasks_;
    ++total_since_;
  }
  for (const int32_t set : preference) {
    int32_t& tasks = in_call_[static_cast<size_t>(set)];
    squares_[static_cast<size_t>(set)] += int64_t{tasks} * tasks;
    tasks = 0;
  }
}

void OfferedDemand::remember(int32_t set) {
  sampled_set_[static_cast<size_t>(sets_sampled_++) % samples_] = set;
}

void OfferedDemand::learn(std::span<const int32_t> preference, std::span<const int64_t> tasks,
                          std::span<const int64_t> squares) {
  const auto refuse_entry = [](const char* column, size_t i, int64_t value) {
    throw std::invalid_argument(std::string(column) + "[" + std::to_string(i) +
                                "]: out of range, got " + std::to_string(value));
  };
  constexpr int64_t kMaxSquare = int64_t{1} << 60;
  constexpr int64_t kMaxLearnt = kMaxTask / 2;  // leaves room for what is offered
  for (size_t i = 0; i < preference.size(); ++i) {
    if (preference[i] < 0 || static_cast<size_t>(preference[i]) >= since_.size())
      throw std::invalid_argument("preference[" + std::to_string(i) + "]: there is no set " +
                                  std::to_string(preference[i]));
    if (tasks[i] < -kMaxTask || tasks[i] > kMaxTask) refuse_entry("tasks", i, tasks[i]);
    if (squares[i] < -kMaxSquare || squares[i] > kMaxSquare) refuse_entry("squares", i, squares[i]);
  }
  for (size_t i = 0; i < preference.size(); ++i) {
    const auto set = static_cast<size_t>(preference[i]);
    if (since_[set] == 0) touched_.push_back(preference[i]);
    since_[set] = std::clamp(since_[set] + tasks[i], -kMaxLearnt, kMaxLearnt);
    squares_[set] = std::clamp(squares_[set] + squares[i], -kMaxSquare, kMaxSquare);
    total_since_ = std::clamp(total_since_ + tasks[i], -kMaxLearnt, kMaxLearnt);
    const auto samples = static_cast<int64_t>(samples_);
    for (int64_t k = std::min(tasks[i], samples); k > 0; --k) remember(preference[i]);
  }
}

bool OfferedDemand::is_new(int64_t task) {
  uint64_t& word = seen_[static_cast<size_t>(task) / 64];
  const uint64_t bit = uint64_t{1} << (task % 64);
  if (word & bit) return false;
  word |= bit;
  return true;
}

int64_t OfferedDemand::advance(int64_t keep) {
  if (keep < 0 || keep > kKeepAll) throw std::invalid_argument("keep: expected 0 to 2^31");
  if (keep < kKeepAll) {
    total_ = kept(total_, keep);
    for (int64_t& demand : demand_) demand = kept(demand, keep);
    for (Wide& saving : saving_) saving = saving * keep >> 31;
    chance_ = chance_ * kept(keep, keep) >> 31;
  }
  pooled_.clear();
  pooled_saving_.clear();
  int64_t entries = 0;
  for (const int32_t touched : touched_) {
    const auto set = static_cast<size_t>(touched);
    const auto begin = static_cast<size_t>(columns_.machine_offsets[set]),
               end = static_cast<size_t>(columns_.machine_offsets[set + 1]);
    const int32_t is_first = listed_[set] ? 0 : 1;
    const int64_t each = end > begin ? since_[set] * kTask / static_cast<int64_t>(end - begin) : 0;
    for (size_t entry = begin; entry < end; ++entry) {
      const auto m = static_cast<size_t>(columns_.machine[entry]);
      demand_[m] = counted(demand_[m], each);
      const int64_t gain = gain_of(columns_, set, entry);
      saving_[m] = std::max<Wide>(saving_[m] + Wide{each} * gain, 0);
      highest_gain_[m] = std::max(highest_gain_[m], gain);
      members_[m] += is_first;
    }
    if (end > begin) chance_ += (Wide{squares_[set]} << 32) / static_cast<int64_t>(end - begin);
    squares_[set] = 0;
    listed_[set] = 1;
    since_[set] = 0;
    entries += static_cast<int64_t>(end - begin);
  }
  chance_ = std::max<Wide>(chance_, 0);
  total_ = counted(total_, total_since_ * kTask);
  total_since_ = 0;
  touched_.clear();
  return entries;
}

void OfferedDemand::pool() {
  if (demand_.empty()) return;
  const auto machines = static_cast<int64_t>(demand_.size());
  Wide demand = 0, saving = 0, spread = 0;
  for (const int64_t d : demand_) demand += d;
  for (const Wide s : saving_) saving += s;
  const auto mean_demand = static_cast<int64_t>(demand / machines);
  const Wide mean_saving = saving / machines;
  for (const int64_t d : demand_) {
    const int64_t off = (d - mean_demand) / kChanceUnit;
    spread += Wide{off} * off;
  }
  // The part of the spread that chance does not explain, in units of 2^-30.
  Wide real = spread > chance_ ? spread - chance_ : 0;
  while (spread >= Wide{1} << 64) spread >>= 1, real >>= 1;
  const int64_t part = spread > 0 ? static_cast<int64_t>((real << 30) / spread) : 0;
  pooled_.resize(demand_.size());
  pooled_saving_.resize(demand_.size());
  for (size_t m = 0; m < demand_.size(); ++m) {
    const Wide off = Wide{demand_[m] - mean_demand} * part >> 30;
    pooled_[m] = static_cast<int64_t>(std::max<Wide>(mean_demand + off, 0));
    pooled_saving_[m] = std::max<Wide>(mean_saving + ((saving_[m] - mean_saving) * part >> 30), 0);
  }
}

void OfferedDemand::gain(std::span<int64_t> gain) const {
  int64_t highest = 0;  // of any machine: pooled demand is that for others, too
  for (const int64_t one : highest_gain_) highest = std::max(highest, one);
  const auto demand = wanted();
  const auto saving = saved();
  for (size_t m = 0; m < demand.size(); ++m) gain[m] = mean(saving[m], demand[m], highest);
}

int64_t OfferedDemand::mean_gain() const {
  Wide demand = 0, saving = 0;
  int64_t highest = 0;
  for (size_t m = 0; m < demand_.size(); ++m) {
    demand += demand_[m];
    saving += saving_[m];
    highest = std::max(highest, highest_gain_[m]);
  }
  return mean(saving, demand, highest);
}

void OfferedDemand::load(int64_t busy, std::span<int64_t> load) const {
  if (busy < 0 || busy > kMaxSlots)
    throw std::invalid_argument("busy: expected 0 to 2^30 slots, got " + std::to_string(busy));
  const auto demand = wanted();
  for (size_t m = 0; m < demand.size(); ++m)
    load[m] = total_ > 0 ? static_cast<int64_t>(std::min(((Wide{busy} * demand[m]) << 32) / total_,
                                                         Wide{busy} << 32))
                         : 0;
}

std::span<const int64_t> OfferedDemand::recent_requests() const {
  const size_t count = std::min(static_cast<size_t>(tasks_), samples_);
  return std::span(sample_).first(count * dimensions_);
}

std::span<const int32_t> OfferedDemand::recent_sets() const {
  return std::span(sampled_set_).first(std::min(static_cast<size_t>(sets_sampled_), samples_));
}

namespace {

using Wide = __int128;

constexpr int kFraction = 62;  // ratios and probabilities: 1 is 2^62
constexpr int64_t kOne = int64_t{1} << kFraction;
constexpr int64_t kMaxLoad = int64_t{1} << 62;
constexpr int64_t kMaxGain = int64_t{1} << 32;

int64_t times(int64_t value, int64_t fraction) {
  return static_cast<int64_t>(Wide{value} * fraction >> kFraction);
}

bool moved(int64_t before, int64_t now) { return std::abs(now - before) > before / 256; }

void check(const char* field, size_t row, int64_t value, int64_t highest) {
  if (value < 0 || value > highest)
    throw std::invalid_argument(std::string(field) + "[" + std::to_string(row) +
                                "]: expected 0 to " + std::to_string(highest) + ", got " +
                                std::to_string(value));
}

}  // namespace

void implied_cost(int64_t load, int64_t slots, int64_t gain, std::span<int64_t> price) {
  std::array<int64_t, kMaxLevels + 1> step;  // step[n] = E(n) / E(n - 1)
  int64_t loss = kOne;
  for (int64_t n = 1; n <= slots; ++n) {
    const int64_t rate = (n << 32) + times(load, loss);
    const Wide ratio = (Wide{load} << kFraction) / rate;
    step[static_cast<size_t>(n)] = static_cast<int64_t>(std::min<Wide>(ratio, kOne));
    loss = times(loss, step[static_cast<size_t>(n)]);
  }
  const auto full = std::min(static_cast<size_t>(slots), price.size());
  std::fill(price.begin() + static_cast<std::ptrdiff_t>(full), price.end(), gain);
  int64_t ratio = kOne;
  for (auto b = static_cast<size_t>(slots); b-- > 0;) {
    ratio = times(ratio, step[b + 1]);
    if (b < price.size())
      price[b] = static_cast<int64_t>((Wide{gain} * ratio + kOne / 2) >> kFraction);
  }
}

PriceChanges update_implied_prices(const ImpliedPrices& prices, std::span<const int64_t> load,
                                   std::span<const int64_t> slots, std::span<const int64_t> gain) {
  for (size_t m = 0; m < load.size(); ++m) {
    check("load", m, load[m], kMaxLoad);
    check("slots", m, slots[m], kMaxLevels);
    check("gain", m, gain[m], kMaxGain);
  }
  PriceChanges changes{0, 0};
  std::array<int64_t, kMaxLevels + 1> row;
  if (prices.levels == 0 || prices.levels > row.size())
    throw std::invalid_argument("price: expected 1 to 257 levels");
  const auto now = std::span(row).first(prices.levels);
  for (size_t m = 0; m < load.size(); ++m) {
    const bool is_new = prices.load[m] < 0;
    if (!is_new && !moved(prices.load[m], load[m]) && !moved(prices.gain[m], gain[m])) continue;
    implied_cost(load[m], slots[m], gain[m], now);
    prices.load[m] = load[m];
    prices.gain[m] = gain[m];
    ++changes.computed;
    const auto held = prices.price.subspan(m * prices.levels, prices.levels);
    const int64_t least = gain[m] / 64;
    bool changes_row = is_new;
    for (size_t b = 0; b < held.size() && !changes_row; ++b)
      changes_row = std::abs(now[b] - held[b]) > least;
    if (!changes_row) continue;
    std::copy(now.begin(), now.end(), held.begin());
    ++changes.changed;
  }
  return changes;
}

}  // namespace agora
