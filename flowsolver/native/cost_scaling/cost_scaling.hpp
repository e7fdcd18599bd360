// Cost scaling by push-relabel (Goldberg and Tarjan), with partial augmentation, global updates,
// price refine and arc fixing.
//
// Definitions. n nodes, C = max |cost|. Costs are scaled by K = n + 1; P are prices of scaled
// costs; rc = K cost - P[tail] + P[head]. A pseudoflow is eps-optimal if rc >= -eps on every
// residual half-edge. Active: a node with excess > 0.
//
// Invariant. After each phase with eps the flow balances and is eps-optimal (PushRelabel).
//
// Method. A phase makes the flow eps-optimal. After it, once eps is no more than a unit of cost,
// price refine (refine_prices) is tried on P / K. If whole prices exist that prove the flow
// optimal, that is the answer; else eps is divided by 16 and the next phase begins. With eps = 1 it
// is the answer for certain: no residual cycle has scaled cost below -n > -K, so none has negative
// cost. Its prices need no search: of the K residues mod K, the n prices leave one, r, free; with
// p[v] = floor((P[v] - r - 1) / K), P[u] <= P[v] + K cost + 1 gives p[u] <= p[v] + cost, because
// adding 1 to P[v] - r - 1 does not pass a multiple of K. The same rounding is used before that.
//
// First eps. Not C K as in textbooks, but about K / 8, an eighth of a unit of cost: on scheduling
// graphs the first phase then nearly always ends with an optimal flow, while a phase with a larger
// eps would be undone by the next. If costs are large, eps is at least C K / 2^17. On other graphs
// prices have to rise too far for that. A first phase that stalls (PushRelabel) is ended, and one
// with at least C K / 32 continues from there, and so on up to C K. From then on it is scaling as
// usual.
//
// Arc fixing. From the second phase on, arcs with |rc| beyond 4 sqrt(n) eps (of the phase before)
// are fixed for the phase (ArcFixing). That changes no answer: price refine scans all arcs; a flow
// that it cannot prove optimal goes through another phase, the last of which fixes nothing; and a
// phase that finds no flow on the open arcs is repeated with all arcs open.
//
// Settings (AlgorithmSettings). alpha: eps is divided by it instead of by 16, or by 8 around
// changes; a phase uses the power of two at or below eps. price_refine off: prices are refined
// neither at the start nor after a phase, so every phase down to eps = 1 is run. task_removal off:
// deficits are not cancelled against the sink's excess, but discharged.
//
// Start. Flow and prices of the start (by default zero). Without any, the price of scarce capacity
// is estimated (start_state.hpp). Given prices are refined for the given pseudoflow, so that
// changed costs that prices alone can absorb move no flow; new sources get the price of their
// cheapest path; deficits left by removed sources are cancelled against the sink's excess
// (imbalances.hpp). The first phase then saturates the arcs that still violate optimality,
// and only the resulting excesses move. So an incremental solve is a solve from scratch with little
// to do.
//
// Infeasibility is proven by the first phase (PushRelabel). kBudget leaves the pseudoflow and the
// prices P / K of that moment.
//
// Range. Prices are 64 bits wide as long as PushRelabel finds that sufficient (n C K below about
// 2^58), else 128: C K <= kMaxPathCost, start prices are within 4 n C, and each of at most 40
// phases adds at most 2 n (C K + eps) to prices near deficits and as much again to others. An
// answer's prices are kept within 2^60, which optimal prices need not exceed, before they are
// refined.
//
// Complexity. O(n^2 m log(n C)). Memory: 40 bytes an arc, 48 once arcs are fixed, about 60 a node.
//
// References. Goldberg and Tarjan, Finding minimum-cost circulations by successive approximation
// (1990); Ahuja, Magnanti, Orlin, Network Flows (1993), section 10.3; Goldberg, An efficient
// implementation of a scaling minimum-cost flow algorithm, J. Algorithms 22 (1997); Goldberg, The
// partial augment-relabel algorithm for the maximum flow problem (ESA 2008); Kovacs, Minimum-cost
// flow algorithms: an experimental evaluation (2015); Gog et al., Firmament, OSDI 2016, sections 4,
// 5.2, 6.2. Departures from the Firmament paper: eps starts small and rises only when a phase
// stalls; the paper starts from C, or incrementally from the largest cost change. There, price
// refine mends the prices of relaxation's answer, so that cost scaling need not start from a large
// eps; here those prices prove the answer optimal as they are, and what price refine saves is
// phases.
#pragma once

#include <memory>
#include <vector>

#include "solve.hpp"

namespace flowsolver {

Solution solve_cost_scaling(const Network& network, const Start& start, const Control& control,
                            const AlgorithmSettings& settings = {});

// Incremental cost scaling that keeps its residual graph, flow and prices from one answer to the
// next.
//
// A round of few changes takes work proportional to those (local_scaling.hpp). The first round, a
// round with very many changes, and a round in which local work takes too long are solved over the
// whole graph, in place, from the current flow and prices (above). Both ways end with whole prices
// that prove the flow optimal.
//
// Budgets. Local phases that are stopped are continued. A solve over the whole graph that is
// stopped continues from its flow and prices, but not from its eps, and need not make progress in
// resolves whose budgets are shorter than its phases (incremental_solver.hpp handles that).
//
// Range. Local phases use 64 bits. If costs are so large (n C K beyond about 2^58) that prices do
// not fit, every round is solved over the whole graph, in 128 bits if necessary.
//
// Memory: the graph's 44 bytes an arc and its spare room, 50 bytes a node; during a solve over the
// whole graph one byte more a half-edge and 60 a node.
//
// References. Gog et al., Firmament, OSDI 2016, sections 5.2 and 6.2. Departures are listed in
// local_scaling.hpp.
//
// Null: cancelled.
std::unique_ptr<Engine> make_cost_scaling_engine(const EngineStart& start, const Control& control,
                                                 Stats& stats,
                                                 const AlgorithmSettings& settings = {});

}  // namespace flowsolver
