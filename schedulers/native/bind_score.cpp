// Python's access to the scoring kernel.
#include <nanobind/nanobind.h>

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

nb::tuple plan(BoundScorer& self, ClusterView& view, nb::handle task, nb::handle job,
               nb::handle request, nb::handle preference, nb::handle gang, nb::handle task_class,
               uint64_t stream, int64_t now_us) {
  const size_t count = length_of(task, "task"), width = view.static_state().dimensions();
  const Column<const int64_t> ids(task, "task", count), jobs(job, "job", count),
      asked(request, "request", count, width), gangs(gang, "gang", count);
  const Column<const int32_t> sets(preference, "preference", count);
  const Column<const int8_t> classes(task_class, "task_class", count);
  const agora::NewArray<int32_t> machine(count);
  const agora::ScoreRequest tasks{ids.span(),     jobs.span(), {asked.data(), count * width},
                                  width,          sets.span(), gangs.span(),
                                  classes.span(), stream,      now_us};
  agora::ScoreWork work;
  {
    nb::gil_scoped_release release;
    work = self.scorer.plan(view, tasks, {machine.data(), count});
  }
  return nb::make_tuple(machine.object(), work.filtered, work.scored);
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
  nb::class_<BoundScorer>(module, "Scorer", "One scheduler's scoring; see scorer.hpp.")
      .def(nb::init<nb::object, int, int64_t, bool, size_t, bool>(), nb::arg("catalog"),
           nb::arg("kind"), nb::arg("percentage"), nb::arg("spread"), nb::arg("enough"),
           nb::arg("remembers"))
      .def("plan", &plan, nb::arg("view"), nb::arg("task"), nb::arg("job"), nb::arg("request"),
           nb::arg("preference"), nb::arg("gang"), nb::arg("task_class"), nb::arg("stream"),
           nb::arg("now_us"),
           "Returns a machine for each task (int32[n], -1: none), and how many rows it held\n"
           "against the filters and scored.")
      .def("observe", &observe, nb::arg("change"), nb::arg("at_us"), nb::arg("task"),
           nb::arg("machine"), nb::arg("job"));
}
