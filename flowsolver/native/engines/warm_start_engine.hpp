// An engine for any method: the flow and prices of the last answer are the start of the next.
//
// A change costs O(1); a resolve reads the whole network, O(n + m), before its method does
// anything. That is little beside what the plain references take; the other algorithms have engines
// of their own.
#pragma once

#include "engines/warm_start_state.hpp"

namespace flowsolver {

class WarmEngine final : public KeptAnswer {
 public:
  WarmEngine(Method method, const EngineStart& start, bool steps_last = false)
      : KeptAnswer(start), method_(method), steps_last_(steps_last) {}

  Status run(const Control& control, Stats& stats) override;
  bool steps_last() const override { return steps_last_; }

 private:
  Method method_;
  bool steps_last_;
};

}  // namespace flowsolver
