// Python's access to the queues of agents.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>

#include <memory>
#include <optional>
#include <utility>

#include "parsync/core/native/bound_queue_parts.hpp"
#include "pending_queue.hpp"

namespace nb = nanobind;
using agora::AgentQueue;
using agora::array_of;
using agora::BoundPassedOver;
using agora::BoundQueuedTasks;
using agora::BoundQuotaAccount;
using agora::Column;
using agora::length_of;
using agora::OptionalColumn;
using agora::PendingQueue;
using agora::PlannedTasks;
using agora::QueuedTasks;
using agora::QueuedTasksColumns;
using agora::RoundTasks;
using agora::SchedulerQueue;

namespace {

// The tasks that leave the queue, as arrays.
struct BoundExits {
  nb::object too_large = array_of(std::span<const int64_t>{});
  nb::object abandoned = array_of(std::span<const int64_t>{});
  int64_t retry = 0;
};

// The columns that a queue has to know of the plan of a Python Round.
class PlanColumns {
 public:
  explicit PlanColumns(nb::handle round)
      : plan_(round.attr("plan")),
        claimed_(plan_.attr("task")),
        pending_(plan_.attr("pending")),
        reason_(plan_.attr("pending_reason")),
        claimed(claimed_, "plan.task", length_of(claimed_, "plan.task")),
        pending(pending_, "plan.pending", length_of(pending_, "plan.pending")),
        reason(reason_, "plan.pending_reason", pending.size()),
        in_full(nb::cast<bool>(round.attr("in_full"))) {}

  PlannedTasks tasks() const { return {claimed.span(), pending.span(), reason.span(), in_full}; }

 private:
  nb::object plan_, claimed_, pending_, reason_;
  Column<const int64_t> claimed, pending;
  Column<const int8_t> reason;
  bool in_full;
};

// A queue with what it borrows of arrays; objects are kept alive by nanobind.
class BoundQueue {
 public:
  explicit BoundQueue(nb::handle gang)
      : gang_(gang, "gang"),
        no_exits_(nb::module_::import_("parsync.protocols._native").attr("NO_EXITS")) {}

  void limit_jobs(nb::handle job, int64_t jobs_max) {
    job_.emplace(job, "job", length_of(job, "job"));
    queue->limit_jobs(job_->span(), jobs_max);
  }

  void add(const BoundQueuedTasks& work) { queue->add(QueuedTasksColumns(work).view()); }

  BoundQueuedTasks take(std::optional<int64_t> limit) {
    queue->take(limit, taken_);
    return BoundQueuedTasks::of(taken_);
  }

  // The tasks as Python has them where the plan is known to claim what was offered.
  nb::object claimed_tasks(nb::handle round) {
    nb::object offered = round.attr("offered");
    const PlanColumns plan(round);
    if (plan.tasks().in_full) return offered;
    load(offered, round_.offered);
    load(round.attr("claimed"), round_.claimed);
    queue->claimed_tasks(round_, plan.tasks(), taken_);
    return nb::cast(BoundQueuedTasks::of(taken_));
  }

  nb::object on_planned(nb::handle round) {
    const PlanColumns plan(round);
    const auto start_us = nb::cast<int64_t>(round.attr("start_us"));
    load(round.attr("offered"), round_.offered);
    const agora::QueueExits& exits = queue->on_planned(round_, plan.tasks(), start_us);
    if (round_.blocked) round.attr("blocked") = true;
    if (round_.since_us != agora::PassedOver::kNotYet) round.attr("since_us") = round_.since_us;
    if (!round_.left.empty()) round.attr("left") = BoundQueuedTasks::of(round_.left);
    if (!round_.claimed.empty()) round.attr("claimed") = BoundQueuedTasks::of(round_.claimed);
    return exits_of(exits);
  }

  nb::object on_committed(nb::handle round, const BoundQueuedTasks& losers) {
    const PlanColumns plan(round);
    load(round.attr("offered"), round_.offered);
    load(round.attr("left"), round_.left);
    round_.since_us = nb::cast<int64_t>(round.attr("since_us"));
    return exits_of(queue->on_committed(round_, plan.tasks(), QueuedTasksColumns(losers).view()));
  }

  nb::list waiting(int64_t now_us) {
    nb::list parts;
    queue->waiting(now_us, [&](std::span<const int64_t> task, agora::Waiting why, int64_t ahead) {
      parts.append(nb::make_tuple(array_of(task), static_cast<int>(why), ahead));
    });
    return parts;
  }

  std::unique_ptr<PendingQueue> queue;

 protected:
  OptionalColumn<int64_t> gang_;

 private:
  nb::object exits_of(const agora::QueueExits& exits) const {
    if (exits.empty()) return no_exits_;
    return nb::cast(BoundExits{array_of(std::span<const int64_t>(exits.too_large)),
                               array_of(std::span<const int64_t>(exits.abandoned)), exits.retry});
  }

  static void load(const nb::object& face, QueuedTasks& tasks) {
    tasks.assign(QueuedTasksColumns(nb::cast<const BoundQueuedTasks&>(face)).view());
  }

  const nb::object no_exits_;  // where nothing leaves, as in nearly every round
  std::optional<Column<const int64_t>> job_;
  RoundTasks round_;
  QueuedTasks taken_;
};

class BoundAgentQueue : public BoundQueue {
 public:
  BoundAgentQueue(bool requeues, int64_t attempts_max, int64_t attempts_max_unplaced,
                  nb::handle gang, bool whole_queue, BoundPassedOver* passed,
                  BoundQuotaAccount* account, nb::handle priority, bool is_own_limit)
      : BoundQueue(gang), priority_(priority, "priority") {
    queue = std::make_unique<AgentQueue>(
        AgentQueue::Options{requeues, attempts_max, attempts_max_unplaced, gang_.span(),
                            whole_queue, passed ? &passed->passed : nullptr,
                            account ? &account->account : nullptr, priority_.span(), is_own_limit});
  }

 private:
  OptionalColumn<int32_t> priority_;
};

class BoundSchedulerQueue : public BoundQueue {
 public:
  BoundSchedulerQueue(bool whole_queue, nb::handle gang) : BoundQueue(gang) {
    queue = std::make_unique<SchedulerQueue>(whole_queue, gang_.span());
  }
};

}  // namespace

void bind_pending_queue(nb::module_& module) {
  nb::class_<BoundExits>(module, "QueueExits")
      .def(nb::init<>())
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
      .def("current", [](Queue& self) { return BoundQueuedTasks::of(self.queue->current()); })
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
      .def(nb::init<bool, int64_t, int64_t, nb::handle, bool, BoundPassedOver*, BoundQuotaAccount*,
                    nb::handle, bool>(),
           nb::arg("requeues"), nb::arg("attempts_max"), nb::arg("attempts_max_unplaced"),
           nb::arg("gang").none(), nb::arg("whole_queue"), nb::arg("passed").none(),
           nb::arg("account").none(), nb::arg("priority").none(), nb::arg("is_own_limit"),
           nb::keep_alive<1, 7>(), nb::keep_alive<1, 8>());
  nb::class_<BoundSchedulerQueue, Queue>(module, "SchedulerQueue")
      .def(nb::init<bool, nb::handle>(), nb::arg("whole_queue"), nb::arg("gang").none());
}
