// IncrementalSolver: proofs that a round's flow is optimal, from what the solver touched, or from
// the round before and what has changed since.
#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "graph/large_array.hpp"
#include "incremental_solver.hpp"

namespace flowsolver {

// Checks an arc of the list, and fetches one further on: arcs are scattered in memory. `known`: a
// node and its price, which is not asked for again.
void IncrementalSolver::check_arc_ahead(std::span<const ArcId> arcs, std::size_t at,
                                        std::pair<NodeId, std::int64_t> known,
                                        Certificate& certificate) const {
  constexpr std::size_t kAhead = 16, kSoon = 8;
  if (at + kAhead < arcs.size()) {
    const ArcId next = arcs[at + kAhead];
    fetch_line(&net().tail[next]);
    fetch_line(&net().head[next]);
    fetch_line(&net().capacity[next]);
    fetch_line(&net().cost[next]);
    fetch_line(&flow_[next]);
  }
  if (at + kSoon < arcs.size()) {
    const ArcId soon = arcs[at + kSoon];
    engine_->fetch_price(net().head[soon]);
    if (net().tail[soon] != known.first) engine_->fetch_price(net().tail[soon]);
  }
  const ArcId a = arcs[at];
  const NodeId tail = net().tail[a], head = net().head[a];
  const auto price = [&](NodeId v) { return v == known.first ? known.second : engine_->price(v); };
  const std::int64_t head_price = price(head);
  // The price of a node that is priced by the arc with its flow need not be looked up there.
  const bool prices_tail =
      head == known.first && flow_[a] > 0 && engine_->is_implicitly_priced(tail);
  const std::int64_t tail_price = prices_tail ? net().cost[a] + head_price : price(tail);
  check_arc(net(), a, flow_[a], tail_price, head_price, certificate);
}

// Checks the arcs of these nodes, and the balance there. `arcs`: those of the first node from `at`
// on, those of each up to its `end`.
void IncrementalSolver::check_nodes(std::span<const NodeId> nodes, std::span<const std::size_t> end,
                                    std::span<const ArcId> arcs, std::size_t at,
                                    Certificate& certificate) const {
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const NodeId v = nodes[i];
    const std::pair<NodeId, std::int64_t> known{v, engine_->price(v)};
    __int128 outflow = 0;
    for (; at < end[i]; ++at) {
      check_arc_ahead(arcs, at, known, certificate);
      const ArcId a = arcs[at];
      const NodeId tail = net().tail[a], head = net().head[a];
      if (tail != head) outflow += tail == v ? flow_[a] : -flow_[a];
    }
    ++certificate.nodes_checked;
    // the root balances if all other nodes do
    certificate.balance_violations += v != root_ && outflow != net().supply[v];
  }
}

Certificate IncrementalSolver::certify_touched() const {
  if (touched_all_ || lowered_.any()) return certify();
  Certificate certificate;
  certificate.costs_agree = true;
  if (engine_ == nullptr) return certificate;
  std::vector<NodeId> nodes = touched_;
  for (NodeId v : repriced_) {
    nodes.push_back(v);
    engine_->implicitly_priced_by(v, nodes);
  }
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  std::erase_if(nodes, [this](NodeId v) { return network_.node_alive()[v] == 0 || v == root_; });
  std::vector<ArcId> arcs;
  std::vector<std::size_t> end;  // of the arcs at each node
  for (NodeId v : nodes) {
    engine_->incident_arcs({&v, 1}, arcs);
    end.push_back(arcs.size());
  }
  check_nodes(nodes, end, arcs, 0, certificate);
  return certificate;
}

Certificate IncrementalSolver::certify_changes(std::size_t others) {
  if (proof_.proved()) return proof_.certificate();
  const bool continues = proof_.continues() && !lowered_.any() && engine_ != nullptr;
  std::vector<Repriced> repriced;
  if (continues) repriced = repriced_since_proof();
  const Certificate certificate = continues ? certify_from_last(repriced, others) : certify();
  if (engine_ == nullptr || !engine_->local()) return certificate;
  if (continues) {
    for (NodeId v : proof_.nodes()) note_proved_price(v);
    for (const Repriced& each : repriced)
      proof_.set_price(each.node, engine_->is_implicitly_priced(each.node) ? kInfinity : each.now);
  } else {
    for (NodeId v = 0; v < net().num_nodes(); ++v) note_proved_price(v);
  }
  proof_.conclude(certificate);
  return certificate;
}

void IncrementalSolver::note_proved_price(NodeId v) {
  const bool is_known = network_.node_alive()[v] != 0 && !engine_->is_implicitly_priced(v);
  proof_.set_price(v, is_known ? engine_->price(v) : kInfinity);
}

// The nodes whose prices have moved, with their prices at the last proof and now.
std::vector<IncrementalSolver::Repriced> IncrementalSolver::repriced_since_proof() const {
  std::vector<Repriced> found;
  found.reserve(repriced_.size());
  for (NodeId v : repriced_) {
    if (network_.node_alive()[v] != 0)
      found.push_back({v, proof_.price_before(v), engine_->price(v)});
  }
  return found;
}

// The amount by which most prices rose that rose since the last proof, if most did by one amount;
// else any of these amounts, or 0.
std::int64_t IncrementalSolver::most_common_rise(std::span<const Repriced> repriced) {
  std::int64_t most = 0;
  std::size_t votes = 0;
  for (const auto& [v, before, now] : repriced) {
    if (before == kInfinity || now <= before) continue;
    const std::int64_t rise = now - before;
    if (votes == 0) most = rise;
    if (rise == most) {
      ++votes;
    } else {
      --votes;
    }
  }
  return most;
}

// Appends the arcs that may violate optimality because the prices of these nodes, which no flow was
// sent through and which are marked in `risen`, rose by `rise`.
void IncrementalSolver::append_bound_by_rise(std::span<const NodeId> nodes, std::int64_t rise,
                                             std::span<const std::uint8_t> risen,
                                             std::vector<ArcId>& arcs) const {
  std::vector<bool> raised(net().num_arcs(), false);
  for (const auto& [a, by] : proof_.raised()) raised[a] = raised[a] || by >= rise;
  for (NodeId v : nodes) {
    const auto before = static_cast<std::ptrdiff_t>(arcs.size());
    engine_->arcs_bound_by(v, risen, arcs);
    const auto end =
        std::remove_if(arcs.begin() + before, arcs.end(), [&](ArcId a) { return raised[a]; });
    arcs.erase(end, arcs.end());
  }
}

void IncrementalSolver::check_balance_from_last(Certificate& certificate) const {
  std::vector<std::pair<NodeId, __int128>> change = proof_.balance();
  std::sort(change.begin(), change.end());
  for (std::size_t i = 0; i < change.size();) {  // bounded: each run of equal nodes ends beyond i
    const NodeId v = change[i].first;
    __int128 sum = 0;
    for (; i < change.size() && change[i].first == v; ++i) sum += change[i].second;
    if (network_.node_alive()[v] == 0 || v == root_) continue;
    ++certificate.nodes_checked;
    certificate.balance_violations += sum != 0;
  }
}

// Precondition: there is an engine, and the last answer but one was proved.
Certificate IncrementalSolver::certify_from_last(std::span<const Repriced> repriced,
                                                 std::size_t others) {
  enum Look : std::uint8_t { kNoArcs, kBound, kAll };
  std::vector<Look> look(net().num_nodes(), kNoArcs);
  std::vector<NodeId> nodes, implied, rose_alike;
  const auto look_at = [&](NodeId v, Look at) {
    if (network_.node_alive()[v] == 0) return;
    if (look[v] == kNoArcs) nodes.push_back(v);
    look[v] = std::max(look[v], at);
  };
  const auto moves_price_of_tail = [&](ArcId a) {
    return network_.arc_alive()[a] != 0 && flow_[a] > 0 &&
           engine_->is_implicitly_priced(net().tail[a]);
  };
  const std::array<std::span<const ArcId>, 2> changes{changed_.arcs, proof_.arcs()};
  for (std::span<const ArcId> changed : changes) {
    for (ArcId a : changed) {
      if (moves_price_of_tail(a)) look_at(net().tail[a], kBound);
    }
  }
  for (NodeId v : proof_.nodes()) look_at(v, kBound);
  const std::int64_t common = most_common_rise(repriced);
  std::vector<std::uint8_t> risen(net().num_nodes(), 0);
  for (const auto& [v, before, now] : repriced) {
    if (before == kInfinity || now < before) look_at(v, kAll);
    if (before != kInfinity && now <= before) continue;
    implied.clear();
    engine_->implicitly_priced_by(v, implied);
    if (before != kInfinity && now - before == common) {
      implied.push_back(v);
      for (NodeId each : implied) risen[each] = 1;
      rose_alike.insert(rose_alike.end(), implied.begin(), implied.end());
      continue;
    }
    look_at(v, kBound);
    for (NodeId source : implied) look_at(source, kBound);
  }
  std::vector<ArcId> arcs;
  for (std::span<const ArcId> changed : changes) {
    for (ArcId a : changed) {
      // A look at the tail is one at the arc.
      if (network_.arc_alive()[a] != 0 && look[net().tail[a]] == kNoArcs) arcs.push_back(a);
    }
  }
  std::erase_if(rose_alike, [&](NodeId v) { return look[v] != kNoArcs; });
  append_bound_by_rise(rose_alike, common, risen, arcs);
  const std::size_t changed = arcs.size();
  std::fill(risen.begin(), risen.end(), 0);
  constexpr std::size_t kSoon = 8;
  std::vector<std::size_t> end;  // of the arcs at each node
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (i + kSoon < nodes.size()) engine_->fetch_price(nodes[i + kSoon]);
    if (look[nodes[i]] == kAll) {
      engine_->incident_arcs({&nodes[i], 1}, arcs);
    } else {
      engine_->arcs_bound_by(nodes[i], risen, arcs);
    }
    end.push_back(arcs.size());
  }
  Certificate certificate;
  certificate.costs_agree = true;
  std::size_t at = 0;
  for (; at < changed; ++at) check_arc_ahead(arcs, at, {kNone, 0}, certificate);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const std::pair<NodeId, std::int64_t> known{nodes[i], engine_->price(nodes[i])};
    for (; at < end[i]; ++at) check_arc_ahead(arcs, at, known, certificate);
  }
  check_balance_from_last(certificate);
  check_others(others, certificate);
  return certificate;
}

// Looks at the next of all nodes, as many as asked for: in time, at each.
void IncrementalSolver::check_others(std::size_t others, Certificate& certificate) {
  std::vector<NodeId> nodes;
  std::vector<ArcId> arcs;
  std::vector<std::size_t> end;
  for (std::size_t i = 0; i < std::min(others, net().num_nodes()); ++i) {
    if (next_other_ >= net().num_nodes()) next_other_ = 0;
    const NodeId v = next_other_++;
    if (network_.node_alive()[v] == 0) continue;
    nodes.push_back(v);
    engine_->arcs_bound_by(v, {}, arcs);
    end.push_back(arcs.size());
  }
  check_nodes(nodes, end, arcs, 0, certificate);
}

}  // namespace flowsolver
