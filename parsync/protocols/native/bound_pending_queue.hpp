// The queues of agents as Python holds them, with what they borrow.
#pragma once

#include <nanobind/nanobind.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "parsync/core/native/bound_queue_parts.hpp"
#include "pending_queue.hpp"

namespace agora {

// The tasks that leave the queue, as arrays.
struct BoundExits {
  nanobind::object too_large = array_of(std::span<const int64_t>{});
  nanobind::object abandoned = array_of(std::span<const int64_t>{});
  int64_t retry = 0;
};

// An attribute of Python's; its name is kept, for a round reads a dozen.
template <size_t n>
struct Name {
  char text[n];
  constexpr Name(const char (&name)[n]) { std::ranges::copy(name, text); }  // NOLINT: a literal
};

template <Name name>
nanobind::handle attribute_name() {
  static const nanobind::handle kept =
      nanobind::steal(PyUnicode_InternFromString(name.text)).release();
  return kept;
}

template <Name name>
nanobind::object get(nanobind::handle object) {
  nanobind::object value =
      nanobind::steal(PyObject_GetAttr(object.ptr(), attribute_name<name>().ptr()));
  if (!value.is_valid()) throw nanobind::python_error();
  return value;
}

template <Name name>
void set(nanobind::handle object, const nanobind::object& value) {
  if (PyObject_SetAttr(object.ptr(), attribute_name<name>().ptr(), value.ptr()) != 0)
    throw nanobind::python_error();
}

// A column of a Python plan; an empty one is not looked at.
template <class T>
class PlanColumn {
 public:
  PlanColumn(nanobind::object array, const char* field) : array_(std::move(array)) {
    if (const size_t length = length_of(array_, field)) column_.emplace(array_, field, length);
  }
  std::span<const T> span() const { return column_ ? column_->span() : std::span<const T>{}; }

 private:
  nanobind::object array_;
  std::optional<Column<const T>> column_;
};

// What a queue has to know of the plan of a Python Round.
class Plan {
 public:
  Plan(nanobind::handle round, bool with_claims)
      : plan_(get<"plan">(round)),
        pending_(get<"pending">(plan_), "plan.pending"),
        reason_(get<"pending_reason">(plan_), "plan.pending_reason") {
    if (!with_claims) return;
    in_full_ = is_in_full(round);
    claimed_.emplace(get<"task">(plan_), "plan.task");
  }

  static bool is_in_full(nanobind::handle round) {
    return get<"in_full">(round).is(nanobind::handle(Py_True));
  }

  PlannedTasks tasks() const {
    return {claimed_ ? claimed_->span() : std::span<const int64_t>{}, pending_.span(),
            reason_.span(), in_full_};
  }

 private:
  nanobind::object plan_;
  PlanColumn<int64_t> pending_;
  PlanColumn<int8_t> reason_;
  std::optional<PlanColumn<int64_t>> claimed_;
  bool in_full_ = false;
};

// A queue with what it borrows of arrays; objects are kept alive by nanobind.
class BoundQueue {
 public:
  BoundQueue(nanobind::handle gang, bool keeps)
      : gang_(gang, "gang"),
        keeps_(keeps),
        no_exits_(nanobind::module_::import_("parsync.protocols._native").attr("NO_EXITS")) {}

  void limit_jobs(nanobind::handle job, int64_t jobs_max) {
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
  nanobind::object claimed_tasks(nanobind::handle round) {
    nanobind::object offered = get<"offered">(round);
    if (Plan::is_in_full(round)) return offered;
    load(offered, round_.offered);
    load(get<"claimed">(round), round_.claimed);
    QueuedTasks claimed;
    queue->claimed_tasks(round_, Plan(round, true).tasks(), claimed);
    return nanobind::cast(BoundQueuedTasks(std::move(claimed)));
  }

  nanobind::object on_planned(nanobind::handle round) {
    const Plan plan(round, keeps_);
    int64_t start_us = 0;
    round_.offered.clear();
    if (keeps_ || !plan.tasks().pending.empty()) {  // else nothing goes back into it
      load(get<"offered">(round), round_.offered);
      start_us = nanobind::cast<int64_t>(get<"start_us">(round));
    }
    const QueueExits& exits = queue->on_planned(round_, plan.tasks(), start_us);
    if (round_.blocked) set<"blocked">(round, nanobind::bool_(true));
    if (round_.since_us != SkippedUnits::kNotYet)
      set<"since_us">(round, nanobind::int_(round_.since_us));
    const auto keep = [](QueuedTasks& tasks) {
      return nanobind::cast(BoundQueuedTasks(std::exchange(tasks, {})));
    };
    if (!round_.left.empty()) set<"left">(round, keep(round_.left));
    if (!round_.claimed.empty()) set<"claimed">(round, keep(round_.claimed));
    return exits_of(exits);
  }

  nanobind::object on_committed(nanobind::handle round, BoundQueuedTasks& losers) {
    const Plan plan(round, false);
    load(get<"left">(round), round_.left);
    if (losers.size() > 0 || !round_.left.empty()) {  // else everything was placed
      load(get<"offered">(round), round_.offered);
      round_.since_us = nanobind::cast<int64_t>(get<"since_us">(round));
    }
    return exits_of(queue->on_committed(round_, plan.tasks(), losers.view()));
  }

  nanobind::list waiting(int64_t now_us) {
    nanobind::list parts;
    queue->waiting(now_us, [&](std::span<const int64_t> task, Waiting why, int64_t ahead) {
      parts.append(nanobind::make_tuple(array_of(task), static_cast<int>(why), ahead));
    });
    return parts;
  }

  std::unique_ptr<PendingQueue> queue;

 protected:
  OptionalColumn<int64_t> gang_;

 private:
  nanobind::object exits_of(const QueueExits& exits) const {
    if (exits.empty()) return no_exits_;
    return nanobind::cast(BoundExits{array_of(std::span<const int64_t>(exits.too_large)),
                                     array_of(std::span<const int64_t>(exits.abandoned)),
                                     exits.retry});
  }

  static void load(const nanobind::object& face, QueuedTasks& tasks) {
    tasks.assign(nanobind::cast<BoundQueuedTasks&>(face).view());
  }

  const bool keeps_;                 // its scheduler remembers what waits
  const nanobind::object no_exits_;  // where nothing leaves, as in nearly every round
  std::optional<Column<const int64_t>> job_;
  RoundTasks round_;
};

class BoundAgentQueue : public BoundQueue {
 public:
  BoundAgentQueue(bool requeues, int64_t attempts_max, int64_t attempts_max_unplaced,
                  nanobind::handle gang, bool whole_queue, BoundSkippedUnits* skipped,
                  BoundQuotaAccount* account, nanobind::handle priority, bool is_own_limit)
      : BoundQueue(gang, false), priority_(priority, "priority") {
    queue = std::make_unique<AgentQueue>(
        AgentQueue::Options{requeues, attempts_max, attempts_max_unplaced, gang_.span(),
                            whole_queue, skipped ? &skipped->skipped : nullptr,
                            account ? &account->account : nullptr, priority_.span(), is_own_limit});
  }

 private:
  OptionalColumn<int32_t> priority_;
};

class BoundSchedulerQueue : public BoundQueue {
 public:
  BoundSchedulerQueue(bool whole_queue, nanobind::handle gang) : BoundQueue(gang, true) {
    queue = std::make_unique<SchedulerQueue>(whole_queue, gang_.span());
  }
};

}  // namespace agora
