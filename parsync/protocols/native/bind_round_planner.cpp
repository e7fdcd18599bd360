// Python's access to the planner of decision rounds.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <optional>
#include <string>
#include <utility>

#include "round_planner.hpp"
#include "schedulers/native/bound_planner.hpp"

namespace nb = nanobind;

namespace {

using agora::BoundDecisionClock;
using agora::BoundGreedyPlanner;
using agora::BoundUnplaceableUnits;
using agora::ClusterView;
using agora::Column;
using agora::length_of;
using agora::RoundPlanner;

// The planner of an agent's rounds, with what it borrows.
class BoundRoundPlanner {
 public:
  BoundRoundPlanner(uint64_t seed, std::string name, int quality, bool checks_seqnum,
                    const BoundDecisionClock* clock, bool charges_kept, nb::object planner,
                    nb::handle task_class, nb::object units)
      : greedy_(std::move(planner)),
        units_(std::move(units)),
        task_class_(task_class, "task_class", length_of(task_class, "task_class")),
        planner_({seed, std::move(name), agora::quality_of(quality), checks_seqnum, charges_kept},
                 clock == nullptr ? std::nullopt : std::optional(clock->clock),
                 nb::cast<BoundGreedyPlanner&>(greedy_).planner, task_class_.span(),
                 units_.is_none() ? nullptr : &nb::cast<BoundUnplaceableUnits&>(units_).units) {}

  nb::tuple plan(ClusterView& view, nb::handle task, int64_t round, int64_t now_us, int ranking,
                 nb::handle partition_order) {
    const Column<const int64_t> offered(task, "task", length_of(task, "task"));
    const Column<const int32_t> order(partition_order, "partition_order",
                                      length_of(partition_order, "partition_order"));
    const agora::ClaimedPlan& plan = planner_.plan(
        view, {round, now_us, agora::ranking_of(ranking), offered.span()}, order.span());
    return agora::arrays_of(plan, view.static_state().dimensions(), task);
  }

  nb::object seqnum() const { return agora::array_of(planner_.seqnum()); }
  int64_t decision_us(int64_t elapsed_ns) const { return planner_.decision_us(elapsed_ns); }

 private:
  const nb::object greedy_, units_;
  const Column<const int8_t> task_class_;
  RoundPlanner planner_;
};

nb::object round_window(int64_t now_us, std::optional<int64_t> end_us,
                        std::optional<int64_t> longest_us, int ranking, size_t partitions) {
  const auto window =
      agora::round_window(now_us, end_us, longest_us, agora::ranking_of(ranking), partitions);
  if (!window) return nb::none();
  return nb::make_tuple(window->us, window->partitions_per_task);
}

}  // namespace

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
           "bound_planner.hpp's arrays_of has it.")
      .def_prop_ro("seqnum", &BoundRoundPlanner::seqnum,
                   "uint32[k], the sequence numbers of the last plan's machines in the view.")
      .def("decision_us", &BoundRoundPlanner::decision_us, nb::arg("elapsed_ns"),
           "How long the last plan takes to decide.");
  module.def("round_window", &round_window, nb::arg("now_us"), nb::arg("end_us").none(),
             nb::arg("longest_us").none(), nb::arg("ranking"), nb::arg("partitions"),
             "(us, partitions per task) of a round that begins now; None: without a limit.");
}
