// Python's access to an agent's view of the cell.
#include <nanobind/nanobind.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "agent_view.hpp"
#include "parsync/metrics/native/bound_agent_log.hpp"
#include "shared_state/native/column.hpp"
#include "shared_state/native/new_array.hpp"

namespace nb = nanobind;

namespace {

using agora::AgentView;
using agora::array_of;
using agora::BoundAgentLog;
using agora::ClusterView;
using agora::Column;
using agora::length_of;

// An agent's view with the view of the cell that it refreshes, and its order as an array.
class BoundAgentView {
 public:
  BoundAgentView(nb::object cell, std::vector<int32_t> visible, int64_t first_turn)
      : cell_(std::move(cell)),
        view_(nb::cast<ClusterView&>(cell_), std::move(visible), first_turn),
        order_(array_of(view_.order())) {}

  bool on_reply(int64_t now_us, const agora::SyncReply& reply, int64_t rounds, BoundAgentLog& log,
                nb::handle rows_changed) {
    const Column<int64_t> changed(rows_changed, "rows_changed", view_.order().size());
    const bool applied = view_.on_reply(now_us, reply, rounds, log.log, changed.span());
    order_ = array_of(view_.order());
    return applied;
  }

  AgentView& view() { return view_; }
  const nb::object& order() const { return order_; }

 private:
  const nb::object cell_;
  AgentView view_;
  nb::object order_;
};

nb::object freshness_order(nb::handle synced_us, int64_t latest) {
  const Column<const int64_t> synced(synced_us, "synced_us", length_of(synced_us, "synced_us"));
  std::vector<int32_t> order;
  agora::freshness_order(synced.span(), latest, order);
  return array_of<int32_t>(order);
}

int64_t average_staleness_us(nb::handle synced_us, int64_t now_us) {
  const Column<const int64_t> synced(synced_us, "synced_us", length_of(synced_us, "synced_us"));
  return agora::average_staleness_us(synced.span(), now_us);
}

}  // namespace

void bind_agent_view(nb::module_& module) {
  nb::class_<BoundAgentView>(module, "AgentView", "An agent's view; see agent_view.hpp.")
      .def(nb::init<nb::object, std::vector<int32_t>, int64_t>(), nb::arg("cell"),
           nb::arg("visible"), nb::arg("first_turn"))
      .def("start", [](BoundAgentView& self, int64_t now_us) { self.view().start(now_us); })
      .def("on_reply", &BoundAgentView::on_reply, nb::arg("now_us"), nb::arg("reply"),
           nb::arg("rounds"), nb::arg("log"), nb::arg("rows_changed"))
      .def("staleness_us",
           [](BoundAgentView& self, int64_t now_us) { return self.view().staleness_us(now_us); })
      .def("used_permille",
           [](BoundAgentView& self) { return array_of<int64_t>(self.view().used_permille()); })
      .def_prop_ro("is_synced", [](BoundAgentView& self) { return self.view().is_synced(); })
      .def_prop_ro("order", &BoundAgentView::order)
      .def_prop_rw(
          "changed", [](BoundAgentView& self) { return self.view().changed; },
          [](BoundAgentView& self, bool changed) { self.view().changed = changed; });
  module.def("freshness_order", &freshness_order, nb::arg("synced_us"), nb::arg("latest"));
  module.def("average_staleness_us", &average_staleness_us, nb::arg("synced_us"),
             nb::arg("now_us"));
}
