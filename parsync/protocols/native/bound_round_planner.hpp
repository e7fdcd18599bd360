// The planner of an agent's decision rounds as Python holds it.
#pragma once

#include <nanobind/nanobind.h>

#include <optional>
#include <string>
#include <utility>

#include "round_planner.hpp"
#include "schedulers/native/bound_planner.hpp"

namespace agora {

// The planner of an agent's rounds, with what it borrows.
class BoundRoundPlanner {
 public:
  BoundRoundPlanner(uint64_t seed, std::string name, int quality, bool checks_seqnum,
                    const BoundDecisionClock* clock, bool charges_kept, nanobind::object planner,
                    nanobind::handle task_class, nanobind::object units)
      : greedy_(std::move(planner)),
        units_(std::move(units)),
        task_class_(task_class, "task_class", length_of(task_class, "task_class")),
        planner_(
            {seed, std::move(name), quality_of(quality), checks_seqnum, charges_kept},
            clock == nullptr ? std::nullopt : std::optional(clock->clock),
            nanobind::cast<BoundGreedyPlanner&>(greedy_).planner, task_class_.span(),
            units_.is_none() ? nullptr : &nanobind::cast<BoundUnplaceableUnits&>(units_).units) {}

  nanobind::tuple plan(ClusterView& view, nanobind::handle task, int64_t round, int64_t now_us,
                       int ranking, nanobind::handle partition_order) {
    const Column<const int64_t> offered(task, "task", length_of(task, "task"));
    const Column<const int32_t> order(partition_order, "partition_order",
                                      length_of(partition_order, "partition_order"));
    const ClaimedPlan& plan =
        planner_.plan(view, {round, now_us, ranking_of(ranking), offered.span()}, order.span());
    return arrays_of(plan, view.static_state().dimensions(), task);
  }

  nanobind::object seqnum() const { return array_of(planner_.seqnum()); }
  int64_t decision_us(int64_t elapsed_ns) const { return planner_.decision_us(elapsed_ns); }

  RoundPlanner& planner() { return planner_; }

 private:
  const nanobind::object greedy_, units_;
  const Column<const int8_t> task_class_;
  RoundPlanner planner_;
};

}  // namespace agora
