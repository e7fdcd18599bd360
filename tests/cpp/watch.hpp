// A solve's looks at its control: how many, what is counted between them, and stopping at one of
// them.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "control.hpp"

namespace flowsolver {

class Watch {
 public:
  enum class Stop { kNever, kCancel, kBudget };

  void over(Control& control, Stop how = Stop::kNever, std::int64_t at_look = 0) {
    looks_ = most_between_ = operations_ = 0;
    control.limit_operations(kInfinity);
    control.poll(
        [this, &control, how, at_look](const Stats& stats) {
          most_between_ = std::max(most_between_, stats.operations() - operations_);
          // passes that count nothing look with nothing counted
          operations_ = std::max(operations_, stats.operations());
          const bool now = ++looks_ == at_look;
          if (now && how == Stop::kBudget) control.limit_operations(stats.operations());
          return now && how == Stop::kCancel;
        },
        std::chrono::seconds(0));
  }

  std::int64_t looks() const { return looks_; }
  std::int64_t most_between() const { return most_between_; }

 private:
  std::int64_t looks_ = 0, most_between_ = 0, operations_ = 0;
};

}  // namespace flowsolver
