// Speculative arc fixing: half-edges whose reduced cost is far from zero are not scanned during a
// phase of cost scaling.
//
// Definitions. A fixed arc keeps its flow for a phase; the others are open. Both half-edges of an
// arc are fixed, or neither.
//
// Invariant. The half-edges of v are begin(v) .. end(v); those before open(v) are fixed. Their
// order within a node differs from that in which the graph was built; `finish` updates the graph's
// own index of arcs.
//
// Why. A flow that is eps-optimal differs from one for a smaller eps only on arcs with |rc| <= 2 n
// eps (Tardos; Goldberg and Tarjan), so the other arcs need not be scanned again. That bound is
// pessimistic. Fixing from much smaller |rc| on is speculative: the next phase, or price refine
// after the last one, scans all arcs again and repairs those that should not have been fixed. If
// too few arcs were open for any flow, the phase is repeated with all arcs open.
//
// Complexity. O(arcs of v) per node and phase; four bytes a half-edge.
//
// Reference. Goldberg, An efficient implementation of a scaling minimum-cost flow algorithm, J.
// Algorithms 22 (1997), section 5 (arc fixing). Departure: Goldberg checks for violations from time
// to time within a phase and unfixes what is found. Here each phase starts from any pseudoflow
// anyway, so its start is the place for that.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "graph/arc_graph.hpp"

namespace flowsolver {

// On graphs whose half-edges have a fixed order (dynamic_graph.hpp) all arcs are open.
template <class Graph>
class ArcFixing {
 public:
  // `reverse_residual`: per half-edge, kept in the graph's order; may be empty.
  ArcFixing(Graph& graph, LargeArray<std::uint8_t>& enterable)
      : graph_(graph), reverse_residual_(enterable), open_(graph.num_nodes()) {
    for (NodeId v = 0; v < graph.num_nodes(); ++v) open_[v] = graph.begin(v);
  }

  std::uint32_t open(NodeId v) const { return open_[v]; }

  // Opens the half-edges of v except those for which `fixed(half-edge)`. If stopped, all are open.
  template <class Fixed>
  Status partition(NodeId v, const Fixed& fixed, CancellationChecker& checker, const Stats& stats) {
    if (origin_.empty()) number();
    open_[v] = graph_.begin(v);
    std::uint32_t begin = graph_.begin(v), end = graph_.end(v);
    for (;; ++begin) {
      while (begin < end && fixed(graph_.edges[begin])) ++begin;
      while (begin < end && !fixed(graph_.edges[end - 1])) --end;
      if (begin == end) break;
      swap(begin, --end);
      if (const Status status = checker.step(stats); status != Status::kOptimal) return status;
    }
    open_[v] = begin;
    return Status::kOptimal;
  }
  void open_all(NodeId v) { open_[v] = graph_.begin(v); }

  void finish() {
    if (origin_.empty()) return;
    std::vector<std::uint32_t> place(origin_.size());
    for (std::uint32_t e = 0; e < origin_.size(); ++e) place[origin_[e]] = e;
    for (std::uint32_t& e : graph_.position) {
      if (e != kNone) e = place[e];
    }
    origin_.clear();
  }

 private:
  void number() {
    origin_.resize(graph_.edges.size());
    for (std::uint32_t e = 0; e < origin_.size(); ++e) origin_[e] = e;
  }

  // Swaps two half-edges of one node, which are never partners.
  void swap(std::uint32_t e, std::uint32_t f) {
    std::swap(graph_.edges[e], graph_.edges[f]);
    graph_.edges[graph_.edges[e].partner].partner = e;
    graph_.edges[graph_.edges[f].partner].partner = f;
    std::swap(graph_.forward[e], graph_.forward[f]);
    if (!reverse_residual_.empty()) std::swap(reverse_residual_[e], reverse_residual_[f]);
    std::swap(origin_[e], origin_[f]);
  }

  Graph& graph_;
  LargeArray<std::uint8_t>& reverse_residual_;
  std::vector<std::uint32_t> open_;  // per node
  // per half-edge, its original position; empty until arcs are fixed
  LargeArray<std::uint32_t> origin_;
};

}  // namespace flowsolver
