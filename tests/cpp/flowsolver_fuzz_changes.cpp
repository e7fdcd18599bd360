// Any bytes as a small network and a sequence of changes to it, for every algorithm's engine at
// once: every resolve ends with the status and cost of a solve from scratch, certified, whatever
// came before it: resolves that found no answer, that were stopped at a budget, that were
// cancelled.
#include "ensemble.hpp"
#include "fuzz.hpp"

using namespace flowsolver;

namespace {

constexpr int kMostChanges = 60;
constexpr std::int64_t kMostCost = 9;
constexpr std::int64_t kUnbounded = 1'000'000;  // more than ever flows
// more than an engine's method is left with (incremental_solver.hpp)
constexpr std::int64_t kManyStops = 12;

std::int64_t scale(fuzz::Bytes& bytes) {
  switch (bytes.between(0, 40)) {
    case 0:
      return std::int64_t{1} << 30;
    case 1:
      return std::int64_t{1} << 34;
    case 2:
      return std::int64_t{1} << 50;
    case 3:
      return std::int64_t{1} << 58;
    default:
      return 1;
  }
}

// What most costs are multiples of: 1, or so much that they just fit 32 bits and their differences
// do not.
std::int64_t cost_unit(fuzz::Bytes& bytes) {
  return bytes.between(0, 3) == 0 ? kNarrowLimit / kMostCost : 1;
}

std::int64_t read_capacity(fuzz::Bytes& bytes) {
  return bytes.between(0, 4) == 0 ? kUnbounded : bytes.between(0, 6);
}

// A few arcs anywhere, which some flow fills as the supplies ask for.
void read_arcs(fuzz::Bytes& bytes, std::int64_t unit, Network& network) {
  for (std::int64_t arcs = bytes.between(0, 24); arcs > 0; --arcs) {
    const auto tail = static_cast<NodeId>(bytes.below(network.num_nodes()));
    const auto head = static_cast<NodeId>(bytes.below(network.num_nodes()));
    const std::int64_t capacity = read_capacity(bytes),
                       sent = bytes.between(0, std::min<std::int64_t>(capacity, 6));
    add_arc(network, tail, head, capacity, bytes.between(-3, kMostCost) * unit);
    network.supply[tail] += sent;
    network.supply[head] -= sent;
  }
}

// More half-edges at one node than are scanned one by one (scaling_steps.hpp, path_search.hpp).
void read_hub(fuzz::Bytes& bytes, std::int64_t unit, Network& network) {
  const std::int64_t capacity = read_capacity(bytes), cost = bytes.between(0, kMostCost) * unit;
  for (std::int64_t leaves = bytes.between(33, 50); leaves > 0; --leaves) {
    const auto leaf = static_cast<NodeId>(network.num_nodes());
    network.supply.push_back(bytes.between(-2, 2));
    network.supply[0] -= network.supply[leaf];
    add_arc(network, leaf, 0, capacity, cost);
    add_arc(network, 0, leaf, capacity, cost);
  }
}

void read_path(fuzz::Bytes& bytes, std::int64_t unit, Network& network) {
  const std::int64_t capacity = read_capacity(bytes);
  for (std::int64_t length = bytes.between(10, 40); length > 0; --length) {
    const auto next = static_cast<NodeId>(network.num_nodes());
    network.supply.push_back(bytes.between(-1, 1));
    network.supply[0] -= network.supply[next];
    add_arc(network, next - 1, next, capacity, bytes.between(-1, kMostCost) * unit);
    add_arc(network, next, next - 1, capacity, bytes.between(1, kMostCost) * unit);
  }
}

Network read_network(fuzz::Bytes& bytes, std::int64_t unit) {
  Network network;
  network.supply.assign(static_cast<std::size_t>(bytes.between(1, 9)), 0);
  const std::int64_t shape = bytes.between(0, 7);
  if (shape == 0) read_hub(bytes, unit, network);
  if (shape == 1) read_path(bytes, unit, network);
  read_arcs(bytes, unit, network);
  return network;
}

// The live id at or after a place among all.
template <class Live>
std::int64_t pick(fuzz::Bytes& bytes, std::size_t size, Live live) {
  if (size == 0) return -1;
  const auto begin = static_cast<std::size_t>(bytes.below(std::min<std::size_t>(size, 256)));
  for (std::size_t k = 0; k < size; ++k) {
    const auto id = static_cast<std::int64_t>((begin + k) % size);
    if (live(id)) return id;
  }
  return -1;
}

// The largest sink gets the remaining demand.
void balance(Ensemble& all) {
  const IncrementalSolver& solver = all.first();
  NodeId sink = kNone;
  for (NodeId v = 0; v < solver.network().num_nodes(); ++v) {
    if (solver.live_node(v) &&
        (sink == kNone || solver.network().supply[v] < solver.network().supply[sink]))
      sink = v;
  }
  if (sink == kNone) return;
  __int128 wanted = 0;
  for (NodeId v = 0; v < solver.network().num_nodes(); ++v)
    wanted -= v == sink ? 0 : solver.network().supply[v];
  std::int64_t supply = 0;
  if (as_int64(wanted, supply))
    all.apply([=](IncrementalSolver& s) { s.set_supply(sink, supply); });
}

void change_something(fuzz::Bytes& bytes, std::int64_t unit, Ensemble& all) {
  const Network& network = all.first().network();
  const auto node = [&] {
    return pick(bytes, network.num_nodes(),
                [&](std::int64_t v) { return all.first().live_node(v); });
  };
  const std::int64_t kind = bytes.between(0, 14), u = node(), v = node();
  const std::int64_t any_arc =
      pick(bytes, network.num_arcs(), [&](std::int64_t a) { return all.first().live_arc(a); });
  const auto from = static_cast<NodeId>(u), to = static_cast<NodeId>(v);
  const auto arc = static_cast<ArcId>(any_arc);
  const std::int64_t capacity = bytes.between(0, 6) * scale(bytes), times = scale(bytes);
  const std::int64_t cost = bytes.between(-5, kMostCost) * (times == 1 ? unit : times);
  if (kind == 0) {
    all.add([](IncrementalSolver& s) { return s.add_node(0); });
  } else if (kind == 1 && u >= 0) {
    const NodeId gone[] = {from, to};
    all.apply([&](IncrementalSolver& s) { s.remove_nodes({gone, u == v ? 1u : 2u}); });
  } else if (kind == 2 && any_arc >= 0) {
    all.apply([=](IncrementalSolver& s) { s.remove_arc(arc); });
  } else if (kind <= 4 && any_arc >= 0) {
    all.apply([=](IncrementalSolver& s) { s.set_cost(arc, cost); });
  } else if (kind <= 6 && any_arc >= 0) {
    all.apply([=](IncrementalSolver& s) { s.set_capacity(arc, capacity); });
  } else if (kind == 7 && u >= 0 && u != v) {  // never beyond 2^60
    const std::int64_t more = network.supply[from] / 2 + capacity / 4 + 1,
                       less = network.supply[to] / 2 - capacity / 4 - 1;
    all.apply([=](IncrementalSolver& s) {
      s.set_supply(from, more);
      s.set_supply(to, less);
    });
  } else if (kind == 8) {  // all costs, some up and some down
    for (ArcId a = 0; a < network.num_arcs(); ++a) {
      if (!all.first().live_arc(a)) continue;
      const std::int64_t moved = network.cost[a] + (a % 3 == 0 ? -1 : 1);
      all.apply([=](IncrementalSolver& s) { s.set_cost(a, moved); });
    }
  } else if (kind <= 11 && u >= 0) {
    all.add([=](IncrementalSolver& s) { return s.add_arc(from, to, capacity, cost); });
  } else if (kind == 12 && u >= 0) {  // a cheap way that takes all there is
    all.add([=](IncrementalSolver& s) { return s.add_arc(from, to, kUnbounded, -unit); });
  } else if (kind == 13 && u >= 0 && u != v) {  // one goes, another takes over its supply
    const NodeId gone[] = {from};
    const __int128 both = static_cast<__int128>(network.supply[from]) + network.supply[to];
    std::int64_t supply = 0;
    if (!as_int64(both, supply)) return;
    all.apply([&](IncrementalSolver& s) { s.remove_nodes(gone); });
    all.apply([=](IncrementalSolver& s) { s.set_supply(to, supply); });
  } else {
    balance(all);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Bytes bytes(data, size);
  const std::int64_t unit = cost_unit(bytes);
  Ensemble all(read_network(bytes, unit));
  for (int changes = 0; changes < kMostChanges && !bytes.empty(); ++changes) {
    switch (bytes.between(0, 15)) {
      case 0:
        all.resolve();
        break;
      case 1:
      case 2:
        balance(all);
        all.resolve();
        break;
      case 3:
        all.resolve_within(bytes.between(0, 255));
        break;
      case 4:
        all.resolve_cancelled();
        break;
      case 5:
        all.resolve_stopped(CheckObserver::Stop::kCancel, bytes.between(1, 24));
        break;
      case 6:
        all.resolve_stopped(CheckObserver::Stop::kBudget, bytes.between(1, 24),
                            bytes.between(0, 1) == 0 ? 1 : kManyStops);
        break;
      default:
        change_something(bytes, unit, all);
    }
  }
  balance(all);
  all.resolve();
  return 0;
}

int main(int argc, char** argv) {
  fuzz::Seeds seeds;
  Draws draws(7);
  for (int count = 0; count < 64; ++count) {
    std::string& input = seeds.inputs.emplace_back(64 + draws(400), '\0');
    for (char& byte : input) byte = static_cast<char>(draws(256));
  }
  return fuzz::drive(argc, argv, seeds, tries(300));
}
