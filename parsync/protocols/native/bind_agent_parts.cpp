// Python's access to the parts of agents: view, queues, planner, rankings, what sorts out tasks,
// what records holds.

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "bound_parts.hpp"
#include "bound_pending_queue.hpp"
#include "queue_holds.hpp"

namespace nb = nanobind;
using agora::array_of;
using agora::BoundAgentLog;
using agora::BoundAgentQueue;
using agora::BoundAgentView;
using agora::BoundDecisionClock;
using agora::BoundExits;
using agora::BoundQueue;
using agora::BoundQueuedTasks;
using agora::BoundQuotaAccount;
using agora::BoundRoundPlanner;
using agora::BoundRoundRankings;
using agora::BoundSchedulerQueue;
using agora::BoundSkippedUnits;
using agora::BoundSortingOut;
using agora::BoundStrategy;
using agora::BoundUnplaceableUnits;
using agora::Column;
using agora::copy_of;
using agora::DelayAverage;
using agora::length_of;
using agora::QueueHolds;
using agora::RoundRankings;

void bind_agent_parts(nb::module_& module) {
  nb::class_<BoundSortingOut>(module, "SortingOut")
      .def(nb::init<const BoundUnplaceableUnits*, nb::handle, BoundAgentLog&>(),
           nb::arg("units").none(), nb::arg("reason").none(), nb::arg("log"),
           nb::keep_alive<1, 2>(), nb::keep_alive<1, 4>())
      .def("placeable", &BoundSortingOut::placeable, nb::arg("now_us"), nb::arg("work"))
      .def("record", &BoundSortingOut::record, nb::arg("now_us"), nb::arg("task"));
  nb::class_<QueueHolds>(module, "QueueHolds", R"(Records the holds of one agent's queue that keep
tasks waiting; see queue_holds.hpp.)")
      .def(
          "__init__", [](QueueHolds* self, BoundAgentLog& log) { new (self) QueueHolds(log.log); },
          nb::arg("log"), nb::keep_alive<1, 2>())
      .def(
          "see",
          [](QueueHolds& self, int64_t now_us, nb::handle holder, int64_t queued) {
            const Column<const int64_t> tasks(holder, "holder", length_of(holder, "holder"));
            self.see(now_us, tasks.span(), queued);
          },
          nb::arg("now_us"), nb::arg("holder"), nb::arg("queued"),
          "A round is decided. holder: the tasks of the unit that holds the queue, int64[n]; none "
          "if no\nunit does. queued: the tasks that wait, those included.")
      .def("end", &QueueHolds::end, nb::arg("now_us"), nb::arg("queued"),
           "The hold is over, with so many tasks that wait; or the run is.");
}

void bind_agent_view(nb::module_& module) {
  nb::class_<BoundAgentView>(module, "AgentView", "An agent's view; see agent_view.hpp.")
      .def(nb::init<nb::object, std::vector<int32_t>, int64_t>(), nb::arg("cell"),
           nb::arg("visible"), nb::arg("first_turn"))
      .def("start", [](BoundAgentView& self, int64_t now_us) { self.view().start(now_us); })
      .def(
          "forget", [](BoundAgentView& self) { self.view().forget(); },
          "Shows nothing any more, until the next reply.")
      .def("on_reply", &BoundAgentView::on_reply, nb::arg("now_us"), nb::arg("reply"),
           nb::arg("rounds"), nb::arg("log"), nb::arg("rows_changed"))
      .def("staleness_us",
           [](BoundAgentView& self, int64_t now_us) { return self.view().staleness_us(now_us); })
      .def("used_permille",
           [](BoundAgentView& self) { return array_of<int64_t>(self.view().used_permille()); })
      .def_prop_ro("order", &BoundAgentView::order)
      .def_prop_rw(
          "changed", [](BoundAgentView& self) { return self.view().changed; },
          [](BoundAgentView& self, bool changed) { self.view().changed = changed; });
}

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

void bind_round_planner(nb::module_& module) {
  nb::class_<BoundRoundPlanner>(module, "RoundPlanner",
                                "Plans the rounds of one agent; see round_planner.hpp.")
      .def(nb::init<uint64_t, std::string, int, bool, const BoundDecisionClock*, bool, nb::object,
                    nb::handle, nb::object>(),
           nb::arg("seed"), nb::arg("name"), nb::arg("quality"), nb::arg("checks_seqnum"),
           nb::arg("clock").none(), nb::arg("charges_kept"), nb::arg("planner"),
           nb::arg("task_class"), nb::arg("units").none())
      .def("plan", &BoundRoundPlanner::plan, nb::arg("view"), nb::arg("task"), nb::arg("round"),
           nb::arg("now_us"), nb::arg("ranking"), nb::arg("partition_order"),
           "Plans int64[n] tasks and takes their claims out of the view. The plan, as\n"
           "bound_types.hpp's arrays_of has it.")
      .def_prop_ro("seqnum", &BoundRoundPlanner::seqnum,
                   "uint32[k], the sequence numbers of the last plan's machines in the view.")
      .def("decision_us", &BoundRoundPlanner::decision_us, nb::arg("elapsed_ns"),
           "How long the last plan takes to decide.");
}

void bind_strategies(nb::module_& module) {
  nb::class_<BoundStrategy>(module, "Strategy", "How an agent ranks partitions; strategies.hpp.")
      .def_static("fixed",
                  [](int ranking) {
                    return BoundStrategy{agora::FixedStrategy{agora::ranking_of(ranking)}};
                  })
      .def_static("adaptive",
                  [](int64_t tau_us) { return BoundStrategy{agora::AdaptiveStrategy{tau_us}}; })
      .def("ranking", [](const BoundStrategy& self, int64_t delay_average_us) {
        return static_cast<int>(agora::ranking_by(self.strategy, delay_average_us));
      });
  nb::class_<BoundRoundRankings>(module, "RoundRankings")
      .def(nb::init<const BoundStrategy&, const BoundStrategy*, nb::handle>(), nb::arg("strategy"),
           nb::arg("long_strategy").none(), nb::arg("task_class"))
      .def("begin_batch",
           [](BoundRoundRankings& self, int64_t delay_average_us) {
             self.rankings.begin_batch(delay_average_us);
           })
      .def("of", &BoundRoundRankings::of)
      .def_prop_ro(
          "ranking",
          [](const BoundRoundRankings& self) { return static_cast<int>(self.rankings.ranking()); })
      .def_prop_ro("tells_lengths",
                   [](const BoundRoundRankings& self) { return self.rankings.tells_lengths(); });
  nb::class_<DelayAverage>(module, "DelayAverage")
      .def(nb::init<int64_t>(), nb::arg("coefficient_permille"))
      .def("add", &DelayAverage::add, nb::arg("delay_sum_us"), nb::arg("committed"),
           nb::arg("batch_size"))
      .def_prop_ro("us", &DelayAverage::us);
}
