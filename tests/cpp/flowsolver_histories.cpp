// Random histories of networks of several shapes, for every algorithm and for races: some changes
// of several kinds a round, and every round ends with the status and cost of a certified solve from
// scratch; INFEASIBLE with a cut. In a third of the histories some rounds are handled as large
// ones.
//
//   target                                200 histories of hubs, and some of the other shapes
//   target SHAPE --from 5000 --runs 1000  other histories of one shape
//   target all --from 0 --runs 1000      of each shape
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "ensemble.hpp"
#include "shapes.hpp"

using namespace flowsolver;

namespace {

constexpr int kRounds = 10;

class History {
 public:
  History(const Shape& shape, std::uint64_t seed)
      : shape_(shape),
        random_(seed),
        announces_(~seed),
        has_large_rounds_(seed % 3 == 0),
        all_(make()) {
    const auto named = [](auto... names) {
      return std::vector<const Algorithm*>{find_algorithm(names)...};
    };
    if (seed % 4 != 0) return;
    all_.add_race(named("cost_scaling", "relaxation"), WinnerRule::kFirst);
    all_.add_race(named("cost_scaling", "successive_shortest_path"), WinnerRule::kFewestOperations);
    all_.add_race(named("cost_scaling", "network_simplex", "incremental_ssp", "relaxation"),
                  WinnerRule::kFewestOperations);
  }

  void run() {
    all_.resolve();
    for (int round = 0; round < kRounds; ++round) {
      for (std::int64_t kinds = random_.between(1, 4); kinds > 0; --kinds) {
        if (has_large_rounds_) announce();
        change();
      }
      const std::int64_t infeasible_before = all_.ended(Status::kInfeasible);
      resolve();
      if (all_.ended(Status::kInfeasible) > infeasible_before && !random_.one_in(4)) mend();
    }
  }

  const Ensemble& all() const { return all_; }

 private:
  Network make() { return shape_.make(random_); }
  const Network& network() const { return all_.first().network(); }
  bool live_arc(ArcId a) const { return all_.first().live_arc(a); }

  std::vector<NodeId> live_nodes() const {
    std::vector<NodeId> nodes;
    for (NodeId v = 0; v < network().num_nodes(); ++v) {
      if (all_.first().live_node(v)) nodes.push_back(v);
    }
    return nodes;
  }
  std::vector<ArcId> live_arcs() const {
    std::vector<ArcId> arcs;
    for (ArcId a = 0; a < network().num_arcs(); ++a) {
      if (live_arc(a)) arcs.push_back(a);
    }
    return arcs;
  }
  // So many different ones, or all; the first node counts as a leaf as seldom as others.
  template <class Id>
  std::vector<Id> some(std::vector<Id> ids, std::int64_t count) {
    for (std::size_t k = 0; k + 1 < ids.size(); ++k) {
      const auto last = static_cast<std::int64_t>(ids.size()) - 1;
      std::swap(ids[k],
                ids[static_cast<std::size_t>(random_.between(static_cast<std::int64_t>(k), last))]);
    }
    ids.resize(std::min(ids.size(), static_cast<std::size_t>(count)));
    return ids;
  }

  void set_supply(NodeId v, std::int64_t supply) {
    all_.apply([=](IncrementalSolver& s) { s.set_supply(v, supply); });
  }
  void set_cost(ArcId a, std::int64_t cost) {
    all_.apply([=](IncrementalSolver& s) { s.set_cost(a, cost); });
  }
  void set_capacity(ArcId a, std::int64_t capacity) {
    all_.apply([=](IncrementalSolver& s) { s.set_capacity(a, capacity); });
  }
  void add_arc(NodeId tail, NodeId head, std::int64_t capacity, std::int64_t cost) {
    all_.add([=](IncrementalSolver& s) { return s.add_arc(tail, head, capacity, cost); });
  }
  void remove(const std::vector<NodeId>& nodes) {
    all_.apply([&](IncrementalSolver& s) { s.remove_nodes(nodes); });
  }
  void balance() {
    const std::vector<NodeId> nodes = live_nodes();
    std::int64_t sum = 0;
    for (NodeId v : nodes) sum += network().supply[v];
    if (nodes.empty() || sum == 0) return;
    const NodeId first = random_.one_in(4) ? random_.one_of(nodes) : nodes.front();
    set_supply(first, network().supply[first] - sum);
  }

  void cheap_ways() {
    const std::vector<NodeId> nodes = live_nodes();
    for (std::int64_t k = random_.between(1, 10); k > 0; --k) {
      const std::int64_t capacity =
          random_.one_in(3) ? random_.between(1, 20) : random_.between(1, kWide);
      add_arc(random_.one_of(nodes), random_.one_of(nodes), capacity,
              random_.one_in(2) ? -35 : random_.between(-250, 0));
    }
  }
  // One that stays takes over their supply.
  void nodes_go() {
    std::vector<NodeId> gone = some(live_nodes(), random_.between(2, 10));
    if (gone.size() < 3) return;
    const NodeId heir = gone.back();
    gone.pop_back();
    std::int64_t supply = network().supply[heir];
    for (NodeId v : gone) supply += network().supply[v];
    remove(gone);
    set_supply(heir, supply);
  }
  void nodes_come() {
    const std::vector<NodeId> nodes = live_nodes();
    const std::size_t hubs = std::min(nodes.size(), shape_.most_hubs);
    for (std::int64_t k = random_.between(1, 6); k > 0; --k) {
      const std::int64_t supply = random_.between(-5, 5);
      const NodeId v = all_.add([=](IncrementalSolver& s) { return s.add_node(supply); });
      for (std::size_t h = 0; h < hubs; ++h) {
        add_arc(v, nodes[h], shape_.capacity, shape_.cost);
        if (!random_.one_in(4)) add_arc(nodes[h], v, shape_.capacity, shape_.cost);
      }
    }
  }
  void supplies_move() {
    const std::vector<NodeId> nodes = live_nodes();
    for (std::int64_t k = random_.between(1, 8); k > 0; --k) {
      const NodeId from = random_.one_of(nodes), to = random_.one_of(nodes);
      const std::int64_t amount = random_.between(1, random_.one_in(4) ? 60 : 6);
      set_supply(from, network().supply[from] - amount);
      set_supply(to, network().supply[to] + amount);
    }
  }
  void supplies_turn() {
    for (NodeId v : some(live_nodes(), random_.between(2, 30))) set_supply(v, -network().supply[v]);
  }
  void costs_change() {
    // beyond 32 bits; and so large that an optimum's cost need not fit 64
    const std::int64_t scale =
        random_.one_in(8) ? std::int64_t{1} << (random_.one_in(2) ? 33 : 44) : 1;
    for (ArcId a : some(live_arcs(), random_.between(1, 20)))
      set_cost(a, scale * (random_.one_in(3) ? random_.between(-30, 0) : random_.between(0, 400)));
  }
  void costs_drift() {
    for (ArcId a : live_arcs()) set_cost(a, network().cost[a] + random_.between(-1, 1));
  }
  void capacities_change() {
    for (ArcId a : some(live_arcs(), random_.between(1, 12)))
      set_capacity(a, random_.one_in(2) ? kWide : random_.between(0, 9));
  }
  // Wide enough for all supply, at no great cost: rounds shall not stay infeasible.
  void mend() {
    const std::vector<NodeId> nodes = live_nodes();
    if (nodes.empty()) return;
    std::vector<std::int64_t> lacking(network().num_nodes(), 0);
    for (NodeId v : nodes) lacking[v] = network().supply[v];
    for (ArcId a : live_arcs()) {
      if (network().cost[a] > 1000 || network().cost[a] < -1000) set_cost(a, shape_.cost);
      const NodeId tail = network().tail[a], head = network().head[a];
      if (lacking[tail] > 0 && head == nodes[0]) lacking[tail] -= network().capacity[a];
      if (lacking[head] < 0 && tail == nodes[0]) lacking[head] += network().capacity[a];
    }
    for (NodeId v : nodes) {
      if (lacking[v] > 0 && network().supply[v] > 0) add_arc(v, nodes[0], kWide, 390);
      if (lacking[v] < 0 && network().supply[v] < 0) add_arc(nodes[0], v, kWide, 390);
    }
  }
  // A node with supply and little capacity out.
  void cut_off() {
    const NodeId v = random_.one_of(live_nodes());
    for (ArcId a : live_arcs()) {
      if (network().tail[a] == v) set_capacity(a, random_.between(0, 1));
    }
  }
  void arcs_go() {
    for (ArcId a : some(live_arcs(), random_.between(1, 9)))
      all_.apply([=](IncrementalSolver& s) { s.remove_arc(a); });
  }

  // A round that is announced as large is handled as such: its changes are logged, or in a very
  // large one dropped.
  void announce() {
    constexpr std::size_t kLarge = 2'049, kVeryLarge = 100'000'000;
    if (!announces_.one_in(3)) return;
    const std::size_t changes = announces_.one_in(3) ? kVeryLarge : kLarge;
    all_.apply([=](IncrementalSolver& s) { s.expect_changes(changes); });
  }

  void change() {
    if (live_nodes().size() < 4) return nodes_come();
    switch (random_.between(0, 13)) {
      case 0:
      case 1:
      case 2:
        return cheap_ways();
      case 3:
      case 4:
        return nodes_go();
      case 5:
      case 6:
        return nodes_come();
      case 7:
        return supplies_move();
      case 8:
        return supplies_turn();
      case 9:
        return costs_change();
      case 10:
        return random_.one_in(2) ? costs_drift() : capacities_change();
      case 11:
        return mend();
      case 12:
        return random_.one_in(3) ? cut_off() : supplies_move();
      default:
        return arcs_go();
    }
  }

  void resolve() {
    if (!random_.one_in(12)) balance();
    switch (random_.between(0, 11)) {
      case 0:
        return all_.resolve_within(random_.between(0, 20'000));
      case 1:
        return all_.resolve_stopped(
            random_.one_in(2) ? CheckObserver::Stop::kCancel : CheckObserver::Stop::kBudget,
            random_.between(1, 24));
      default:
        return all_.resolve();
    }
  }

  const Shape& shape_;
  Random random_;
  Random announces_;  // what it draws leaves the changes as they are
  const bool has_large_rounds_;
  Ensemble all_;
};

struct Counts {
  std::int64_t histories = 0, rounds = 0, infeasible = 0, out_of_range = 0;
};

std::string running;

void say_what_was_running() {
  if (!running.empty()) std::fprintf(stderr, "while at %s\n", running.c_str());
}

void run(const Shape& shape, std::uint64_t from, std::uint64_t runs) {
  Counts counts;
  for (std::uint64_t seed = from; seed < from + runs; ++seed) {
    running = std::string(shape.name) + " --from " + std::to_string(seed) + " --runs 1";
    History history(shape, seed);
    history.run();
    ++counts.histories;
    counts.rounds += history.all().resolves();
    counts.infeasible += history.all().ended(Status::kInfeasible);
    counts.out_of_range += history.all().ended(Status::kBadCostRange);
  }
  running.clear();
  std::printf(
      "%s: %lld histories, %lld rounds of each solver: %lld infeasible, %lld of costs out of "
      "range\n",
      std::string(shape.name).c_str(), static_cast<long long>(counts.histories),
      static_cast<long long>(counts.rounds), static_cast<long long>(counts.infeasible),
      static_cast<long long>(counts.out_of_range));
}

}  // namespace

int main(int argc, char** argv) {
  std::atexit(say_what_was_running);
  std::uint64_t from = 0, runs = 0;
  std::string_view wanted = "all";
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if ((argument == "--runs" || argument == "--from") && i + 1 < argc) {
      (argument == "--runs" ? runs : from) = std::strtoull(argv[++i], nullptr, 10);
    } else {
      wanted = argument;
    }
  }
  for (const Shape& shape : kShapes) {
    if (wanted != "all" && wanted != shape.name) continue;
    const std::uint64_t usual = shape.name == "hub" ? 30 : shape.name == "cell" ? 18 : 5;
    run(shape, from, runs > 0 ? runs : tries(usual));
  }
  return 0;
}
