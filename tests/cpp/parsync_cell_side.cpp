// The participants of the cell's side together: every task of a random workload runs exactly once
// and ends, with evictions and lost machines; then events that nobody would send, in any order,
// which must be refused and leave the cell's books straight.
#include <algorithm>
#include <map>
#include <numeric>
#include <queue>
#include <stdexcept>
#include <vector>

#include "check.hpp"
#include "hand_driven.hpp"
#include "parsync/core/native/event.hpp"
#include "parsync/core/native/arrivals.hpp"
#include "parsync/core/native/master.hpp"
#include "parsync/core/native/worker_pool.hpp"
#include "record_tables.hpp"

using namespace agora;

static Draws draw(90125);

namespace {

constexpr size_t kTasks = 300, kMachines = 12, kPartitions = 3, kAgents = 2, kPerBatch = 5;
constexpr int64_t kSampleUs = 1000, kHeartbeatUs = 10;

// A catalog without preferences.
struct NoPreferences {
  std::vector<int64_t> machine_offsets{0, 0}, rack_offsets{0, 0}, elsewhere{0}, unscheduled{0};
  std::vector<int32_t> rack_of = std::vector<int32_t>(kMachines);
  PreferenceColumns columns() const {
    return {machine_offsets, {}, {}, rack_offsets, {}, {}, elsewhere, unscheduled, rack_of};
  }
};

class World {
 public:
  World()
      : cell_(kMachines, 1, limit_, offsets_),
        records_(kCellTables),
        master_(ObservedCell(cell_), settings(), records_),
        workers_(kHeartbeatUs, duration_us_, preference_, none_.columns(), 1000, {}, {"a", "b"}),
        arrivals_(batches(), changes(), records_) {}

  // Runs until nothing but samples is left.
  void run() {
    for (const int64_t address : {kMaster, kWorkers, kArrivals})
      push(0, address, std::make_shared<const Started>());
    while (!heap_.empty() && heap_.top().at_us < 1'000'000) {
      const PendingEvent entry = heap_.top();
      heap_.pop();
      deliver(entry);
    }
    for (const PendingEvent& entry : last_sync()) deliver(entry);
    CHECK(arrivals_.exhausted() && arrivals_.submitted() == static_cast<int64_t>(kTasks));
    CHECK(master_.running() == 0 && workers_.pending_ends() == 0);
    for (size_t task = 0; task < kTasks; ++task) CHECK(finished_[task] == 1);
    CHECK(evictions_ > 0 && lost_ > 0 && rejected_ > 0);
  }

  // Sends events with random contents; those that are refused change nothing of the cell.
  void abuse() {
    size_t refused = 0;
    for (int round = 0; round < 3000; ++round) {
      const EventPtr event = odd_event();
      Effects effects;
      for (Participant* const participant :
           {static_cast<Participant*>(&master_), static_cast<Participant*>(&workers_),
            static_cast<Participant*>(&arrivals_)}) {
        try {
          participant->handle(1'000'000 + round, event, effects);
        } catch (const std::invalid_argument&) {
          ++refused;
        } catch (const WrongEvent& wrong) {
          CHECK(wrong.event == event);
        }
      }
      std::vector<int64_t> taken(kMachines);
      const Released live = allocations(cell_, -1);
      for (size_t i = 0; i < live.size(); ++i)
        taken[static_cast<size_t>(live.machine[i])] += live.request.row(i)[0];
      for (const Hold& hold : cell_.holds().all())
        taken[static_cast<size_t>(hold.machine)] += hold.amount[0];
      CHECK(std::equal(taken.begin(), taken.end(), cell_.taken().begin()));
    }
    CHECK(refused > 300);
  }

 private:
  MasterSettings settings() const {
    MasterSettings made;
    auto [request, requests] = SharedTable<int64_t>::make(kTasks, 1);
    std::fill_n(requests, kTasks, 1);
    made.request = request;
    made.priority = SharedColumn<int32_t>::filled(kTasks, 0);
    made.ends_notice = {EndsNotice::AtOnce, EndsNotice::BeforeSync};
    made.sample_us = kSampleUs;
    made.capacity = static_cast<int64_t>(kMachines) * 2;
    made.partition_offsets = column(offsets_);
    made.quota_of_task = SharedColumn<int32_t>::filled(kTasks, 0);
    made.quotas = 1;
    return made;
  }

  static ArrivalBatches batches() {
    ArrivalBatches made;
    constexpr size_t count = kTasks / kPerBatch;
    std::vector<int64_t> at_us(count), offsets(count + 1), rows(kTasks);
    std::vector<int32_t> agent(count);
    std::iota(rows.begin(), rows.end(), 0);
    for (size_t b = 0; b < count; ++b) {
      at_us[b] = static_cast<int64_t>(b) * 40;
      offsets[b + 1] = static_cast<int64_t>((b + 1) * kPerBatch);
      agent[b] = static_cast<int32_t>(b % kAgents);
    }
    made.at_us = column(at_us);
    made.offsets = column(offsets);
    made.rows = column(rows);
    made.agent = column(agent);
    made.job = made.prefers = SharedColumn<int64_t>::filled(count, 0);
    return made;
  }

  static MachineChanges changes() {
    MachineChanges made;
    made.at_us = column<int64_t>({500, 900});
    made.machine = column<int32_t>({3, 3});
    auto [up, values] = SharedColumn<bool>::make(2);
    values[0] = false, values[1] = true;
    made.up = up;
    return made;
  }

  void push(int64_t at_us, int64_t address, EventPtr event) {
    heap_.push({at_us, event->priority(), ++sequence_, address, std::move(event)});
  }

  void deliver(const PendingEvent& entry) {
    Effects effects;
    if (entry.address >= 0) {
      agent(entry.at_us, entry.address, entry.event, effects);
    } else {
      Participant& participant = entry.address == kMaster    ? static_cast<Participant&>(master_)
                                 : entry.address == kWorkers ? static_cast<Participant&>(workers_)
                                                             : arrivals_;
      participant.handle(entry.at_us, entry.event, effects);
    }
    for (Effect& effect : effects.list()) {
      if (const auto* send = std::get_if<Send>(&effect)) {
        push(entry.at_us + 5, send->to, send->event);
      } else if (const auto* timer = std::get_if<SetTimer>(&effect)) {
        push(std::max(entry.at_us, timer->at_us), entry.address, timer->event);
      }
    }
  }

  // What the agent that is notified of ends with its syncs learns from one at the end.
  std::vector<PendingEvent> last_sync() {
    Effects effects;
    master_.handle(1'000'000, std::make_shared<const SyncRequest>(sync_of(1)), effects);
    std::vector<PendingEvent> entries;
    for (const Effect& effect : effects.list()) {
      const auto& send = std::get<Send>(effect);
      entries.push_back({1'000'000, send.event->priority(), ++sequence_, send.to, send.event});
    }
    CHECK(!entries.empty() && entries.back().event->key() == SyncReply::kType.key());
    CHECK(master_.waiting_ends().empty());
    return entries;
  }

  static SyncRequest sync_of(int64_t agent) {
    SyncRequest request;
    request.agent = agent;
    return request;
  }

  // An agent that claims anything at once, and now and then evicts one of its own tasks.
  void agent(int64_t now_us, int64_t index, const EventPtr& event, Effects& effects) {
    if (event->key() == TasksSubmitted::kType.key()) {
      const auto& task = as<TasksSubmitted>(event).task;
      return claim(now_us, index, {task.begin(), task.end()}, effects);
    }
    if (event->key() == TasksEnded::kType.key()) {
      const auto& ended = as<TasksEnded>(event);
      for (const int64_t task : ended.task) running_[index].erase(task);
      if (ended.change == static_cast<int64_t>(ChangeKind::Finished)) {
        CHECK(index == 0 || ended.task.size() == ended.version.size());
        for (const int64_t task : ended.task) ++finished_[static_cast<size_t>(task)];
        return;
      }
      (ended.change == static_cast<int64_t>(ChangeKind::Evicted) ? evictions_ : lost_) +=
          ended.task.size();
      return claim(now_us, index, {ended.task.begin(), ended.task.end()}, effects);
    }
    if (event->key() == SyncReply::kType.key()) return;
    CHECK(event->key() == CommitReply::kType.key());
    if (draw(4) == 0) effects.send(kMaster, sync_of(index));
    const CommitResult& result = *as<CommitReply>(event).result;
    const std::vector<int64_t> claimed = claims_[{index, result.sequence}];
    std::vector<int64_t> again;
    for (size_t i = 0; i < claimed.size(); ++i) {
      if (result.reason[i] == 0) {
        running_[index][claimed[i]] = result.allocation[i];
      } else if (result.reason[i] != static_cast<int8_t>(Reason::Duplicate)) {
        again.push_back(claimed[i]);
      }
    }
    rejected_ += again.size();
    if (!again.empty()) claim(now_us, index, again, effects);
  }

  void claim(int64_t now_us, int64_t index, const std::vector<int64_t>& task, Effects& effects) {
    Transaction made;
    made.scheduler = index;
    made.sequence = ++transactions_;
    made.task = column(task);
    std::vector<int32_t> machine;
    for (size_t i = 0; i < task.size(); ++i)
      machine.push_back(static_cast<int32_t>(draw(kMachines)));
    made.machine = column(machine);
    auto [request, requests] = SharedTable<int64_t>::make(task.size(), 1);
    std::fill_n(requests, task.size(), 1);
    made.request = request;
    made.synced_us = SharedColumn<int64_t>::filled(task.size(), now_us);
    if (!running_[index].empty() && draw(4) == 0)
      made.evict = column<int64_t>({running_[index].begin()->second});
    claims_[{index, made.sequence}] = task;
    CommitRequest asked;
    asked.reply_to = index;
    asked.transaction = std::make_shared<const Transaction>(std::move(made));
    effects.send(kMaster, std::move(asked));
  }

  template <class T>
  static SharedColumn<T> odd_column() {
    return ::odd_column<T>(draw, 380);
  }
  static SharedTable<int64_t> odd_table() { return ::odd_table(draw, 380); }

  static EventPtr odd_event() {
    const auto number = [] { return static_cast<int64_t>(draw(30)) - 10; };
    const auto of = [](auto event) -> EventPtr {
      return std::make_shared<const decltype(event)>(std::move(event));
    };
    switch (draw(13)) {
      case 0: {
        Transaction made;
        made.scheduler = number();
        made.task = odd_column<int64_t>();
        made.machine = odd_column<int32_t>();
        made.request = odd_table();
        made.synced_us = odd_column<int64_t>();
        if (draw(2)) made.evict = odd_column<int64_t>();
        if (draw(2)) made.holds = odd_column<int64_t>();
        CommitRequest event;
        event.reply_to = number();
        event.transaction = std::make_shared<const Transaction>(std::move(made));
        return of(std::move(event));
      }
      case 1: {
        SyncRequest event;
        event.agent = number();
        event.partition = odd_column<int32_t>();
        event.version = odd_column<int64_t>();
        return of(std::move(event));
      }
      case 2: {
        TasksFinished event;
        event.allocation = odd_column<int64_t>();
        event.owner = odd_column<int32_t>();
        event.end_us = odd_column<int64_t>();
        return of(std::move(event));
      }
      case 3: {
        RunningRequest event;
        event.partition = odd_column<int32_t>();
        event.below = number();
        return of(std::move(event));
      }
      case 4: {
        TasksStarted event;
        event.start_us = 2'000'000;
        event.task = odd_column<int64_t>();
        event.allocation = odd_column<int64_t>();
        event.machine = odd_column<int32_t>();
        event.owner = odd_column<int32_t>();
        return of(std::move(event));
      }
      case 5: {
        AllocationsEnded event;
        event.task = odd_column<int64_t>();
        event.allocation = odd_column<int64_t>();
        event.machine = odd_column<int32_t>();
        event.owner = odd_column<int32_t>();
        return of(std::move(event));
      }
      case 6: {
        MachinesChanged event;
        event.machine = odd_column<int32_t>();
        event.up = SharedColumn<bool>::filled(draw(4), draw(2) == 0);
        return of(std::move(event));
      }
      case 7: {
        QuotaShares event;
        event.wanted = odd_table();
        event.share = odd_table();
        event.limit = odd_table();
        return of(std::move(event));
      }
      case 8: {
        CommitReply event;
        event.scheduler = number();
        event.result = std::make_shared<const CommitResult>();
        return of(std::move(event));
      }
      case 9: {
        HoldRequest event;
        event.reply_to = number();
        event.holder = odd_column<int32_t>();
        event.machine = odd_column<int32_t>();
        event.amount = odd_table();
        return of(std::move(event));
      }
      case 10: {
        HoldsReleased event;
        event.hold = odd_column<int64_t>();
        return of(std::move(event));
      }
      case 11:
        return of(SampleDue{});
      default:
        return of(HeartbeatDue{});
    }
  }

  std::vector<int64_t> limit_ = std::vector<int64_t>(kMachines, 2);
  std::vector<int64_t> offsets_{0, 4, 8, static_cast<int64_t>(kMachines)};
  std::vector<int64_t> duration_us_ = std::vector<int64_t>(kTasks, 137);
  std::vector<int32_t> preference_ = std::vector<int32_t>(kTasks, 0);
  NoPreferences none_;
  Cell cell_;
  Measurements records_;
  Master master_;
  WorkerPool workers_;
  ArrivalSource arrivals_;
  std::priority_queue<PendingEvent> heap_;
  uint64_t sequence_ = 0;
  int64_t transactions_ = 0;
  std::map<std::pair<int64_t, int64_t>, std::vector<int64_t>> claims_;  // (agent, sequence)
  std::map<int64_t, std::map<int64_t, int64_t>> running_;  // agent -> task -> allocation
  std::vector<int> finished_ = std::vector<int>(kTasks);
  size_t evictions_ = 0, lost_ = 0, rejected_ = 0;
};

}  // namespace

int main() {
  World world;
  world.run();
  world.abuse();
}
