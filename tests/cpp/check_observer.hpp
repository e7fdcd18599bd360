// Observes the cancellation checks of a solve: how many there are, how much work is counted between
// them, and stopping the solve at one of them.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "control.hpp"

namespace flowsolver {

class CheckObserver {
 public:
  enum class Stop { kNever, kCancel, kBudget };

  void attach_to(Control& control, Stop how = Stop::kNever, std::int64_t at_check = 0) {
    checks_ = max_between_ = operations_ = 0;
    control.limit_operations(kInfinity);
    control.poll(
        [this, &control, how, at_check](const Stats& stats) {
          max_between_ = std::max(max_between_, stats.operations() - operations_);
          // passes that count nothing make checks with zero counts
          operations_ = std::max(operations_, stats.operations());
          const bool now = ++checks_ == at_check;
          if (now && how == Stop::kBudget) control.limit_operations(stats.operations());
          return now && how == Stop::kCancel;
        },
        std::chrono::seconds(0));
  }

  std::int64_t checks() const { return checks_; }
  std::int64_t max_between() const { return max_between_; }

 private:
  std::int64_t checks_ = 0, max_between_ = 0, operations_ = 0;
};

}  // namespace flowsolver
