// Optimistic agents with the cell: under every choice of an agent's options, each task of a random
// workload with gangs runs to its end once, though claims conflict and a machine is lost; then
// events that nobody would send, which must be refused without touching memory that is not theirs.
#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <queue>
#include <set>
#include <stdexcept>
#include <tuple>
#include <vector>

#include "agent_world.hpp"
#include "check.hpp"
#include "hand_driven.hpp"
#include "parsync/core/native/event.hpp"
#include "parsync/core/native/master.hpp"
#include "parsync/core/native/worker_pool.hpp"
#include "parsync/protocols/native/optimistic_agent.hpp"
#include "parsync/protocols/native/sync.hpp"
#include "record_tables.hpp"

using namespace agora;

static Draws draw(7321);

namespace {

constexpr size_t kTasks = 160, kAgents = 3;
constexpr int64_t kSampleUs = 2000, kMessageUs = 5, kEndUs = 2'000'000;

std::unique_ptr<SyncPolicy> any_policy(int64_t index) {
  const SyncContext context{400, kPartitions, index, kAgents};
  if (const uint64_t kind = draw(4); kind < 2)
    return std::make_unique<StateSync>(context, kind == 0);
  else if (kind == 2)
    return std::make_unique<BlockSync>(context, draw(2) == 0);
  return std::make_unique<EveryAttemptSync>(context);
}

class TestAgent {
 public:
  TestAgent(const AgentSetting& setting, int64_t index)
      : policy_(any_policy(index)),
        cell_(
            std::make_shared<StaticCellState>(setting.resources, setting.limit(),
                                              std::vector<int64_t>(kMachines, 0), setting.offsets),
            checks_seqnum_),
        view_(cell_, {0, 1, 2}, index),
        log_(static_cast<int32_t>(index), {setting.job, setting.submit_us, setting.preference},
             setting.columns(), records_),
        sorting_out_(nullptr, {}, log_),
        rankings_(draw(2) ? Strategy(AdaptiveStrategy{150})
                          : Strategy(FixedStrategy{PartitionRanking::LatencyFirst}),
                  std::nullopt, setting.task_class),
        sizes_(setting.request, setting.resources, setting.gang, setting.preference, setting.zero),
        skipped_(sizes_, 800, setting.gang, nullptr),
        queue_({requeues_, 100'000, 100'000, setting.gang, false,
                requeues_ || draw(2) ? nullptr : &skipped_}),
        greedy_(setting.catalog, setting.placing(), PlacementKind::Random, false, {1, 1, 1, 1}),
        planner_({11, "agent", PartitionQuality::MeanWeight, checks_seqnum_, false},
                 ModelledTime{3, 2'000, 100, 0}, greedy_, setting.task_class, nullptr),
        scheduler_(planner_, cell_, view_),
        agent_(settings(setting, index),
               {{cell_, view_, queue_, log_, sorting_out_, scheduler_}, rankings_, *policy_}) {}

  OptimisticAgent& agent() { return agent_; }
  EndsNotice ends_notice() const {
    return freed_at_once_ ? EndsNotice::AtOnce : EndsNotice::BeforeSync;
  }

 private:
  OptimisticAgent::Settings settings(const AgentSetting& setting, int64_t index) const {
    OptimisticAgent::Settings made;
    made.index = index;
    made.sample_us = kSampleUs;
    if (draw(3) == 0) made.longest_us = 40;
    if (draw(3) == 0) made.most_tasks = 1 + static_cast<int64_t>(draw(3));
    made.cuts_at_sync = draw(2);
    made.pipelines = !policy_->at_every_attempt() && draw(2);
    made.freed_at_once = freed_at_once_;
    made.checks_seqnum = checks_seqnum_;
    made.unit =
        draw(2) ? OptimisticAgent::Settings::Unit::Gang : OptimisticAgent::Settings::Unit::Job;
    made.requeue_us = 30;
    made.average_permille = 100;
    made.records_holds = true;
    made.job = setting.job;
    return made;
  }

  const bool requeues_ = draw(3) == 0, checks_seqnum_ = draw(3) == 0, freed_at_once_ = draw(2);
  const std::unique_ptr<SyncPolicy> policy_;
  Measurements records_{kAgentTables};
  ClusterView cell_;
  AgentView view_;
  AgentLog log_;
  SortingOut sorting_out_;
  RoundRankings rankings_;
  UnitSizes sizes_;
  SkippedUnits skipped_;
  AgentQueue queue_;
  GreedyPlanner greedy_;
  RoundPlanner planner_;
  GreedyAgentScheduler scheduler_;
  OptimisticAgent agent_;
};

class World {
 public:
  World()
      : cell_(kMachines, setting_.resources, setting_.limit(), setting_.offsets),
        agents_(make_agents(setting_)),
        master_(ObservedCell(cell_), master_settings(), records_),
        workers_(10, setting_.duration_us, setting_.preference, setting_.columns(), 1000, {},
                 {"a", "b", "c"}) {}

  void run() {
    for (const int64_t address : {kMaster, kWorkers, int64_t{0}, int64_t{1}, int64_t{2}})
      push(0, address, std::make_shared<const Started>());
    for (size_t first = 0; first < kTasks; first += kPerBatch) {
      TasksSubmitted submitted;
      std::vector<int64_t> task(kPerBatch);
      std::iota(task.begin(), task.end(), static_cast<int64_t>(first));
      submitted.task = column(task);
      push(setting_.submit_us[first], static_cast<int64_t>(first / kPerBatch % kAgents),
           std::make_shared<const TasksSubmitted>(submitted));
    }
    for (const bool up : {false, true}) {
      MachinesChanged changed;
      changed.machine = column<int32_t>({4});
      changed.up = SharedColumn<bool>::filled(1, up);
      push(up ? 1500 : 700, kMaster, std::make_shared<const MachinesChanged>(changed));
    }
    while (!heap_.empty() && heap_.top().at_us < kEndUs && !is_over()) {
      const PendingEvent entry = heap_.top();
      heap_.pop();
      deliver(entry);
    }
    CHECK(is_over());
    for (size_t i = 0; i < kAgents; ++i) {  // what waits for a sync
      SyncRequest request;
      request.agent = static_cast<int64_t>(i);
      deliver({kEndUs, Priority::Sync, 0, kMaster, std::make_shared<const SyncRequest>(request)});
    }
    while (!heap_.empty() && heap_.top().at_us <= kEndUs + kMessageUs) {
      if (heap_.top().event->key() == TasksEnded::kType.key()) see(heap_.top().event);
      heap_.pop();
    }
    CHECK(ended_.size() == kTasks);
    int64_t commits = 0, first_commits = 0;
    for (const auto& one : agents_) {
      CHECK(one->agent().queued() == 0 && one->agent().rounds() > 0);
      one->agent().finish(kEndUs);
    }
    for (const auto& [task, count] : starts_) {
      CHECK(count >= 1);
      commits += count;
      ++first_commits;
    }
    CHECK(first_commits == static_cast<int64_t>(kTasks) && commits >= first_commits);
  }

  // Events with random contents to an agent whose run is over.
  void abuse() {
    for (int round = 0; round < 400; ++round) {
      Effects effects;
      OptimisticAgent& agent = agents_[draw(kAgents)]->agent();
      const int64_t now_us = kEndUs + round;
      try {
        const EventPtr event = odd_event();
        agent.handle(now_us, event, effects);
        if (event->key() == TasksEnded::kType.key())
          CHECK(as<TasksEnded>(event).request.width() == setting_.resources);
        for (const Effect& effect : effects.list()) {
          if (const auto* start = std::get_if<StartDecision>(&effect)) {
            agent.decide(start->decision + (draw(4) == 0), now_us);
            agent.decision_us(0);
          }
        }
      } catch (const std::exception&) {
        ++refused_;
      } catch (const WrongEvent&) {
        ++refused_;
      }
    }
  }
  int refused() const { return refused_; }
  bool had_conflicts() const { return conflicts_; }
  bool lost() const { return lost_; }

 private:
  static std::vector<std::unique_ptr<TestAgent>> make_agents(const AgentSetting& setting) {
    std::vector<std::unique_ptr<TestAgent>> made;
    for (size_t i = 0; i < kAgents; ++i)
      made.push_back(std::make_unique<TestAgent>(setting, static_cast<int64_t>(i)));
    return made;
  }

  MasterSettings master_settings() const {
    MasterSettings made;
    auto [request, requests] = SharedTable<int64_t>::make(kTasks, setting_.resources);
    std::ranges::copy(setting_.request, requests);
    made.request = request;
    made.priority = SharedColumn<int32_t>::filled(kTasks, 0);
    for (const auto& one : agents_) made.ends_notice.push_back(one->ends_notice());
    made.sample_us = kSampleUs;
    made.capacity = static_cast<int64_t>(kMachines) * 6;
    made.partition_offsets = column(setting_.offsets);
    return made;
  }

  bool is_over() const {
    return submitted_ == kTasks && master_.running() == 0 && workers_.pending_ends() == 0 &&
           std::ranges::all_of(agents_, [](const auto& one) { return one->agent().queued() == 0; });
  }

  void push(int64_t at_us, int64_t address, EventPtr event) {
    heap_.push({at_us, event->priority(), ++sequence_, address, std::move(event)});
  }

  void deliver(const PendingEvent& entry) {
    if (entry.address >= 0) see(entry.event);
    Effects effects;
    Participant& participant = entry.address == kMaster ? static_cast<Participant&>(master_)
                               : entry.address == kWorkers
                                   ? static_cast<Participant&>(workers_)
                                   : agents_[static_cast<size_t>(entry.address)]->agent();
    participant.handle(entry.at_us, entry.event, effects);
    for (Effect& effect : effects.list()) {
      if (const auto* send = std::get_if<Send>(&effect)) {
        push(entry.at_us + kMessageUs, send->to, send->event);
      } else if (const auto* timer = std::get_if<SetTimer>(&effect)) {
        push(std::max(entry.at_us, timer->at_us), entry.address, timer->event);
      } else if (const auto* start = std::get_if<StartDecision>(&effect)) {
        OptimisticAgent& agent = agents_[static_cast<size_t>(entry.address)]->agent();
        agent.decide(start->decision, entry.at_us);
        auto done = std::make_shared<DecisionDone>();
        done->decision = start->decision;
        push(entry.at_us + agent.decision_us(0), entry.address, done);
      }
    }
  }

  // What an agent is told of its tasks.
  void see(const EventPtr& event) {
    if (event->key() == TasksSubmitted::kType.key()) {
      submitted_ += as<TasksSubmitted>(event).task.size();
    } else if (event->key() == CommitReply::kType.key()) {
      const CommitResult& result = *as<CommitReply>(event).result;
      for (const int8_t reason : result.reason) conflicts_ = conflicts_ || is_conflict(reason);
    } else if (event->key() == TasksEnded::kType.key()) {
      const auto& ended = as<TasksEnded>(event);
      for (const int64_t task : ended.task) ++starts_[task];
      if (ended.change == static_cast<int64_t>(ChangeKind::Lost)) {
        lost_ = true;
      } else {
        for (const int64_t task : ended.task) CHECK(ended_.insert(task).second);
      }
    }
  }

  template <class T>
  static SharedColumn<T> odd_column() {
    return ::odd_column<T>(draw, 180);
  }

  static PartitionDeltaPtr odd_delta() {
    PartitionDelta made;
    made.partition = static_cast<int64_t>(draw(6)) - 2;
    made.from_version = draw(2) ? 0 : static_cast<int64_t>(draw(2000));
    made.to_version = static_cast<int64_t>(draw(4000)) - 5;
    made.at_us = static_cast<int64_t>(draw(10'000));
    made.row = odd_column<uint16_t>();
    made.used = draw(2) ? AnyColumn(odd_column<int8_t>()) : AnyColumn(odd_column<int64_t>());
    made.up = SharedColumn<bool>::filled(draw(4), draw(2) == 0);
    return std::make_shared<const PartitionDelta>(std::move(made));
  }

  static EventPtr odd_event() {
    const auto number = [] { return static_cast<int64_t>(draw(300)) - 10; };
    switch (draw(12)) {
      case 0: {
        SyncReply event;
        event.epoch = static_cast<int64_t>(draw(2));
        for (uint64_t deltas = draw(3); deltas > 0; --deltas) event.deltas.push_back(odd_delta());
        return shared_event(std::move(event));
      }
      case 1: {
        optimistic::SyncDue event;
        event.k = number();
        return shared_event(event);
      }
      case 2: {
        optimistic::RequeueDue event;
        event.key = number();
        return shared_event(event);
      }
      case 3: {
        optimistic::RetryDue event;
        event.round = number();
        return shared_event(event);
      }
      case 4:
        return shared_event(optimistic::RoundDue{});
      case 5:
        return shared_event(HeartbeatDue{});
      default:
        return odd_agent_event(draw, kTasks);
    }
  }

  AgentSetting setting_{draw, kTasks};
  Measurements records_{kCellTables};
  Cell cell_;
  std::vector<std::unique_ptr<TestAgent>> agents_;
  Master master_;
  WorkerPool workers_;
  std::priority_queue<PendingEvent> heap_;
  uint64_t sequence_ = 0;
  std::map<int64_t, int64_t> starts_;  // by task: how often it has run
  std::set<int64_t> ended_;
  size_t submitted_ = 0;
  bool conflicts_ = false, lost_ = false;
  int refused_ = 0;
};

}  // namespace

int main() {
  int refused = 0, with_conflicts = 0, with_losses = 0;
  for (int number = 0; number < 60; ++number) {
    World world;
    world.run();
    world.abuse();
    refused += world.refused();
    with_conflicts += world.had_conflicts();
    with_losses += world.lost();
  }
  CHECK(refused > 5'000 && with_conflicts > 30 && with_losses > 30);
}
