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

constexpr size_t kTasks = 160, kMachines = 9, kPartitions = 3, kAgents = 3, kPerBatch = 4;
constexpr int64_t kSampleUs = 2000, kMessageUs = 5, kEndUs = 2'000'000;

// The workload and the cell, which all agents share. Views and cells of one resource are narrow.
struct Setting {
  const size_t resources = 1 + draw(2);
  std::vector<int64_t> request, gang, job, submit_us, duration_us, offsets{0, 3, 6, 9};
  std::vector<int32_t> preference = std::vector<int32_t>(kTasks, 0);
  std::vector<int8_t> task_class = std::vector<int8_t>(kTasks, 0);
  std::vector<int64_t> starts{0, 0}, none64{}, zero{0};
  std::vector<int32_t> none32{}, rack = std::vector<int32_t>(kMachines, 0);
  Catalog catalog{{starts, none32, none64, starts, none32, none64, zero, zero, rack}};

  Setting() {
    for (size_t i = 0; i < kTasks; ++i) {
      for (size_t r = 0; r < resources; ++r) request.push_back(1 + static_cast<int64_t>(draw(3)));
      job.push_back(static_cast<int64_t>(i / kPerBatch));
      gang.push_back(i / kPerBatch % 5 == 0 ? job.back() : kNoGang);
      submit_us.push_back(static_cast<int64_t>(i / kPerBatch) * 60);
      duration_us.push_back(100 + static_cast<int64_t>(draw(300)));
    }
  }
  std::vector<int64_t> limit() const { return std::vector<int64_t>(kMachines * resources, 6); }
  PreferenceColumns columns() const {
    return {starts, none32, none64, starts, none32, none64, zero, zero, rack};
  }
  PlacingColumns placing() const {
    return {kTasks,
            resources,
            request.data(),
            static_cast<int64_t>(resources),
            1,
            preference.data(),
            1,
            gang.data(),
            1};
  }
};

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
  TestAgent(const Setting& setting, int64_t index)
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
  OptimisticAgent::Settings settings(const Setting& setting, int64_t index) const {
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
  static std::vector<std::unique_ptr<TestAgent>> make_agents(const Setting& setting) {
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

  template <class T>
  static SharedColumn<T> odd_column_of(size_t rows) {
    auto [made, values] = SharedColumn<T>::make(rows);
    for (size_t i = 0; i < rows; ++i) values[i] = static_cast<T>(draw(kTasks + 5)) - 2;
    return made;
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
    const auto of = [](auto event) -> EventPtr {
      return std::make_shared<const decltype(event)>(std::move(event));
    };
    switch (draw(13)) {
      case 0: {
        TasksSubmitted event;
        event.task = odd_column<int64_t>();
        return of(std::move(event));
      }
      case 1: {
        SyncReply event;
        event.epoch = static_cast<int64_t>(draw(2));
        for (uint64_t deltas = draw(3); deltas > 0; --deltas) event.deltas.push_back(odd_delta());
        return of(std::move(event));
      }
      case 2: {
        CommitResult result;
        result.sequence = number();
        result.reason = odd_column<int8_t>();
        result.allocation = odd_column<int64_t>();
        result.rival = odd_column<int32_t>();
        result.age_us = odd_column<int64_t>();
        result.version = odd_column<int64_t>();
        CommitReply event;
        event.result = std::make_shared<const CommitResult>(std::move(result));
        return of(std::move(event));
      }
      case 3: {
        TasksEnded event;
        event.change = static_cast<int64_t>(draw(8)) - 1;
        const size_t rows = draw(4);  // of one length, so that nothing but the contents is odd
        event.task = odd_column_of<int64_t>(rows);
        event.allocation = odd_column_of<int64_t>(rows);
        // one that the view shows, or one to come
        event.version = SharedColumn<int64_t>::filled(rows, draw(2) ? 1 : 1'000'000);
        auto [machine, machines] = SharedColumn<int32_t>::make(rows);
        for (size_t i = 0; i < rows; ++i) machines[i] = static_cast<int32_t>(draw(kMachines + 1));
        event.machine = machine;
        auto [request, requests] = SharedTable<int64_t>::make(rows, 1 + draw(3));
        std::fill_n(requests, request.count(), 1);
        event.request = request;
        return of(std::move(event));
      }
      case 4: {
        TasksAdopted event;
        event.task = odd_column<int64_t>();
        event.allocation = odd_column<int64_t>();
        event.machine = odd_column<int32_t>();
        return of(std::move(event));
      }
      case 5: {
        optimistic::SyncDue event;
        event.k = number();
        return of(event);
      }
      case 6: {
        optimistic::RequeueDue event;
        event.key = number();
        return of(event);
      }
      case 7: {
        optimistic::RetryDue event;
        event.round = number();
        return of(event);
      }
      case 8:
        return of(optimistic::RoundDue{});
      case 9:
        return of(DecisionDone{});
      case 10:
        return of(SampleDue{});
      case 11:
        return of(QuotaGrant{});
      default:
        return of(HeartbeatDue{});
    }
  }

  Setting setting_;
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
