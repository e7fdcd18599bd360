// A scheduler of the probing protocol: it has no view of the cell. It sends reservations to
// machines that it draws at random, and gives a task to whichever of these machines has room first
// (late binding; Ousterhout et al., "Sparrow", SOSP 2013), or binds each task to a machine before
// that (early binding).
//
//   TasksSubmitted -> requests: tasks of a job that ask for the same. DecisionDue, a decision per
//                     request, then
//     late         -> Probes, ceil(probe ratio * tasks) of them
//                     TaskRequests -> TaskAnswers: the next task, or none
//                     after the last task, ProbesCancelled to the machines that have not asked
//     random       -> Probes, each bound to a task
//     least queue, least work
//                  -> LengthRequests; LengthAnswers -> Probes, each bound to a task
//   ClaimsSettled  -> rejected: the task is the first of its request again (late); a bound one
//                     waits at its machine
//   ProbesLost     -> after a pause, as many probes to other machines (late), or a new decision
//
// Invariants. A task that waits is undecided, in a request, or under way: given away or bound, with
// no outcome so far. With late binding a request has at least as many reservations that have not
// ended as tasks to give away.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "parsync/core/native/events.hpp"
#include "parsync/core/native/participant.hpp"
#include "parsync/metrics/native/agent_log.hpp"
#include "pending_queue.hpp"
#include "probing_events.hpp"
#include "schedulers/native/contract.hpp"
#include "shared_state/native/random.hpp"

namespace agora {

// Machines to draw from.
class MachineDraw {
 public:
  explicit MachineDraw(std::vector<int32_t> machines) : machines_(std::move(machines)) {}

  size_t size() const { return machines_.size(); }
  // Appends `count` machines: independent of each other, or distinct ones. Of those, each is drawn
  // floor or ceil of count / size times.
  void draw(Stream& stream, size_t count, bool replace, std::vector<int32_t>& drawn);

 private:
  std::vector<int32_t> machines_;  // in the order that former draws left
};

// Where a task may run, which does not change during a run.
class TaskMachines {
 public:
  virtual ~TaskMachines() = default;
  // The machines that hold the task when empty and that its constraint allows.
  virtual std::vector<int32_t> allowed(int64_t task) = 0;
  // Those of them that it prefers.
  virtual std::vector<int32_t> preferred(int64_t task) = 0;
};

class ProbingAgent final : public Decider {
 public:
  enum class Binding : int8_t { Late = 0, Random = 1, LeastQueue = 2, LeastWork = 3 };
  struct Settings {
    int64_t index = 0;
    uint64_t seed = 0;
    std::string name;
    int64_t sample_us = 0;
    int64_t hop_us = 0;
    int64_t reprobe_us = 0;
    int64_t ratio_permille = 2000;
    int64_t preferred_permille = 0;  // of the probes of a task that prefers machines
    Binding binding = Binding::Late;
    bool per_task = false;  // each task has probes of its own
    bool replace = false;   // machines are drawn with replacement
    bool cancels = true;
    DecisionClock clock;
    std::span<const int64_t> job;         // [tasks]
    std::span<const int32_t> preference;  // [tasks]
    std::span<const int8_t> task_class;   // [tasks]
    std::span<const int32_t> priority;    // [tasks]; empty: queues do not go by it
    std::span<const bool> is_constraint;  // [preference sets]
    SharedTable<int64_t> request;         // [tasks, R]
  };
  // All outlive the agent.
  struct Parts {
    AgentLog& log;
    SortingOut& sorting_out;
    TaskMachines& machines;
    RowBuffer& probes;  // the table of that name
  };

  ProbingAgent(Settings settings, const Parts& parts);

  void handle(int64_t now_us, const EventPtr& event, Effects& effects) override;
  void decide(int64_t decision, int64_t now_us) override;
  int64_t decision_us(int64_t elapsed_ns) override;
  // The run ends: adds the last rows to its log.
  void finish(int64_t now_us) { log_sample(now_us); }

  int64_t queued() const { return queued_; }
  int64_t decisions() const { return decisions_; }
  // Requests that have tasks without an outcome, for tests.
  size_t requests() const { return requests_.live(); }

 private:
  struct Waiting {
    int64_t task;
    int32_t attempts;  // claims so far
    int8_t first;      // whether its next commit is its first
  };
  struct Request {
    std::vector<Waiting> tasks;  // those from `next` on have not been given away
    size_t next = 0;
    std::vector<int32_t> machine;  // of each probe; kEnded if it has asked or ended
    int64_t under_way = 0;         // tasks without an outcome
    int64_t like = 0;              // a task of it
    bool is_live = true;

    std::span<const Waiting> left() const { return std::span(tasks).subspan(next); }
    // A task that was given away is the next one again.
    void put_back(const Waiting& task) { tasks.at(--next) = task; }
  };
  // By number, counted from 1; those that have ended are dropped from the front.
  class Requests {
   public:
    size_t live() const { return live_; }
    // Adds the next one. Returns its number.
    int64_t add(int64_t like) {
      list_.emplace_back().like = like;
      ++live_;
      return first_ + static_cast<int64_t>(list_.size()) - 1;
    }
    // Null if there is none that has not ended.
    Request* find(int64_t number) {
      const auto place = static_cast<uint64_t>(number - first_);
      return place < list_.size() && list_[place].is_live ? &list_[place] : nullptr;
    }
    Request& at(int64_t number);
    // Requires: it has not ended.
    void end(int64_t number);

   private:
    std::deque<Request> list_;
    int64_t first_ = 1;  // the number of list_[0]
    size_t live_ = 0;
  };
  struct UnderWay {
    int64_t request;  // kBound: it is bound to its machine
    Waiting task;
  };
  // The rows of a message Probes.
  struct Reservations {
    std::vector<int64_t> request;
    std::vector<int32_t> probe, machine;
    std::vector<int64_t> task;
  };
  struct LostProbe {
    int64_t request;
    int64_t task;  // that was bound to it, or -1
    int32_t probe;
  };
  // Machines for tasks that ask for the same: by request, then preference set.
  struct Draws {
    std::map<std::vector<int64_t>, MachineDraw> by_key;
    int64_t last_task = -1;       // of the last draw,
    MachineDraw* last = nullptr;  // and where it was from
  };
  // Sums since the last sample.
  struct Counts {
    int64_t probes = 0, asked = 0, empty = 0, cancelled = 0, lost = 0, returned = 0, held_us = 0,
            queued_us = 0, head_us = 0, given_short = 0, behind_long = 0;
  };

  static constexpr int32_t kEnded = -1;
  static constexpr int64_t kBound = -1;

  void start(int64_t now_us, int64_t epoch, Effects& effects);
  void submit(int64_t now_us, std::span<const int64_t> task, int8_t first, Effects& effects);
  void add_requests(std::span<const Waiting> tasks);
  bool alike(int64_t one, int64_t other) const;
  void wake(int64_t now_us, Effects& effects);
  void on_decided(int64_t now_us, int64_t decision, Effects& effects);
  void send_probes(int64_t now_us, Effects& effects);
  void send(int64_t now_us, bool bound, const Reservations& made, Effects& effects);
  void on_asked(int64_t now_us, const EventPtr& event, Effects& effects);
  void on_lengths(int64_t now_us, const EventPtr& event, Effects& effects);
  void on_lost(int64_t now_us, const EventPtr& event, Effects& effects);
  void on_reprobe(int64_t now_us, Effects& effects);
  void on_settled(int64_t now_us, const ClaimsSettled& settled);
  void draw(int64_t like, size_t count, std::vector<int32_t>& drawn);
  MachineDraw& draws_of(int64_t task, bool preferred);
  int32_t set_of(int64_t task, bool preferred) const;
  void end_if_done(int64_t request);
  void log_sample(int64_t now_us);

  const Settings settings_;
  const Parts parts_;
  Stream stream_;
  Draws allowed_, preferred_;
  int64_t epoch_ = 0;
  int64_t queued_ = 0;
  int64_t decisions_ = 0;
  Requests requests_;
  std::unordered_map<int64_t, UnderWay> under_way_;  // by task
  std::deque<int64_t> undecided_;                    // requests
  std::vector<int64_t> deciding_;                    // requests of the decision under way
  bool due_ = false;                                 // a DecisionDue is set
  int64_t begun_us_ = 0;
  int64_t decision_us_ = 0;
  std::vector<int64_t> decided_tasks_;  // of the decision under way
  std::vector<int32_t> drawn_;  // machines of all requests of the decision, one after the other
  std::vector<size_t> drawn_end_;
  std::vector<LostProbe> lost_;  // to be sent again
  Counts counts_;
  // Of the claims that are settled.
  std::vector<int32_t> attempts_;
  std::vector<int8_t> first_;
  std::vector<std::pair<int64_t, Waiting>> rejected_;  // with its request
  std::vector<int64_t> placed_of_;                     // requests
};

}  // namespace agora
