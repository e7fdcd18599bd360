#include "priority_preemption.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <tuple>
#include <utility>

namespace agora {

namespace {

// Each priority counts from 1 on, so that fewer victims sum to less whatever their priorities.
constexpr int64_t kAboveLowest = int64_t{1} << 31;

bool fits(std::span<const int64_t> room, std::span<const int64_t> request) {
  for (size_t r = 0; r < request.size(); ++r)
    if (request[r] > 0 && request[r] > room[r]) return false;
  return true;
}

void add(std::vector<int64_t>& room, const int64_t* amount, int64_t sign) {
  for (size_t r = 0; r < room.size(); ++r) room[r] += sign * amount[r];
}

// Lower is better.
using Rank = std::tuple<int32_t, int64_t, size_t, int64_t>;

Rank rank_of(const RunningByMachine& running, std::span<const int64_t> victims) {
  const auto of = [](const auto& column, int64_t row) { return column[static_cast<size_t>(row)]; };
  const int32_t highest = of(running.priority, victims.front());
  int64_t sum = 0, earliest_us = std::numeric_limits<int64_t>::max();
  for (const int64_t row : victims) {
    sum += of(running.priority, row) + kAboveLowest;
    if (of(running.priority, row) == highest)
      earliest_us = std::min(earliest_us, of(running.since_us, row));
  }
  return {highest, sum, victims.size(), -earliest_us};
}

}  // namespace

bool select_victims(const ClusterView& view, const RunningByMachine& running, const Preemptor& task,
                    int32_t machine, MadeRoom& made) {
  ++made.looked_at;
  if (!view.is_up(machine)) return false;
  const size_t dimensions = task.request.size();
  const FreeAmount free = view.free(machine);
  const auto* shown = static_cast<const int64_t*>(free);
  std::vector<int64_t> room(shown, shown + dimensions);
  const auto row = static_cast<size_t>(machine);
  const auto end = static_cast<size_t>(running.offsets[row + 1]);
  std::vector<size_t> lower;
  for (auto i = static_cast<size_t>(running.offsets[row]); i < end; ++i) {
    if (running.priority[i] >= task.priority || running.fate[i] == kRunsOn) continue;
    if (running.fate[i] == kMayEnd) lower.push_back(i);
    add(room, running.request.data() + i * dimensions, +1);
  }
  if (!fits(room, task.request)) return false;
  for (const size_t i : lower) {
    ++made.looked_at;
    add(room, running.request.data() + i * dimensions, -1);
    if (fits(room, task.request)) continue;
    add(room, running.request.data() + i * dimensions, +1);
    made.victims.push_back(static_cast<int64_t>(i));
  }
  return true;
}

MadeRoom make_room(const ClusterView& view, const RunningByMachine& running, const Preemptor& task,
                   const RowAffinity& affinity, const CandidateShare& share, Stream& stream) {
  const StaticCellState& cell = view.static_state();
  const size_t dimensions = cell.dimensions();
  std::vector<int32_t> possible;
  for (size_t row = 0; row < cell.machines(); ++row) {
    const std::span limit(cell.limit.data() + row * dimensions, dimensions);
    const auto machine = static_cast<int32_t>(row);
    if (view.is_up(machine) && affinity.allows(machine) && fits(limit, task.request))
      possible.push_back(machine);
  }
  MadeRoom best;
  if (possible.empty()) return best;
  const auto count = static_cast<int64_t>(possible.size());
  const int64_t wanted = std::min(std::max(count * share.percentage / 100, share.at_least), count);
  const size_t start = stream.below(possible.size());
  Rank rank_of_best;
  int64_t found = 0;
  MadeRoom made;
  for (size_t turn = 0; turn < possible.size() && found < wanted; ++turn) {
    made.victims.clear();
    made.machine = possible[(start + turn) % possible.size()];
    if (!select_victims(view, running, task, made.machine, made) || made.victims.empty()) continue;
    ++found;
    const Rank rank = rank_of(running, made.victims);
    if (best.machine >= 0 && !(rank < rank_of_best)) continue;
    rank_of_best = rank;
    best.machine = made.machine;
    best.victims = made.victims;
  }
  best.looked_at = made.looked_at;
  return best;
}

}  // namespace agora
