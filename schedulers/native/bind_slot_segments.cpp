// Python's access to the arcs on which placements pay for slots.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <utility>
#include <vector>

#include "bound_catalog.hpp"
#include "slot_segments.hpp"

namespace nb = nanobind;

namespace {

using agora::In;
using agora::span_of;
using InRows = nb::ndarray<const int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Rows = nb::ndarray<int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Out = nb::ndarray<nb::numpy, int64_t, nb::ndim<1>, nb::c_contig>;

Out array_of(std::vector<int64_t> column) {
  auto* kept = new std::vector<int64_t>(std::move(column));
  nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<int64_t>*>(p); });
  return Out(kept->data(), {kept->size()}, owner);
}

size_t most_segments(InRows cost) {
  return agora::most_segments({cost.data(), cost.size()}, cost.shape(1));
}

nb::tuple set_segments(InRows cost, In<int64_t> slots, In<int64_t> free, In<int64_t> units,
                       In<int64_t> row, InRows arc, Rows capacity, Rows arc_cost) {
  const agora::SlotCosts costs{
      cost.shape(1), {cost.data(), cost.size()}, span_of(slots), span_of(free), span_of(units)};
  const agora::SegmentArcs arcs{arc.shape(1),
                                {arc.data(), arc.size()},
                                {capacity.data(), capacity.size()},
                                {arc_cost.data(), arc_cost.size()}};
  agora::SegmentChanges found;
  {
    nb::gil_scoped_release release;
    found = agora::set_segments(costs, span_of(row), arcs);
  }
  return nb::make_tuple(
      array_of(std::move(found.new_place)), array_of(std::move(found.new_capacity)),
      array_of(std::move(found.new_cost)), array_of(std::move(found.capacity_arc)),
      array_of(std::move(found.capacity)), array_of(std::move(found.cost_arc)),
      array_of(std::move(found.cost)));
}

}  // namespace

void bind_slot_segments(nb::module_& module) {
  module.def("most_segments", &most_segments);
  module.def("set_segments", &set_segments);
}
