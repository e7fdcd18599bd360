// The sums of the demand that schedulers share (parsync/protocols/optimistic/shared_demand.py):
// tasks counted by preference set.
#include <nanobind/nanobind.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "shared_state/native/column.hpp"

namespace nb = nanobind;

namespace {

using agora::Column;
using agora::length_of;

// The sets of all tasks of the run: checked when looked up.
class Preferences {
 public:
  explicit Preferences(nb::handle preference)
      : column_(preference, "preference", length_of(preference, "preference")) {}

  int32_t of(int64_t task) const {
    if (task < 0 || static_cast<size_t>(task) >= column_.size())
      throw std::invalid_argument("there is no task " + std::to_string(task));
    return column_.data()[task];
  }

 private:
  Column<const int32_t> column_;
};

// Sums by set, int64[sets] each: of tasks, and of the squares of each report's tasks.
class Sums {
 public:
  Sums(nb::handle tasks, nb::handle squares)
      : tasks_(tasks, "tasks", length_of(tasks, "tasks")),
        squares_(squares, "squares", tasks_.size()) {}

  // The sets of a report's tasks, in any order: it sorts them.
  void add(std::vector<int32_t>& sets) const {
    std::sort(sets.begin(), sets.end());
    for (auto at = sets.begin(); at != sets.end();) {
      const auto next = std::find_if(at, sets.end(), [&](int32_t set) { return set != *at; });
      const size_t set = index(*at);
      const int64_t count = next - at;
      tasks_.data()[set] += count;
      squares_.data()[set] += count * count;
      at = next;
    }
  }

  size_t index(int32_t set) const {
    if (set < 0 || static_cast<size_t>(set) >= tasks_.size())
      throw std::invalid_argument("there is no preference set " + std::to_string(set));
    return static_cast<size_t>(set);
  }

 private:
  Column<int64_t> tasks_, squares_;
};

// Adds the tasks of a report to these sums.
void add_tasks(nb::handle preference, nb::handle task, nb::handle tasks, nb::handle squares) {
  const Column<const int64_t> ids(task, "task", length_of(task, "task"));
  const Preferences preferences(preference);
  std::vector<int32_t> sets;
  sets.reserve(ids.size());
  for (const int64_t id : ids.span()) sets.push_back(preferences.of(id));
  Sums(tasks, squares).add(sets);
}

// Adds the tasks of a report that were not reported before (a bit of each task), and numbers the
// sums of all its tasks by ascending set, from last + 1 on: who reports a task once more has to
// learn that it was known. Returns the last number.
int64_t add_report(nb::handle preference, nb::handle task, nb::handle reported, nb::handle tasks,
                   nb::handle squares, nb::handle version, int64_t last) {
  const Column<const int64_t> ids(task, "task", length_of(task, "task"));
  const Preferences preferences(preference);
  const Column<uint8_t> bits(reported, "reported", (length_of(preference, "preference") + 7) / 8);
  const Column<int64_t> versions(version, "version", length_of(tasks, "tasks"));
  std::vector<int32_t> all, added;
  all.reserve(ids.size());
  for (const int64_t id : ids.span()) all.push_back(preferences.of(id));
  for (size_t i = 0; i < all.size(); ++i) {
    uint8_t& byte = bits.data()[ids.data()[i] >> 3];
    const auto bit = static_cast<uint8_t>(1 << (ids.data()[i] & 7));
    if (!(byte & bit)) added.push_back(all[i]);
    byte |= bit;
  }
  const Sums sums(tasks, squares);
  sums.add(added);
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  for (const int32_t set : all) versions.data()[sums.index(set)] = ++last;
  return last;
}

}  // namespace

void bind_shared_demand(nb::module_& module) {
  module.def("add_tasks", &add_tasks);
  module.def("add_report", &add_report);
}
