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
  WarmStartEngine(Method method, const EngineStart& start, bool makes_lasting_progress = false)
      : WarmStartState(start), method_(method), makes_lasting_progress_(makes_lasting_progress) {}

  Status run(const Control& control, Stats& stats) override;
  bool makes_lasting_progress() const override { return makes_lasting_progress_; }

 private:
  Method method_;
  bool makes_lasting_progress_;
};

}  // namespace flowsolver
