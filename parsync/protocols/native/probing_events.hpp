// The messages of the probing protocol between agents and the queues at the machines, and the
// timers of its agents. Each message is about everything that one side has to tell the other at
// that moment, a row per reservation.
//
// due_us: when the receiver may act on a message at the earliest: the time at which it was sent and
// one network hop. A receiver that gets it sooner keeps it until then, by a timer.
#pragma once

#include <cstdint>
#include <string_view>
#include <tuple>

#include "parsync/core/native/participant.hpp"
#include "shared_state/native/fields.hpp"

namespace agora::probing {

inline constexpr std::string_view kProbingKind = "probing";

struct Probes final : EventOf<Probes> {
  static constexpr EventType kType{kProbingKind, 1, Priority::Decide};
  static constexpr const char* kName = "Probes";
  static constexpr const char* kDoc =
      R"(Agent -> worker pool: reservations join the queues of machines.

Attributes:
    bound: Each reservation is for one task, which is claimed without asking the agent.
    request: int64[n], which request of the agent each is for.
    probe: int32[n], its number within the request.
    machine: int32[n].
    task: int64[n], the task; if not bound, one that asks for as much as the others.)";

  int64_t agent = 0;
  int64_t epoch = 0;
  int64_t due_us = 0;
  bool bound = false;
  SharedColumn<int64_t> request;  // [n]
  SharedColumn<int32_t> probe;    // [n]
  SharedColumn<int32_t> machine;  // [n]
  SharedColumn<int64_t> task;     // [n]

  static constexpr auto fields() {
    return std::tuple{Field{"agent", &Probes::agent},     Field{"epoch", &Probes::epoch},
                      Field{"due_us", &Probes::due_us},   Field{"bound", &Probes::bound},
                      Field{"request", &Probes::request}, Field{"probe", &Probes::probe},
                      Field{"machine", &Probes::machine}, Field{"task", &Probes::task}};
  }
};

struct TaskRequests final : EventOf<TaskRequests> {
  static constexpr EventType kType{kProbingKind, 2, Priority::Commit};
  static constexpr const char* kName = "TaskRequests";
  static constexpr const char* kDoc =
      R"(Worker pool -> agent: reservations have room now; which task is to run there?

Attributes:
    sent_us: When it was sent.
    queued_us: How long they have been in their queues, summed.
    head_us: How long they have been first in their queues, summed.
    request, probe: int64[n] and int32[n], as in Probes.
    hold: int64[n], the number of the place that is kept for the answer.
    behind_long: int32[k], the rows of short ones that have waited, and found a long task or
        reservation at their machine.)";

  int64_t epoch = 0;
  int64_t sent_us = 0;
  int64_t due_us = 0;
  int64_t queued_us = 0;
  int64_t head_us = 0;
  SharedColumn<int64_t> request;  // [n]
  SharedColumn<int32_t> probe;    // [n]
  SharedColumn<int64_t> hold;     // [n]
  SharedColumn<int32_t> behind_long;

  static constexpr auto fields() {
    return std::tuple{Field{"epoch", &TaskRequests::epoch},
                      Field{"sent_us", &TaskRequests::sent_us},
                      Field{"due_us", &TaskRequests::due_us},
                      Field{"queued_us", &TaskRequests::queued_us},
                      Field{"head_us", &TaskRequests::head_us},
                      Field{"request", &TaskRequests::request},
                      Field{"probe", &TaskRequests::probe},
                      Field{"hold", &TaskRequests::hold},
                      Field{"behind_long", &TaskRequests::behind_long}};
  }
};

struct TaskAnswers final : EventOf<TaskAnswers> {
  static constexpr EventType kType{kProbingKind, 3, Priority::Commit};
  static constexpr const char* kName = "TaskAnswers";
  static constexpr const char* kDoc =
      R"(Agent -> worker pool: the answer to TaskRequests.

Attributes:
    hold: int64[n], as asked.
    task: int64[n], the task to run there; -1: all tasks of the request have been given away.)";

  int64_t agent = 0;
  int64_t epoch = 0;
  int64_t due_us = 0;
  SharedColumn<int64_t> hold;  // [n]
  SharedColumn<int64_t> task;  // [n]

  static constexpr auto fields() {
    return std::tuple{Field{"agent", &TaskAnswers::agent}, Field{"epoch", &TaskAnswers::epoch},
                      Field{"due_us", &TaskAnswers::due_us}, Field{"hold", &TaskAnswers::hold},
                      Field{"task", &TaskAnswers::task}};
  }
};

struct ProbesCancelled final : EventOf<ProbesCancelled> {
  static constexpr EventType kType{kProbingKind, 4, Priority::Commit};
  static constexpr const char* kName = "ProbesCancelled";
  static constexpr const char* kDoc =
      R"(Agent -> worker pool: these reservations are not needed any more. Those that have left the
queue stay as they are.

Attributes:
    request, probe, machine: As in Probes, [n] each.)";

  int64_t agent = 0;
  int64_t epoch = 0;
  int64_t due_us = 0;
  SharedColumn<int64_t> request;  // [n]
  SharedColumn<int32_t> probe;    // [n]
  SharedColumn<int32_t> machine;  // [n]

  static constexpr auto fields() {
    return std::tuple{
        Field{"agent", &ProbesCancelled::agent},   Field{"epoch", &ProbesCancelled::epoch},
        Field{"due_us", &ProbesCancelled::due_us}, Field{"request", &ProbesCancelled::request},
        Field{"probe", &ProbesCancelled::probe},   Field{"machine", &ProbesCancelled::machine}};
  }
};

struct ProbesLost final : EventOf<ProbesLost> {
  static constexpr EventType kType{kProbingKind, 5, Priority::Decide};
  static constexpr const char* kName = "ProbesLost";
  static constexpr const char* kDoc =
      R"(Worker pool -> agent: the machine of these reservations is down.

Attributes:
    request, probe: As in Probes, [n] each.
    task: int64[n], the task if it was bound, else -1.)";

  int64_t epoch = 0;
  int64_t due_us = 0;
  SharedColumn<int64_t> request;  // [n]
  SharedColumn<int32_t> probe;    // [n]
  SharedColumn<int64_t> task;     // [n]

  static constexpr auto fields() {
    return std::tuple{Field{"epoch", &ProbesLost::epoch}, Field{"due_us", &ProbesLost::due_us},
                      Field{"request", &ProbesLost::request}, Field{"probe", &ProbesLost::probe},
                      Field{"task", &ProbesLost::task}};
  }
};

struct AgentRestarted final : EventOf<AgentRestarted> {
  static constexpr EventType kType{kProbingKind, 6, Priority::Free};
  static constexpr const char* kName = "AgentRestarted";
  static constexpr const char* kDoc =
      "Agent -> worker pool: a new agent begins; what the one before it had reserved ends.";

  int64_t agent = 0;
  int64_t epoch = 0;

  static constexpr auto fields() {
    return std::tuple{Field{"agent", &AgentRestarted::agent},
                      Field{"epoch", &AgentRestarted::epoch}};
  }
};

struct LengthRequests final : EventOf<LengthRequests> {
  static constexpr EventType kType{kProbingKind, 7, Priority::Decide};
  static constexpr const char* kName = "LengthRequests";
  static constexpr const char* kDoc =
      R"(Agent -> worker pool: how many tasks run and wait at these machines? With early binding by
work: how much is there to do?

Attributes:
    request: int64[n], which request of the agent each question is for.
    machine: int32[n].)";

  int64_t agent = 0;
  int64_t epoch = 0;
  int64_t due_us = 0;
  SharedColumn<int64_t> request;  // [n]
  SharedColumn<int32_t> machine;  // [n]

  static constexpr auto fields() {
    return std::tuple{
        Field{"agent", &LengthRequests::agent}, Field{"epoch", &LengthRequests::epoch},
        Field{"due_us", &LengthRequests::due_us}, Field{"request", &LengthRequests::request},
        Field{"machine", &LengthRequests::machine}};
  }
};

struct LengthAnswers final : EventOf<LengthAnswers> {
  static constexpr EventType kType{kProbingKind, 8, Priority::Decide};
  static constexpr const char* kName = "LengthAnswers";
  static constexpr const char* kDoc =
      R"(Worker pool -> agent: the answer to LengthRequests, in its order.

Attributes:
    request, machine: As asked, [n] each.
    length: int64[n], tasks that run there and reservations that wait; or the us of run time that
        tasks there will still take.)";

  int64_t epoch = 0;
  int64_t due_us = 0;
  SharedColumn<int64_t> request;  // [n]
  SharedColumn<int32_t> machine;  // [n]
  SharedColumn<int64_t> length;   // [n]

  static constexpr auto fields() {
    return std::tuple{
        Field{"epoch", &LengthAnswers::epoch}, Field{"due_us", &LengthAnswers::due_us},
        Field{"request", &LengthAnswers::request}, Field{"machine", &LengthAnswers::machine},
        Field{"length", &LengthAnswers::length}};
  }
};

struct DecisionDue final : EventOf<DecisionDue> {
  static constexpr EventType kType{kProbingKind, 9, Priority::Start};
  static constexpr const char* kName = "DecisionDue";
  static constexpr const char* kDoc =
      "Timer of an agent: it chooses machines for tasks, now that all else of this instant is "
      "done.";

  static constexpr auto fields() { return std::tuple<>{}; }
};

struct ReprobeDue final : EventOf<ReprobeDue> {
  static constexpr EventType kType{kProbingKind, 10, Priority::Decide};
  static constexpr const char* kName = "ReprobeDue";
  static constexpr const char* kDoc =
      "Timer of an agent: lost probes are sent again, to other machines.";

  static constexpr auto fields() { return std::tuple<>{}; }
};

// A message that came before it is due is kept until then. Returns whether it was.
template <class T>
bool is_early(int64_t now_us, const T& message, const EventPtr& event, Effects& effects) {
  if (message.due_us <= now_us) return false;
  effects.add(SetTimer{message.due_us, event});
  return true;
}

}  // namespace agora::probing
