// Python's access to the scoring kernel.
#include <nanobind/nanobind.h>
#include <nanobind/stl/array.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <utility>

#include "bound_types.hpp"
#include "scorer.hpp"

namespace nb = nanobind;

namespace {

using agora::ChangeKind;
using agora::ClusterView;
using agora::Column;
using agora::length_of;
using agora::Scorer;
using agora::ScoringKind;

std::unique_ptr<agora::ScoringRule> rule_of(int kind, int64_t percentage, bool spread,
                                            size_t enough) {
  if (percentage < 0 || percentage > 100 || enough < 1)
    throw std::invalid_argument("expected a percentage of 0 to 100, and at least one machine");
  switch (static_cast<ScoringKind>(kind)) {
    case ScoringKind::Kubernetes:
      return agora::kubernetes_rule(percentage);
    case ScoringKind::SwarmKit:
      return agora::swarmkit_rule();
    case ScoringKind::Nomad:
      return agora::nomad_rule(spread);
    case ScoringKind::Stranded:
      return agora::stranded_rule(enough);
  }
  throw std::invalid_argument("unknown scoring kind");
}

struct BoundScorer {
  BoundScorer(nb::object of, int kind, int64_t percentage, bool spread, size_t enough,
              bool remembers)
      : catalog(std::move(of)),
        scorer(nb::cast<const agora::BoundCatalog&>(catalog).catalog,
               rule_of(kind, percentage, spread, enough), remembers) {}
  const nb::object catalog;
  Scorer scorer;
};

class BoundScoringPlanner final : public agora::BoundTaskPlanner {
 public:
  BoundScoringPlanner(nb::object scorer, const agora::BoundTaskColumns& columns,
                      agora::In<int64_t> job, agora::In<int8_t> task_class,
                      const std::array<int64_t, 4>& weights_ps)
      : BoundTaskPlanner(columns),
        scorer_(std::move(scorer)),
        job_(std::move(job)),
        task_class_(std::move(task_class)),
        planner_(nb::cast<BoundScorer&>(scorer_).scorer, table.columns(), agora::span_of(job_),
                 agora::span_of(task_class_), weights_ps) {}

  agora::TaskPlanner& planner() override { return planner_; }

 private:
  const nb::object scorer_;
  const agora::In<int64_t> job_;
  const agora::In<int8_t> task_class_;
  agora::ScoringPlanner planner_;
};

nb::tuple plan(BoundScorer& self, ClusterView& view, nb::handle task, nb::handle job,
               nb::handle request, nb::handle preference, nb::handle gang, nb::handle task_class,
               uint64_t stream, int64_t now_us, bool continues, bool stop_at_wait) {
  const size_t count = length_of(task, "task"), width = view.static_state().dimensions();
  const Column<const int64_t> ids(task, "task", count), jobs(job, "job", count),
      asked(request, "request", count, width), gangs(gang, "gang", count);
  const Column<const int32_t> sets(preference, "preference", count);
  const Column<const int8_t> classes(task_class, "task_class", count);
  const agora::NewArray<int32_t> machine(count);
  const agora::ScoreRequest tasks{ids.span(),     jobs.span(), {asked.data(), count * width},
                                  width,          sets.span(), gangs.span(),
                                  classes.span(), stream,      now_us};
  Scorer::Decided decided;
  {
    nb::gil_scoped_release release;
    decided = self.scorer.plan(view, tasks, {continues, stop_at_wait}, {machine.data(), count});
  }
  return nb::make_tuple(machine.object(), decided.tasks, decided.work.filtered,
                        decided.work.scored);
}

// The columns of running tasks, by machine.
struct BoundRunning {
  BoundRunning(const ClusterView& view, nb::handle offsets, nb::handle priority,
               nb::handle since_us, nb::handle request, nb::handle fate)
      : machines(view.static_state().machines()),
        dimensions(view.static_state().dimensions()),
        count(length_of(priority, "priority")),
        offset(offsets, "offsets", machines + 1),
        level(priority, "priority", count),
        since(since_us, "since_us", count),
        asked(request, "running_request", count, dimensions),
        ends(fate, "fate", count) {
    if (offset.span().front() != 0 || offset.span().back() != static_cast<int64_t>(count) ||
        !std::is_sorted(offset.span().begin(), offset.span().end()))
      throw std::invalid_argument("offsets: expected the tasks of each machine, in order");
  }
  agora::RunningByMachine columns() const {
    return {
        offset.span(), level.span(), since.span(), {asked.data(), count * dimensions}, ends.span()};
  }

  const size_t machines, dimensions, count;
  const Column<const int64_t> offset;
  const Column<const int32_t> level;
  const Column<const int64_t> since, asked;
  const Column<const uint8_t> ends;
};

nb::tuple answer_of(const agora::MadeRoom& made) {
  const agora::NewArray<int64_t> victims(made.victims.size());
  std::copy(made.victims.begin(), made.victims.end(), victims.data());
  return nb::make_tuple(made.machine, victims.object(), made.looked_at);
}

nb::tuple make_room(BoundScorer& self, ClusterView& view, nb::handle request, int32_t priority,
                    int32_t preference, int64_t percentage, int64_t at_least, nb::handle offsets,
                    nb::handle priorities, nb::handle since_us, nb::handle running_request,
                    nb::handle fate) {
  const BoundRunning running(view, offsets, priorities, since_us, running_request, fate);
  const Column<const int64_t> asked(request, "request", running.dimensions);
  return answer_of(self.scorer.make_room(view, running.columns(), {asked.span(), priority},
                                         preference, {percentage, at_least}));
}

nb::tuple select_victims(ClusterView& view, nb::handle request, int32_t priority, int32_t machine,
                         nb::handle offsets, nb::handle priorities, nb::handle since_us,
                         nb::handle running_request, nb::handle fate) {
  const BoundRunning running(view, offsets, priorities, since_us, running_request, fate);
  const Column<const int64_t> asked(request, "request", running.dimensions);
  if (machine < 0 || static_cast<size_t>(machine) >= running.machines)
    throw std::invalid_argument("machine: there is no such machine");
  agora::MadeRoom made;
  const bool fits =
      agora::select_victims(view, running.columns(), {asked.span(), priority}, machine, made);
  if (fits) made.machine = machine;
  return answer_of(made);
}

void observe(BoundScorer& self, int change, int64_t at_us, nb::handle task, nb::handle machine,
             nb::handle job) {
  if (change < 0 || change > static_cast<int>(ChangeKind::Lost))
    throw std::invalid_argument("unknown change");
  const Column<const int64_t> ids(task, "task", length_of(task, "task")),
      jobs(job, "job", length_of(job, "job"));
  const Column<const int32_t> machines(machine, "machine", ids.size());
  self.scorer.observe(static_cast<ChangeKind>(change), at_us, ids.span(), machines.span(),
                      jobs.span());
}

}  // namespace

void bind_score(nb::module_& module) {
  module.attr("SCORING_KIND_NAMES") = agora::bound_names(agora::kScoringKindNames);
  module.def("kubernetes_enough", &agora::kubernetes_enough, nb::arg("machines"),
             nb::arg("percentage"),
             "How many machines that pass the filters Kubernetes scores, of so many.");
  module.def("select_victims", &select_victims, nb::arg("view"), nb::arg("request"),
             nb::arg("priority"), nb::arg("machine"), nb::arg("offsets"), nb::arg("priorities"),
             nb::arg("since_us"), nb::arg("running_request"), nb::arg("fate"),
             "Returns the machine (-1: no room even then), the rows of the victims that make room\n"
             "there (int64[v]), and how much it looked at. See priority_preemption.hpp.");
  nb::class_<BoundScorer>(module, "Scorer", "One scheduler's scoring; see scorer.hpp.")
      .def(nb::init<nb::object, int, int64_t, bool, size_t, bool>(), nb::arg("catalog"),
           nb::arg("kind"), nb::arg("percentage"), nb::arg("spread"), nb::arg("enough"),
           nb::arg("remembers"))
      .def("plan", &plan, nb::arg("view"), nb::arg("task"), nb::arg("job"), nb::arg("request"),
           nb::arg("preference"), nb::arg("gang"), nb::arg("task_class"), nb::arg("stream"),
           nb::arg("now_us"), nb::arg("continues") = false, nb::arg("stop_at_wait") = false,
           "Returns a machine for each task (int32[n], -1: none), how many tasks are decided, and\n"
           "how many rows it held against the filters and scored.")
      .def("make_room", &make_room, nb::arg("view"), nb::arg("request"), nb::arg("priority"),
           nb::arg("preference"), nb::arg("percentage"), nb::arg("at_least"), nb::arg("offsets"),
           nb::arg("priorities"), nb::arg("since_us"), nb::arg("running_request"), nb::arg("fate"),
           "Returns a machine (-1: none), the rows of its victims (int64[v]), and how much it\n"
           "looked at. See priority_preemption.hpp.")
      .def("observe", &observe, nb::arg("change"), nb::arg("at_us"), nb::arg("task"),
           nb::arg("machine"), nb::arg("job"));
  nb::class_<BoundScoringPlanner, agora::BoundTaskPlanner>(module, "ScoringPlanner",
                                                           "A scorer of tasks by id.")
      .def(nb::init<nb::object, const agora::BoundTaskColumns&, agora::In<int64_t>,
                    agora::In<int8_t>, const std::array<int64_t, 4>&>(),
           nb::arg("scorer"), nb::arg("table"), nb::arg("job"), nb::arg("task_class"),
           nb::arg("weights_ps"));
}
