// Python's access to the queues of agents.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>

#include <utility>

#include "bound_pending_queue.hpp"

namespace nb = nanobind;
using agora::array_of;
using agora::BoundAgentQueue;
using agora::BoundExits;
using agora::BoundQueue;
using agora::BoundQueuedTasks;
using agora::BoundQuotaAccount;
using agora::BoundSchedulerQueue;
using agora::BoundSkippedUnits;
using agora::Column;
using agora::copy_of;
using agora::length_of;

void bind_pending_queue(nb::module_& module) {
  nb::class_<BoundExits>(module, "QueueExits")
      .def(
          "__init__",
          [](BoundExits* self, nb::handle too_large) {
            const Column<const int64_t> task(too_large, "too_large",
                                             length_of(too_large, "too_large"));
            new (self) BoundExits();
            self->too_large = array_of(task.span());
          },
          nb::arg("too_large"))
      .def_ro("too_large", &BoundExits::too_large)
      .def_ro("abandoned", &BoundExits::abandoned)
      .def_ro("retry", &BoundExits::retry);
  module.attr("NO_EXITS") = nb::cast(BoundExits{});

  using Queue = BoundQueue;
  nb::class_<Queue>(module, "PendingQueue")
      .def("limit_jobs", &Queue::limit_jobs, nb::arg("job"), nb::arg("jobs_max"))
      .def(
          "has_new", [](Queue& self, int64_t now_us) { return self.queue->has_new(now_us); },
          nb::arg("now_us"))
      .def_prop_ro("has_waiting", [](const Queue& self) { return self.queue->has_waiting(); })
      .def(
          "has_next",
          [](Queue& self, int64_t now_us, bool view_changed) {
            return self.queue->has_next(now_us, view_changed);
          },
          nb::arg("now_us"), nb::arg("view_changed"))
      .def("add", &Queue::add, nb::arg("work"))
      .def(
          "next_batch",
          [](Queue& self, int64_t now_us, bool view_changed) {
            return self.queue->next_batch(now_us, view_changed);
          },
          nb::arg("now_us"), nb::arg("view_changed"))
      .def("current", [](Queue& self) { return BoundQueuedTasks(copy_of(self.queue->current())); })
      .def("take", &Queue::take, nb::arg("limit").none())
      .def(
          "holder",
          [](const Queue& self, int64_t now_us) { return array_of(self.queue->holder(now_us)); },
          nb::arg("now_us"))
      .def("waiting_tasks", &Queue::waiting, nb::arg("now_us"))
      .def("claimed_tasks", &Queue::claimed_tasks, nb::arg("round_"))
      .def("on_planned", &Queue::on_planned, nb::arg("round_"))
      .def("on_committed", &Queue::on_committed, nb::arg("round_"), nb::arg("losers"))
      .def(
          "on_requeue_due", [](Queue& self, int64_t key) { self.queue->on_requeue_due(key); },
          nb::arg("key"))
      .def(
          "on_adopted",
          [](Queue& self, nb::handle task) {
            self.queue->on_adopted(
                Column<const int64_t>(task, "task", length_of(task, "task")).span());
          },
          nb::arg("task"))
      .def(
          "on_finished",
          [](Queue& self, nb::handle task) {
            return self.queue->on_finished(
                Column<const int64_t>(task, "task", length_of(task, "task")).span());
          },
          nb::arg("task"));
  nb::class_<BoundAgentQueue, Queue>(module, "AgentQueue")
      .def(nb::init<bool, int64_t, int64_t, nb::handle, bool, BoundSkippedUnits*,
                    BoundQuotaAccount*, nb::handle, bool>(),
           nb::arg("requeues"), nb::arg("attempts_max"), nb::arg("attempts_max_unplaced"),
           nb::arg("gang").none(), nb::arg("whole_queue"), nb::arg("skipped").none(),
           nb::arg("account").none(), nb::arg("priority").none(), nb::arg("is_own_limit"),
           nb::keep_alive<1, 7>(), nb::keep_alive<1, 8>());
  nb::class_<BoundSchedulerQueue, Queue>(module, "SchedulerQueue")
      .def(nb::init<bool, nb::handle>(), nb::arg("whole_queue"), nb::arg("gang").none());
}
