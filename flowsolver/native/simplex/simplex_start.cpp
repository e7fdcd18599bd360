#include "simplex/simplex_start.hpp"

#include <algorithm>
#include <functional>

#include "graph/feasible_flow.hpp"

namespace flowsolver {

namespace {

constexpr std::int64_t kStepsPerArc = 4;

}  // namespace

// The arcs as FeasibleFlow needs them.
struct SimplexStart::View {
  SimplexStart& start;

  NodeId num_nodes() const { return static_cast<NodeId>(start.excess_.size()); }
  std::int64_t excess(NodeId v) const { return start.excess_[v]; }
  std::int64_t degree(NodeId v) const {
    return start.out_first_[v + 1] - start.out_first_[v] + start.in_first_[v + 1] -
           start.in_first_[v];
  }
  template <class Visit>
  void for_each_predecessor(NodeId v, Visit visit) const {
    for (std::uint32_t i = start.in_first_[v]; i < start.in_first_[v + 1]; ++i) {
      const ArcId a = start.in_[i];
      if (start.flow_[a] < start.network_.capacity[a]) visit(start.network_.tail[a]);
    }
    for (std::uint32_t i = start.out_first_[v]; i < start.out_first_[v + 1]; ++i) {
      const ArcId a = start.out_[i];
      if (start.flow_[a] > 0) visit(start.network_.head[a]);
    }
  }
  template <class Send>
  void for_each_push(NodeId v, bool forward, Send send) {
    const auto& first = forward ? start.out_first_ : start.in_first_;
    for (std::uint32_t i = first[v]; i < first[v + 1] && start.excess_[v] > 0; ++i) {
      const ArcId a = forward ? start.out_[i] : start.in_[i];
      const NodeId w = forward ? start.network_.head[a] : start.network_.tail[a];
      const std::int64_t room =
          forward ? start.network_.capacity[a] - start.flow_[a] : start.flow_[a];
      if (room == 0) continue;
      const std::int64_t amount = send(w, room);
      start.flow_[a] += forward ? amount : -amount;
      start.excess_[v] -= amount;
      start.excess_[w] += amount;
    }
  }
};

Status SimplexStart::run(SpanningTree& tree, NodeId sink, std::int64_t artificial_cost) {
  if (const Status status = index(); status != Status::kOptimal) return status;
  if (const Status status = cancel_deficits(); status != Status::kOptimal) return status;
  if (const Status status = route(); status != Status::kOptimal) return status;
  if (const Status status = finish_route(); status != Status::kOptimal) return status;
  return grow(tree, sink, artificial_cost);
}

Status SimplexStart::index() {
  const std::size_t n = network_.num_nodes(), m = network_.num_arcs();
  excess_ = network_.supply;
  out_first_.assign(n + 1, 0);
  in_first_.assign(n + 1, 0);
  const auto counts = [&](ArcId a) {
    return network_.capacity[a] > 0 && network_.tail[a] != network_.head[a];
  };
  for (ArcId a = 0; a < m; ++a) {
    if (const Status status = checker_.step(stats_); status != Status::kOptimal) return status;
    if (!counts(a)) continue;
    ++out_first_[network_.tail[a] + 1];
    ++in_first_[network_.head[a] + 1];
  }
  for (std::size_t v = 0; v < n; ++v) {
    out_first_[v + 1] += out_first_[v];
    in_first_[v + 1] += in_first_[v];
  }
  out_.resize(out_first_[n]);
  in_.resize(in_first_[n]);
  std::vector<std::uint32_t> out(out_first_.begin(), out_first_.end() - 1),
      in(in_first_.begin(), in_first_.end() - 1);
  for (ArcId a = 0; a < m; ++a) {
    if (const Status status = checker_.step(stats_); status != Status::kOptimal) return status;
    if (!counts(a)) continue;
    const NodeId tail = network_.tail[a], head = network_.head[a];
    out_[out[tail]++] = a;
    in_[in[head]++] = a;
    excess_[tail] -= flow_[a];
    excess_[head] += flow_[a];
  }
  stats_.repaired += static_cast<std::int64_t>(m / 4);
  ++stats_.rebuilds;
  return Status::kOptimal;
}

Status SimplexStart::cancel_deficits() {
  std::vector<NodeId> lacking;
  for (NodeId v = 0; v < network_.num_nodes(); ++v) {
    if (excess_[v] < 0 && network_.supply[v] >= 0) lacking.push_back(v);
  }
  std::int64_t left = kStepsPerArc * static_cast<std::int64_t>(network_.num_arcs());
  while (!lacking.empty() && left > 0) {
    const NodeId v = lacking.back();
    lacking.pop_back();
    for (std::uint32_t i = out_first_[v]; i < out_first_[v + 1] && excess_[v] < 0; ++i, --left) {
      if (const Status status = count(); status != Status::kOptimal) return status;
      const ArcId a = out_[i];
      if (flow_[a] == 0) continue;
      const std::int64_t amount = std::min(flow_[a], -excess_[v]);
      const NodeId head = network_.head[a];
      if (excess_[head] >= 0 && excess_[head] < amount && network_.supply[head] >= 0)
        lacking.push_back(head);
      flow_[a] -= amount;
      excess_[v] += amount;
      excess_[head] -= amount;
      ++stats_.pushes;
    }
  }
  return Status::kOptimal;
}

Status SimplexStart::route() {
  const std::size_t n = network_.num_nodes();
  current_.assign(n, kNone);
  on_path_.assign(n, 0);
  const std::int64_t most =
      stats_.scanned + kStepsPerArc * static_cast<std::int64_t>(n + network_.num_arcs());
  for (NodeId v = 0; v < n && stats_.scanned < most; ++v) {
    if (excess_[v] <= 0) continue;
    if (const Status status = route_from(v); status != Status::kOptimal) return status;
  }
  return Status::kOptimal;
}

// For paths that are full, or too long to be searched for one by one. What no flow can balance, or
// none within the budget, is left.
Status SimplexStart::finish_route() {
  const auto has_excess = [](std::int64_t excess) { return excess > 0; };
  if (std::none_of(excess_.begin(), excess_.end(), has_excess)) return Status::kOptimal;
  CancellationChecker checker(waves_);
  const Status status = FeasibleFlow(View{*this}, checker, stats_).run();
  return status == Status::kCancelled ? status : Status::kOptimal;
}

Status SimplexStart::route_from(NodeId source) {
  std::vector<ArcId> path;
  const auto leave = [&] {
    for (ArcId a : path) on_path_[network_.head[a]] = 0;
    on_path_[source] = 0;
  };
  const auto dearer = [&](ArcId a, ArcId b) {
    const std::int64_t one = network_.cost[a] + hint_[network_.head[a]],
                       two = network_.cost[b] + hint_[network_.head[b]];
    return one != two ? one > two : a > b;
  };
  const auto drop_current_arc = [&](NodeId v) {  // removes the current arc of v
    std::pop_heap(out_.begin() + out_first_[v], out_.begin() + current_[v], dearer);
    --current_[v];
  };
  NodeId v = source;
  on_path_[v] = 1;
  while (excess_[source] > 0) {
    if (const Status status = count(); status != Status::kOptimal) return status;
    if (excess_[v] < 0) {
      std::int64_t amount = std::min(excess_[source], -excess_[v]);
      for (ArcId a : path) amount = std::min(amount, network_.capacity[a] - flow_[a]);
      for (ArcId a : path) flow_[a] += amount;
      excess_[source] -= amount;
      excess_[v] += amount;
      ++stats_.augmentations;
      stats_.pushes += static_cast<std::int64_t>(path.size());
      leave();
      path.clear();
      v = source;
      on_path_[v] = 1;
      continue;
    }
    const auto first = out_.begin() + out_first_[v];
    if (current_[v] == kNone) {
      current_[v] = out_first_[v + 1];
      std::make_heap(first, out_.begin() + current_[v], dearer);
    }
    if (current_[v] > out_first_[v]) {
      const NodeId head = network_.head[*first];
      if (flow_[*first] < network_.capacity[*first] && on_path_[head] == 0) {
        path.push_back(*first);
        on_path_[head] = 1;
        v = head;
      } else {
        drop_current_arc(v);
      }
    } else if (v == source) {
      break;
    } else {
      on_path_[v] = 0;
      v = network_.tail[path.back()];
      path.pop_back();
      drop_current_arc(v);
    }
  }
  leave();
  return Status::kOptimal;
}

void SimplexStart::add_candidate(const SpanningTree& tree, NodeId v, ArcId arc,
                                 std::int64_t price) {
  if (tree.attached(v)) return;
  const Candidate candidate{price - hint_[v], arc, v};
  if (flow_[arc] > 0 && flow_[arc] < network_.capacity[arc]) {
    free_.push_back(candidate);
  } else if (candidate.key < best_[v]) {
    best_[v] = candidate.key;
    if (candidate.key <= key_) {
      ties_.push_back(candidate);
    } else {
      queue_.push_back(candidate);
      std::push_heap(queue_.begin(), queue_.end(), std::greater<>());
    }
  }
}

Status SimplexStart::join(SpanningTree& tree, NodeId v, NodeId parent,
                          const SpanningTree::TreeArc& arc, std::int64_t price) {
  tree.attach(v, parent, arc, price);
  order_.push_back(v);
  for (std::uint32_t i = in_first_[v]; i < in_first_[v + 1]; ++i) {
    if (const Status status = count(); status != Status::kOptimal) return status;
    const ArcId a = in_[i];
    if (flow_[a] < network_.capacity[a])
      add_candidate(tree, network_.tail[a], a, network_.cost[a] + price);
  }
  for (std::uint32_t i = out_first_[v]; i < out_first_[v + 1]; ++i) {
    if (const Status status = count(); status != Status::kOptimal) return status;
    const ArcId a = out_[i];
    if (flow_[a] > 0) add_candidate(tree, network_.head[a], a, price - network_.cost[a]);
  }
  return count();
}

Status SimplexStart::attach_unreachable(SpanningTree& tree) {
  while (order_.size() < network_.num_nodes()) {  // then the remaining candidates would add nothing
    if (const Status status = checker_.step(stats_, kStepsPerHalfEdge); status != Status::kOptimal)
      return status;
    Candidate next;
    if (!free_.empty()) {
      next = free_.back();
      free_.pop_back();
    } else if (!ties_.empty()) {
      next = ties_.back();
      ties_.pop_back();
    } else if (!queue_.empty()) {
      next = queue_.front();
      std::pop_heap(queue_.begin(), queue_.end(), std::greater<>());
      queue_.pop_back();
      key_ = next.key;
    } else {
      return Status::kOptimal;
    }
    if (tree.attached(next.v)) continue;
    const ArcId a = next.arc;
    const std::int64_t room = network_.capacity[a] - flow_[a];
    const bool up = network_.tail[a] == next.v;
    const NodeId parent = up ? network_.head[a] : network_.tail[a];
    const SpanningTree::TreeArc arc{a, up ? room : flow_[a], up ? flow_[a] : room};
    const Status status = join(tree, next.v, parent, arc, next.key + hint_[next.v]);
    if (status != Status::kOptimal) return status;
  }
  return Status::kOptimal;
}

Status SimplexStart::grow(SpanningTree& tree, NodeId sink, std::int64_t artificial_cost) {
  const auto n = static_cast<NodeId>(network_.num_nodes());
  best_.assign(n, kInfinity);
  // reserves address space only
  for (auto* candidates : {&free_, &ties_, &queue_}) candidates->reserve(network_.num_arcs());
  order_.reserve(n);
  const auto join_root = [&](NodeId v) {
    const std::int64_t amount = excess_[v] < 0 ? -excess_[v] : excess_[v];
    const std::int64_t rest = kArtificialCapacity - amount;
    // An excess flows up an arc to the root, a deficit draws over an arc from it.
    if (excess_[v] < 0) return join(tree, v, tree.root(), {kNone, amount, rest}, -artificial_cost);
    return join(tree, v, tree.root(), {kNone, rest, amount}, artificial_cost);
  };
  const SpanningTree::TreeArc free{kNone, kArtificialCapacity, kArtificialCapacity};
  if (const Status status = join(tree, sink, tree.root(), free, 0); status != Status::kOptimal)
    return status;
  for (NodeId v = 0; v < n; ++v) {
    if (excess_[v] == 0 || v == sink) continue;
    if (const Status status = join_root(v); status != Status::kOptimal) return status;
  }
  if (const Status status = attach_unreachable(tree); status != Status::kOptimal) return status;
  for (NodeId v = 0; v < n; ++v) {
    if (tree.attached(v)) continue;
    if (const Status status = join_root(v); status != Status::kOptimal) return status;
    if (const Status status = attach_unreachable(tree); status != Status::kOptimal) return status;
  }
  tree.finish(order_, control_);
  return Status::kOptimal;
}

}  // namespace flowsolver
