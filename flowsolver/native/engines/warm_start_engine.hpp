// An engine for any method: the flow and prices of the last answer are the start of the next solve.
//
// A change costs O(1). A resolve reads the whole network, O(n + m), before the method does
// anything. That is little compared with what the plain references take; the other algorithms have
// engines of their own.
#pragma once

#include "engines/warm_start_state.hpp"

namespace flowsolver {

class WarmStartEngine final : public WarmStartState {
 public:
  WarmStartEngine(Method method, const EngineStart& start, bool keeps_progress = false)
      : WarmStartState(start), method_(method), keeps_progress_(keeps_progress) {}

  Status run(const Control& control, Stats& stats) override;
  bool keeps_progress() const override { return keeps_progress_; }

 private:
  Method method_;
  bool keeps_progress_;
};

}  // namespace flowsolver
