// The Python module parsync.protocols._native: the parts of agents, synchronisation, and the sums
// of demand that schedulers share. Whole agents and the protocol probing are bound elsewhere.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "bound_parts.hpp"
#include "optimistic_events.hpp"
#include "parsync/core/native/bound_participant.hpp"
#include "shared_state/native/column.hpp"

namespace nb = nanobind;
using namespace agora;

void bind_optimistic_agent(nb::module_& module);
void bind_optimistic_events(nb::module_& module);
void bind_offers(nb::module_& module);
void bind_offers_agent(nb::module_& module);
void bind_offers_events(nb::module_& module);
void bind_probing(nb::module_& module);
void bind_scheduler_agent(nb::module_& module);
void bind_probing_events(nb::module_& module);

namespace {

void bind_agent_parts(nb::module_& module) {
  nb::class_<BoundSortingOut>(module, "SortingOut")
      .def(nb::init<const BoundUnplaceableUnits*, nb::handle, BoundAgentLog&>(),
           nb::arg("units").none(), nb::arg("reason").none(), nb::arg("log"),
           nb::keep_alive<1, 2>(), nb::keep_alive<1, 4>())
      .def("placeable", &BoundSortingOut::placeable, nb::arg("now_us"), nb::arg("work"))
      .def("record", &BoundSortingOut::record, nb::arg("now_us"), nb::arg("task"));
  nb::class_<QueueHolds>(module, "QueueHolds", R"(Records the holds of one agent's queue that keep
tasks waiting; see pending_queue.hpp.)")
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
           nb::keep_alive<1, 7>(), nb::keep_alive<1, 8>())
      .def("give_up_jobs", &BoundAgentQueue::give_up_jobs, nb::arg("job"), nb::arg("most"),
           nb::arg("most_unplaced"));
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
  nb::class_<BoundStrategy>(module, "Strategy", "How an agent ranks partitions; round_planner.hpp.")
      .def_static("fixed",
                  [](int ranking) { return BoundStrategy{FixedStrategy{ranking_of(ranking)}}; })
      .def_static("adaptive",
                  [](int64_t tau_us) { return BoundStrategy{AdaptiveStrategy{tau_us}}; })
      .def("ranking", [](const BoundStrategy& self, int64_t delay_average_us) {
        return static_cast<int>(ranking_by(self.strategy, delay_average_us));
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

// Synchronisation: the built-in sync policies, and the schedule of an agent.

// A SyncContext of sync.py.
SyncContext context_from(nb::handle context) {
  const auto number = [&](const char* field) {
    return BoundValue<int64_t>::from(context.attr(field), field);
  };
  return {number("gap_us"), number("partitions"), number("index"), number("agents")};
}

// An agent's schedule with its policy.
class BoundSyncSchedule {
 public:
  BoundSyncSchedule(nb::object policy, size_t partitions)
      : policy_(std::move(policy)),
        native_(sync_policy_from(policy_)),
        schedule_(*native_, partitions) {}

  SyncSchedule& schedule() { return schedule_; }

  nb::object start(int64_t now_us) {
    Effects effects;
    schedule_.start(now_us, effects);
    return next(effects);
  }

  nb::tuple on_due(int64_t now_us, int64_t k, int64_t delay_us, int64_t queued,
                   const nb::object& load) {
    Effects effects;
    const auto used_permille = [&] {
      const nb::object array = load();
      const Column<const int64_t> used(array, "load", length_of(array, "load"));
      return std::vector<int64_t>(used.span().begin(), used.span().end());
    };
    const SharedColumn<int32_t> partitions =
        schedule_.on_due(now_us, k, delay_us, queued, used_permille, effects);
    return nb::make_tuple(array_of(partitions), next(effects));
  }

  void on_committed(nb::handle partition, nb::handle conflict) {
    const Column<const int32_t> of(partition, "partition", length_of(partition, "partition"));
    const Column<const bool> rejected(conflict, "conflict", length_of(conflict, "conflict"));
    schedule_.on_committed(of.span(),
                           {reinterpret_cast<const uint8_t*>(rejected.data()), rejected.size()});
  }

 private:
  // When the next synchronisation is due, and its number; None: there are no more.
  static nb::object next(Effects& effects) {
    if (effects.list().empty()) return nb::none();
    const auto& timer = std::get<SetTimer>(effects.list().front());
    return nb::make_tuple(timer.at_us, as<optimistic::SyncDue>(timer.event).k);
  }

  const nb::object policy_;
  const std::shared_ptr<SyncPolicy> native_;
  SyncSchedule schedule_;
};

// The memory of the schedule itself.
nb::object rows_changed(nb::handle self) {
  const std::span<int64_t> rows = nb::cast<BoundSyncSchedule&>(self).schedule().rows_changed();
  return nb::cast(nb::ndarray<nb::numpy, int64_t, nb::ndim<1>>(rows.data(), {rows.size()}, self));
}

void bind_policies(nb::module_& module) {
  nb::class_<SyncPolicy>(module, "SyncPolicy",
                         "A native SyncPolicy (parsync/protocols/optimistic/sync.py).")
      .def_prop_ro("at_every_attempt", &SyncPolicy::at_every_attempt)
      .def_prop_ro("retry_us", &SyncPolicy::retry_us)
      .def_prop_ro("wants_feedback", &SyncPolicy::wants_feedback)
      .def("due_us", &SyncPolicy::due_us, nb::arg("k"))
      .def(
          "partitions", [](SyncPolicy& self, int64_t k) { return array_of(self.partitions(k)); },
          nb::arg("k"))
      .def("latest", &SyncPolicy::latest, nb::arg("now_us"))
      .def("observe", [](SyncPolicy&, nb::handle) {}, nb::arg("feedback"), "Ignores it.");
  nb::class_<StateSync, SyncPolicy>(module, "StateSync", nb::is_final())
      .def(
          "__init__",
          [](StateSync* self, nb::handle context, bool staggered) {
            new (self) StateSync(context_from(context), staggered);
          },
          nb::arg("context"), nb::arg("staggered"));
  nb::class_<BlockSync, SyncPolicy>(module, "BlockSync", nb::is_final())
      .def(
          "__init__",
          [](BlockSync* self, nb::handle context, bool same_block) {
            new (self) BlockSync(context_from(context), same_block);
          },
          nb::arg("context"), nb::arg("same_block"));
  nb::class_<SinglePartitionSync, SyncPolicy>(module, "SinglePartitionSync", nb::is_final())
      .def(
          "__init__",
          [](SinglePartitionSync* self, nb::handle context) {
            new (self) SinglePartitionSync(context_from(context));
          },
          nb::arg("context"));
  nb::class_<EveryAttemptSync, SyncPolicy>(module, "EveryAttemptSync", nb::is_final())
      .def(
          "__init__",
          [](EveryAttemptSync* self, nb::handle context) {
            new (self) EveryAttemptSync(context_from(context));
          },
          nb::arg("context"));
}

void bind_sync(nb::module_& module) {
  bind_policies(module);
  nb::class_<BoundSyncSchedule>(module, "SyncSchedule")
      .def(nb::init<nb::object, size_t>(), nb::arg("policy"), nb::arg("partitions"))
      .def("start", &BoundSyncSchedule::start, nb::arg("now_us"))
      .def("on_due", &BoundSyncSchedule::on_due, nb::arg("now_us"), nb::arg("k"),
           nb::arg("delay_us"), nb::arg("queued"), nb::arg("load"))
      .def("on_committed", &BoundSyncSchedule::on_committed, nb::arg("partition"),
           nb::arg("conflict"))
      .def_prop_ro("next_us", [](BoundSyncSchedule& self) { return self.schedule().next_us(); })
      .def_prop_ro("rows_changed", &rows_changed);
}

// The sums of the demand that schedulers share (parsync/protocols/optimistic/shared_demand.py):
// tasks counted by preference set.

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

void bind_shared_demand(nb::module_& module) {
  module.def("add_tasks", &add_tasks);
  module.def("add_report", &add_report);
}

}  // namespace

NB_MODULE(_native, module) {
  // have the classes of arguments
  nb::module_::import_("schedulers._native");
  nb::module_::import_("parsync.metrics._native");
  nb::module_::import_("parsync.core._native");
  bind_agent_parts(module);
  bind_agent_view(module);
  bind_offers_events(module);
  bind_optimistic_events(module);
  bind_probing_events(module);
  bind_pending_queue(module);
  bind_round_planner(module);
  bind_shared_demand(module);
  bind_strategies(module);
  bind_sync(module);
  bind_scheduler_agent(module);
  bind_optimistic_agent(module);
  bind_offers_agent(module);
  bind_offers(module);
  bind_probing(module);
}
