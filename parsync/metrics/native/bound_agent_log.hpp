// The log of an agent as Python holds it. Also what native code outside this package takes it as.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <optional>

#include "agent_log.hpp"
#include "schedulers/native/bound_types.hpp"
#include "shared_state/native/column.hpp"

namespace agora {

// The log of an agent with what it borrows: the task table's arrays; also catalog and measurements,
// which nanobind keeps alive.
class BoundAgentLog {
 public:
  BoundAgentLog(int32_t agent, nanobind::handle job, nanobind::handle submit_us,
                nanobind::handle preference, const CatalogColumns& catalog, Measurements& records)
      : tasks_(length_of(job, "job")),
        job_(job, "job", tasks_),
        submit_us_(submit_us, "submit_us", tasks_),
        preference_(preference, "preference", tasks_),
        log(agent, {job_.span(), submit_us_.span(), preference_.span()}, catalog.spans(), records) {
  }

  nanobind::tuple commit(int64_t at_us, int64_t sequence, nanobind::handle task,
                         nanobind::handle machine, nanobind::handle synced_us,
                         nanobind::handle attempts, nanobind::handle first, nanobind::handle reason,
                         nanobind::handle rival, nanobind::handle age_us, int64_t start_us,
                         int64_t decision_us, int64_t ranking, nanobind::handle tasks) {
    const size_t n = length_of(task, "task");
    const Column<const int64_t> claimed(task, "task", n), synced(synced_us, "synced_us", n),
        ages(age_us, "age_us", n);
    const Column<const int32_t> machines(machine, "machine", n), tried(attempts, "attempts", n),
        rivals(rival, "rival", n);
    const Column<const int8_t> firsts(first, "first", n), reasons(reason, "reason", n);
    CommittedRound round{start_us, decision_us, ranking};
    std::optional<Column<const int64_t>> about;
    if (!tasks.is_none())
      round.tasks = about.emplace(tasks, "tasks", length_of(tasks, "tasks")).span();
    const OutcomeSums sums =
        log.commit(at_us,
                   {sequence, claimed.span(), machines.data(), synced.data(), tried.data(),
                    firsts.data(), reasons.data(), rivals.data(), ages.data()},
                   round);
    nanobind::object claims = nanobind::steal(PyTuple_New(kReasons));
    for (size_t number = 0; number < kReasons; ++number)
      PyTuple_SET_ITEM(claims.ptr(), static_cast<Py_ssize_t>(number),
                       PyLong_FromLongLong(sums.claims[number]));
    return nanobind::make_tuple(claims, sums.first_commits, sums.delay_us);
  }

  void attempts(int64_t start_us, int64_t decision_us, nanobind::handle task,
                nanobind::handle claimed, nanobind::handle placed, nanobind::handle conflicted) {
    const auto column = [](nanobind::handle tasks, const char* field) {
      return Column<const int64_t>(tasks, field, length_of(tasks, field));
    };
    const auto about = column(task, "task"), claims = column(claimed, "claimed"),
               first = column(placed, "placed"), lost = column(conflicted, "conflicted");
    log.attempts({start_us, decision_us, about.span(), claims.span(), first.span(), lost.span()});
  }

  void unplaceable(int64_t now_us, nanobind::handle task, nanobind::handle reason) {
    const Column<const int64_t> tasks(task, "task", length_of(task, "task"));
    if (PyLong_Check(reason.ptr()))
      return log.unplaceable(now_us, tasks.span(), nanobind::cast<int8_t>(reason));
    const Column<const int8_t> reasons(reason, "reason", tasks.size());
    log.unplaceable(now_us, tasks.span(), reasons.span());
  }

  void waiting(nanobind::handle task, int8_t why, int64_t ahead, nanobind::handle resource,
               nanobind::handle machines, nanobind::handle unseen) {
    const size_t n = length_of(task, "task");
    const Column<const int64_t> tasks(task, "task", n), roomy(machines, "machines", n),
        hidden(unseen, "unseen", n);
    const Column<const int32_t> lacking(resource, "resource", n);
    log.waiting({tasks.span(), lacking.data(), roomy.data(), hidden.data()}, why, ahead);
  }

 private:
  size_t tasks_;
  Column<const int64_t> job_, submit_us_;
  Column<const int32_t> preference_;

 public:
  AgentLog log;
};

}  // namespace agora
