// What estimators of slot prices compute: how much the tasks offered want each machine, and the
// implied cost of a slot.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "objective.hpp"

namespace agora {

// How much the tasks that a scheduler was offered want each machine.
//
// A task of a set that lists s machines adds 1/s to the demand for each of them. A task counts
// once, however often it is offered. Demand is forgotten exponentially: advance() multiplies what
// was counted before by a factor, and the total by the same, so that a machine's share of the total
// is right from the first task on.
//
// What machines are wanted differs by chance, too: the more, the fewer tasks were offered and the
// more of them have sets of their own. pool() draws the demands towards their mean by the part of
// their spread that chance explains (the estimator of James and Stein, see Efron and Morris,
// Journal of the American Statistical Association 68, 1973). The tasks of a set that are offered
// in one call count as one observation: they are often of one job.
//
// Schedulers may share demand (docs/prices_sharing.md): learn() counts what others were offered.
//
// Fixed point: demand is in units of 2^-32 tasks. The cost of advance() follows from what was
// offered since the last one, and from the number of machines, never from the number of sets.
class OfferedDemand {
 public:
  static constexpr int64_t kTask = int64_t{1} << 32;
  static constexpr int64_t kKeepAll = int64_t{1} << 31;
  static constexpr int64_t kMaxTask = int64_t{1} << 30;  // ids are below
  static constexpr int64_t kMaxGain = int64_t{1} << 32;
  static constexpr int64_t kMaxSlots = int64_t{1} << 30;

  // samples: how many of the last tasks recent_requests() and recent_sets() show. Throws
  // std::invalid_argument naming the set that is malformed, or whose costs differ by more than
  // kMaxGain. The columns are borrowed.
  OfferedDemand(const PreferenceColumns& columns, size_t dimensions, size_t samples);

  // Counts tasks not seen before. request: [n, R]. Throws std::invalid_argument, and counts
  // nothing, if there is no such task or set.
  void offered(std::span<const int64_t> task, std::span<const int32_t> preference,
               const int64_t* request);

  // From now on, remembers the tasks counted for take_new().
  void share() { shares_ = true; }

  // The tasks counted since the last call, or since share(), in that order.
  std::vector<int64_t> take_new() { return std::exchange(new_, {}); }

  // Counts tasks that others were offered: tasks[i] of a set, and the sum over their calls of the
  // tasks of each, squared. Both may be below 0, which takes back what was counted twice; demand
  // never falls below 0. Throws std::invalid_argument, and counts nothing, if there is no such set,
  // or a number is beyond kMaxTask, its square, or what is counted then.
  void learn(std::span<const int32_t> preference, std::span<const int64_t> tasks,
             std::span<const int64_t> squares);

  // Forgets all but keep / kKeepAll of the demand so far, then adds what was offered since the last
  // call. Returns how many entries of the catalog it read.
  int64_t advance(int64_t keep);

  // Draws the demands, and what is saved by them, towards their means, for gain(), mean_gain() and
  // load() until the next advance().
  void pool();

  // As of the last advance():
  int64_t total() const { return total_; }                       // of all tasks offered
  std::span<const int64_t> demand() const { return demand_; }    // [M]
  std::span<const int32_t> members() const { return members_; }  // [M]: sets offered that list it
  // What elsewhere costs more than the machine for the tasks that want it, their mean: [M]; 0 where
  // no task does.
  void gain(std::span<int64_t> gain) const;
  // The same over all machines, weighted by demand.
  int64_t mean_gain() const;
  // Each machine's share of a load of `busy` slots, in units of 2^-32 slots: [M].
  void load(int64_t busy, std::span<int64_t> load) const;

  // The requests of tasks counted last, in no order: [k, R].
  std::span<const int64_t> recent_requests() const;
  // The sets of tasks counted last, those of others with them, in no order: [k].
  std::span<const int32_t> recent_sets() const;
  int64_t tasks() const { return tasks_; }  // offered so far, those since advance() too
  size_t machines() const { return columns_.rack_of.size(); }
  size_t dimensions() const { return dimensions_; }

 private:
  bool is_new(int64_t task);
  void remember(int32_t set);
  std::span<const int64_t> wanted() const { return pooled_.empty() ? demand_ : pooled_; }
  std::span<const __int128> saved() const { return pooled_.empty() ? saving_ : pooled_saving_; }

  PreferenceColumns columns_;
  size_t dimensions_;
  size_t samples_;
  std::vector<uint64_t> seen_;    // a bit per task id
  std::vector<int64_t> since_;    // [K]: tasks offered since advance()
  std::vector<int64_t> squares_;  // [K]: the sum over calls of the tasks of each, squared
  std::vector<int32_t> in_call_;  // [K]: tasks in this call of offered()
  std::vector<int32_t> touched_;  // sets with some
  std::vector<uint8_t> listed_;   // [K], bool: in members_ already
  std::vector<int64_t> sample_;   // a ring of requests, [samples, R]
  std::vector<int32_t> sampled_set_;
  int64_t sets_sampled_ = 0;
  std::vector<int64_t> new_;
  bool shares_ = false;
  int64_t tasks_ = 0;
  int64_t total_since_ = 0;
  int64_t total_ = 0;
  __int128 chance_ = 0;  // the sum over machines of the variance of demand, in 2^-32 tasks^2
  std::vector<int64_t> demand_;   // [M]
  std::vector<__int128> saving_;  // [M]: demand x gain
  std::vector<int64_t> pooled_;   // [M], or empty: not pooled
  std::vector<__int128> pooled_saving_;
  std::vector<int64_t> highest_gain_;  // [M]: of any set offered
  std::vector<int32_t> members_;       // [M]
};

// The implied cost of a machine's next slot (Krishnan and Ott 1986; Kelly 1988).
//
// A machine with C slots is a loss system to which the tasks that want it come as a Poisson stream
// of nu Erlang. If b slots are busy and one more is taken, the expected number of tasks that are
// turned away more, from now on, is E(nu, C) / E(nu, b), where E is Erlang's loss formula. Each of
// them pays `gain` more elsewhere, so this ratio times the gain is what the slot is worth to
// others.
//
// E(n) / E(n - 1) = nu / (n + nu E(n - 1)), E(0) = 1. The ratio sought is the product of these from
// b + 1 to C: all factors are at most 1, so it never falls as b grows, in fixed point either.

constexpr int64_t kMaxLevels = 256;

// price[b], b = 0 .. price.size() - 1: rounded to the nearest integer; `gain` where b >= slots.
// load: nu in units of 2^-32 Erlang, 0 to 2^62; slots: 0 to kMaxLevels; gain: 0 to 2^32.
void implied_cost(int64_t load, int64_t slots, int64_t gain, std::span<int64_t> price);

// The prices of M machines, [M, levels], held while they move by little.
struct ImpliedPrices {
  std::span<int64_t> price;  // [M, levels]
  size_t levels;
  std::span<int64_t> load;  // [M], what each row was computed for last; -1: never
  std::span<int64_t> gain;  // [M]
};

struct PriceChanges {
  int64_t computed;  // rows
  int64_t changed;   // rows
};

// Computes the rows whose load or gain moved by more than 1/256, and changes those where some price
// moved by more than 1/64 of the gain. load, slots, gain: [M].
PriceChanges update_implied_prices(const ImpliedPrices& prices, std::span<const int64_t> load,
                                   std::span<const int64_t> slots, std::span<const int64_t> gain);

}  // namespace agora
