#include "queued_tasks.hpp"

namespace agora {

size_t batch_within(std::span<const int64_t> task, std::optional<int64_t> limit,
                    std::span<const int64_t> gang) {
  if (!limit) return task.size();
  if (*limit < 0) throw std::invalid_argument("limit: expected 0 or more tasks");
  const auto most = static_cast<size_t>(*limit);
  if (most >= task.size()) return task.size();
  if (gang.empty()) return most;
  size_t last = 0;  // after so many tasks a gang ends, or a task without one
  for (size_t i = 1; i < task.size() && (i <= most || last == 0); ++i) {
    const int64_t mine = gang[row_of(task[i], gang.size())];
    if (mine == kNoGang || mine != gang[row_of(task[i - 1], gang.size())]) last = i;
  }
  return last ? last : task.size();
}

}  // namespace agora
