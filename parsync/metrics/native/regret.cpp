#include "regret.hpp"

#include <algorithm>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

namespace agora {

namespace {

int64_t sum_of(const std::vector<int64_t>& costs) {
  int64_t sum = 0;
  for (const int64_t cost : costs)
    if (__builtin_add_overflow(sum, cost, &sum))
      throw std::overflow_error("regret: the cost of all tasks is out of range");
  return sum;
}

template <class T>
bool contains(const std::vector<T>& ascending, T value) {
  return std::ranges::binary_search(ascending, value);
}

template <class T>
std::vector<T> ascending(std::span<const T> values) {
  std::vector<T> sorted(values.begin(), values.end());
  std::ranges::sort(sorted);
  return sorted;
}

// What claims may still take of a cell, below 0 on machines above their limit; or what machines may
// hold, if all that runs may move: their limit, or what they hold above it. 0 where they are down.
class CellRoom final : public MachineRoom {
 public:
  enum class Of : bool { kFree, kAll };
  CellRoom(const Cell& cell, Of of) : cell_(cell), of_(of) {}

  void read(size_t machine, int64_t* room) const override {
    const size_t dimensions = cell_.dimensions(), first = machine * dimensions;
    const bool up = cell_.rows()[machine].up();
    for (size_t r = 0; r < dimensions; ++r) {
      const int64_t limit = cell_.limit()[first + r] - cell_.held_at(machine, r);
      const int64_t used = cell_.used_at(machine, r);
      room[r] = !up ? 0 : of_ == Of::kFree ? limit - used : std::max(limit, used);
    }
  }

 private:
  const Cell& cell_;
  Of of_;
};

// What claims may still take of a cell, and more on a few machines.
class ChangedRoom final : public MachineRoom {
 public:
  explicit ChangedRoom(const Cell& cell) : free_(cell, CellRoom::Of::kFree), cell_(cell) {}

  // times: 1 or -1. Nothing may be read before settle().
  void add(int32_t machine, const int64_t* request, int64_t times) {
    rows_.push_back({machine, changes_.size()});
    for (size_t r = 0; r < cell_.dimensions(); ++r) changes_.push_back(times * request[r]);
  }
  void settle() { std::ranges::sort(rows_); }

  void read(size_t machine, int64_t* room) const override {
    free_.read(machine, room);
    const auto row = static_cast<int32_t>(machine);
    for (auto at = std::ranges::lower_bound(rows_, std::pair{row, size_t{0}});
         at != rows_.end() && at->first == row; ++at)
      for (size_t r = 0; r < cell_.dimensions(); ++r) room[r] += changes_[at->second + r];
  }

 private:
  CellRoom free_;
  const Cell& cell_;
  std::vector<std::pair<int32_t, size_t>> rows_;  // a machine, and where its change begins
  std::vector<int64_t> changes_;
};

}  // namespace

RegretWatch::RegretWatch(BestPlacement& best, Tasks tasks, Sampling sampling)
    : best_(best), tasks_(std::move(tasks)), sampling_(std::move(sampling)) {
  const size_t count = tasks_.preference.size();
  if (tasks_.request.rows() != count)
    throw std::invalid_argument("regret: expected a request for each task");
  const auto& offsets = tasks_.arrival_offsets;
  if (offsets.size() != tasks_.arrival_us.size() + 1 || !std::ranges::is_sorted(offsets) ||
      offsets[0] < 0 ||
      offsets[offsets.size() - 1] > static_cast<int64_t>(tasks_.arrival_rows.size()))
    throw std::invalid_argument("regret: offsets of arrivals out of range");
  for (const auto& ids : {tasks_.arrival_rows, tasks_.initial})
    for (const int64_t task : ids) row_of(task);
  if (sampling_.batches_per_phase < 0 || sampling_.instants_per_phase < 1)
    throw std::invalid_argument("regret: expected a number of samples");
  placed_.assign(count, 0);
  for (size_t phase = 0; phase < sampling_.phases.size(); ++phase) {
    const auto [from_us, to_us] = sampling_.phases[phase];
    moments_.push_back({from_us, What::kOpen, phase});
    moments_.push_back({to_us, What::kClose, phase});
    // one instant at a random place in each equal stretch
    const int64_t stretches = sampling_.instants_per_phase;
    const int64_t stretch_us = std::max<int64_t>((to_us - from_us) / stretches, 0);
    Stream stream(stream_key(sampling_.seed, "regret/instants", phase));
    for (int64_t k = 0; k < stretches; ++k) {
      const auto late_us = stream.below(static_cast<uint64_t>(std::max<int64_t>(stretch_us, 1)));
      moments_.push_back(
          {from_us + k * stretch_us + static_cast<int64_t>(late_us), What::kLook, phase});
    }
  }
  std::ranges::sort(moments_);
}

// --- calls of the cell ---

void RegretWatch::attach(const Cell& cell) {
  if (cell.machines() != best_.machines() || cell.dimensions() != dimensions())
    throw std::invalid_argument("regret: the cell is not that of the workload");
  cell_ = &cell;
}

void RegretWatch::before_change(int64_t now_us) {
  while (next_ < moments_.size() && moments_[next_].at_us <= now_us) begin(moments_[next_++]);
}

void RegretWatch::before_commit(const TransactionPtr& transaction, int64_t) {
  pending_.reset();
  const std::optional<size_t> place = open_ ? place_in_reservoir() : std::nullopt;
  if (!place) return;
  samples_.resize(std::max(samples_.size(), *place + 1));
  samples_[*place].reset();  // there is none if the commit fails
  pending_ = {*place, victims_of(*transaction)};
}

void RegretWatch::on_commit(const TransactionPtr& transaction, const CommitResultPtr& result,
                            int64_t now_us) {
  if (result->reason.size() != transaction->size())
    throw std::invalid_argument("regret: expected an answer to each claim");
  if (pending_)
    samples_[pending_->place] = decide(*transaction, *result, pending_->victims, now_us);
  pending_.reset();
  if (result->evicted.size()) set_placed(describe(cell(), result->evicted).task.span(), false);
  for (size_t i = 0; i < transaction->size(); ++i)
    if (result->reason[i] == static_cast<int8_t>(Reason::Accepted))
      placed_[row_of(transaction->task[i])] = 1;
}

void RegretWatch::on_load(const Load& load) { set_placed(load.task.span(), true); }

void RegretWatch::on_machines(const SharedColumn<int32_t>&, const SharedColumn<bool>&,
                              const Released& lost, int64_t) {
  set_placed(lost.task.span(), false);
}

void RegretWatch::end(int64_t ended_us) {
  before_change(ended_us);
  close();
}

// --- moments ---

void RegretWatch::begin(const Moment& moment) {
  if (moment.what == What::kLook) return look(moment.at_us);
  close();
  if (moment.what == What::kClose) return;
  open_ = true;
  seen_ = 0;
  stream_ = Stream(stream_key(sampling_.seed, "regret/batches", moment.phase));
}

// Reservoir sampling: the k-th transaction takes a random place below k, if there is one.
std::optional<size_t> RegretWatch::place_in_reservoir() {
  constexpr uint64_t kBound = uint64_t{1} << 62;
  const auto places = static_cast<uint64_t>(sampling_.batches_per_phase);
  const uint64_t place = stream_.below(kBound) % (seen_ + 1);
  const uint64_t seen = seen_++;
  if (seen < places) return seen;
  return place < places ? std::optional<size_t>(place) : std::nullopt;
}

void RegretWatch::close() {
  open_ = false;
  pending_.reset();
  const size_t before = decisions_.size();
  for (const std::optional<Decision>& sample : samples_)
    if (sample) decisions_.push_back(*sample);
  std::ranges::stable_sort(decisions_.begin() + static_cast<ptrdiff_t>(before), decisions_.end(),
                           {}, &Decision::at_us);
  samples_.clear();
}

// None if no task of it was there to be placed.
std::optional<RegretWatch::Decision> RegretWatch::decide(const Transaction& claims,
                                                         const CommitResult& result,
                                                         const Victims& victims, int64_t at_us) {
  const auto& [victim, allocation, held] = victims;
  ChangedRoom room(cell());
  for (size_t i = 0; i < claims.size(); ++i)
    if (result.reason[i] == static_cast<int8_t>(Reason::Accepted))
      room.add(claims.machine[i], claims.request.row(i), 1);
  if (result.evicted.size()) {
    const Released evicted = describe(cell(), result.evicted);
    for (size_t i = 0; i < evicted.size(); ++i)
      room.add(evicted.machine[i], evicted.request.row(i), -1);
  }
  for (size_t i = 0; i < victim.size(); ++i) room.add(held[i], request_of(victim[i]), 1);
  room.settle();
  const std::vector<int64_t> ended = ascending(result.evicted.span());
  const auto home = [&](size_t i) { return contains(ended, allocation[i]) ? kUnplaced : held[i]; };

  Placed placed;
  for (size_t i = 0; i < claims.size(); ++i) {
    const auto reason = static_cast<Reason>(result.reason[i]);
    if (reason == Reason::Duplicate) continue;
    int32_t machine = reason == Reason::Accepted ? claims.machine[i] : kUnplaced;
    // a claim that would have moved a victim and did not
    for (size_t v = 0; v < victim.size() && reason != Reason::Accepted; ++v)
      if (victim[v] == claims.task[i]) machine = std::max(machine, home(v));
    add(placed, claims.task[i], machine, claims.request.row(i));
  }
  std::vector<int64_t> moved;
  for (size_t i = 0; i < claims.size() && !victim.empty(); ++i)
    if (result.reason[i] != static_cast<int8_t>(Reason::Duplicate)) moved.push_back(claims.task[i]);
  std::ranges::sort(moved);
  for (size_t v = 0; v < victim.size(); ++v)
    if (!contains(moved, victim[v])) add(placed, victim[v], home(v), request_of(victim[v]));
  if (placed.machine.empty()) return std::nullopt;

  const Optimum least = optimum(room, placed);
  return Decision{at_us,
                  claims.scheduler,
                  claims.sequence,
                  static_cast<int64_t>(placed.machine.size()),
                  std::ranges::count(placed.machine, kUnplaced),
                  cost_of(placed) - least.cost,
                  least.exact && claims.commit_mode != CommitMode::AllOrNothing};
}

void RegretWatch::look(int64_t at_us) {
  const Released running = allocations(cell(), -1);
  const std::vector<int64_t> idle = waiting(at_us);
  Placed waits, runs;
  runs.reserve(running.size() + idle.size(), dimensions());
  for (const int64_t task : idle) add(waits, task, kUnplaced, request_of(task));
  for (size_t i = 0; i < running.size(); ++i)
    add(runs, running.task[i], running.machine[i], running.request.row(i));
  const int64_t fixed = cost_of(runs);
  const int64_t cost = sum_of({fixed, cost_of(waits)});
  const Optimum staying = optimum(CellRoom(cell(), CellRoom::Of::kFree), waits);

  Placed all = std::move(runs);
  for (const int64_t task : idle) add(all, task, kUnplaced, request_of(task));
  const Optimum moving = optimum(CellRoom(cell(), CellRoom::Of::kAll), all);
  systems_.push_back({at_us, static_cast<int64_t>(running.size()),
                      static_cast<int64_t>(idle.size()), cost, cost - fixed - staying.cost,
                      cost - moving.cost, staying.exact && moving.exact && !tasks_.has_gangs});
}

// --- the cell and its tasks ---

const Cell& RegretWatch::cell() const {
  if (!cell_) throw std::invalid_argument("regret: no cell is observed");
  return *cell_;
}

RegretWatch::Victims RegretWatch::victims_of(const Transaction& transaction) const {
  Victims victims;
  if (!transaction.evict || transaction.evict->size() == 0) return victims;
  const std::vector<int64_t> named = ascending(transaction.evict->span());
  const Released live = allocations(cell(), static_cast<int32_t>(transaction.scheduler));
  for (size_t i = 0; i < live.size(); ++i) {
    if (!contains(named, live.allocation[i])) continue;
    victims.task.push_back(live.task[i]);
    victims.allocation.push_back(live.allocation[i]);
    victims.machine.push_back(live.machine[i]);
  }
  return victims;
}

// Tasks submitted by now that neither run nor have run; those that lost their place wait again.
std::vector<int64_t> RegretWatch::waiting(int64_t at_us) const {
  const auto batches =
      std::ranges::upper_bound(tasks_.arrival_us, at_us) - tasks_.arrival_us.begin();
  const auto submitted = tasks_.arrival_rows.span().first(
      static_cast<size_t>(tasks_.arrival_offsets[static_cast<size_t>(batches)]));
  std::vector<int64_t> waits;
  for (const std::span<const int64_t> known : {tasks_.initial.span(), submitted})
    std::ranges::copy_if(known, std::back_inserter(waits),
                         [this](int64_t task) { return !placed_[static_cast<size_t>(task)]; });
  return waits;
}

const int64_t* RegretWatch::request_of(int64_t task) const {
  return tasks_.request.row(row_of(task));
}

void RegretWatch::add(Placed& to, int64_t task, int32_t machine, const int64_t* request) const {
  to.preference.push_back(tasks_.preference[row_of(task)]);
  to.machine.push_back(machine);
  for (size_t r = 0; r < dimensions(); ++r) to.request.push_back(request[r]);
}

int64_t RegretWatch::cost_of(const Placed& placed) const {
  std::vector<int64_t> cost(placed.machine.size());
  const auto preferred = std::make_unique_for_overwrite<bool[]>(cost.size());
  placement_cost(best_.catalog(), placed.preference, placed.machine, cost.data(), preferred.get());
  return sum_of(cost);
}

void RegretWatch::set_placed(std::span<const int64_t> tasks, bool placed) {
  for (const int64_t task : tasks) placed_[row_of(task)] = placed;
}

size_t RegretWatch::row_of(int64_t task) const {
  if (task < 0 || static_cast<size_t>(task) >= tasks_.preference.size())
    throw std::invalid_argument("task " + std::to_string(task) + ": not one of the workload");
  return static_cast<size_t>(task);
}

}  // namespace agora
