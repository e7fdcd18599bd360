#include "racer_threads.hpp"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace flowsolver {

namespace {

class Contest {
 public:
  Contest(std::size_t racers, Winning winning, const Control& control, const Racer& racer)
      : outer_(control), winning_(winning), racer_(racer) {
    for (std::size_t i = 0; i < racers; ++i) lanes_.emplace_back(control);
    poll_outer(lanes_.front());
  }

  Outcome run() {
    std::vector<std::thread> threads;
    std::size_t started = 1;
    try {
      threads.reserve(lanes_.size() - 1);
      for (; started < lanes_.size(); ++started)
        threads.emplace_back([this, started] { run_lane(started); });
    } catch (const std::system_error&) {  // no more threads
    } catch (const std::bad_alloc&) {
    }
    run_lane(0);
    for (std::size_t i = started; i < lanes_.size(); ++i) {
      poll_outer(lanes_[i]);
      run_lane(i);
    }
    wait();
    for (std::thread& thread : threads) thread.join();
    return outcome();
  }

 private:
  struct Lane {
    explicit Lane(const Control& outer) : control(outer) {}
    Control control;
    Stats stats;
    Status status = Status::kCancelled;
    std::exception_ptr error;
    Control::Clock::time_point ended{};
    std::int64_t most_useful = kInfinity;
  };

  // For lanes that the caller's thread runs.
  void poll_outer(Lane& lane) {
    lane.control.poll([this](const Stats&) { return outer_.look({}) == Status::kCancelled; });
  }

  void run_lane(std::size_t i) {
    Lane& lane = lanes_[i];
    try {
      lane.status = racer_(i, lane.control, lane.stats);
    } catch (...) {
      lane.error = std::current_exception();
    }
    lane.ended = Control::Clock::now();
    const std::lock_guard lock(mutex_);
    ++finished_;
    if (lane.error == nullptr && is_answer(lane.status)) stop_others(i);
    if (finished_ == lanes_.size()) all_finished_.notify_one();
  }

  void stop_others(std::size_t winner) {
    if (winning_ == Winning::kFirst && first_ == kNobody) first_ = winner;
    const std::int64_t operations = lanes_[winner].stats.operations();
    for (std::size_t i = 0; i < lanes_.size(); ++i) {
      if (i == winner) continue;
      if (winning_ == Winning::kFirst) {
        lanes_[i].control.cancel();
      } else {
        lanes_[i].most_useful =
            std::min(lanes_[i].most_useful, i < winner ? operations : operations - 1);
        lanes_[i].control.cancel_beyond(lanes_[i].most_useful);
      }
    }
  }

  void wait() {
    std::unique_lock lock(mutex_);
    while (!all_finished_.wait_for(lock, Control::kPollInterval,
                                   [this] { return finished_ == lanes_.size(); })) {
      lock.unlock();
      outer_.look({});
      lock.lock();
    }
  }

  Outcome outcome() const {
    std::size_t leader = first_;
    const auto prefer = [&](auto better) {
      for (std::size_t i = 0; leader == kNobody && i < lanes_.size(); ++i) {
        if (lanes_[i].error == nullptr && better(lanes_[i].status)) leader = i;
      }
    };
    for (std::size_t i = 0; winning_ == Winning::kFewestOperations && i < lanes_.size(); ++i) {
      if (lanes_[i].error != nullptr || !is_answer(lanes_[i].status)) continue;
      if (leader == kNobody || lanes_[i].stats.operations() < lanes_[leader].stats.operations())
        leader = i;
    }
    prefer([](Status status) { return status == Status::kBudget; });
    prefer([](Status status) { return status != Status::kCancelled; });
    prefer([](Status) { return true; });
    if (leader == kNobody) std::rethrow_exception(lanes_.front().error);
    const auto by_end = [](const Lane& a, const Lane& b) { return a.ended < b.ended; };
    const auto last = std::max_element(lanes_.begin(), lanes_.end(), by_end);
    return {leader, lanes_[leader].status, lanes_[leader].stats,
            last->ended - lanes_[leader].ended};
  }

  static constexpr std::size_t kNobody = static_cast<std::size_t>(-1);

  const Control& outer_;
  const Winning winning_;
  const Racer& racer_;
  std::deque<Lane> lanes_;
  std::mutex mutex_;  // guards the three below, and lanes_[i].most_useful
  std::condition_variable all_finished_;
  std::size_t finished_ = 0;
  std::size_t first_ = kNobody;
};

}  // namespace

Outcome run_contest(std::size_t racers, Winning winning, const Control& control,
                    const Racer& racer) {
  return Contest(racers, winning, control, racer).run();
}

}  // namespace flowsolver
