#include "race.hpp"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "graph/capacity_level.hpp"

namespace flowsolver {

namespace {

class RacerThreads {
 public:
  RacerThreads(std::size_t racers, WinnerRule winner_rule, const Control& control,
               const Racer& racer)
      : outer_(control), winner_rule_(winner_rule), racer_(racer) {
    for (std::size_t i = 0; i < racers; ++i) runs_.emplace_back(control);
    poll_outer(runs_.front());
  }

  Outcome run() {
    std::vector<std::thread> threads;
    std::size_t started = 1;
    try {
      threads.reserve(runs_.size() - 1);
      for (; started < runs_.size(); ++started)
        threads.emplace_back([this, started] { run_racer(started); });
    } catch (const std::system_error&) {  // no more threads
    } catch (const std::bad_alloc&) {
    }
    run_racer(0);
    for (std::size_t i = started; i < runs_.size(); ++i) {
      poll_outer(runs_[i]);
      run_racer(i);
    }
    wait();
    for (std::thread& thread : threads) thread.join();
    return outcome();
  }

 private:
  struct RacerRun {
    explicit RacerRun(const Control& outer) : control(outer) {}
    Control control;
    Stats stats;
    Status status = Status::kCancelled;
    std::exception_ptr error;
    Control::Clock::time_point ended{};
    std::int64_t max_useful_operations = kInfinity;
  };

  // For racers that the caller's thread runs.
  void poll_outer(RacerRun& run) {
    run.control.poll([this](const Stats&) { return outer_.check({}) == Status::kCancelled; });
  }

  void run_racer(std::size_t i) {
    RacerRun& run = runs_[i];
    try {
      run.status = racer_(i, run.control, run.stats);
    } catch (...) {
      run.error = std::current_exception();
    }
    run.ended = Control::Clock::now();
    const std::lock_guard lock(mutex_);
    ++finished_;
    if (run.error == nullptr && is_answer(run.status)) stop_others(i);
    if (finished_ == runs_.size()) all_finished_.notify_one();
  }

  void stop_others(std::size_t winner) {
    if (winner_rule_ == WinnerRule::kFirst && first_answer_ == kNoRacer) first_answer_ = winner;
    const std::int64_t operations = runs_[winner].stats.operations();
    for (std::size_t i = 0; i < runs_.size(); ++i) {
      if (i == winner) continue;
      if (winner_rule_ == WinnerRule::kFirst) {
        runs_[i].control.cancel();
      } else {
        runs_[i].max_useful_operations =
            std::min(runs_[i].max_useful_operations, i < winner ? operations : operations - 1);
        runs_[i].control.cancel_after_operations(runs_[i].max_useful_operations);
      }
    }
  }

  void wait() {
    std::unique_lock lock(mutex_);
    while (!all_finished_.wait_for(lock, Control::kPollInterval,
                                   [this] { return finished_ == runs_.size(); })) {
      lock.unlock();
      outer_.check({});
      lock.lock();
    }
  }

  Outcome outcome() const {
    std::size_t leader = first_answer_;
    const auto prefer = [&](auto better) {
      for (std::size_t i = 0; leader == kNoRacer && i < runs_.size(); ++i) {
        if (runs_[i].error == nullptr && better(runs_[i].status)) leader = i;
      }
    };
    for (std::size_t i = 0; winner_rule_ == WinnerRule::kFewestOperations && i < runs_.size();
         ++i) {
      if (runs_[i].error != nullptr || !is_answer(runs_[i].status)) continue;
      if (leader == kNoRacer || runs_[i].stats.operations() < runs_[leader].stats.operations())
        leader = i;
    }
    prefer([](Status status) { return status == Status::kBudget; });
    prefer([](Status status) { return status != Status::kCancelled; });
    prefer([](Status) { return true; });
    if (leader == kNoRacer) std::rethrow_exception(runs_.front().error);
    const auto by_end = [](const RacerRun& a, const RacerRun& b) { return a.ended < b.ended; };
    const auto last = std::max_element(runs_.begin(), runs_.end(), by_end);
    return {leader, runs_[leader].status, runs_[leader].stats, last->ended - runs_[leader].ended};
  }

  static constexpr std::size_t kNoRacer = static_cast<std::size_t>(-1);

  const Control& outer_;
  const WinnerRule winner_rule_;
  const Racer& racer_;
  std::deque<RacerRun> runs_;
  std::mutex mutex_;  // guards the three members below, and runs_[i].max_useful_operations
  std::condition_variable all_finished_;
  std::size_t finished_ = 0;
  std::size_t first_answer_ = kNoRacer;
};

}  // namespace

Outcome run_racers(std::size_t racers, WinnerRule winner_rule, const Control& control,
                   const Racer& racer) {
  return RacerThreads(racers, winner_rule, control, racer).run();
}

namespace {

RaceAnswer race_within_range(const Network& network, std::span<const Algorithm* const> racers,
                             const Start& start, const Control& control, WinnerRule winner_rule) {
  if (racers.size() == 1)
    return {racers.front()->solve(network, start, control), racers.front(), {}};
  std::vector<Solution> solutions(racers.size());
  const Outcome outcome = run_racers(racers.size(), winner_rule, control,
                                     [&](std::size_t i, const Control& own, Stats& stats) {
                                       solutions[i] = racers[i]->solve(network, start, own);
                                       stats = solutions[i].stats;
                                       const Status status = solutions[i].status;
                                       if (status == Status::kCancelled)
                                         // freed in the racer's thread, not by the waiting one
                                         solutions[i] = {};
                                       return status;
                                     });
  return {std::move(solutions[outcome.leader]), racers[outcome.leader], outcome.stop_duration};
}

// The race on the network with capacities above the level lowered to it.
RaceAnswer race_lowered(const Network& network, std::span<const Algorithm* const> racers,
                        const Start& start, const Control& control, WinnerRule winner_rule,
                        std::int64_t level) {
  std::vector<std::int64_t> flow(start.flow.begin(), start.flow.end());
  for (std::int64_t& units : flow) units = std::min(units, level);
  RaceAnswer answer =
      race_within_range(lowered(network, level), racers, {flow, start.price}, control, winner_rule);
  Solution& solution = answer.solution;
  if (solution.status != Status::kOptimal && solution.status != Status::kBadCostRange)
    return answer;
  const Status cycle = find_unbounded_cycle(network, level, control, solution.stats);
  if (cycle != Status::kOptimal) solution.status = cycle;
  return answer;
}

}  // namespace

RaceAnswer race(const Network& network, std::span<const Algorithm* const> racers,
                const Start& start, const Control& control, WinnerRule winner_rule) {
  RaceAnswer answer = race_within_range(network, racers, start, control, winner_rule);
  if (answer.solution.status != Status::kBadCapacityRange) return answer;
  const std::optional<std::int64_t> level = capacity_level(network);
  return level ? race_lowered(network, racers, start, control, winner_rule, *level) : answer;
}

}  // namespace flowsolver
