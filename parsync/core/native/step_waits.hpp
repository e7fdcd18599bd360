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
  // group_of: [tasks], the group by which the waits of each are added up, 0 to groups - 1.
  StepWaits(SharedColumn<int64_t> submit_us, SharedColumn<int32_t> group_of, int32_t groups)
      : submit_us_(std::move(submit_us)), group_of_(std::move(group_of)) {
    if (group_of_.size() != submit_us_.size())
      throw std::invalid_argument("group_of: " + std::to_string(group_of_.size()) + " of " +
                                  std::to_string(submit_us_.size()) + " tasks");
    for (const int32_t group : group_of_.span())
      if (group < 0 || group >= groups)
        throw std::invalid_argument("group_of: " + std::to_string(group) + " of " +
                                    std::to_string(groups) + " groups");
    const auto size = static_cast<size_t>(groups);
    tasks_.resize(size);
    submission_us_.resize(size);
    claim_us_.resize(size);
  }

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
      const size_t row = row_of(task.data()[i], "TasksSubmitted");
      late_us += at_us - submit_us_.data()[row];
    }
    if (task.size() == 0) return;
    const size_t group = group_of(task.data()[0]);  // all are of one agent
    tasks_[group] += static_cast<int64_t>(task.size());
    submission_us_[group] += std::max<int64_t>(0, late_us);
  }
  void sent(int64_t at_us, const Event& event) {
    if (event.key() != CommitRequest::kType.key()) return;
    const auto& task = static_cast<const CommitRequest&>(event).transaction->task;
    if (task.size() == 0) return;
    row_of(task.data()[0], "CommitRequest");
    waiting_.push_back({at_us, static_cast<int64_t>(task.size()), group_of(task.data()[0])});
  }

  // Take note of a step, which carries all claims made so far.
  void stepped(int64_t now_us) {
    for (const Claims& one : waiting_) claim_us_[one.group] += (now_us - one.at_us) * one.claims;
    waiting_.clear();
  }

  // By group.
  const std::vector<int64_t>& tasks() const { return tasks_; }
  const std::vector<int64_t>& submission_us() const { return submission_us_; }
  const std::vector<int64_t>& claim_us() const { return claim_us_; }

 private:
  // Claims that no step has carried.
  struct Claims {
    int64_t at_us, claims;
    size_t group;
  };

  size_t row_of(int64_t task, const char* event) const {
    if (task < 0 || static_cast<size_t>(task) >= submit_us_.size())
      throw std::out_of_range(std::string(event) + ": task " + std::to_string(task) + " of " +
                              std::to_string(submit_us_.size()));
    return static_cast<size_t>(task);
  }
  size_t group_of(int64_t task) const { return static_cast<size_t>(group_of_.data()[task]); }

  SharedColumn<int64_t> submit_us_;
  SharedColumn<int32_t> group_of_;
  std::vector<Claims> waiting_;
  std::vector<int64_t> tasks_, submission_us_, claim_us_;  // by group
};

}  // namespace agora
