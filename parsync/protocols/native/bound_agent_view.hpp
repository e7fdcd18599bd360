// An agent's view of the cell as Python holds it.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "agent_view.hpp"
#include "parsync/metrics/native/bound_agent_log.hpp"
#include "shared_state/native/column.hpp"
#include "shared_state/native/new_array.hpp"

namespace agora {

// An agent's view with the view of the cell that it refreshes.
class BoundAgentView {
 public:
  BoundAgentView(nanobind::object cell, std::vector<int32_t> visible, int64_t first_turn)
      : cell_(std::move(cell)),
        view_(nanobind::cast<ClusterView&>(cell_), std::move(visible), first_turn) {}

  bool on_reply(int64_t now_us, const SyncReply& reply, int64_t rounds, BoundAgentLog& log,
                nanobind::handle rows_changed) {
    const Column<int64_t> changed(rows_changed, "rows_changed", view_.order().size());
    return view_.on_reply(now_us, reply, rounds, log.log, changed.span());
  }

  ClusterView& cell() { return nanobind::cast<ClusterView&>(cell_); }
  AgentView& view() { return view_; }
  nanobind::object order() const { return array_of(view_.order()); }

 private:
  const nanobind::object cell_;
  AgentView view_;
};

}  // namespace agora
