// The allocator of offers as a participant, the master, and what agents have been offered, on
// random histories with claims, refusals, expiry, restarts and lost machines: all three know of the
// same offers, each ends once, and views show their room and no other.
#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "check.hpp"
#include "hand_driven.hpp"
#include "parsync/core/native/master.hpp"
#include "parsync/protocols/native/offers_agent.hpp"
#include "parsync/protocols/native/offers_cell_side.hpp"
#include "record_tables.hpp"

using namespace agora;
using offers::OfferedRoom;
using offers::OffersCellSide;

static Draws draw(2011);

namespace {

constexpr size_t kMachines = 70, kAgents = 3, kTasks = 4000, kWidth = 2;
constexpr int64_t kSide = -16, kTimeoutUs = 400;
const std::vector<int64_t> kOffsets{0, 5, 66, 70};  // partitions share a word of bits

int64_t drawn(uint64_t bound) { return static_cast<int64_t>(draw(bound)); }

SharedTable<int64_t> amounts(size_t rows, uint64_t bound) {
  auto [table, values] = SharedTable<int64_t>::make(rows, kWidth);
  for (size_t i = 0; i < rows * kWidth; ++i) values[i] = 1 + drawn(bound);
  return table;
}

struct Agent {
  ClusterView view;
  OfferedRoom room{view};
  int64_t epoch;
  bool decides = false;

  Agent(std::shared_ptr<const StaticCellState> state, int64_t now_us, int64_t began)
      : view(std::move(state), false), epoch(began) {
    room.start(now_us);
  }
};

class World {
 public:
  explicit World(bool locks)
      : locks_(locks),
        limit_(amounts(kMachines, 9)),
        request_(amounts(kTasks, 2)),
        state_(std::make_shared<StaticCellState>(
            kWidth, std::vector<int64_t>(limit_.data(), limit_.data() + limit_.count()),
            std::vector<int64_t>(kMachines), kOffsets)),
        cell_(kMachines, kWidth, {limit_.data(), limit_.count()}, kOffsets),
        allocator_(allocator()),
        master_(ObservedCell(cell_), master_settings(), master_records_),
        side_(settings(), allocator_, cell_, records_) {
    for (size_t agent = 0; agent < kAgents; ++agent) {
      allocator_.add_framework(static_cast<int32_t>(agent), "f" + std::to_string(agent), "*");
      allocator_.deactivate(static_cast<int32_t>(agent));
    }
    agents_.resize(kAgents);
    for (size_t agent = 0; agent < kAgents; ++agent) begin(agent);
  }

  void run() {
    for (int step = 0; step < 300; ++step) {
      now_us_ += drawn(60);
      const size_t agent = draw(kAgents);
      switch (draw(9)) {
        case 0:
          begin_round(agent);
          break;
        case 1:
        case 2:
          end_round(agent);
          break;
        case 3:
          change_machine();
          break;
        case 4:
          finish_tasks();
          break;
        case 5:
          send(kSide, offers::ExpiryDue());
          break;
        case 6:
          if (draw(6) == 0) begin(agent);
          break;
        case 7:
          side_.record(now_us_);
          break;
        default:
          send(kSide, offers::IntervalDue());
      }
      deliver();
      check();
    }
    CHECK(ended_ > 0 && claimed_ > 0);
  }

 private:
  OfferAllocator::Settings allocator() const {
    OfferAllocator::Settings made;
    made.name = "offers";
    made.capacity = limit_;
    made.smallest = {1, 1};
    return made;
  }
  MasterSettings master_settings() const {
    MasterSettings made;
    made.request = request_;
    made.priority = column(std::vector<int32_t>(kTasks));
    made.ends_notice.assign(kAgents, EndsNotice::Never);
    made.sample_us = 1'000'000;
    made.watchers = {kSide};
    made.partition_offsets = column(kOffsets);
    return made;
  }
  OffersCellSide::Settings settings() const {
    OffersCellSide::Settings made;
    made.address = kSide;
    made.sample_us = 1'000'000;
    made.interval_us = 100;
    made.timeout_us = kTimeoutUs;
    made.locks = locks_;
    made.request = request_;
    made.refuse_us = {0, 150, 300};
    made.is_own = SharedColumn<bool>::filled(kAgents, true);
    return made;
  }

  template <class T>
  void send(int64_t to, T event) {
    queue_.emplace_back(to, std::make_shared<const T>(std::move(event)));
  }

  // Hands over all messages. Timers are the test's own.
  void deliver() {
    while (!queue_.empty()) {
      const auto [to, event] = queue_.front();
      queue_.pop_front();
      if (to >= 0) {
        receive(*agents_[static_cast<size_t>(to)], event);
        continue;
      }
      if (to != kMaster && to != kSide) continue;
      Effects effects;
      Participant& participant = to == kMaster ? static_cast<Participant&>(master_) : side_;
      participant.handle(now_us_, event, effects);
      for (const Effect& effect : effects.list())
        if (const auto* message = std::get_if<Send>(&effect))
          queue_.emplace_back(message->to, message->event);
    }
  }

  void receive(Agent& agent, const EventPtr& event) {
    if (event->key() == offers::Offers::kType.key()) {
      const auto& made = as<offers::Offers>(event);
      if (made.epoch == agent.epoch) agent.room.add(now_us_, made);
      for (const int64_t offer : made.offer) CHECK(made_us_.emplace(offer, now_us_).second);
    } else if (event->key() == offers::OffersRescinded::kType.key()) {
      const auto& ended = as<offers::OffersRescinded>(event);
      if (ended.epoch == agent.epoch) agent.room.rescind(now_us_, ended.offer.span());
      ended_ += ended.offer.size();
    } else if (event->key() == CommitReply::kType.key()) {
      const CommitResult& result = *as<CommitReply>(event).result;
      for (size_t i = 0; i < result.reason.size(); ++i) {
        if (result.reason[i] != 0) continue;
        running_.push_back(result.allocation[i]);
        ++claimed_;
      }
    }
  }

  // An agent begins anew, as if it had been killed.
  void begin(size_t number) {
    agents_[number] = std::make_unique<Agent>(state_, now_us_, ++epochs_);
    offers::Subscribe subscribe;
    subscribe.agent = static_cast<int64_t>(number);
    subscribe.epoch = epochs_;
    send(kSide, subscribe);
  }

  void begin_round(size_t number) {
    Agent& agent = *agents_[number];
    if (agent.decides || agent.room.size() == 0) return;
    agent.room.begin_round();
    agent.decides = true;
  }

  // Claims on some offers of the round, keeps others, and declines the rest.
  void end_round(size_t number) {
    Agent& agent = *agents_[number];
    if (!std::exchange(agent.decides, false)) return;
    OfferedRoom& room = agent.room;
    std::vector<int32_t> machine;
    std::vector<int64_t> task, accepted, declined, synced_us;
    std::vector<int64_t> asked, of_accepted;
    for (size_t i = 0; i < room.round(); ++i) {
      if (room.rescinded()[i] || draw(3) != 0 || next_task_ == kTasks) continue;
      machine.push_back(room.machine()[i]);
      synced_us.push_back(room.made_us()[i]);
      task.push_back(static_cast<int64_t>(next_task_));
      const int64_t* const request = request_.row(next_task_++);
      asked.insert(asked.end(), request, request + kWidth);
    }
    const std::vector<size_t> used = room.rows_on(machine, room.round());
    CHECK(std::ranges::is_sorted(used));
    const bool keeps_some = draw(2);
    std::vector<uint8_t> keeps(keeps_some ? room.size() : 0);
    std::vector<int64_t> holds;
    for (size_t i = 0; i < room.round(); ++i) {
      const bool is_used = std::ranges::count(used, i) > 0;
      CHECK(is_used == (std::ranges::count(machine, room.machine()[i]) > 0));
      if (keeps_some) keeps[i] = !is_used && draw(4) == 0;
      if (is_used) {
        holds.push_back(room.offer()[i]);
        if (room.rescinded()[i]) continue;
        accepted.push_back(room.offer()[i]);
        of_accepted.insert(of_accepted.end(), kWidth, 0);
      } else if (!(keeps_some && keeps[i]) && !room.rescinded()[i]) {
        declined.push_back(room.offer()[i]);
      }
    }
    room.end_round(now_us_, keeps);
    if (!machine.empty()) {
      auto transaction = std::make_shared<Transaction>();
      transaction->scheduler = static_cast<int64_t>(number);
      transaction->sequence = ++transactions_;
      transaction->task = column(task);
      transaction->machine = column(machine);
      auto [request, values] = SharedTable<int64_t>::make(task.size(), kWidth);
      std::ranges::copy(asked, values);
      transaction->request = request;
      transaction->synced_us = column(synced_us);
      if (locks_) transaction->holds = column(holds);
      CommitRequest commit;
      commit.reply_to = static_cast<int64_t>(number);
      commit.transaction = transaction;
      send(kMaster, commit);
    }
    offers::OffersAnswered answer;
    answer.agent = static_cast<int64_t>(number);
    answer.epoch = agent.epoch;
    if (!locks_) answer.accepted = column(accepted);
    auto [table, values] = SharedTable<int64_t>::make(answer.accepted.size(), kWidth);
    std::fill_n(values, table.count(), 0);
    answer.accepted_amount = table;
    answer.declined = column(declined);
    ended_ += declined.size();
    send(kSide, answer);
  }

  void change_machine() {
    const auto machine = static_cast<int32_t>(draw(kMachines));
    MachinesChanged changed;
    changed.machine = column(std::vector<int32_t>{machine});
    changed.up = SharedColumn<bool>::filled(1, !cell_.rows()[static_cast<size_t>(machine)].up());
    send(kMaster, changed);
  }

  void finish_tasks() {
    if (running_.empty()) return;
    TasksFinished finished;
    const size_t at = draw(running_.size());
    finished.allocation = column(std::vector<int64_t>{running_[at]});
    const Released live = allocations(cell_, -1);
    const auto found = std::ranges::find(live.allocation, running_[at]);
    running_.erase(running_.begin() + static_cast<ptrdiff_t>(at));
    if (found == live.allocation.end()) return;  // its machine was lost
    finished.owner = column(
        std::vector<int32_t>{live.owner[static_cast<size_t>(found - live.allocation.begin())]});
    finished.end_us = column(std::vector<int64_t>{now_us_});
    send(kMaster, finished);
  }

  // Nothing is under way.
  void check() {
    const OffersCellSide::State state = side_.state();
    const std::vector<int64_t>& open = state.outstanding.offer;
    CHECK(std::ranges::is_sorted(open));
    if (locks_) CHECK(std::ranges::equal(open, holds(cell_).hold));
    for (size_t i = 0; i < open.size(); ++i)
      CHECK(state.outstanding.made_us[i] == made_us_.at(open[i]));
    std::vector<int64_t> on_hand;
    for (size_t number = 0; number < kAgents; ++number) {
      Agent& agent = *agents_[number];
      std::map<int32_t, std::vector<int64_t>> shown;
      for (size_t i = 0; i < agent.room.size(); ++i) {
        if (agent.room.rescinded()[i]) continue;
        on_hand.push_back(agent.room.offer()[i]);
        std::vector<int64_t>& room = shown[agent.room.machine()[i]];
        room.resize(kWidth);
        for (size_t r = 0; r < kWidth; ++r) room[r] += agent.room.amount()[i * kWidth + r];
      }
      for (size_t m = 0; m < kMachines; ++m) {
        const auto of = shown.find(static_cast<int32_t>(m));
        for (size_t r = 0; r < kWidth; ++r)
          CHECK(agent.view.all_free()[m * kWidth + r] == (of == shown.end() ? 0 : of->second[r]));
      }
    }
    std::ranges::sort(on_hand);
    CHECK(on_hand == open);
    if (draw(20) == 0) check_restored(state);
  }

  // A participant made anew of the state has that state.
  void check_restored(const OffersCellSide::State& state) {
    OfferAllocator other(allocator());
    for (size_t agent = 0; agent < kAgents; ++agent)
      other.add_framework(static_cast<int32_t>(agent), "f" + std::to_string(agent), "*");
    other.restore(allocator_.state());
    RowBuffer rows({8, 4, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8});
    OffersCellSide copy(settings(), other, cell_, rows);
    copy.restore(state);
    const OffersCellSide::State again = copy.state();
    CHECK(again.outstanding.offer == state.outstanding.offer && again.epoch == state.epoch);
    CHECK(again.outstanding.amount == state.outstanding.amount && again.counts == state.counts);
    CHECK(again.outstanding.made_us == state.outstanding.made_us);
  }

  const bool locks_;
  const SharedTable<int64_t> limit_, request_;
  const std::shared_ptr<const StaticCellState> state_;
  Cell cell_;
  OfferAllocator allocator_;
  Measurements master_records_{kCellTables};
  Master master_;
  RowBuffer records_{{8, 4, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8}};
  OffersCellSide side_;
  std::vector<std::unique_ptr<Agent>> agents_;
  std::deque<std::pair<int64_t, EventPtr>> queue_;
  std::map<int64_t, int64_t> made_us_;  // by offer
  std::vector<int64_t> running_;
  int64_t now_us_ = 0, epochs_ = 0, transactions_ = 0;
  size_t next_task_ = 0, ended_ = 0, claimed_ = 0;
};

// What decisions look at: up to the last task that was placed, each job once.
void check_looked_at() {
  const std::vector<int64_t> job{7, 7, 8, 8, 9}, offered{4, 0, 1, 2, 3};
  const std::vector<int8_t> of_service{0, 1, 0, 0, 0};
  const auto of = [&](std::vector<int64_t> placed) {
    return offers::looked_at(offered, placed, job, of_service);
  };
  const offers::LookedAt most = of({2, 0}), none = of({});
  CHECK(most.tasks == 4 && most.jobs == 3 && most.service_tasks == 1);
  CHECK(most.service_jobs == 1 && most.batch_jobs == 3);
  CHECK(none.tasks == 1 && none.jobs == 1 && none.service_tasks == 0);
  CHECK(offers::looked_at({}, {}, job, of_service).tasks == 0);
  check_refused([&] { offers::looked_at(std::vector<int64_t>{5}, {}, job, of_service); });
}

// Sizes come in the order of the first task of each, also where sizes alternate.
void check_size_count() {
  auto [request, values] = SharedTable<int64_t>::make(5, kWidth);
  std::ranges::copy(std::vector<int64_t>{1, 2, 2, 1, 1, 2, 0, 3, 2, 1}, values);
  offers::SizeCount count(request);
  count.add(std::vector<int64_t>{1, 0, 2, 4});
  count.add(std::vector<int64_t>{3, 2, 1});
  const offers::Sizes sizes = count.take();
  CHECK((sizes.request == std::vector<int64_t>{2, 1, 1, 2, 0, 3}));
  CHECK((sizes.tasks == std::vector<int64_t>{3, 3, 1}));
  CHECK(count.take().tasks.empty());
  for (const int64_t task : {-1, 5})
    check_refused([&] { count.add(std::vector<int64_t>{0, task}); });
}

}  // namespace

int main() {
  for (uint64_t i = 0; i < tries(12); ++i) World(i % 3 != 0).run();
  check_looked_at();
  check_size_count();
  return EXIT_SUCCESS;
}
