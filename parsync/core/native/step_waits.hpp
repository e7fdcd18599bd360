// How long the tasks of a scheduler host wait for the live runtime and not for a decision: sums for
// parsync/runtime/live/meters.py, which says what they mean.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "events.hpp"
#include "participant.hpp"
#include "shared_state/native/fields.hpp"

namespace agora {

class StepWaits {
 public:
  // submit_us: [tasks].
  explicit StepWaits(SharedColumn<int64_t> submit_us) : submit_us_(std::move(submit_us)) {}

  // Take note of an event that an agent handled.
  void handled(int64_t at_us, const Event& event, const Effects& effects) {
    submitted(at_us, event);
    for (const Effect& effect : effects.list())
      if (const auto* message = std::get_if<Send>(&effect)) sent(at_us, *message->event);
  }

  // The same in parts: the event, and each message that came of it.
  void submitted(int64_t at_us, const Event& event) {
    if (event.key() != TasksSubmitted::kType.key()) return;
    const auto& task = static_cast<const TasksSubmitted&>(event).task;
    int64_t late_us = 0;
    for (size_t i = 0; i < task.size(); ++i) {
      const int64_t id = task.data()[i];
      if (id < 0 || static_cast<size_t>(id) >= submit_us_.size())
        throw std::out_of_range("TasksSubmitted: task " + std::to_string(id) + " of " +
                                std::to_string(submit_us_.size()));
      late_us += at_us - submit_us_.data()[id];
    }
    tasks_ += static_cast<int64_t>(task.size());
    submission_us_ += std::max<int64_t>(0, late_us);
  }
  void sent(int64_t at_us, const Event& event) {
    if (event.key() != CommitRequest::kType.key()) return;
    const auto& request = static_cast<const CommitRequest&>(event);
    waiting_.emplace_back(at_us, static_cast<int64_t>(request.transaction->task.size()));
  }

  // Take note of a step, which carries all claims made so far.
  void stepped(int64_t now_us) {
    for (const auto& [at_us, claims] : waiting_) claim_us_ += (now_us - at_us) * claims;
    waiting_.clear();
  }

  int64_t tasks() const { return tasks_; }
  int64_t submission_us() const { return submission_us_; }
  int64_t claim_us() const { return claim_us_; }

 private:
  SharedColumn<int64_t> submit_us_;
  std::vector<std::pair<int64_t, int64_t>> waiting_;  // (time, claims) that no step has carried
  int64_t tasks_ = 0, submission_us_ = 0, claim_us_ = 0;
};

}  // namespace agora
