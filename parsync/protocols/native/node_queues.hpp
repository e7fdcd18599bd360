// The queues at the machines of the probing protocol (Ousterhout et al., "Sparrow: Distributed, Low
// Latency Scheduling", SOSP 2013): a queue of reservations per machine.
//
//   Probes        -> the reservations join their queues
//   a queue's first reservation has room
//     not bound   -> TaskRequests to its agent; its room is kept for the answer (a hold)
//     bound       -> CommitRequest for its task
//   TaskAnswers   -> a task: CommitRequest; none: the hold ends, the next reservation's turn
//   CommitReply   -> accepted: the hold ends, as the task runs; rejected: the reservation is the
//                    first in its queue again, and waits until tasks of the machine end, or offers
//                    that held its room
//   machine down  -> ProbesLost to the agents of its reservations
//
// Invariants. A reservation is in a queue, or has a hold, or has ended; it ends once (launched,
// empty, cancelled, lost, of a former epoch). A hold is room that these queues do not give to
// others; the cell does not know of it, so a claim may be rejected. Only the first of a queue may
// take room: what fits behind it waits. Which is the first is a matter of the queues' order; within
// one user, or one priority, it is the one that came first.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "parsync/core/native/participant.hpp"
#include "probing_events.hpp"
#include "schedulers/native/objective.hpp"
#include "shared_state/native/fields.hpp"
#include "shared_state/native/huge_pages.hpp"

namespace agora {

// How long the tasks that run at each machine, and those that are bound to it, will still take. An
// oracle: it knows the true run times, which no scheduler does.
class MachineWork {
 public:
  struct RunTimes {
    SharedColumn<int64_t> duration_us;  // [tasks], -1 = never ends
    SharedColumn<int32_t> preference;   // [tasks]
    PreferenceColumns catalog;          // borrowed
    int64_t preferred_permille = 1000;  // of its duration a task takes on a preferred machine
  };

  MachineWork(RunTimes times, size_t machines);

  void start(int64_t start_us, int64_t task, size_t machine);
  void end(int64_t task, size_t machine);
  void bind(int64_t task, size_t machine) { machines_[machine].bound_us += run_us(task, machine); }
  void unbind(int64_t task, size_t machine) {
    machines_[machine].bound_us -= run_us(task, machine);
  }
  // In us of run time. Slots do not count: two machines with as much work are equal.
  int64_t left_us(int64_t now_us, size_t machine) const;

 private:
  struct Machine {
    int64_t ends_us = 0;  // sum over the tasks that run
    int64_t running = 0;
    int64_t bound_us = 0;
  };

  int64_t run_us(int64_t task, size_t machine) const;

  const RunTimes times_;
  std::vector<Machine> machines_;
  std::vector<int64_t> end_us_;  // of each task that runs
};

class NodeQueues final : public Participant {
 public:
  enum class Order : int8_t { FirstCome = 0, RoundRobin = 1, Priority = 2 };
  struct Settings {
    int64_t hop_us = 0;            // the least time that a message takes
    SharedTable<int64_t> limit;    // [machines, R], what claims may fill each machine to
    SharedTable<int64_t> request;  // [tasks, R], of every task
    size_t agents = 0;             // of the arm
    Order order = Order::FirstCome;
    // [tasks]: users, 0 or more (round robin), or priorities, higher first. Without users, each
    // scheduler is one.
    SharedColumn<int32_t> key;
    SharedColumn<bool> is_long;  // [tasks]; empty: none is
    // Of agents that ask for work instead of the length of queues, and what that is known by.
    std::vector<bool> asks_work;  // [agents], or empty
    std::optional<MachineWork::RunTimes> run_times;
  };

  explicit NodeQueues(Settings settings);

  void handle(int64_t now_us, const EventPtr& event, Effects& effects) override;

  // Of a machine, for tests: reservations that wait there.
  size_t queued(size_t machine) const { return machines_[machine].length; }
  size_t holds() const { return holds_.size() - free_holds_.size(); }

 private:
  static constexpr uint32_t kNone = ~uint32_t{0};
  static constexpr int32_t kNobody = -1;

  struct Reservation {
    int64_t request;
    int64_t task;  // that is bound to it, or one like those of the request
    int64_t queued_us;
    int32_t agent;
    int32_t probe;
    uint32_t next;  // in its queue
    bool bound;
    bool behind_long;  // it is short, and a long task or reservation was there when it came
  };
  // Half a cache line: messages name machines in no order, and most time goes into reaching these.
  struct alignas(32) Machine {
    uint32_t first = kNone, last = kNone;
    uint32_t length = 0;
    uint32_t busy = 0;         // tasks of any protocol, as far as known here, and holds
    uint32_t changes = 0;      // how often room was freed here, or it came or went
    uint32_t blocked = kNone;  // nothing is tried while `changes` is this
    int64_t head_since_us = 0;
  };
  struct Hold {
    uint32_t reservation = kNone;  // kNone: not in use
    int32_t machine = 0;
    int64_t epoch = 0;     // of the agent
    uint32_t changes = 0;  // of the machine when its task was claimed
    bool claiming = false;
  };
  struct Asked {  // of one agent, to be sent at the end of this event
    std::vector<int64_t> request, hold;
    std::vector<int32_t> probe;
    std::vector<int32_t> behind_long;  // rows of `request`
    std::vector<int64_t> claimed;      // holds
    std::vector<int64_t> lost_request, lost_task;
    std::vector<int32_t> lost_probe;
    int64_t queued_us = 0, head_us = 0;  // sums over `request`
    bool touched = false;
  };

  void on_probes(int64_t now_us, const EventPtr& event, Effects& effects);
  void on_answers(int64_t now_us, const EventPtr& event, Effects& effects);
  void on_cancelled(int64_t now_us, const EventPtr& event, Effects& effects);
  void on_lengths(int64_t now_us, const EventPtr& event, Effects& effects);
  void on_room_freed(int64_t now_us, const EventPtr& event);
  void on_claimed(int64_t now_us, const EventPtr& event);
  void on_started(const EventPtr& event);
  void on_ended(int64_t now_us, const EventPtr& event);
  void on_machines(int64_t now_us, const EventPtr& event);

  bool is_current(int64_t now_us, int64_t agent, int64_t epoch);
  void forget(int64_t now_us, int64_t agent);
  // Lets reservations take the room of a machine. again: a user whose turn it still is.
  void serve(int64_t now_us, size_t machine, int32_t again = kNobody);
  bool bring_forward(int64_t now_us, size_t machine, int32_t again);
  // Behind those that go before it: as the last of these, or the first.
  void push_back(int64_t now_us, size_t machine, uint32_t reservation);
  void push_front(int64_t now_us, size_t machine, uint32_t reservation);
  uint32_t pop_front(int64_t now_us, size_t machine);
  // After `before`, or as the first one if that is kNone.
  void link(int64_t now_us, size_t machine, uint32_t before, uint32_t reservation);
  // Takes out the reservation after `before`, or the first one if that is kNone. Returns it.
  uint32_t unlink(int64_t now_us, size_t machine, uint32_t before);
  void lose(size_t machine, uint32_t reservation);
  void lose_queue(int64_t now_us, size_t machine);
  size_t hold(size_t machine, uint32_t reservation);
  void end_hold(size_t hold);
  uint32_t add(Reservation reservation);
  void remove(size_t machine, uint32_t reservation);
  int32_t key(const Reservation& of) const {
    return settings_.key.size() ? settings_.key[static_cast<size_t>(of.task)] : of.agent;
  }
  bool is_long(int64_t task) const {
    return !long_.empty() && settings_.is_long[static_cast<size_t>(task)];
  }
  bool fits(size_t machine, int64_t task) const;
  void take(size_t machine, int64_t task);
  void give_back(size_t machine, int64_t task);
  void prefetch(int64_t machine) const;
  void prefetch_first(int64_t machine) const;
  Asked& asked(int32_t agent);
  void send(int64_t now_us, Effects& effects);
  void claim(int64_t now_us, int32_t agent, const std::vector<int64_t>& holds, Effects& effects);

  size_t task_row(int64_t task) const;
  size_t machine_row(int64_t machine) const;

  const Settings settings_;
  const size_t width_;
  HugePageVector<Machine> machines_;
  HugePageVector<int64_t> free_;  // [machines, R], neither of tasks that run nor of holds
  std::vector<bool> up_;          // [machines]
  std::vector<uint32_t> long_;    // [machines], long tasks and reservations; empty: there are none
  std::vector<int32_t> turn_;     // [machines], the user served last; empty without round robin
  std::optional<MachineWork> work_;
  std::vector<Reservation> reservations_;
  std::vector<uint32_t> free_reservations_;
  std::vector<Hold> holds_;
  std::vector<size_t> free_holds_;
  std::vector<int64_t> epoch_;  // by agent
  std::vector<Asked> asked_;    // by agent
  std::vector<int32_t> touched_;
  int64_t transactions_ = 0;
  std::unordered_map<int64_t, std::vector<int64_t>> claims_;  // holds by transaction
};

}  // namespace agora
