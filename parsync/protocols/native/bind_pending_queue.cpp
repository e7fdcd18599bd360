// Python's access to the queues of agents.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>

#include <algorithm>
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
using agora::copy_of;
using agora::length_of;
using agora::OptionalColumn;
using agora::PendingQueue;
using agora::PlannedTasks;
using agora::QueuedTasks;
using agora::RoundTasks;
using agora::SchedulerQueue;

namespace {

// The tasks that leave the queue, as arrays.
struct BoundExits {
  nb::object too_large = array_of(std::span<const int64_t>{});
  nb::object abandoned = array_of(std::span<const int64_t>{});
  int64_t retry = 0;
};

// An attribute of Python's; its name is kept, for a round reads a dozen.
template <size_t n>
struct Name {
  char text[n];
  constexpr Name(const char (&name)[n]) { std::ranges::copy(name, text); }  // NOLINT: a literal
};

template <Name name>
nb::handle attribute_name() {
  static const nb::handle kept = nb::steal(PyUnicode_InternFromString(name.text)).release();
  return kept;
}

template <Name name>
nb::object get(nb::handle object) {
  nb::object value = nb::steal(PyObject_GetAttr(object.ptr(), attribute_name<name>().ptr()));
  if (!value.is_valid()) throw nb::python_error();
  return value;
}

template <Name name>
void set(nb::handle object, const nb::object& value) {
  if (PyObject_SetAttr(object.ptr(), attribute_name<name>().ptr(), value.ptr()) != 0)
    throw nb::python_error();
}

// A column of a Python plan; an empty one is not looked at.
template <class T>
class PlanColumn {
 public:
  PlanColumn(nb::object array, const char* field) : array_(std::move(array)) {
    if (const size_t length = length_of(array_, field)) column_.emplace(array_, field, length);
  }
  std::span<const T> span() const { return column_ ? column_->span() : std::span<const T>{}; }

 private:
  nb::object array_;
  std::optional<Column<const T>> column_;
};

// What a queue has to know of the plan of a Python Round.
class Plan {
 public:
  Plan(nb::handle round, bool with_claims)
      : plan_(get<"plan">(round)),
        pending_(get<"pending">(plan_), "plan.pending"),
        reason_(get<"pending_reason">(plan_), "plan.pending_reason") {
    if (!with_claims) return;
    in_full_ = is_in_full(round);
    claimed_.emplace(get<"task">(plan_), "plan.task");
  }

  static bool is_in_full(nb::handle round) { return get<"in_full">(round).is(nb::handle(Py_True)); }

  PlannedTasks tasks() const {
    return {claimed_ ? claimed_->span() : std::span<const int64_t>{}, pending_.span(),
            reason_.span(), in_full_};
  }

 private:
  nb::object plan_;
  PlanColumn<int64_t> pending_;
  PlanColumn<int8_t> reason_;
  std::optional<PlanColumn<int64_t>> claimed_;
  bool in_full_ = false;
};

// A queue with what it borrows of arrays; objects are kept alive by nanobind.
class BoundQueue {
 public:
  BoundQueue(nb::handle gang, bool keeps)
      : gang_(gang, "gang"),
        keeps_(keeps),
        no_exits_(nb::module_::import_("parsync.protocols._native").attr("NO_EXITS")) {}

  void limit_jobs(nb::handle job, int64_t jobs_max) {
    job_.emplace(job, "job", length_of(job, "job"));
    queue->limit_jobs(job_->span(), jobs_max);
  }

  void add(BoundQueuedTasks& work) { queue->add(work.view()); }

  BoundQueuedTasks take(std::optional<int64_t> limit) {
    QueuedTasks offered;
    queue->take(limit, offered);
    return BoundQueuedTasks(std::move(offered));
  }

  // The very tasks that Python was offered where the plan is known to claim them.
  nb::object claimed_tasks(nb::handle round) {
    nb::object offered = get<"offered">(round);
    if (Plan::is_in_full(round)) return offered;
    load(offered, round_.offered);
    load(get<"claimed">(round), round_.claimed);
    QueuedTasks claimed;
    queue->claimed_tasks(round_, Plan(round, true).tasks(), claimed);
    return nb::cast(BoundQueuedTasks(std::move(claimed)));
  }

  nb::object on_planned(nb::handle round) {
    const Plan plan(round, keeps_);
    int64_t start_us = 0;
    round_.offered.clear();
    if (keeps_ || !plan.tasks().pending.empty()) {  // else nothing goes back into it
      load(get<"offered">(round), round_.offered);
      start_us = nb::cast<int64_t>(get<"start_us">(round));
    }
    const agora::QueueExits& exits = queue->on_planned(round_, plan.tasks(), start_us);
    if (round_.blocked) set<"blocked">(round, nb::bool_(true));
    if (round_.since_us != agora::PassedOver::kNotYet)
      set<"since_us">(round, nb::int_(round_.since_us));
    const auto keep = [](QueuedTasks& tasks) {
      return nb::cast(BoundQueuedTasks(std::exchange(tasks, {})));
    };
    if (!round_.left.empty()) set<"left">(round, keep(round_.left));
    if (!round_.claimed.empty()) set<"claimed">(round, keep(round_.claimed));
    return exits_of(exits);
  }

  nb::object on_committed(nb::handle round, BoundQueuedTasks& losers) {
    const Plan plan(round, false);
    load(get<"left">(round), round_.left);
    if (losers.size() > 0 || !round_.left.empty()) {  // else everything was placed
      load(get<"offered">(round), round_.offered);
      round_.since_us = nb::cast<int64_t>(get<"since_us">(round));
    }
    return exits_of(queue->on_committed(round_, plan.tasks(), losers.view()));
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
    tasks.assign(nb::cast<BoundQueuedTasks&>(face).view());
  }

  const bool keeps_;           // its scheduler remembers what waits
  const nb::object no_exits_;  // where nothing leaves, as in nearly every round
  std::optional<Column<const int64_t>> job_;
  RoundTasks round_;
};

class BoundAgentQueue : public BoundQueue {
 public:
  BoundAgentQueue(bool requeues, int64_t attempts_max, int64_t attempts_max_unplaced,
                  nb::handle gang, bool whole_queue, BoundPassedOver* passed,
                  BoundQuotaAccount* account, nb::handle priority, bool is_own_limit)
      : BoundQueue(gang, false), priority_(priority, "priority") {
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
  BoundSchedulerQueue(bool whole_queue, nb::handle gang) : BoundQueue(gang, true) {
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
      .def(nb::init<bool, int64_t, int64_t, nb::handle, bool, BoundPassedOver*, BoundQuotaAccount*,
                    nb::handle, bool>(),
           nb::arg("requeues"), nb::arg("attempts_max"), nb::arg("attempts_max_unplaced"),
           nb::arg("gang").none(), nb::arg("whole_queue"), nb::arg("passed").none(),
           nb::arg("account").none(), nb::arg("priority").none(), nb::arg("is_own_limit"),
           nb::keep_alive<1, 7>(), nb::keep_alive<1, 8>());
  nb::class_<BoundSchedulerQueue, Queue>(module, "SchedulerQueue")
      .def(nb::init<bool, nb::handle>(), nb::arg("whole_queue"), nb::arg("gang").none());
}
