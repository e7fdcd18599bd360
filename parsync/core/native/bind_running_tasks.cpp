// Python's access to running tasks.
#include <nanobind/nanobind.h>

#include "running_tasks.hpp"
#include "schedulers/native/bound_catalog.hpp"
#include "shared_state/native/column.hpp"
#include "shared_state/native/new_array.hpp"

namespace nb = nanobind;
using agora::CatalogColumns;
using agora::Column;
using agora::length_of;
using agora::NewArray;
using agora::TimerWheel;

namespace {

template <typename T, typename Get>
nb::object column_of(const std::vector<TimerWheel::Entry>& entries, Get get) {
  const NewArray<T> column(entries.size());
  for (size_t i = 0; i < entries.size(); ++i) column.data()[i] = get(entries[i]);
  return column.object();
}

// With the arrays it borrows; the catalog is kept alive by nanobind.
struct RunningTasks {
  RunningTasks(int64_t tick_us, nb::handle duration_us, nb::handle preference,
               const CatalogColumns& catalog, int64_t preferred_permille, bool indexed)
      : duration(duration_us, "duration_us", length_of(duration_us, "duration_us")),
        set(preference, "preference", length_of(preference, "preference")),
        tasks(tick_us, duration.span(), set.span(), catalog.spans(), preferred_permille, indexed) {}

  void start(int64_t start_us, nb::handle task, nb::handle allocation, nb::handle machine,
             nb::handle owner) {
    const size_t n = length_of(task, "task");
    const Column<const int64_t> ids(task, "task", n), allocations(allocation, "allocation", n);
    const Column<const int32_t> machines(machine, "machine", n), owners(owner, "owner", n);
    tasks.start(start_us, ids.span(), allocations.data(), machines.span(), owners.data());
  }

  void cancel(nb::handle allocation) {
    for (const int64_t id :
         Column<const int64_t>(allocation, "allocation", length_of(allocation, "allocation"))
             .span())
      tasks.wheel.cancel(id);
  }

  nb::object forget(nb::handle allocation) {
    const Column<const int64_t> ids(allocation, "allocation", length_of(allocation, "allocation"));
    const auto span = ids.span();
    const NewArray<int64_t> task(span.size());
    for (size_t i = 0; i < span.size(); ++i) task.data()[i] = tasks.forget(span[i]);
    return task.object();
  }

  nb::tuple take(int64_t now_us) {
    const std::vector<TimerWheel::Entry> taken = tasks.wheel.take(now_us);
    return nb::make_tuple(column_of<int64_t>(taken, [](const auto& e) { return e.end_us; }),
                          column_of<int64_t>(taken, [](const auto& e) { return e.id; }),
                          column_of<int32_t>(taken, [](const auto& e) { return e.owner; }),
                          column_of<int32_t>(taken, [](const auto& e) { return e.machine; }));
  }

  Column<const int64_t> duration;
  Column<const int32_t> set;
  agora::RunningTasks tasks;
};

}  // namespace

void bind_running_tasks(nb::module_& module) {
  nb::class_<RunningTasks>(module, "RunningTasks",
                           "What the worker pool runs; see running_tasks.hpp.")
      .def(nb::init<int64_t, nb::handle, nb::handle, const CatalogColumns&, int64_t, bool>(),
           nb::arg("tick_us"), nb::arg("duration_us"), nb::arg("preference"), nb::arg("catalog"),
           nb::arg("preferred_permille"), nb::arg("indexed"), nb::keep_alive<1, 5>())
      .def("__len__", [](const RunningTasks& self) { return self.tasks.wheel.size(); })
      .def("start", &RunningTasks::start, nb::arg("start_us"), nb::arg("task"),
           nb::arg("allocation"), nb::arg("machine"), nb::arg("owner"))
      .def("cancel", &RunningTasks::cancel, nb::arg("allocation"))
      .def("take", &RunningTasks::take, nb::arg("now_us"),
           "Removes all entries due by now_us: (end_us int64[n], allocation int64[n], owner "
           "int32[n], machine int32[n]).")
      .def("forget", &RunningTasks::forget, nb::arg("allocation"),
           "The tasks of allocations that end, int64[n]; -1 where that was said before, or not "
           "`indexed`.")
      .def(
          "next_us", [](const RunningTasks& self) { return self.tasks.wheel.next_us(); },
          "Time of the earliest occupied tick, -1 if empty.");
}
