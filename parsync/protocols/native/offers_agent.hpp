// The agent of the protocol of offers: it drives one scheduler on the room that it was offered.
// Beside it: what it has been offered, and how much of its queue a decision was about.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "offers_events.hpp"
#include "parsync/metrics/native/measurements.hpp"
#include "scheduler_agent.hpp"
#include "schedulers/native/contract.hpp"
#include "shared_state/native/view.hpp"

namespace agora::offers {

// The offers of one agent that are without an answer, n of them, and a view that shows their room:
// other machines look full.
//
// A round that begins is about all offers on hand: they are the first round() ones until it ends.
// What comes meanwhile is for the next one.
class OfferedRoom {
 public:
  // view: borrowed. Nobody else may bring it up to date.
  explicit OfferedRoom(ClusterView& view);

  size_t size() const { return offer_.size(); }
  size_t width() const { return width_; }
  size_t machines() const { return view_.static_state().machines(); }
  size_t round() const { return round_; }
  // By offer.
  const std::vector<int64_t>& offer() const { return offer_; }
  const std::vector<int32_t>& machine() const { return machine_; }
  const std::vector<int64_t>& amount() const { return amount_; }  // [n, R]; 0 if it is rescinded
  const std::vector<int64_t>& made_us() const { return made_us_; }
  // Which of the round under way have ended meanwhile.
  const std::vector<uint8_t>& rescinded() const { return rescinded_; }
  // How many partitions they are in.
  size_t partitions() const;

  // Shows that there is no room, in a view that shows nothing yet.
  void start(int64_t now_us);
  // Throws std::invalid_argument if columns do not fit together, or there is no such machine.
  void add(int64_t now_us, const Offers& event);
  void begin_round() { round_ = size(); }
  // Which of the first `count` offers are on some of these machines, ascending. Throws
  // std::invalid_argument if there is no such machine.
  std::vector<size_t> rows_on(std::span<const int32_t> machine, size_t count) const;
  // The allocator has ended offers. Those of the round under way stay until end_round(), because
  // its claims rest on them, but show no room: that may be offered again.
  void rescind(int64_t now_us, std::span<const int64_t> offer);
  // The round is decided, and all its offers end but those that are kept and not rescinded.
  // kept: by offer; empty: none.
  void end_round(int64_t now_us, std::span<const uint8_t> kept);
  // Forgets all offers while no round is under way. Returns their ids.
  std::vector<int64_t> remove_all(int64_t now_us);

 private:
  size_t row_of(int32_t machine) const;
  // The first `count` offers.
  void remove_first(int64_t now_us, size_t count);
  template <class Goes>
  void remove(int64_t now_us, const Goes& goes);

  ClusterView& view_;
  size_t width_;
  size_t round_ = 0;  // 0: none is under way
  std::vector<int64_t> offer_, amount_, made_us_;
  std::vector<int32_t> machine_;
  std::vector<uint8_t> rescinded_;

  // scratch: the room that leaves the view, and a bit for each machine, all 0
  std::vector<int32_t> gone_machine_;
  std::vector<int64_t> gone_amount_;
  mutable std::vector<uint64_t> marked_;
};

// The tasks that a decision looked at: those offered to the scheduler, up to the last one that it
// placed; at least one, if any was offered.
struct LookedAt {
  int64_t tasks = 0, jobs = 0;
  int64_t service_tasks = 0;
  int64_t service_jobs = 0, batch_jobs = 0;  // with tasks of the class among them
};

// job, task_class: of every task. Throws std::invalid_argument if there is no such task.
LookedAt looked_at(std::span<const int64_t> offered, std::span<const int64_t> placed,
                   std::span<const int64_t> job, std::span<const int8_t> task_class);

// The requests of tasks, [k, R], in order of the first task that asks for each, and how many tasks
// do.
struct Sizes {
  std::vector<int64_t> request;
  std::vector<int64_t> tasks;
};

// How many tasks ask for the same. Tasks are rows of `request`; those of a queue come in runs that
// ask for the same.
class SizeCount {
 public:
  explicit SizeCount(SharedTable<int64_t> request) : request_(std::move(request)) {}

  // Throws std::invalid_argument if there is no such task.
  void add(std::span<const int64_t> task);
  // What was added since the last call.
  Sizes take();

 private:
  bool alike(int64_t one, int64_t other) const;

  const SharedTable<int64_t> request_;
  std::vector<std::pair<int64_t, int64_t>> sizes_;  // a task of each, and how many there are
  std::unordered_multimap<uint64_t, size_t> rows_;  // of sizes_, by a hash of the request
};

// Which offered machines the jobs of an agent take: delay scheduling (offers/delay.py).
class DelayScheduling {
 public:
  virtual ~DelayScheduling() = default;

  // Which tasks, [n], have a machine among these that is near enough for them now.
  virtual SharedColumn<bool> tries(int64_t now_us, std::span<const int64_t> task,
                                   std::span<const int32_t> machine) = 0;
  // Which tasks are planned on a machine near enough, both [k].
  virtual SharedColumn<bool> takes(int64_t now_us, const SharedColumn<int64_t>& task,
                                   const SharedColumn<int32_t>& machine) = 0;
  // A round is planned: tasks were passed over, [n], and others placed, [k].
  virtual void on_planned(int64_t now_us, std::span<const int64_t> passed_over,
                          const SharedColumn<int64_t>& placed,
                          const SharedColumn<int32_t>& machine) = 0;
};

// One decision round: the queue's tasks are planned on the offers on hand, while these are held;
// after the decision time the claims are committed, which accepts the offers that they rest on, and
// the other offers are declined. Tasks without a place wait for the next offers:
// WAITING_FOR_GRANT without an offer on hand, BLOCKED_ON_CAPACITY with some on which none fits.
//
// A round is about the whole queue, because a framework of Mesos considers all its tasks when
// offers come (as in Omega's simulator of Mesos). It takes the sum of the decision times of its
// jobs, up to the last task that was placed: those after it fit nothing that is left of the offers,
// which takes no time to see. Schedulers that plan their queue as a whole take their own time.
class OffersAgent final : public SchedulerAgent {
 public:
  struct Settings : SchedulerAgent::Settings {
    int64_t cell_side = 0;    // the address of the allocator
    bool locks = true;        // the cell holds what is offered
    bool says_wants = false;  // the allocator offers room for tasks
    bool suppresses = true;   // it asks for no offers while no task waits
    bool hoards = false;      // offers are kept until they hold a gang
    bool gives_up = false;    // its queue gives up jobs
    // Of rounds about one job after the other; none: the scheduler plans its queue as a whole.
    std::optional<DecisionClock> clock = std::nullopt;
    // Of every task.
    std::span<const int8_t> task_class = {};
    std::span<const int64_t> gang = {};
    SharedTable<int64_t> request{};  // [tasks, R]
  };
  // As SchedulerAgent::Parts.
  struct Parts : SchedulerAgent::Parts {
    OfferedRoom& room;
    RowBuffer& waits;  // the table offer_waits
    DelayScheduling* delay = nullptr;
  };

  OffersAgent(const Settings& settings, const Parts& parts);

  void handle(int64_t now_us, const EventPtr& event, Effects& effects) override;

 private:
  void on_started(int64_t now_us, int64_t epoch, Effects& effects) override;
  void on_event(int64_t now_us, const EventPtr& event, Effects& effects) override;
  void on_queued(int64_t now_us, Effects& effects) override;
  void start_round(int64_t now_us, Effects& effects) override;
  Composition compose(int64_t now_us, bool begins) override;
  void plan(int64_t now_us, DecisionRound& round) override;
  int64_t time_of(const DecisionRound& round, int64_t elapsed_ns) override;
  void on_decided(int64_t now_us, DecisionRound& round, Effects& effects) override;
  void on_outcome(int64_t now_us, const DecisionRound& round, const Transaction& claims,
                  const CommitResult& result, const OutcomeSums& sums) override;
  void on_round_over(int64_t now_us, const DecisionRound& round, Effects& effects) override;
  void log_sample(int64_t now_us) override;

  bool waits() const;
  void on_offers(int64_t now_us, const Offers& offers, Effects& effects);
  void on_rescinded(int64_t now_us, const OffersRescinded& rescinded, Effects& effects);
  void plan_with_delay(int64_t now_us, DecisionRound& round);
  std::vector<int64_t> claimed_of(const RoundPlan& plan, std::span<const size_t> rows);
  std::vector<uint8_t> turns_of(const DecisionRound& round) const;
  std::vector<uint8_t> kept_for_gangs(const RoundPlan& plan, std::span<const size_t> used) const;
  SharedColumn<int64_t> declined(std::span<const size_t> used, std::span<const uint8_t> kept) const;
  void begin_waits(int64_t now_us);
  void end_wait(int64_t now_us, size_t which);
  void say_wants(int64_t now_us, Effects& effects);
  void decline_all(int64_t now_us, Effects& effects);
  OffersAnswered answer() const;
  template <class T>
  void tell(T event, Effects& effects) const;

  const Settings settings_;
  const Parts parts_;
  int64_t epoch_ = 0;
  bool is_suppressed_ = false;
  std::optional<OffersAnswered> answer_;  // of the round just decided
  // Since when tasks have waited without an offer, and without one that they could use.
  std::array<std::optional<int64_t>, 2> since_us_;
  SizeCount wanted_;
  std::vector<int64_t> claimed_;  // scratch: [M, R], all 0
};

}  // namespace agora::offers
