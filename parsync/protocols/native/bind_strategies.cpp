// Python's access to strategies, the rankings of rounds, and the average delay.
#include <nanobind/nanobind.h>

#include "bound_strategies.hpp"

namespace nb = nanobind;
using agora::BoundRoundRankings;
using agora::BoundStrategy;
using agora::DelayAverage;
using agora::RoundRankings;

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
      .def_prop_ro("us", &DelayAverage::us);
}
