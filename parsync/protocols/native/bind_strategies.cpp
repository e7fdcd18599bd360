// Python's access to strategies, the rankings of rounds, and the average delay.
#include <nanobind/nanobind.h>

#include <cstdint>
#include <optional>

#include "schedulers/native/bound_planner.hpp"
#include "strategies.hpp"

namespace nb = nanobind;

namespace {

using agora::Column;
using agora::DelayAverage;
using agora::length_of;
using agora::RoundRankings;

struct BoundStrategy {
  agora::Strategy strategy;
};

// The rankings of an agent's rounds, with the column of the task table that they borrow.
class BoundRoundRankings {
 public:
  BoundRoundRankings(const BoundStrategy& strategy, const BoundStrategy* long_strategy,
                     nb::handle task_class)
      : task_class_(task_class, "task_class", length_of(task_class, "task_class")),
        rankings(strategy.strategy,
                 long_strategy == nullptr ? std::nullopt : std::optional(long_strategy->strategy),
                 task_class_.span()) {}

  nb::tuple of(nb::handle task) const {
    const Column<const int64_t> tasks(task, "task", length_of(task, "task"));
    const RoundRankings::Shared shared = rankings.of(tasks.span());
    return nb::make_tuple(static_cast<int>(shared.ranking), shared.tasks);
  }

 private:
  const Column<const int8_t> task_class_;

 public:
  RoundRankings rankings;
};

}  // namespace

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
      .def_prop_ro("us", &DelayAverage::us)
      .def_prop_ro("scaled", &DelayAverage::scaled);
}
