// Python's access to the extraction of placements from a flow.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <stdexcept>
#include <utility>
#include <vector>

#include "bound_catalog.hpp"
#include "flow_placements.hpp"

namespace nb = nanobind;

namespace {

using agora::In;
using agora::span_of;
using InFlags = nb::ndarray<const bool, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using InRows = nb::ndarray<const int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Out = nb::ndarray<nb::numpy, int64_t, nb::ndim<1>, nb::c_contig>;

Out array_of(std::vector<int64_t> column) {
  auto* kept = new std::vector<int64_t>(std::move(column));
  nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<int64_t>*>(p); });
  return Out(kept->data(), {kept->size()}, owner);
}

nb::tuple flow_placements(const agora::ClusterView& view, In<int64_t> head, InRows request,
                          In<int64_t> arc_task, In<int64_t> arc_head, In<int64_t> arc_cost,
                          In<int64_t> first, In<int64_t> end, In<int64_t> inner_head,
                          In<int64_t> inner_cost, In<int64_t> inner_flow,
                          In<int64_t> inner_capacity, In<int64_t> machine_room, InRows slot_cost,
                          In<int64_t> slots, In<int64_t> slots_free, In<int64_t> units_free,
                          int64_t slot_beyond, bool direct_is_priced, InFlags inner_is_priced,
                          uint64_t stream) {
  if (request.shape(0) != head.size() || request.shape(1) != view.static_state().dimensions())
    throw std::invalid_argument(
        "expected one request per task, and a column of request per dimension");
  const agora::PricedSlots priced{{slot_cost.shape(1),
                                   {slot_cost.data(), slot_cost.size()},
                                   span_of(slots),
                                   span_of(slots_free),
                                   span_of(units_free)},
                                  slot_beyond,
                                  direct_is_priced,
                                  {inner_is_priced.data(), inner_is_priced.size()}};
  const agora::SolvedFlow flow{span_of(head),
                               request.data(),
                               span_of(arc_task),
                               span_of(arc_head),
                               span_of(arc_cost),
                               span_of(first),
                               span_of(end),
                               span_of(inner_head),
                               span_of(inner_cost),
                               span_of(inner_flow),
                               span_of(inner_capacity),
                               span_of(machine_room),
                               priced};
  agora::FlowPlacements found;
  {
    nb::gil_scoped_release release;
    found = agora::flow_placements(view, flow, stream);
  }
  return nb::make_tuple(array_of(std::move(found.solved)), array_of(std::move(found.chosen)));
}

}  // namespace

void bind_flow_placements(nb::module_& module) { module.def("flow_placements", &flow_placements); }
