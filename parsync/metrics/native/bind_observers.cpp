// Python's access to what observes the cell: the causes of conflicts, and the regret of sampled
// transactions and instants.
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <utility>
#include <vector>

#include "conflict_causes.hpp"
#include "regret.hpp"
#include "schedulers/native/bound_types.hpp"
#include "shared_state/native/bound_fields.hpp"

namespace nb = nanobind;
using namespace agora;

namespace {

SharedColumn<int64_t> column(nb::handle array, const char* field) {
  return BoundValue<SharedColumn<int64_t>>::from(array, field);
}

void bind_conflict_causes(nb::module_& module) {
  nb::class_<ConflictCauses, CellObserver>(module, "ConflictCauses",
                                           "Conflicts counted by cause; see conflict_causes.hpp.")
      .def(
          "__init__",
          [](ConflictCauses* self, size_t machines, nb::handle preference,
             const CatalogColumns& catalog, std::vector<int64_t> from_us,
             std::vector<int64_t> to_us) {
            new (self) ConflictCauses(
                machines, BoundValue<SharedColumn<int32_t>>::from(preference, "preference"),
                catalog.spans(), std::move(from_us), std::move(to_us));
          },
          nb::arg("machines"), nb::arg("preference"), nb::arg("catalog"), nb::arg("from_us"),
          nb::arg("to_us"), nb::keep_alive<1, 4>())
      .def(
          "counts",
          [](const ConflictCauses& self) {
            return nb::make_tuple(self.same_tick(), self.quality(), self.stale());
          },
          "(same tick, quality, staleness).");
}

void bind_regret(nb::module_& module) {
  nb::class_<RegretWatch, CellObserver>(module, "RegretWatch",
                                        "Regret of what is sampled; see regret.hpp.")
      .def(
          "__init__",
          [](RegretWatch* self, BestPlacement& best, nb::handle preference, nb::handle request,
             nb::handle arrival_us, nb::handle arrival_offsets, nb::handle arrival_rows,
             nb::handle initial, bool has_gangs,
             const std::vector<std::pair<int64_t, int64_t>>& phases, int64_t batches_per_phase,
             int64_t instants_per_phase, uint64_t seed) {
            std::vector<RegretWatch::Phase> settled;
            for (const auto& [from_us, to_us] : phases) settled.push_back({from_us, to_us});
            new (self) RegretWatch(
                best,
                {BoundValue<SharedColumn<int32_t>>::from(preference, "preference"),
                 BoundValue<SharedTable<int64_t>>::from(request, "request"),
                 column(arrival_us, "arrival_us"), column(arrival_offsets, "arrival_offsets"),
                 column(arrival_rows, "arrival_rows"), column(initial, "initial"), has_gangs},
                {std::move(settled), batches_per_phase, instants_per_phase, seed});
          },
          nb::arg("best"), nb::arg("preference"), nb::arg("request"), nb::arg("arrival_us"),
          nb::arg("arrival_offsets"), nb::arg("arrival_rows"), nb::arg("initial"),
          nb::arg("has_gangs"), nb::arg("phases"), nb::arg("batches_per_phase"),
          nb::arg("instants_per_phase"), nb::arg("seed"), nb::keep_alive<1, 2>())
      .def("end", &RegretWatch::end, nb::arg("ended_us"))
      .def(
          "decisions",
          [](const RegretWatch& self) {
            nb::list rows;
            for (const auto& row : self.decisions())
              rows.append(nb::make_tuple(row.at_us, row.agent, row.sequence, row.tasks, row.losers,
                                         row.regret, row.exact));
            return rows;
          },
          "The columns of DecisionRegret, in order.")
      .def(
          "systems",
          [](const RegretWatch& self) {
            nb::list rows;
            for (const auto& row : self.systems())
              rows.append(nb::make_tuple(row.at_us, row.running, row.waiting, row.cost,
                                         row.without_migration, row.with_migration, row.exact));
            return rows;
          },
          "The columns of SystemRegret, in order.");
}

}  // namespace

void bind_observers(nb::module_& module) {
  bind_conflict_causes(module);
  bind_regret(module);
}
