// Races, in order: threads, a race from scratch, and the engine of a race on a changing network.
#include "race.hpp"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "graph/start_state.hpp"

namespace flowsolver {

namespace {

class RacerThreads {
 public:
  RacerThreads(std::size_t racers, WinnerRule winner_rule, const Control& control,
               const Racer& racer, std::span<const std::int64_t> least_operations)
      : outer_(control), winner_rule_(winner_rule), racer_(racer) {
    for (std::size_t i = 0; i < racers; ++i) {
      runs_.emplace_back(control);
      if (!least_operations.empty()) runs_.back().least_operations = least_operations[i];
    }
    poll_outer(runs_.front());
  }

  Outcome run() {
    std::vector<std::thread> threads;
    std::size_t started = 1;
    try {
      threads.reserve(runs_.size() - 1);
      for (; started < runs_.size(); ++started)
        threads.emplace_back([this, started] { run_racer(started); });
    } catch (const std::system_error&) {  // no more threads
    } catch (const std::bad_alloc&) {
    }
    run_racer(0);
    for (std::size_t i = started; i < runs_.size(); ++i) {
      poll_outer(runs_[i]);
      run_racer(i);
    }
    wait();
    for (std::thread& thread : threads) thread.join();
    return outcome();
  }

 private:
  struct RacerRun {
    explicit RacerRun(const Control& outer) : control(outer) {}
    Control control;
    Stats stats;
    Status status = Status::kCancelled;
    std::exception_ptr error;
    Control::Clock::time_point ended{};
    std::int64_t max_useful_operations = kInfinity;
    std::int64_t least_operations = 0;  // with an answer
  };

  // For racers that the caller's thread runs.
  void poll_outer(RacerRun& run) {
    run.control.poll([this](const Stats&) { return outer_.check({}) == Status::kCancelled; });
  }

  void run_racer(std::size_t i) {
    RacerRun& run = runs_[i];
    try {
      run.status = racer_(i, run.control, run.stats);
    } catch (...) {
      run.error = std::current_exception();
    }
    run.ended = Control::Clock::now();
    const std::lock_guard lock(mutex_);
    ++finished_;
    if (run.error == nullptr && is_answer(run.status)) stop_others(i);
    if (finished_ == runs_.size()) all_finished_.notify_one();
  }

  void stop_others(std::size_t winner) {
    if (winner_rule_ == WinnerRule::kFirst && first_answer_ == kNoRacer) first_answer_ = winner;
    const std::int64_t operations = runs_[winner].stats.operations();
    for (std::size_t i = 0; i < runs_.size(); ++i) {
      if (i == winner) continue;
      if (winner_rule_ == WinnerRule::kFirst) {
        runs_[i].control.cancel();
      } else {
        runs_[i].max_useful_operations =
            std::min(runs_[i].max_useful_operations, i < winner ? operations : operations - 1);
        runs_[i].control.cancel_after_operations(runs_[i].max_useful_operations);
        if (runs_[i].least_operations > runs_[i].max_useful_operations) runs_[i].control.cancel();
      }
    }
  }

  void wait() {
    std::unique_lock lock(mutex_);
    while (!all_finished_.wait_for(lock, Control::kPollInterval,
                                   [this] { return finished_ == runs_.size(); })) {
      lock.unlock();
      outer_.check({});
      lock.lock();
    }
  }

  Outcome outcome() const {
    std::size_t leader = first_answer_;
    const auto prefer = [&](auto better) {
      for (std::size_t i = 0; leader == kNoRacer && i < runs_.size(); ++i) {
        if (runs_[i].error == nullptr && better(runs_[i].status)) leader = i;
      }
    };
    for (std::size_t i = 0; winner_rule_ == WinnerRule::kFewestOperations && i < runs_.size();
         ++i) {
      if (runs_[i].error != nullptr || !is_answer(runs_[i].status)) continue;
      if (leader == kNoRacer || runs_[i].stats.operations() < runs_[leader].stats.operations())
        leader = i;
    }
    prefer([](Status status) { return status == Status::kBudget; });
    prefer([](Status status) { return status != Status::kCancelled; });
    prefer([](Status) { return true; });
    if (leader == kNoRacer) std::rethrow_exception(runs_.front().error);
    const auto by_end = [](const RacerRun& a, const RacerRun& b) { return a.ended < b.ended; };
    const auto last = std::max_element(runs_.begin(), runs_.end(), by_end);
    return {leader, runs_[leader].status, runs_[leader].stats, last->ended - runs_[leader].ended,
            operations(leader)};
  }

  std::vector<std::int64_t> operations(std::size_t leader) const {
    std::vector<std::int64_t> counted;
    for (const RacerRun& run : runs_) counted.push_back(run.stats.operations());
    if (winner_rule_ == WinnerRule::kFewestOperations && is_answer(runs_[leader].status)) {
      const std::int64_t most = counted[leader];
      for (std::size_t i = 0; i < runs_.size(); ++i) {
        const bool would_have_counted =
            runs_[i].status == Status::kCancelled && runs_[i].least_operations > most;
        counted[i] = would_have_counted ? most : std::min(counted[i], most);
      }
    }
    return counted;
  }

  static constexpr std::size_t kNoRacer = static_cast<std::size_t>(-1);

  const Control& outer_;
  const WinnerRule winner_rule_;
  const Racer& racer_;
  std::deque<RacerRun> runs_;
  std::mutex mutex_;  // guards the three members below, and runs_[i].max_useful_operations
  std::condition_variable all_finished_;
  std::size_t finished_ = 0;
  std::size_t first_answer_ = kNoRacer;
};

}  // namespace

Outcome run_racers(std::size_t racers, WinnerRule winner_rule, const Control& control,
                   const Racer& racer, std::span<const std::int64_t> least_operations) {
  return RacerThreads(racers, winner_rule, control, racer, least_operations).run();
}

namespace {

RaceAnswer race_within_range(const Network& network, std::span<const Algorithm* const> racers,
                             const Start& start, const Control& control, WinnerRule winner_rule) {
  if (racers.size() == 1) {
    Solution solution = racers.front()->solve(network, start, control);
    const std::int64_t operations = solution.stats.operations();
    return {std::move(solution), racers.front(), {}, {operations}};
  }
  std::vector<Solution> solutions(racers.size());
  Outcome outcome = run_racers(racers.size(), winner_rule, control,
                               [&](std::size_t i, const Control& own, Stats& stats) {
                                 solutions[i] = racers[i]->solve(network, start, own);
                                 stats = solutions[i].stats;
                                 const Status status = solutions[i].status;
                                 if (status == Status::kCancelled)
                                   // freed in the racer's thread, not by the waiting one
                                   solutions[i] = {};
                                 return status;
                               });
  return {std::move(solutions[outcome.leader]), racers[outcome.leader], outcome.stop_duration,
          std::move(outcome.operations)};
}

// The race on the network with capacities above the level lowered to it.
RaceAnswer race_lowered(const Network& network, std::span<const Algorithm* const> racers,
                        const Start& start, const Control& control, WinnerRule winner_rule,
                        std::int64_t level) {
  std::vector<std::int64_t> flow(start.flow.begin(), start.flow.end());
  for (std::int64_t& units : flow) units = std::min(units, level);
  RaceAnswer answer =
      race_within_range(lowered(network, level), racers, {flow, start.price}, control, winner_rule);
  Solution& solution = answer.solution;
  if (solution.status != Status::kOptimal && solution.status != Status::kBadCostRange)
    return answer;
  const Status cycle = find_unbounded_cycle(network, level, control, solution.stats);
  if (cycle != Status::kOptimal) solution.status = cycle;
  return answer;
}

}  // namespace

RaceAnswer race(const Network& network, std::span<const Algorithm* const> racers,
                const Start& start, const Control& control, WinnerRule winner_rule) {
  RaceAnswer answer = race_within_range(network, racers, start, control, winner_rule);
  if (answer.solution.status != Status::kBadCapacityRange) return answer;
  const std::optional<std::int64_t> level = capacity_level(network);
  return level ? race_lowered(network, racers, start, control, winner_rule, *level) : answer;
}

namespace {

class RaceEngine final : public WarmStartState {
 public:
  RaceEngine(const std::vector<const Algorithm*>& racers, WinnerRule winner_rule,
             const EngineStart& start, RaceReport& report)
      : WarmStartState(start), root_(start.root), winner_rule_(winner_rule), report_(report) {
    for (const Algorithm* algorithm : racers) racers_.push_back({algorithm, nullptr, {}});
  }

  void add_node(NodeId v, std::int64_t supply) override {
    WarmStartState::add_node(v, supply);
    apply_to_engines(&Engine::add_node, v, supply);
  }

  void remove_node(NodeId v) override {
    WarmStartState::remove_node(v);
    apply_to_engines(&Engine::remove_node, v);
  }

  void add_arc(ArcId arc, NodeId tail, NodeId head, std::int64_t capacity,
               std::int64_t cost) override {
    WarmStartState::add_arc(arc, tail, head, capacity, cost);
    apply_to_engines(&Engine::add_arc, arc, tail, head, capacity, cost);
  }

  void remove_arc(ArcId arc, NodeId tail, NodeId head) override {
    WarmStartState::remove_arc(arc, tail, head);
    apply_to_engines(&Engine::remove_arc, arc, tail, head);
  }

  void set_capacity(ArcId arc, NodeId tail, NodeId head, std::int64_t capacity) override {
    WarmStartState::set_capacity(arc, tail, head, capacity);
    apply_to_engines(&Engine::set_capacity, arc, tail, head, capacity);
  }

  void set_cost(ArcId arc, NodeId tail, std::int64_t cost) override {
    apply_to_engines(&Engine::set_cost, arc, tail, cost);
  }
  void change_supply(NodeId v, std::int64_t delta) override {
    apply_to_engines(&Engine::change_supply, v, delta);
  }
  Status run(const Control& control, Stats& stats) override {
    store_cut({});
    Outcome outcome;
    std::vector<std::int64_t> least_operations;
    for (const Racer& racer : racers_)
      least_operations.push_back(racer.algorithm->from_scratch && racer.algorithm->counts_every_arc
                                     ? static_cast<std::int64_t>(network_.num_arcs())
                                     : 0);
    try {
      outcome = run_racers(
          racers_.size(), winner_rule_, control,
          [&](std::size_t i, const Control& own, Stats& counted) {
            Racer& racer = racers_[i];
            try {
              return run_racer(racer, control, own, counted);
            } catch (...) {
              racer.engine.reset();  // its state is undefined
              throw;
            }
          },
          least_operations);
    } catch (...) {
      conclude_round({});
      throw;
    }
    stats.add(outcome.stats);
    report_.stop_duration = outcome.stop_duration;
    report_.operations = outcome.operations;
    conclude_round(outcome);
    return outcome.status;
  }

  // An engine whose state is the stored answer gives exact values.
  std::int64_t flow(ArcId arc, NodeId tail) const override {
    return synced_racer_ != nullptr ? synced_racer_->engine->flow(arc, tail)
                                    : WarmStartState::flow(arc, tail);
  }
  std::int64_t price(NodeId v) const override {
    return synced_racer_ != nullptr ? synced_racer_->engine->price(v) : WarmStartState::price(v);
  }
  __int128 cost() const override {
    return synced_racer_ != nullptr ? synced_racer_->engine->cost() : WarmStartState::cost();
  }
  std::uint64_t value_limit() const override {
    std::uint64_t limit = WarmStartState::value_limit();
    for (const Racer& racer : racers_) {
      if (racer.engine != nullptr) limit = std::min(limit, racer.engine->value_limit());
    }
    return limit;
  }

  bool prices_drifted() const override {
    return knows_touched_ ? synced_racer_->engine->prices_drifted()
                          : WarmStartState::prices_drifted();
  }

  bool solves_from_scratch() const override {
    return std::any_of(racers_.begin(), racers_.end(),
                       [](const Racer& racer) { return racer.algorithm->from_scratch; });
  }
  bool local() const override { return knows_touched_; }
  void incident_arcs(std::span<const NodeId> nodes, std::vector<ArcId>& arcs) const override {
    synced_racer_->engine->incident_arcs(nodes, arcs);
  }
  const std::vector<FlowBefore>& touched_arcs() const override {
    return synced_racer_->engine->touched_arcs();
  }
  const std::vector<NodeId>& repriced_nodes() const override {
    return synced_racer_->engine->repriced_nodes();
  }
  void implicitly_priced_by(NodeId v, std::vector<NodeId>& nodes) const override {
    synced_racer_->engine->implicitly_priced_by(v, nodes);
  }
  void fetch_price(NodeId v) const override { synced_racer_->engine->fetch_price(v); }
  bool is_implicitly_priced(NodeId v) const override {
    return synced_racer_->engine->is_implicitly_priced(v);
  }
  void arcs_bound_by(NodeId v, std::span<const std::uint8_t> risen,
                     std::vector<ArcId>& arcs) const override {
    synced_racer_->engine->arcs_bound_by(v, risen, arcs);
  }
  void begin_round() override { synced_racer_->engine->begin_round(); }

 private:
  struct Racer {
    const Algorithm* algorithm;
    std::unique_ptr<Engine> engine;  // null: not made yet, or the algorithm has none
    Solution solution;      // without an engine: the solution of this round; with one, only a cut
    bool outdated = false;  // its engine must be made again from the stored answer
    bool rebuilt = false;   // its engine was made in this round
    bool lost_before_engine = false;  // it lost the last round before its engine was made
  };

  // Runs in the racer's thread. Meanwhile nothing changes in what the racers share: the network and
  // the stored answer. `control` is the racer's, `round` that of all.
  Status run_racer(Racer& racer, const Control& round, const Control& control, Stats& stats) const {
    const bool from_scratch = racer.algorithm->from_scratch;
    if (from_scratch || racer.algorithm->make_own_engine == nullptr) {
      racer.solution = racer.algorithm->solve(network_, from_scratch ? Start{} : start(), control);
      stats = racer.solution.stats;
      const Status status = racer.solution.status;
      // freed in the racer's thread, not by the waiting one
      if (!is_answer(status) && status != Status::kBudget) racer.solution = {};
      return status;
    }
    const bool is_made_again = racer.outdated;
    if (racer.outdated) racer.engine.reset();
    racer.outdated = false;
    if (racer.engine == nullptr) {
      const Start from = start();
      const std::vector<std::int64_t> price = relative_to_root(from.price, root_);
      const Control cancellation_from_round(round);
      // In a deterministic race, whether there is an engine must not depend on timing.
      const bool is_needed = winner_rule_ == WinnerRule::kFewestOperations && !is_made_again;
      const Control& making =
          racer.lost_before_engine || is_needed ? cancellation_from_round : control;
      racer.engine = racer.algorithm->make_own_engine({network_, alive_, root_, from.flow, price},
                                                      making, stats);
      racer.rebuilt = true;
      if (racer.engine == nullptr) return Status::kCancelled;
    }
    ProvenRun run = run_proven(racer.engine, {network_, alive_, root_, {}, {}},
                               racer.algorithm->make_own_engine, control, stats);
    racer.rebuilt |= run.rebuilt;
    racer.solution.cut = std::move(run.cut);
    return run.status;
  }

  void conclude_round(const Outcome& outcome) {
    Racer& leader = racers_[outcome.leader];
    knows_touched_ = false;
    for (Racer& racer : racers_) {
      if (!racer.rebuilt && racer.engine != nullptr) continue;
      if (synced_racer_ == &racer) synced_racer_ = nullptr;
      if (last_to_answer_ == &racer) last_to_answer_ = nullptr;
      racer.rebuilt = false;
    }
    const bool has_optimum =
        // so that the engine is made from an optimum, not by a solve
        outcome.status == Status::kOptimal;
    for (Racer& racer : racers_)
      racer.lost_before_engine =
          racer.engine == nullptr && has_optimum && winner_rule_ == WinnerRule::kFirst;
    const bool answered = is_answer(outcome.status);
    if (outcome.status == Status::kOptimal || outcome.status == Status::kBudget)
      store_state_of(leader, answered);
    if (answered) {
      store_cut(std::move(leader.solution.cut));
      report_.winner = leader.algorithm;
      sync_losers(leader, outcome.status);
    }
    for (Racer& racer : racers_) racer.solution = {};
  }

  void sync_losers(const Racer& winner, Status status) {
    for (Racer& racer : racers_) {
      if (&racer == &winner || racer.engine == nullptr) continue;
      const bool is_exact = status == Status::kOptimal && racer.engine->adopts_exactly();
      if (winner_rule_ == WinnerRule::kFewestOperations && !is_exact) {
        racer.outdated = true;
        if (synced_racer_ == &racer) synced_racer_ = nullptr;
      } else if (status == Status::kOptimal) {
        racer.engine->adopt(*this);
        // if it wins the next round, everything is compared
        if (racer.engine->local()) racer.engine->begin_round();
      }
    }
  }

  void store_state_of(Racer& leader, bool answered) {
    if (leader.engine == nullptr) {
      store(std::move(leader.solution));
      synced_racer_ = nullptr;
    } else if (&leader == synced_racer_) {
      adopt_touched(*leader.engine);
    } else {
      adopt(*leader.engine);
      synced_racer_ = leader.engine->local() ? &leader : nullptr;
    }
    if (!answered) return;
    knows_touched_ = synced_racer_ == &leader && last_to_answer_ == &leader;
    // nothing else needs what it touched
    if (synced_racer_ == &leader && !knows_touched_) leader.engine->begin_round();
    last_to_answer_ = &leader;
  }

  template <class... What>
  void apply_to_engines(void (Engine::*change)(What...), What... what) {
    for (Racer& racer : racers_) {
      if (racer.engine != nullptr && !racer.outdated) (racer.engine.get()->*change)(what...);
    }
  }

  const NodeId root_;
  const WinnerRule winner_rule_;
  std::vector<Racer> racers_;
  RaceReport& report_;
  // The racer with a local engine whose state differs from the stored answer only in what the
  // engine has touched.
  Racer* synced_racer_ = nullptr;
  const Racer* last_to_answer_ = nullptr;
  bool knows_touched_ = false;  // synced_racer_ gave the last two answers
};

}  // namespace

std::unique_ptr<Engine> make_race_engine(const std::vector<const Algorithm*>& racers,
                                         WinnerRule winner_rule, const EngineStart& start,
                                         RaceReport& report) {
  return std::make_unique<RaceEngine>(racers, winner_rule, start, report);
}

}  // namespace flowsolver
