// The first flow and the first tree of the network simplex.
//
// Flow. First, what a start's flow lacks at nodes that are not sinks (a removed task) is cancelled
// along the paths by which the flow left them. Then the excess of sources is sent to sinks, a path
// at a time, over forward arcs only, at every node the cheapest arc first, never again over an arc
// that led nowhere. Both stop after a number of steps linear in the network's size. The remaining
// excess is sent to sinks in waves (feasible_flow.hpp): paths may be long, and lead back over arcs
// with flow. Only what no flow can balance is left to the tree's artificial arcs.
//
// Tree. It grows from the root over residual arcs that lead to it, cheapest first (as in Prim's and
// Dijkstra's algorithms, with the prices that the tree gives), with arcs that are neither empty nor
// full before others. So it is strongly feasible; a flow that is a basic solution has all such arcs
// in the tree; and an optimal flow with its prices gets an optimal tree. First the sink is joined
// to the root, by a free arc, then nodes where the flow does not balance, by an artificial arc that
// carries the difference. Nodes from which no residual arcs lead there come last, by an empty
// artificial arc.
#pragma once

#include <vector>

#include "control.hpp"
#include "network.hpp"
#include "simplex/spanning_tree.hpp"

namespace flowsolver {

inline constexpr std::int64_t kArtificialCapacity = 2 * kMaxNodeSum;  // more than any flow

class SimplexStart {
 public:
  // `flow` is improved in place. `hint`: prices with which the flow was found, of magnitude at most
  // 2 * kMaxPathCost. `waves`: the control of the waves alone, which may stop at a budget where
  // everything else may not.
  SimplexStart(const Network& network, std::vector<std::int64_t>& flow,
               const std::vector<std::int64_t>& hint, const Control& control, const Control& waves,
               Stats& stats)
      : network_(network),
        flow_(flow),
        hint_(hint),
        stats_(stats),
        control_(control),
        waves_(waves),
        checker_(control) {}

  // kOptimal, or kCancelled or kBudget when stopped; only then is the tree incomplete.
  // `artificial_cost`: more than that of any simple path. The balance of `sink` is not examined: it
  // is implied by the others.
  Status run(SpanningTree& tree, NodeId sink, std::int64_t artificial_cost);

 private:
  struct Candidate {
    std::int64_t key;  // the price that v would get, minus its hint
    ArcId arc;
    NodeId v;

    bool operator>(const Candidate& other) const {
      return key != other.key ? key > other.key : arc > other.arc;
    }
  };

  struct View;

  Status index();
  Status cancel_deficits();
  Status route();
  Status route_from(NodeId source);
  Status finish_route();
  Status grow(SpanningTree& tree, NodeId sink, std::int64_t artificial_cost);
  Status join(SpanningTree& tree, NodeId v, NodeId parent, const SpanningTree::TreeArc& arc,
              std::int64_t price);
  Status attach_unreachable(SpanningTree& tree);
  void add_candidate(const SpanningTree& tree, NodeId v, ArcId arc, std::int64_t price);
  // its arc and other end are scattered in memory
  static constexpr std::int64_t kStepsPerHalfEdge = 4;
  Status count() {
    ++stats_.scanned;
    return checker_.step(stats_, kStepsPerHalfEdge);
  }

  const Network& network_;
  std::vector<std::int64_t>& flow_;
  const std::vector<std::int64_t>& hint_;
  Stats& stats_;
  const Control& control_;
  const Control& waves_;
  CancellationChecker checker_;
  std::vector<std::int64_t> excess_;
  std::vector<std::uint32_t> out_first_, in_first_;  // per node: index into the two lists below
  LargeArray<ArcId> out_, in_;                       // arcs with capacity, without loops
  // per node: end of its arcs out that are still to be tried, which form a heap; kNone: all
  std::vector<std::uint32_t> current_;
  std::vector<std::uint8_t> on_path_;
  std::vector<NodeId> order_;       // nodes in the order in which they joined the tree
  std::vector<std::int64_t> best_;  // per node: least key of its candidates
  std::vector<Candidate> queue_;    // a heap
  // candidates by arcs between their bounds; candidates of keys up to `key_`
  std::vector<Candidate> free_, ties_;
  std::int64_t key_ = -kInfinity;  // the current key
};

}  // namespace flowsolver
