// The invariant of incremental cost scaling (local_scaling.hpp): between runs, also those stopped
// at a budget, every residual half-edge has rc >= -eps; after an answer rc >= 0. On hubs, whose
// relabels stop short of their last half-edge.
#include <vector>

#include "cost_scaling/local_scaling.hpp"
#include "networks.hpp"
#include "check_observer.hpp"

using namespace flowsolver;

namespace {

constexpr NodeId kLeaves = 90, kHub = kLeaves;  // 180 half-edges at the hub
constexpr std::int64_t kWide = 1'000'000, kCost = 200, kCheap = -35;

std::int64_t between(Draws& draw, std::int64_t low, std::int64_t high) {
  return low + static_cast<std::int64_t>(draw(static_cast<std::uint64_t>(high - low + 1)));
}

// The leaves' supplies end at the hub.
Network hub(Draws& draw) {
  Network network;
  network.supply.assign(kLeaves + 1, 0);
  for (NodeId leaf = 0; leaf < kLeaves; ++leaf) {
    network.supply[leaf] = between(draw, -5, 5);
    network.supply[kHub] -= network.supply[leaf];
    add_arc(network, leaf, kHub, kWide, kCost);
    add_arc(network, kHub, leaf, kWide, kCost);
  }
  return network;
}

class Scaled {
 public:
  // Solved.
  explicit Scaled(const Network& from) : Scaled(from, from_scratch(from)) {}

  // kOptimal, kBudget, or kCancelled: given up, nothing more is to be had of it.
  Status run(const Control& control) {
    Stats stats;
    const auto outcome = scaling_.run(kCost, control, stats);
    if (outcome.given_up) return Status::kCancelled;
    const bool solved = outcome.status == Status::kOptimal;
    CHECK(solved || outcome.status == Status::kBudget);
    CHECK(least_reduced_cost() >= (solved ? 0 : -scaling_.prices().eps()));
    return outcome.status;
  }

  void move_supply(NodeId from, NodeId to, std::int64_t amount) {
    change_supply(from, -amount);
    change_supply(to, amount);
  }
  void join(NodeId tail, NodeId head, std::int64_t capacity, std::int64_t cost) {
    const auto arc = static_cast<ArcId>(network_.num_arcs());
    add_arc(network_, tail, head, capacity, cost);
    graph_.add_arc(arc, tail, head, capacity, cost);
    scaling_.note_block(tail);
    scaling_.note_block(head);
    scaling_.note_arc(arc);
    scaling_.note_change();
  }

 private:
  Scaled(const Network& from, const Solution& solution)
      : network_(from),
        graph_(network_, solution.flow, {}, Control()),
        scaling_(graph_, network_, settings_) {
    scaling_.prices().assign(solution.potential, Control());
  }

  void change_supply(NodeId v, std::int64_t delta) {
    network_.supply[v] += delta;
    graph_.change_supply(v, delta);
    scaling_.note_change();
  }

  std::int64_t least_reduced_cost() const {
    std::int64_t least = 0;
    const ScaledPrices<std::int32_t>& prices = scaling_.prices();
    for (NodeId v = 0; v < graph_.num_nodes(); ++v) {
      for (std::uint32_t e = graph_.begin(v); e < graph_.end(v); ++e) {
        if (graph_.edges[e].residual > 0)
          least = std::min(least, prices.reduced_cost(graph_.edges[e], prices.node(v).price));
      }
    }
    return least;
  }

  const AlgorithmSettings settings_;
  Network network_;
  DynamicGraph<std::int32_t> graph_;
  LocalScaling<std::int32_t> scaling_;
};

// Cheap arcs between leaves, some supply moved, and a few more arcs at the hub.
void change(Scaled& scaled, Draws& draw) {
  const auto leaf = [&] { return static_cast<NodeId>(draw(kLeaves)); };
  for (int k = 0; k < 2; ++k) scaled.join(leaf(), leaf(), between(draw, 1, kWide), kCheap);
  for (int k = 0; k < 3; ++k) scaled.move_supply(leaf(), leaf(), between(draw, 1, 9));
}

void stays_eps_optimal() {
  int solved = 0, stopped = 0;
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    Draws draw(seed);
    Scaled scaled(hub(draw));
    Status status = Status::kOptimal;
    for (int round = 0; round < 4 && status == Status::kOptimal; ++round) {
      change(scaled, draw);
      do {
        Control control;
        control.limit_operations(static_cast<std::int64_t>(draw(8'000)));
        status = scaled.run(control);
        // the half-edges of the hub move meanwhile
        if (status == Status::kBudget) {
          scaled.join(static_cast<NodeId>(draw(kLeaves)), kHub, 5, kCost);
          ++stopped;
        }
      } while (status == Status::kBudget);
      solved += status == Status::kOptimal;
    }
  }
  std::printf("%d rounds solved, %d runs stopped\n", solved, stopped);
  CHECK(solved > 100 && stopped > 100);
}

}  // namespace

int main() {
  stays_eps_optimal();
  return 0;
}
