// Exponential moving average of the scheduling delay, as the agent of the optimistic protocol keeps
// it (parsync/protocols/optimistic/strategies.py): integers only. A fully committed batch weighs
// the coefficient, a part of it its share.
#pragma once

#include <algorithm>
#include <cstdint>

#include "shared_state/native/random.hpp"

namespace agora::slots {

class DelayAverage {
 public:
  explicit DelayAverage(int64_t coefficient_permille)
      : coefficient_permille_(coefficient_permille) {}

  int64_t ns() const { return scaled_ >> kFraction; }

  // `committed` > 0 tasks of a batch had delays that sum to delay_sum_ns.
  void add(int64_t delay_sum_ns, int64_t committed, int64_t batch_tasks) {
    const Int128 mean = (static_cast<Int128>(delay_sum_ns) << kFraction) / committed;
    const Int128 change =
        (mean - scaled_) * (coefficient_permille_ * std::min(committed, batch_tasks));
    scaled_ += static_cast<int64_t>(floor_divide(change, 1000 * batch_tasks));
  }

 private:
  static constexpr int kFraction = 8;  // units of 2^-8 ns

  static Int128 floor_divide(Int128 value, Int128 by) {
    return value >= 0 ? value / by : -((by - 1 - value) / by);
  }

  int64_t coefficient_permille_;
  int64_t scaled_ = 0;
};

}  // namespace agora::slots
