// Stopping a running solve from outside: cancellation by another thread, and budgets of counted
// operations or of time.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

#include "network.hpp"

namespace flowsolver {

// One Control per running solve. Methods check it about every kCheckInterval counted operations,
// also in passes over arrays and while they build data structures and write the answer. Any thread
// may call `cancel` and set the operation limits at any time. The deadline and the poll are set
// before the solve begins.
class Control {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::int64_t kCheckInterval = 4096;
  static constexpr std::chrono::milliseconds kPollInterval{20};

  Control() = default;
  // Has the budget of `outer`, and is cancelled when that is. `outer` must outlive it.
  explicit Control(const Control& outer)
      : max_operations_(outer.max_operations_.load(std::memory_order_relaxed)),
        deadline_(outer.deadline_),
        has_deadline_(outer.has_deadline_),
        outer_(&outer) {}
  // For a method called within another one: checks are made with `outer`, after adding `before`,
  // the work counted by the caller.
  Control(const Control& outer, const Stats& before)
      : outer_(&outer), before_(before), continues_outer_(true) {}
  Control& operator=(const Control&) = delete;

  void cancel() { cancelled_.store(true, std::memory_order_relaxed); }
  void clear() { cancelled_.store(false, std::memory_order_relaxed); }
  void limit_operations(std::int64_t most) {
    max_operations_.store(most, std::memory_order_relaxed);
  }
  // Cancels the solve beyond so many operations, when its answer cannot win a race any more
  // (race.hpp).
  void cancel_after_operations(std::int64_t most) {
    max_useful_operations_.store(most, std::memory_order_relaxed);
  }
  void stop_at(Clock::time_point deadline) {
    deadline_ = deadline;
    has_deadline_ = deadline != Clock::time_point::max();
  }
  // No budget ends the solve before so many augmentations and pivots are counted. Set before the
  // solve begins.
  void guarantee_steps(std::int64_t steps) { guaranteed_steps_ = steps; }
  bool guarantees_steps() const { return guaranteed_steps_ > 0; }
  bool has_budget() const {
    return has_deadline_ || max_operations_.load(std::memory_order_relaxed) != kInfinity;
  }

  // The same answer is expected to take `operations` counted operations another way
  // (ColdStartRule). The run ends with kBudget once it has counted `budget` operations more than
  // `now`, or when report_progress finds that the rest will take longer than the other way. Only
  // for runs in one thread.
  void give_up_when_slower_than(std::int64_t operations, std::int64_t budget, const Stats& now) {
    alternative_operations_ = operations;
    began_ = now.operations();
    give_up_beyond_ = budget < kInfinity - began_ ? began_ + budget : kInfinity;
  }
  bool gave_up() const { return gave_up_; }
  // Called by a run that works on equal pieces: `done` of them since it had counted `before`,
  // `left` to do. A run that will finish in time need not give up early. Returns kBudget when it
  // should give up.
  Status report_progress(const Stats& stats, std::int64_t before, std::size_t done,
                         std::size_t left) const {
    if (alternative_operations_ == kInfinity || done == 0) return Status::kOptimal;
    const std::int64_t spent = stats.operations() - before;
    if (spent < alternative_operations_ / kMinSpentShare) return Status::kOptimal;
    const double rest =
        static_cast<double>(spent) * static_cast<double>(left) / static_cast<double>(done);
    gave_up_ = rest > static_cast<double>(alternative_operations_);
    give_up_beyond_ = gave_up_ ? -1 : stats.operations() + alternative_operations_;
    return gave_up_ ? Status::kBudget : Status::kOptimal;
  }

  // Called at checks with the work counted so far, in the solving thread. Returning true cancels
  // the solve.
  using Interrupted = std::function<bool(const Stats&)>;
  // Polls once per `interval`, or at every check if that is zero.
  void poll(Interrupted interrupted, Clock::duration interval = kPollInterval) {
    interrupted_ = std::move(interrupted);
    poll_interval_ = interval;
    next_poll_ = Clock::now() + interval;
  }

  bool cancelled() const {
    return cancelled_.load(std::memory_order_relaxed) || (outer_ != nullptr && outer_->cancelled());
  }
  // kOptimal: continue. kCancelled: stop. kBudget: stop with the state reached.
  Status check(const Stats& stats) const {
    if (cancelled()) return Status::kCancelled;
    if (alternative_operations_ != kInfinity && stats.operations() > give_up_beyond_) {
      gave_up_ = true;
      return Status::kBudget;
    }
    if (continues_outer_) {
      Stats all = before_;
      all.add(stats);
      return outer_->check(all);
    }
    const std::int64_t operations = stats.operations();
    const bool may_stop_at_budget = stats.augmentations + stats.pivots >= guaranteed_steps_;
    if (operations > max_useful_operations_.load(std::memory_order_relaxed))
      return Status::kCancelled;
    if (may_stop_at_budget && operations > max_operations_.load(std::memory_order_relaxed))
      return Status::kBudget;
    if (!has_deadline_ && !interrupted_) return Status::kOptimal;
    const Clock::time_point now = Clock::now();
    if (may_stop_at_budget && has_deadline_ && now >= deadline_) return Status::kBudget;
    if (interrupted_ && now >= next_poll_) {
      next_poll_ = now + poll_interval_;
      if (interrupted_(stats)) cancelled_.store(true, std::memory_order_relaxed);
    }
    return cancelled() ? Status::kCancelled : Status::kOptimal;
  }

 private:
  mutable std::atomic<bool> cancelled_{false};
  std::atomic<std::int64_t> max_operations_{kInfinity}, max_useful_operations_{kInfinity};
  Interrupted interrupted_;
  Clock::duration poll_interval_ = kPollInterval;
  mutable Clock::time_point next_poll_{};
  Clock::time_point deadline_{};
  bool has_deadline_ = false;
  std::int64_t guaranteed_steps_ = 0;
  static constexpr std::int64_t kMinSpentShare = 16;
  std::int64_t alternative_operations_ = kInfinity, began_ = 0;
  mutable std::int64_t give_up_beyond_ = kInfinity;
  mutable bool gave_up_ = false;
  const Control* outer_ = nullptr;
  const Stats before_;
  const bool continues_outer_ = false;
};

// Is cancelled when `outer` is, and has no budget: for work that could not be continued if it was
// stopped. `outer` must outlive it.
class CancellationOnly : public Control {
 public:
  explicit CancellationOnly(const Control& outer) {
    poll([&outer](const Stats& counted) { return outer.check(counted) == Status::kCancelled; }, {});
  }
};

// Thrown where no status can be returned: out of constructors and from within searches, which leave
// their state unchanged except for Stats. It never leaves a method or an engine.
struct Stopped {
  Status status;
};

// Checks a control once per kCheckInterval steps of a loop whose work is not counted elsewhere.
class CancellationChecker {
 public:
  explicit CancellationChecker(const Control& control) : control_(control) {}
  // Counts `steps` steps. Returns kOptimal except when a check is due and says otherwise.
  Status step(const Stats& stats, std::int64_t steps = 1) {
    if ((left_ -= steps) > 0) return Status::kOptimal;
    left_ = Control::kCheckInterval;
    return control_.check(stats);
  }
  // For building data structures. Throws Stopped when cancelled but ignores budgets: a solve whose
  // budgets are smaller than the build would otherwise never get beyond it.
  void step_until_cancelled(const Stats& stats, std::int64_t steps = 1) {
    if (step(stats, steps) == Status::kCancelled) throw Stopped{Status::kCancelled};
  }

 private:
  const Control& control_;
  std::int64_t left_ = Control::kCheckInterval;
};

// Passes over an array in blocks, visit(begin, end), with a check after each. Stops only when
// cancelled, as `step_until_cancelled`.
template <class Visit>
Status for_each_block(std::size_t size, const Control& control, const Stats& stats, Visit visit) {
  constexpr std::size_t kBlock = std::size_t{1} << 14;
  for (std::size_t begin = 0; begin < size; begin += kBlock) {
    visit(begin, std::min(size, begin + kBlock));
    if (control.check(stats) == Status::kCancelled) return Status::kCancelled;
  }
  return Status::kOptimal;
}

// visit(i) for every i, with checks as in `step_until_cancelled`. Between two checks the loop holds
// nothing but its body.
template <class Visit>
void for_each_until_cancelled(std::size_t size, const Control& control, Visit visit) {
  for (std::size_t begin = 0; begin < size; begin += Control::kCheckInterval) {
    const std::size_t end = std::min<std::size_t>(size, begin + Control::kCheckInterval);
    for (std::size_t i = begin; i < end; ++i) visit(i);
    if (control.check({}) == Status::kCancelled) throw Stopped{Status::kCancelled};
  }
}

}  // namespace flowsolver
