// The agent of the protocol of offers, without allocator and master. By hand: what it says as tasks
// and offers come and go, and how long it decides. On random histories, under every choice of its
// options: each task runs to its end once, claims rest on offers on hand and are no larger, and
// every offer gets one answer, though offers are rescinded, claims fail and tasks are lost. Then
// events that nobody would send.
#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <queue>
#include <set>
#include <stdexcept>
#include <variant>
#include <vector>

#include "agent_world.hpp"
#include "check.hpp"
#include "hand_driven.hpp"
#include "parsync/core/native/event.hpp"
#include "parsync/protocols/native/offers_agent.hpp"
#include "record_tables.hpp"
#include "shared_state/native/cell.hpp"

using namespace agora;
using Activity = SchedulerAgent::Activity;

static Draws draw(9182);

namespace {

constexpr int64_t kSide = -16, kMessageUs = 5, kTickUs = 40, kEndUs = 400'000;
constexpr int64_t kForEver = int64_t{1} << 40;
constexpr ModelledTime kTime{3, 2'000, 0, 0};

std::vector<int64_t> values_of(const SharedColumn<int64_t>& column) {
  return {column.begin(), column.end()};
}

// Until a time, jobs take only machines of even number, and gangs only if all of their tasks do.
class EvenMachinesFirst final : public offers::DelayScheduling {
 public:
  EvenMachinesFirst(const AgentSetting& setting, int64_t until_us)
      : setting_(setting), until_us_(until_us) {}

  SharedColumn<bool> tries(int64_t now_us, std::span<const int64_t> task,
                           std::span<const int32_t> machine) override {
    const bool any =
        std::ranges::any_of(machine, [&](int32_t one) { return is_near(now_us, one); });
    return SharedColumn<bool>::filled(task.size(), any);
  }
  SharedColumn<bool> takes(int64_t now_us, const SharedColumn<int64_t>& task,
                           const SharedColumn<int32_t>& machine) override {
    std::set<int64_t> torn;
    for (size_t i = 0; i < task.size(); ++i)
      if (!is_near(now_us, machine[i])) torn.insert(gang_of(task[i]));
    auto [near, values] = SharedColumn<bool>::make(task.size());
    for (size_t i = 0; i < task.size(); ++i)
      values[i] = is_near(now_us, machine[i]) &&
                  (gang_of(task[i]) == kNoGang || !torn.contains(gang_of(task[i])));
    return near;
  }
  void on_planned(int64_t, std::span<const int64_t> passed_over, const SharedColumn<int64_t>&,
                  const SharedColumn<int32_t>&) override {
    passed_over_ += passed_over.size();
  }
  bool is_near(int64_t now_us, int32_t machine) const {
    return now_us >= until_us_ || machine % 2 == 0;
  }
  size_t passed_over() const { return passed_over_; }

 private:
  int64_t gang_of(int64_t task) const { return setting_.gang[static_cast<size_t>(task)]; }

  const AgentSetting& setting_;
  const int64_t until_us_;
  size_t passed_over_ = 0;
};

struct Options {
  bool locks = true, hoards = false, suppresses = true, says_wants = false, has_clock = true;
};

class TestAgent {
 public:
  TestAgent(const AgentSetting& setting, const Options& options,
            offers::DelayScheduling* delay = nullptr)
      : cell_(
            std::make_shared<StaticCellState>(setting.resources, setting.limit(),
                                              std::vector<int64_t>(kMachines, 0), setting.offsets),
            false),
        view_(cell_, {0, 1, 2}, 0),
        room_(cell_),
        log_(0, {setting.job, setting.submit_us, setting.preference}, setting.columns(), records_),
        sorting_out_(nullptr, {}, log_),
        queue_({false, kForEver, kForEver, setting.gang, true}),
        greedy_(setting.catalog, setting.placing(), PlacementKind::Random, false, {1, 1, 1, 1}),
        planner_({11, "agent", PartitionQuality::MeanWeight, false, false}, kTime, greedy_,
                 setting.task_class, nullptr),
        scheduler_(planner_, cell_, view_),
        agent_(settings(setting, options), {{cell_, view_, queue_, log_, sorting_out_, scheduler_},
                                            room_,
                                            records_.rows("offer_waits"),
                                            delay}) {}

  offers::OffersAgent& agent() { return agent_; }

 private:
  static std::vector<TableLayout> tables() {
    std::vector<TableLayout> made = kAgentTables;
    made.push_back({"offer_waits", {8, 4, 8, 8, 8, 8, 8}});
    return made;
  }
  static offers::OffersAgent::Settings settings(const AgentSetting& setting,
                                                const Options& options) {
    offers::OffersAgent::Settings made;
    made.index = 0;
    made.sample_us = 2000;
    made.unit = SchedulerAgent::Settings::Unit::Gang;
    made.records_holds = true;
    made.job = setting.job;
    made.cell_side = kSide;
    made.locks = options.locks;
    made.says_wants = options.says_wants;
    made.suppresses = options.suppresses;
    made.hoards = options.hoards;
    if (options.has_clock) made.clock = kTime;
    made.task_class = setting.task_class;
    made.gang = setting.gang;
    made.request = setting.requests();
    return made;
  }

  Measurements records_{tables()};
  ClusterView cell_;
  AgentView view_;
  offers::OfferedRoom room_;
  AgentLog log_;
  SortingOut sorting_out_;
  AgentQueue queue_;
  GreedyPlanner greedy_;
  RoundPlanner planner_;
  GreedyAgentScheduler scheduler_;
  offers::OffersAgent agent_;
};

EventPtr started(int64_t epoch) {
  Started event;
  event.epoch = epoch;
  return shared_event(event);
}

EventPtr submitted(int64_t first, size_t tasks) {
  TasksSubmitted event;
  std::vector<int64_t> task(tasks);
  std::iota(task.begin(), task.end(), first);
  event.task = column(task);
  return shared_event(std::move(event));
}

EventPtr rescinded(int64_t epoch, const std::vector<int64_t>& offer) {
  offers::OffersRescinded event;
  event.epoch = epoch;
  event.offer = column(offer);
  return shared_event(std::move(event));
}

EventPtr done(int64_t decision) {
  DecisionDone event;
  event.decision = decision;
  return shared_event(event);
}

// The answer to claims; 0: accepted.
EventPtr answered(const Transaction& claims, const std::vector<int8_t>& reason) {
  CommitResult result;
  result.sequence = claims.sequence;
  result.reason = column(reason);
  result.allocation = claims.task;
  result.rival = SharedColumn<int32_t>::filled(reason.size(), -1);
  result.age_us = SharedColumn<int64_t>::filled(reason.size(), 0);
  result.version = SharedColumn<int64_t>::filled(reason.size(), 1);
  CommitReply event;
  event.result = std::make_shared<const CommitResult>(std::move(result));
  return shared_event(std::move(event));
}

// By hand.

class ByHand {
 public:
  explicit ByHand(const Options& options)
      : agent_(setting_, options), resources_(setting_.resources) {}

  const AgentSetting& setting() const { return setting_; }
  offers::OffersAgent& agent() { return agent_.agent(); }

  // What the agent says to the event.
  void handle(int64_t now_us, const EventPtr& event) {
    effects_ = Effects();
    agent().handle(now_us, event, effects_);
  }
  template <class T>
  std::vector<const T*> said() const {
    std::vector<const T*> found;
    for (const Effect& effect : effects_.list())
      if (const auto* send = std::get_if<Send>(&effect);
          send && send->event->key() == T::kType.key())
        found.push_back(&as<T>(send->event));
    return found;
  }
  size_t messages() const {
    return static_cast<size_t>(std::ranges::count_if(effects_.list(), [](const Effect& effect) {
      return std::holds_alternative<Send>(effect);
    }));
  }
  const std::vector<Effect>& effects() const { return effects_.list(); }
  std::optional<int64_t> decision() const {
    for (const Effect& effect : effects_.list())
      if (const auto* start = std::get_if<StartDecision>(&effect)) return start->decision;
    return std::nullopt;
  }
  EventPtr offers_of(int64_t epoch, const std::vector<int64_t>& offer,
                     const std::vector<int32_t>& machine) const {
    offers::Offers event;
    event.epoch = epoch;
    event.made_us = 7;
    event.offer = column(offer);
    event.machine = column(machine);
    auto [amount, amounts] = SharedTable<int64_t>::make(offer.size(), resources_);
    std::fill_n(amounts, amount.count(), AgentSetting::kLimit / 2);  // any task fits
    event.amount = amount;
    return shared_event(std::move(event));
  }

 private:
  AgentSetting setting_{draw, 20};
  TestAgent agent_;
  size_t resources_;
  Effects effects_;
};

const std::vector<int32_t> kAllMachines{0, 1, 2, 3, 4, 5, 6, 7, 8};
const std::vector<int64_t> kAllOffers{10, 11, 12, 13, 14, 15, 16, 17, 18};

void check_life_of_offers() {
  ByHand hand(Options{});
  hand.handle(0, started(4));
  const auto subscribed = hand.said<offers::Subscribe>();
  CHECK(subscribed.size() == 1 && subscribed[0]->epoch == 4 && subscribed[0]->suppressed);

  // offers of another start are none of its own, and those without tasks are not wanted
  hand.handle(1, hand.offers_of(3, {1}, {0}));
  CHECK(hand.messages() == 0);
  hand.handle(1, hand.offers_of(4, {2, 3}, {0, 0}));
  CHECK((values_of(hand.said<offers::OffersAnswered>().at(0)->declined) ==
         std::vector<int64_t>{2, 3}));

  // it revives once
  hand.handle(2, submitted(4, 4));
  CHECK(hand.said<offers::Revive>().size() == 1 && hand.messages() == 1 && !hand.decision());
  CHECK(hand.agent().activity() == Activity::WaitingForGrant);
  hand.handle(3, submitted(8, 4));
  CHECK(hand.messages() == 0);

  // the round is about both jobs; it takes the time of both, and offers are held meanwhile
  hand.handle(4, hand.offers_of(4, kAllOffers, kAllMachines));
  CHECK(hand.messages() == 0);
  const int64_t decision = hand.decision().value();
  hand.agent().decide(decision, 4);
  CHECK(hand.agent().decision_us(0) == 2 * kTime.job_us + 8 * kTime.task_ns / 1000);
  hand.handle(5, rescinded(3, kAllOffers));  // of another start
  hand.handle(6, hand.offers_of(4, {20, 21}, {0, 1}));
  hand.handle(7, rescinded(4, {21}));  // one that has come meanwhile
  CHECK(hand.messages() == 0);

  // claims first, then the answer about the others
  hand.handle(30, done(decision));
  const auto commit = hand.said<CommitRequest>().at(0);
  const auto answer = hand.said<offers::OffersAnswered>();
  const Transaction& claims = *commit->transaction;
  CHECK(hand.messages() == 1 + answer.size());
  CHECK(std::get<Send>(hand.effects().front()).event->key() == CommitRequest::kType.key());
  CHECK(claims.size() == 8 && claims.holds.has_value());
  std::set<int64_t> named(claims.holds->begin(), claims.holds->end()), machines;
  for (const int32_t machine : claims.machine)
    machines.insert(kAllOffers[static_cast<size_t>(machine)]);
  CHECK(named == machines && claims.holds->size() == named.size());
  std::set<int64_t> rest(kAllOffers.begin(), kAllOffers.end());
  for (const int64_t offer : named) rest.erase(offer);
  if (rest.empty()) {
    CHECK(answer.empty());
  } else {
    const auto& declined = answer.at(0)->declined;
    CHECK(std::set<int64_t>(declined.begin(), declined.end()) == rest);
    CHECK(answer[0]->accepted.size() == 0 && answer[0]->epoch == 4);
  }
  CHECK(std::ranges::all_of(claims.synced_us, [](int64_t at_us) { return at_us == 7; }));

  // nothing waits any more: the offer that came meanwhile is declined, and it wants no others
  hand.handle(40, answered(claims, std::vector<int8_t>(8, 0)));
  CHECK(hand.agent().queued() == 0 && hand.said<offers::Suppress>().size() == 1);
  CHECK(
      (values_of(hand.said<offers::OffersAnswered>().at(0)->declined) == std::vector<int64_t>{20}));
}

// An offer that ends while the agent decides: the claims name it, and it is not declined.
void check_rescinded_in_round() {
  for (const bool locks : {true, false}) {
    Options options;
    options.locks = locks;
    ByHand hand(options);
    hand.handle(0, started(0));
    hand.handle(0, submitted(4, 1));
    hand.handle(1, hand.offers_of(0, {10, 11}, {3, 3}));
    const int64_t decision = hand.decision().value();
    hand.agent().decide(decision, 1);
    hand.handle(2, rescinded(0, {10}));
    hand.handle(9, done(decision));
    const Transaction& claims = *hand.said<CommitRequest>().at(0)->transaction;
    CHECK(claims.size() == 1 && claims.machine[0] == 3 && claims.holds.has_value() == locks);
    const auto answer = hand.said<offers::OffersAnswered>();
    if (locks) {
      CHECK(answer.empty() && claims.holds->size() == 2);
    } else {
      CHECK(answer.size() == 1 && answer[0]->declined.size() == 0);
      CHECK((values_of(answer[0]->accepted) == std::vector<int64_t>{11}));
      for (size_t r = 0; r < hand.setting().resources; ++r)
        CHECK(answer[0]->accepted_amount.row(0)[r] == claims.request.row(0)[r]);
    }
    // the claim fails, and the task is wanted in the next offers
    hand.handle(15, answered(claims, {static_cast<int8_t>(Reason::Stale)}));
    CHECK(hand.messages() == 0 && hand.agent().queued() == 1);
    hand.handle(16, hand.offers_of(0, {12}, {5}));
    CHECK(hand.decision().has_value());
  }
}

// A gang of four, and an offer at a time that holds at least one of its tasks: who waits declines
// what does not hold all of it, who hoards keeps that, and gives it back when no task waits.
void check_gangs() {
  for (const bool hoards : {false, true}) {
    Options options;
    options.hoards = hoards;
    ByHand hand(options);
    hand.handle(0, started(0));
    hand.handle(0, submitted(0, 4));  // the first batch is a gang
    std::vector<int64_t> kept;
    int64_t now_us = 1;
    for (int32_t machine = 0; machine < 4; ++machine, now_us += 100) {
      hand.handle(now_us, hand.offers_of(0, {10 + machine}, {machine}));
      const std::optional<int64_t> decision = hand.decision();
      CHECK(decision.has_value());
      hand.agent().decide(*decision, now_us);
      CHECK(hand.agent().decision_us(0) >= kTime.job_us);
      hand.handle(now_us + 20, done(*decision));
      kept.push_back(10 + machine);
      if (!hand.said<CommitRequest>().empty()) break;
      const auto answer = hand.said<offers::OffersAnswered>();
      CHECK(answer.empty() == hoards);
      if (!hoards) {
        CHECK((values_of(answer[0]->declined) == std::vector<int64_t>{10 + machine}));
        kept.clear();
      }
      CHECK(hand.agent().activity() == Activity::BlockedOnCapacity);
    }
    const auto commit = hand.said<CommitRequest>();
    if (!hoards) continue;
    CHECK(commit.size() == 1);
    const Transaction& claims = *commit[0]->transaction;
    CHECK(claims.size() == 4 && claims.commit_mode == CommitMode::AllOrNothing);
    std::vector<int64_t> named(claims.holds->begin(), claims.holds->end());
    for (const auto* answer : hand.said<offers::OffersAnswered>())
      named.insert(named.end(), answer->declined.begin(), answer->declined.end());
    std::ranges::sort(named);
    CHECK(named == kept);
    hand.handle(now_us + 50, answered(claims, std::vector<int8_t>(4, 0)));
    CHECK(hand.said<offers::Suppress>().size() == 1);
  }
}

// What it says that it wants: how many tasks of each size wait.
void check_wants() {
  Options options;
  options.says_wants = true;
  ByHand hand(options);
  hand.handle(0, started(0));
  hand.handle(0, submitted(4, 4));
  const auto wanted = hand.said<offers::TasksWanted>();
  CHECK(wanted.size() == 1);
  CHECK(std::accumulate(wanted[0]->tasks.begin(), wanted[0]->tasks.end(), int64_t{0}) == 4);
  CHECK(wanted[0]->request.rows() == wanted[0]->tasks.size());
  const size_t width = hand.setting().resources;
  for (size_t r = 0; r < width; ++r)  // the first of the queue first
    CHECK(wanted[0]->request.row(0)[r] == hand.setting().request[4 * width + r]);
  hand.handle(1, rescinded(0, {}));  // its room is gone: it says so again
  CHECK(hand.said<offers::TasksWanted>().size() == 1);
}

// On random histories.

class World {
 public:
  World()
      : delay_(setting_, draw(2) ? 1'500 : 0),
        delays_(draw(3) == 0),
        test_agent_(setting_, options_, delays_ ? &delay_ : nullptr) {}

  void run() {
    push(0, 0, started(kEpoch));
    push(0, kSide, shared_event(offers::IntervalDue{}));
    for (size_t first = 0; first < setting_.tasks; first += kPerBatch)
      push(setting_.submit_us[first], 0, submitted(static_cast<int64_t>(first), kPerBatch));
    int64_t quiet_us = 0;  // since when all tasks have run
    while (heap_.top().at_us < kEndUs) {
      const PendingEvent entry = heap_.top();
      heap_.pop();
      if (ended_.size() < setting_.tasks) quiet_us = entry.at_us;
      if (entry.at_us > quiet_us + 10 * kTickUs) break;
      deliver(entry);
    }
    CHECK(ended_.size() == setting_.tasks && agent().queued() == 0 && agent().rounds() > 0);
    CHECK(on_hand_.empty());
    if (options_.suppresses) CHECK(suppressed_ && open_.empty());
    agent().finish(kEndUs);
  }

  void abuse() {
    for (int round = 0; round < 300; ++round) {
      const int64_t now_us = kEndUs + round;
      Effects effects;
      try {
        agent().handle(now_us, odd_event(), effects);
        for (const Effect& effect : effects.list()) {
          const auto* start = std::get_if<StartDecision>(&effect);
          if (start == nullptr) continue;
          agent().decide(start->decision + (draw(4) == 0), now_us);
          agent().decision_us(0);
          Effects more;
          if (draw(2)) agent().handle(now_us, done(start->decision), more);
        }
      } catch (const std::exception&) {
        ++refused_;
      } catch (const WrongEvent&) {
        ++refused_;
      }
    }
  }
  int refused() const { return refused_; }
  int rescinded_in_round() const { return rescinded_in_round_; }
  int kept() const { return kept_; }
  size_t passed_over() const { return delay_.passed_over(); }

 private:
  static constexpr int64_t kEpoch = 3;
  using Amount = std::vector<int64_t>;
  struct Offer {
    int32_t machine;
    Amount amount;
    int64_t made_us;
  };

  offers::OffersAgent& agent() { return test_agent_.agent(); }
  size_t width() const { return setting_.resources; }

  void push(int64_t at_us, int64_t address, EventPtr event) {
    heap_.push({at_us, event->priority(), ++sequence_, address, std::move(event)});
  }

  void deliver(const PendingEvent& entry) {
    if (entry.address == kSide) return on_side(entry.at_us, entry.event);
    if (entry.address == kMaster) return commit(entry.at_us, as<CommitRequest>(entry.event));
    see(entry.event);
    Effects effects;
    agent().handle(entry.at_us, entry.event, effects);
    has_claimed_ = false;
    for (const Effect& effect : effects.list())
      if (const auto* send = std::get_if<Send>(&effect)) {
        check_said(send->to, send->event);
        push(entry.at_us + kMessageUs, send->to, send->event);
      }
    // the answer about the round before comes after the beginning of the next one
    for (const Effect& effect : effects.list()) {
      if (const auto* timer = std::get_if<SetTimer>(&effect)) {
        push(std::max(entry.at_us, timer->at_us), 0, timer->event);
      } else if (const auto* start = std::get_if<StartDecision>(&effect)) {
        in_round_ = on_hand_;
        made_us_of_round_.clear();
        for (const int64_t id : in_round_) {
          const Offer& offer = made_.at(id);
          int64_t& last_us = made_us_of_round_[offer.machine];
          last_us = std::max(last_us, offer.made_us);
        }
        planned_us_ = entry.at_us;
        agent().decide(start->decision, entry.at_us);
        push(entry.at_us + agent().decision_us(0), 0, done(start->decision));
      }
    }
    const Activity activity = agent().activity();
    if (activity == Activity::Deciding) return;
    in_round_.clear();
    if (activity == Activity::Committing) return;
    CHECK(options_.hoards ? on_hand_.empty() || agent().queued() > 0 : on_hand_.empty());
    kept_ += !on_hand_.empty();
  }

  // What comes to the agent changes what it has on hand.
  void see(const EventPtr& event) {
    if (event->key() == offers::Offers::kType.key()) {
      const auto& made = as<offers::Offers>(event);
      for (size_t i = 0; i < made.offer.size(); ++i) {
        if (made.epoch != kEpoch) continue;
        on_hand_.insert(made.offer[i]);
      }
    } else if (event->key() == offers::OffersRescinded::kType.key()) {
      const auto& ended = as<offers::OffersRescinded>(event);
      for (const int64_t offer : ended.offer) {
        if (on_hand_.erase(offer) > 0 && in_round_.contains(offer)) ++rescinded_in_round_;
      }
    } else if (event->key() == TasksEnded::kType.key()) {
      const auto& ended = as<TasksEnded>(event);
      for (size_t i = 0; i < ended.task.size(); ++i) {
        use(ended.machine[i], ended.request.row(i), -1);
        if (ended.change == static_cast<int64_t>(ChangeKind::Finished))
          CHECK(ended_.insert(ended.task[i]).second);
      }
    }
  }

  // What the agent says has to be true of what it has on hand.
  void check_said(int64_t to, const EventPtr& event) {
    if (event->key() == CommitRequest::kType.key()) {
      CHECK(to == kMaster);
      return check_claims(*as<CommitRequest>(event).transaction);
    }
    CHECK(to == kSide);
    if (event->key() == offers::Suppress::kType.key()) {
      CHECK(options_.suppresses && agent().queued() == 0 && on_hand_.empty());
    } else if (event->key() == offers::Revive::kType.key()) {
      CHECK(options_.suppresses && agent().queued() > 0);
    } else if (event->key() == offers::TasksWanted::kType.key()) {
      const auto& wanted = as<offers::TasksWanted>(event);
      int64_t tasks = 0;
      for (const int64_t of : wanted.tasks) tasks += of;
      CHECK(options_.says_wants && tasks > 0 && tasks <= agent().queued());
    } else if (event->key() == offers::OffersAnswered::kType.key()) {
      const auto& answer = as<offers::OffersAnswered>(event);
      CHECK(answer.agent == 0 && answer.epoch == kEpoch);
      for (const int64_t offer : answer.declined) CHECK(on_hand_.erase(offer) == 1);
      CHECK(answer.accepted.size() == 0 || (!options_.locks && has_claimed_));
      for (size_t i = 0; i < answer.accepted.size(); ++i) {
        CHECK(on_hand_.erase(answer.accepted[i]) == 1 && in_round_.contains(answer.accepted[i]));
        const Offer& offer = made_.at(answer.accepted[i]);
        for (size_t r = 0; r < width(); ++r) {
          const int64_t amount = answer.accepted_amount.row(i)[r];
          CHECK(amount >= 0 && amount <= offer.amount[r]);
          claimed_[offer.machine][r] -= amount;
          CHECK(claimed_[offer.machine][r] >= 0);
        }
      }
    }
  }

  void check_claims(const Transaction& claims) {
    CHECK(!std::exchange(has_claimed_, true) && claims.size() > 0);
    CHECK(claims.holds.has_value() == options_.locks);
    std::map<int32_t, Amount> offered;
    for (const int64_t id : in_round_) {
      const Offer& offer = made_.at(id);
      Amount& sum = offered[offer.machine];
      sum.resize(width());
      for (size_t r = 0; r < width(); ++r) sum[r] += offer.amount[r];
    }
    claimed_.clear();
    for (size_t i = 0; i < claims.size(); ++i) {
      const int32_t machine = claims.machine[i];
      CHECK(offered.contains(machine) && claims.synced_us[i] == made_us_of_round_.at(machine));
      CHECK(!delays_ || delay_.is_near(planned_us_, machine));
      Amount& sum = claimed_[machine];
      sum.resize(width());
      for (size_t r = 0; r < width(); ++r) {
        sum[r] += claims.request.row(i)[r];
        CHECK(sum[r] <= offered[machine][r]);
      }
    }
    if (!options_.locks) return;
    std::set<int64_t> expected;
    for (const int64_t id : in_round_)
      if (claimed_.contains(made_.at(id).machine)) expected.insert(id);
    CHECK(std::set<int64_t>(claims.holds->begin(), claims.holds->end()) == expected);
    CHECK(claims.holds->size() == expected.size());
    for (const int64_t id : expected) on_hand_.erase(id);
  }

  // The allocator, and the cell.

  void on_side(int64_t now_us, const EventPtr& event) {
    if (event->key() == offers::IntervalDue::kType.key()) {
      rescind(now_us);
      if (!suppressed_) offer(now_us);
      return push(now_us + kTickUs, kSide, event);
    }
    if (event->key() == offers::Subscribe::kType.key())
      suppressed_ = as<offers::Subscribe>(event).suppressed;
    else if (event->key() == offers::OffersAnswered::kType.key())
      for (const auto& offers :
           {as<offers::OffersAnswered>(event).accepted, as<offers::OffersAnswered>(event).declined})
        for (const int64_t one : offers) open_.erase(one);
    else if (event->key() != offers::TasksWanted::kType.key())
      suppressed_ = event->key() == offers::Suppress::kType.key();
  }

  Amount& running_on(int32_t machine) {
    Amount& running = running_[machine];
    running.resize(width());
    return running;
  }
  void use(int32_t machine, const int64_t* request, int64_t sign) {
    Amount& running = running_on(machine);
    for (size_t r = 0; r < width(); ++r) {
      running[r] += sign * request[r];
      CHECK(running[r] >= 0 && running[r] <= AgentSetting::kLimit);
    }
  }

  // What is free of some machines, or a part of it, as one or two offers.
  void offer(int64_t now_us) {
    offers::Offers event;
    std::vector<int64_t> ids, amounts;
    std::vector<int32_t> machines;
    for (int32_t machine = 0; machine < static_cast<int32_t>(kMachines); ++machine) {
      if (draw(2)) continue;
      Amount free = running_on(machine);
      for (int64_t& of : free) of = AgentSetting::kLimit - of;
      for (const int64_t id : open_)
        if (made_.at(id).machine == machine)
          for (size_t r = 0; r < width(); ++r) free[r] -= made_.at(id).amount[r];
      for (uint64_t parts = 1 + draw(2); parts > 0; --parts) {
        Amount amount = free;
        for (int64_t& of : amount)
          if (parts > 1 && of > 0) of = static_cast<int64_t>(draw(static_cast<uint64_t>(of) + 1));
        if (std::ranges::any_of(amount, [](int64_t of) { return of <= 0; })) continue;
        for (size_t r = 0; r < width(); ++r) free[r] -= amount[r];
        ids.push_back(++last_);
        machines.push_back(machine);
        amounts.insert(amounts.end(), amount.begin(), amount.end());
        made_[last_] = {machine, amount, now_us};
        open_.insert(last_);
      }
    }
    if (ids.empty()) return;
    event.epoch = kEpoch;
    event.made_us = now_us;
    event.offer = column(ids);
    event.machine = column(machines);
    auto [amount, values] = SharedTable<int64_t>::make(ids.size(), width());
    std::ranges::copy(amounts, values);
    event.amount = amount;
    push(now_us + kMessageUs, 0, shared_event(std::move(event)));
  }

  void rescind(int64_t now_us) {
    std::vector<int64_t> ended;
    for (const int64_t id : open_)
      if (draw(10) == 0) ended.push_back(id);
    for (const int64_t id : ended) open_.erase(id);
    if (!ended.empty()) push(now_us + kMessageUs, 0, rescinded(kEpoch, ended));
  }

  // Claims stand if what they rest on has not ended. Some fail as rivals would have it.
  void commit(int64_t now_us, const CommitRequest& request) {
    const Transaction& claims = *request.transaction;
    std::map<int32_t, Amount> free;
    for (int32_t machine = 0; machine < static_cast<int32_t>(kMachines); ++machine) {
      free[machine] = running_on(machine);
      for (int64_t& of : free[machine]) of = options_.locks ? 0 : AgentSetting::kLimit - of;
    }
    if (options_.locks)
      for (const int64_t id : *claims.holds)
        if (open_.erase(id) > 0)
          for (size_t r = 0; r < width(); ++r)
            free[made_.at(id).machine][r] += made_.at(id).amount[r];
    std::vector<int8_t> reason(claims.size(), 0);
    std::set<int64_t> failed;  // units: gangs, or single claims
    const auto unit_of = [&](size_t i) {
      return claims.commit_mode == CommitMode::AllOrNothing ? (*claims.gang)[i]
                                                            : -2 - static_cast<int64_t>(i);
    };
    for (size_t i = 0; i < claims.size(); ++i) {
      Amount& left = free[claims.machine[i]];
      bool fits = draw(12) != 0;
      for (size_t r = 0; r < width(); ++r) fits = fits && left[r] >= claims.request.row(i)[r];
      if (!fits) failed.insert(unit_of(i));
      for (size_t r = 0; fits && r < width(); ++r) left[r] -= claims.request.row(i)[r];
    }
    for (size_t i = 0; i < claims.size(); ++i) {
      if (failed.contains(unit_of(i))) {
        reason[i] = static_cast<int8_t>(Reason::Stale);
        continue;
      }
      use(claims.machine[i], claims.request.row(i), +1);
      end_later(now_us, claims, i);
    }
    push(now_us + kMessageUs, 0, answered(claims, reason));
  }

  void end_later(int64_t now_us, const Transaction& claims, size_t i) {
    TasksEnded ended;
    ended.change = static_cast<int64_t>(draw(15) ? ChangeKind::Finished : ChangeKind::Lost);
    ended.task = column<int64_t>({claims.task[i]});
    ended.allocation = ended.task;
    ended.machine = column<int32_t>({claims.machine[i]});
    ended.version = column<int64_t>({1});
    auto [request, values] = SharedTable<int64_t>::make(1, width());
    std::copy_n(claims.request.row(i), width(), values);
    ended.request = request;
    push(now_us + setting_.duration_us[static_cast<size_t>(claims.task[i])], 0,
         shared_event(std::move(ended)));
  }

  EventPtr odd_event() {
    switch (draw(5)) {
      case 0: {
        offers::Offers event;
        event.epoch = kEpoch - (draw(8) == 0);
        event.offer = odd_column<int64_t>(draw, 100);
        event.machine = odd_column<int32_t>(draw, kMachines);
        const size_t rows = draw(4);
        auto [amount, values] = SharedTable<int64_t>::make(rows, 1 + draw(3));
        for (size_t i = 0; i < amount.count(); ++i) values[i] = static_cast<int64_t>(draw(9)) - 2;
        event.amount = amount;
        return shared_event(std::move(event));
      }
      case 1:
        return rescinded(kEpoch, values_of(odd_column<int64_t>(draw, 100)));
      case 2:
        return shared_event(HeartbeatDue{});
      default:
        return odd_agent_event(draw, setting_.tasks);
    }
  }

  const AgentSetting setting_{draw, 120};
  const Options options_{draw(2) == 0, draw(2) == 0, draw(3) != 0, draw(2) == 0, draw(4) != 0};
  EvenMachinesFirst delay_;
  const bool delays_;
  TestAgent test_agent_;
  std::priority_queue<PendingEvent> heap_;
  uint64_t sequence_ = 0;

  std::map<int64_t, Offer> made_;
  std::set<int64_t> open_;     // without an end, as the allocator knows
  std::set<int64_t> on_hand_;  // delivered, and neither answered nor rescinded
  std::set<int64_t> in_round_;
  std::map<int32_t, int64_t> made_us_of_round_;  // by machine, of the last of its offers
  std::map<int32_t, Amount> running_, claimed_;  // by machine
  std::set<int64_t> ended_;
  int64_t last_ = 0, planned_us_ = 0;
  bool suppressed_ = true, has_claimed_ = false;
  int refused_ = 0, rescinded_in_round_ = 0, kept_ = 0;
};

}  // namespace

int main() {
  for (int number = 0; number < 20; ++number) {
    check_life_of_offers();
    check_rescinded_in_round();
    check_gangs();
    check_wants();
  }
  int refused = 0, in_round = 0, kept = 0;
  size_t passed_over = 0;
  for (uint64_t number = 0; number < tries(60); ++number) {
    World world;
    world.run();
    world.abuse();
    refused += world.refused();
    in_round += world.rescinded_in_round();
    kept += world.kept();
    passed_over += world.passed_over();
  }
  CHECK(refused > 3'000 && in_round > 100 && kept > 30 && passed_over > 100);
}
