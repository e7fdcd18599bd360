#include "unplaceable_units.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <unordered_set>

namespace agora {

void check_lengths(const UnplaceableUnits& units) {
  for (const size_t length : {units.gang_us.size(), units.gang.size(), units.gang_size.size()})
    if (length != units.task_us.size())
      throw std::invalid_argument("unplaceable units: expected columns of one length");
}

bool UnplaceableUnits::among(std::span<const int64_t> task, int64_t now_us,
                             std::vector<uint8_t>& never) const {
  never.clear();
  bool alone = false, whole = false;
  for (const int64_t id : task) {
    const auto row = static_cast<size_t>(id);
    if (row >= task_us.size())
      throw std::invalid_argument("task " + std::to_string(id) + ": there is no such task");
    alone = alone || task_us[row] <= now_us;
    whole = whole || (gang_us[row] <= now_us && gang[row] >= 0);
  }
  if (!alone && !whole) return false;

  const auto row = [&](size_t i) { return static_cast<size_t>(task[i]); };
  never.resize(task.size());
  std::unordered_map<int64_t, int64_t> members;  // of each gang, those among these
  for (size_t i = 0; i < task.size(); ++i) {
    never[i] = task_us[row(i)] <= now_us;
    if (gang_us[row(i)] <= now_us && gang[row(i)] >= 0) ++members[gang[row(i)]];
  }
  std::unordered_set<int64_t> torn;
  for (size_t i = 0; i < task.size(); ++i) {
    const auto gathered = members.find(gang[row(i)]);
    if (gathered != members.end() && gang_us[row(i)] <= now_us &&
        gathered->second == gang_size[row(i)])
      never[i] = 1;
    if (never[i] && gang[row(i)] >= 0) torn.insert(gang[row(i)]);
  }
  for (size_t i = 0; i < task.size(); ++i)
    if (torn.contains(gang[row(i)])) never[i] = 1;
  if (std::find(never.begin(), never.end(), uint8_t{1}) != never.end()) return true;
  never.clear();
  return false;
}

}  // namespace agora
