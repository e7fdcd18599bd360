// Placements from random feasible flows: ties are broken within capacities and at the same cost,
// the same for a stream, and columns that make no flow are refused.
#include <algorithm>
#include <functional>
#include <memory>
#include <set>
#include <stdexcept>
#include <vector>

#include "check.hpp"
#include "schedulers/native/flow_placements.hpp"

using namespace agora;

namespace {

constexpr size_t kMachines = 12, kAggregators = 5;

size_t at(int64_t index) { return static_cast<size_t>(index); }

ClusterView random_view(Draws& draw) {
  const std::vector<int64_t> limit(kMachines, 9), score(kMachines, 0);
  auto cell = std::make_shared<const StaticCellState>(
      1, limit, score, std::vector<int64_t>{0, static_cast<int64_t>(kMachines)});
  ClusterView view(cell, false);
  std::vector<uint16_t> row(kMachines);
  std::vector<int8_t> used(kMachines);
  const auto up = std::make_unique<bool[]>(kMachines);
  for (size_t m = 0; m < kMachines; ++m)
    row[m] = static_cast<uint16_t>(m), used[m] = static_cast<int8_t>(draw(10)), up[m] = true;
  view.apply({0, 0, 1, 1, kMachines, row.data(), 2, used.data(), 1, up.get(), nullptr});
  return view;
}

// Aggregators lead to machines and to aggregators of a higher number. The flow is sent task by task
// down random arcs, so it is feasible; capacities may leave room beside it.
struct Flow {
  std::vector<int64_t> head, request, arc_task, arc_head, arc_cost;
  std::vector<int64_t> first, end, inner_head, inner_cost, inner_flow, inner_capacity;
  std::vector<int64_t> machine_flow, machine_room;

  SolvedFlow solved() const {
    bool bounded = false;
    for (size_t e = 0; e < inner_capacity.size() && e < inner_head.size(); ++e)
      bounded |= inner_head[e] < 0 && inner_capacity[e] < kUnbounded;
    return {head,       request.data(), arc_task,   arc_head,       arc_cost, first,       end,
            inner_head, inner_cost,     inner_flow, inner_capacity, bounded,  machine_room};
  }

  // What the cheapest way costs from this head to each machine, and every cost there is.
  void costs(int64_t from, int64_t paid, std::vector<std::set<int64_t>>& out) const {
    if (from >= 0) {
      out[at(from)].insert(paid);
      return;
    }
    for (int64_t e = first[at(-1 - from)]; e < end[at(-1 - from)]; ++e)
      costs(inner_head[at(e)], paid + inner_cost[at(e)], out);
  }
};

Flow random_flow(Draws& draw) {
  Flow flow;
  for (size_t a = 0; a < kAggregators; ++a) {
    flow.first.push_back(static_cast<int64_t>(flow.inner_head.size()));
    const size_t arcs = 1 + draw(5);
    for (size_t k = 0; k < arcs; ++k) {
      const bool on = a + 1 < kAggregators && draw(3) == 0;
      const auto next = static_cast<int64_t>(a + 1 + (on ? draw(kAggregators - a - 1) : 0));
      flow.inner_head.push_back(on ? -1 - next : static_cast<int64_t>(draw(kMachines)));
      flow.inner_cost.push_back(static_cast<int64_t>(draw(2)));
    }
    flow.end.push_back(static_cast<int64_t>(flow.inner_head.size()));
  }
  flow.inner_flow.assign(flow.inner_head.size(), 0);
  flow.machine_flow.assign(kMachines, 0);
  const size_t tasks = draw(30);
  for (size_t i = 0; i < tasks; ++i) {
    const auto machine = static_cast<int64_t>(draw(kMachines));
    const bool direct = draw(2) == 0;
    int64_t here = direct ? machine : -1 - static_cast<int64_t>(draw(kAggregators));
    flow.head.push_back(here);
    flow.request.push_back(1 + static_cast<int64_t>(draw(3)));
    for (size_t k = 0; direct && k < 3; ++k) {
      flow.arc_task.push_back(static_cast<int64_t>(i));
      flow.arc_head.push_back(k == 0 ? machine : static_cast<int64_t>(draw(kMachines)));
      flow.arc_cost.push_back(static_cast<int64_t>(k == 0 ? 1 : draw(2)));
    }
    while (here < 0) {
      const int64_t begin = flow.first[at(-1 - here)], last = flow.end[at(-1 - here)];
      const int64_t arc = begin + static_cast<int64_t>(draw(static_cast<uint64_t>(last - begin)));
      ++flow.inner_flow[at(arc)];
      here = flow.inner_head[at(arc)];
    }
    ++flow.machine_flow[at(here)];
  }
  const bool bounded = draw(2) == 0;  // arcs between aggregators
  for (size_t e = 0; e < flow.inner_flow.size(); ++e)
    flow.inner_capacity.push_back(flow.inner_head[e] >= 0 || bounded
                                      ? flow.inner_flow[e] + static_cast<int64_t>(draw(4))
                                      : kUnbounded);
  for (const int64_t units : flow.machine_flow)
    flow.machine_room.push_back(units + static_cast<int64_t>(draw(4)));
  return flow;
}

void place_and_check(Draws& draw) {
  const ClusterView view = random_view(draw);
  const Flow flow = random_flow(draw);
  const uint64_t stream = draw(1 << 20);
  const FlowPlacements found = flow_placements(view, flow.solved(), stream);
  CHECK(flow_placements(view, flow.solved(), stream).chosen == found.chosen);

  std::vector<int64_t> solved(kMachines), chosen(kMachines);
  for (size_t i = 0; i < flow.head.size(); ++i) {
    CHECK(0 <= found.chosen[i] && at(found.chosen[i]) < kMachines);
    ++solved[at(found.solved[i])];
    ++chosen[at(found.chosen[i])];
    if (flow.head[i] < 0) {  // over aggregators: a way of the same cost leads there
      std::vector<std::set<int64_t>> costs(kMachines);
      flow.costs(flow.head[i], 0, costs);
      const std::set<int64_t>&before = costs[at(found.solved[i])],
            &now = costs[at(found.chosen[i])];
      CHECK(std::any_of(now.begin(), now.end(), [&](int64_t c) { return before.contains(c); }));
      continue;
    }
    bool is_own = found.chosen[i] == flow.head[i];
    for (size_t k = 0; k < flow.arc_task.size(); ++k)
      is_own |= at(flow.arc_task[k]) == i && flow.arc_head[k] == found.chosen[i];
    CHECK(is_own);
  }
  CHECK(solved == flow.machine_flow);
  for (size_t m = 0; m < kMachines; ++m) CHECK(chosen[m] <= flow.machine_room[m]);
}

template <typename Error>
void refused(const ClusterView& view, Flow flow, const std::function<void(Flow&)>& spoil) {
  spoil(flow);
  bool thrown = false;
  try {
    flow_placements(view, flow.solved(), 1);
  } catch (const Error&) {
    thrown = true;
  }
  CHECK(thrown);
}

// One task over aggregator 0 -> 1 -> machine 3, and one straight to machine 4.
void refuse_what_is_no_flow(Draws& draw) {
  const ClusterView view = random_view(draw);
  Flow flow;
  flow.head = {-1, 4};
  flow.request = {1, 1};
  flow.arc_task = {1};
  flow.arc_head = {4};
  flow.arc_cost = {2};
  flow.first = {0, 1};
  flow.end = {1, 2};
  flow.inner_head = {-2, 3};
  flow.inner_cost = {0, 0};
  flow.inner_flow = {1, 1};
  flow.inner_capacity = {kUnbounded, 1};
  flow.machine_flow.assign(kMachines, 0);
  flow.machine_flow[3] = flow.machine_flow[4] = 1;
  flow.machine_room = flow.machine_flow;
  const std::vector<int64_t> alone{3, 4};  // no choice
  CHECK(flow_placements(view, flow.solved(), 1).chosen == alone);

  const auto bad = refused<std::invalid_argument>;
  bad(view, flow, [](Flow& f) { f.arc_cost.clear(); });
  bad(view, flow, [](Flow& f) { f.end.pop_back(); });
  bad(view, flow, [](Flow& f) { f.inner_capacity.pop_back(); });
  bad(view, flow, [](Flow& f) { f.machine_room.pop_back(); });
  bad(view, flow, [](Flow& f) { f.arc_task[0] = 2; });
  bad(view, flow, [](Flow& f) { f.arc_task[0] = -1; });
  bad(view, flow, [](Flow& f) { f.head[1] = kMachines; });
  bad(view, flow,
      [](Flow& f) { f.arc_head.push_back(99), f.arc_task.push_back(1), f.arc_cost.push_back(2); });
  bad(view, flow, [](Flow& f) { f.head[0] = -1 - static_cast<int64_t>(kAggregators); });
  bad(view, flow, [](Flow& f) { f.head[0] = INT64_MIN; });
  bad(view, flow, [](Flow& f) { f.inner_head[1] = kMachines; });
  bad(view, flow, [](Flow& f) { f.end[0] = 7; });
  bad(view, flow, [](Flow& f) { f.first[0] = -1; });
  // a way back from 1 to 0 that carries nothing
  bad(view, flow, [](Flow& f) {
    f.end[1] = 3;
    f.inner_head.push_back(-1);
    f.inner_cost.push_back(0);
    f.inner_flow.push_back(0);
    f.inner_capacity.push_back(kUnbounded);
  });
  refused<std::runtime_error>(view, flow, [](Flow& f) { f.inner_flow[1] = 0; });
}

}  // namespace

int main() {
  Draws draw(1);
  for (int round = 0; round < 2000; ++round) place_and_check(draw);
  refuse_what_is_no_flow(draw);
  return 0;
}
