// A round that is proved optimal from the round before: the proof must object exactly when a look
// at the whole network does. Correct engines give it nothing to object to, so this one reports
// wrong prices, those of some nodes are said to have risen or fallen; and wrong flow, which does
// not balance.
//
//   target                              600 histories
//   target --from 5000 --runs 1000      other ones
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <vector>

#include "networks.hpp"
#include "shapes.hpp"
#include "shortest_path/incremental_ssp.hpp"

using namespace flowsolver;

namespace {

constexpr int kRounds = 12;

class LyingEngine final : public ForwardingEngine {
 public:
  explicit LyingEngine(std::unique_ptr<Engine> inner) : ForwardingEngine(std::move(inner)) {}

  // From the next run on, v's price is said to be so much higher.
  void lie(NodeId v, std::int64_t by) {
    if (v >= lie_.size()) lie_.resize(v + std::size_t{1}, 0);
    lie_[v] += by;
    lied_.push_back(v);
  }
  // The arc is said to have one more unit of flow.
  void lie_about_flow(ArcId arc) {
    flow_lie_.push_back(arc);
    flow_lied_.push_back(arc);
  }
  void tell_the_truth() {
    for (NodeId v = 0; v < lie_.size(); ++v) lie(v, -lie_[v]);
    flow_lied_.insert(flow_lied_.end(), flow_lie_.begin(), flow_lie_.end());
    flow_lie_.clear();
  }

  Status run(const Control& control, Stats& stats) override {
    const Status status = ForwardingEngine::run(control, stats);
    repriced_ = ForwardingEngine::repriced_nodes();
    std::vector<bool> known(lie_.size(), false);
    for (NodeId v : repriced_) {
      if (v < known.size()) known[v] = true;
    }
    for (NodeId v : lied_) {
      if (!known[v] && !is_implicitly_priced(v)) repriced_.push_back(v);
      known[v] = true;
    }
    lied_.clear();
    touched_ = ForwardingEngine::touched_arcs();
    for (ArcId arc : flow_lied_) touched_.push_back({arc, 0});
    flow_lied_.clear();
    said_flow_ = flow_lie_;
    said_.clear();
    std::vector<NodeId> implied;
    for (NodeId v = 0; v < lie_.size(); ++v) {
      if (lie_[v] == 0 || is_implicitly_priced(v)) continue;
      implied.assign(1, v);
      implicitly_priced_by(v, implied);
      for (NodeId each : implied) {
        if (each >= said_.size()) said_.resize(each + std::size_t{1}, 0);
        said_[each] = lie_[v];
      }
    }
    return status;
  }
  std::int64_t price(NodeId v) const override {
    return ForwardingEngine::price(v) + (v < said_.size() ? said_[v] : 0);
  }
  const std::vector<NodeId>& repriced_nodes() const override { return repriced_; }
  std::int64_t flow(ArcId arc, NodeId tail) const override {
    return ForwardingEngine::flow(arc, tail) +
           std::count(said_flow_.begin(), said_flow_.end(), arc);
  }
  const std::vector<FlowBefore>& touched_arcs() const override { return touched_; }

 private:
  std::vector<std::int64_t> lie_, said_;  // by node; what is said as of the last run
  std::vector<NodeId> lied_, repriced_;
  std::vector<ArcId> flow_lie_, said_flow_, flow_lied_;  // the second: as of the last run
  std::vector<FlowBefore> touched_;
};

struct Counts {
  std::int64_t proved = 0, disproved = 0, arcs_looked_at = 0, arcs = 0;
};

// Tasks, two levels of hubs, machines, and the sink, which is node 0.
class History {
 public:
  explicit History(std::uint64_t seed) : random_(seed), solver_(make(), maker(), {}) {}

  void run(Counts& counts) {
    for (int round = 0; round < kRounds; ++round) {
      if (round > 0) change();
      if (solver_.resolve() != Status::kOptimal) continue;
      const Certificate whole = solver_.certify();
      const Certificate from_last = solver_.certify_changes(0);
      CHECK(whole.ok() == from_last.ok());
      (whole.ok() ? counts.proved : counts.disproved) += 1;
      if (!whole.ok() || round == 0) continue;
      counts.arcs_looked_at += from_last.arcs_checked;
      counts.arcs += whole.arcs_checked;
    }
  }

 private:
  Network make() {
    hubs_ = static_cast<NodeId>(random_.between(1, 3));
    machines_ = static_cast<NodeId>(random_.between(3, 12));
    const NodeId core = 1 + 2 * hubs_ + machines_;
    const auto tasks = static_cast<NodeId>(random_.between(2, 30));
    Network network;
    network.supply.assign(core, 0);
    for (NodeId h = 0; h < hubs_; ++h) {
      flowsolver::add_arc(network, 1 + h, 1 + hubs_ + h, kWide, random_.between(0, 3));
      for (NodeId m = 0; m < machines_; ++m) {
        if (!random_.one_in(3))
          flowsolver::add_arc(network, 1 + hubs_ + h, machine(m), kWide, random_.between(0, 3));
      }
    }
    for (NodeId m = 0; m < machines_; ++m)
      flowsolver::add_arc(network, machine(m), 0, random_.between(0, 3), random_.between(0, 2));
    core_arcs_ = static_cast<std::int64_t>(network.num_arcs());
    for (NodeId t = 0; t < tasks; ++t) {
      network.supply.push_back(1);
      flowsolver::add_arc(network, core + t, 0, 1, random_.between(5, 12));
      flowsolver::add_arc(network, core + t, 1 + static_cast<NodeId>(random_.between(0, hubs_ - 1)),
                          1, random_.between(0, 6));
      flowsolver::add_arc(network, core + t, any_machine(), 1, random_.between(0, 6));
    }
    network.supply[0] = -static_cast<std::int64_t>(tasks);
    core_ = core;
    return network;
  }
  NodeId machine(NodeId m) const { return 1 + 2 * hubs_ + m; }
  NodeId any_machine() { return machine(static_cast<NodeId>(random_.between(0, machines_ - 1))); }

  IncrementalSolver::MakeEngine maker() {
    return [this](const EngineStart& start, const Control& control, Stats& stats) {
      auto made = std::make_unique<LyingEngine>(make_incremental_ssp(start, control, stats));
      engine_ = made.get();
      return std::unique_ptr<Engine>(std::move(made));
    };
  }

  // Arcs out of some nodes get dearer, and prices are said to rise by as much, or by other amounts.
  void change() {
    const Network& network = solver_.network();
    const std::int64_t amount = random_.between(1, 3);
    std::vector<bool> chosen(network.num_nodes(), false);
    const std::int64_t share = random_.between(1, 4);
    for (NodeId v = 1; v < core_; ++v) chosen[v] = random_.one_in(share);
    if (!random_.one_in(3)) {
      for (ArcId a = 0; a < network.num_arcs(); ++a) {
        if (!solver_.live_arc(a) || !chosen[network.tail[a]] || chosen[network.head[a]]) continue;
        const std::int64_t by = random_.one_in(8) ? random_.between(1, 3) : amount;
        if (!random_.one_in(8)) solver_.set_cost(a, network.cost[a] + by);
        if (random_.one_in(12)) solver_.set_cost(a, network.cost[a] - random_.between(0, 2));
      }
    }
    if (random_.one_in(3)) solver_.set_capacity(random_arc(), random_.between(0, 3));
    if (random_.one_in(3)) solver_.set_cost(random_arc(), random_.between(0, 9));
    if (random_.one_in(4)) come_and_go();
    if (engine_ == nullptr) return;
    engine_->tell_the_truth();
    if (random_.one_in(10))
      engine_->lie_about_flow(static_cast<ArcId>(random_.between(0, core_arcs_ - 1)));
    if (random_.one_in(2)) return;
    for (NodeId v = 1; v < core_; ++v) {
      if (chosen[v] && !random_.one_in(10)) engine_->lie(v, amount);
      if (random_.one_in(30)) engine_->lie(v, random_.between(-2, 2));
    }
  }
  void come_and_go() {
    const NodeId last = static_cast<NodeId>(solver_.network().num_nodes() - 1);
    if (last < core_ || !solver_.live_node(last)) return;
    solver_.remove_nodes(std::vector<NodeId>{last});
    const NodeId v = solver_.add_node(1);
    solver_.add_arc(v, 0, 1, random_.between(5, 12));
    solver_.add_arc(v, any_machine(), 1, random_.between(0, 6));
  }
  ArcId random_arc() {
    while (true) {  // bounded: most arcs are live
      const auto a = static_cast<ArcId>(
          random_.between(0, static_cast<std::int64_t>(solver_.network().num_arcs()) - 1));
      if (solver_.live_arc(a)) return a;
    }
  }

  Random random_;
  NodeId hubs_ = 0, machines_ = 0, core_ = 0;
  std::int64_t core_arcs_ = 0;
  LyingEngine* engine_ = nullptr;
  IncrementalSolver solver_;
};

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t from = 0, runs = 600;
  for (int k = 1; k + 1 < argc; k += 2) {
    const std::string_view name = argv[k];
    CHECK(name == "--from" || name == "--runs");
    (name == "--from" ? from : runs) = std::strtoull(argv[k + 1], nullptr, 10);
  }
  Counts counts;
  for (std::uint64_t seed = from; seed < from + runs; ++seed) History(seed).run(counts);
  std::printf("%lld rounds proved, %lld not; %lld of %lld arcs looked at\n",
              static_cast<long long>(counts.proved), static_cast<long long>(counts.disproved),
              static_cast<long long>(counts.arcs_looked_at), static_cast<long long>(counts.arcs));
  CHECK(counts.proved > static_cast<std::int64_t>(runs));
  CHECK(counts.disproved > static_cast<std::int64_t>(runs));
  CHECK(3 * counts.arcs_looked_at < 2 * counts.arcs);
}
