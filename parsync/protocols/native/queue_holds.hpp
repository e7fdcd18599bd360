// Which unit holds the queue of an agent, since when, and how many tasks wait behind it: the rows
// of the table `holds`.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "parsync/metrics/native/agent_log.hpp"

namespace agora {

// Records those holds of one agent's queue that keep tasks waiting.
class QueueHolds {
 public:
  explicit QueueHolds(AgentLog& log) : log_(log) {}

  // A round is decided. holder: the tasks of the unit that holds the queue; none if no unit does.
  // queued: the tasks that wait, those included.
  void see(int64_t now_us, std::span<const int64_t> holder, int64_t queued) {
    if (!holder_.empty() && !goes_on(holder)) end(now_us, queued);
    if (holder.empty()) return;
    if (holder_.empty()) {
      from_us_ = now_us;
      behind_ = 0;
    }
    holder_.assign(holder.begin(), holder.end());
    behind_ = std::max(behind_, queued - static_cast<int64_t>(holder.size()));
  }

  // The hold is over, with so many tasks that wait; or the run is.
  void end(int64_t now_us, int64_t queued) {
    const int64_t behind = std::max(behind_, queued);
    if (!holder_.empty() && behind > 0) log_.hold(holder_[0], from_us_, now_us, behind);
    holder_.clear();
    behind_ = 0;
  }

 private:
  // Whether these tasks are of the unit that held the queue before.
  bool goes_on(std::span<const int64_t> holder) const {
    return std::ranges::any_of(
        holder, [this](int64_t task) { return std::ranges::find(holder_, task) != holder_.end(); });
  }

  AgentLog& log_;
  std::vector<int64_t> holder_;
  int64_t from_us_ = 0;
  int64_t behind_ = 0;
};

}  // namespace agora
