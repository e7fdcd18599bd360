// The events of the protocol of offers: messages between agents and the allocator, and its timers.
// An agent is what Mesos calls a framework. An offer is room on one machine for one agent.
#pragma once

#include <cstdint>
#include <string_view>
#include <tuple>

#include "parsync/core/native/event.hpp"
#include "shared_state/native/fields.hpp"

namespace agora::offers {

inline constexpr std::string_view kOffersKind = "offers";

struct Subscribe final : EventOf<Subscribe> {
  static constexpr EventType kType{kOffersKind, 1, Priority::Commit};
  static constexpr const char* kName = "Subscribe";
  static constexpr const char* kDoc =
      R"(Agent -> allocator: the agent begins, or begins again.

Attributes:
    agent: Who asks for offers.
    epoch: Of the agent's Started. Offers repeat it; those to an earlier epoch end.
    suppressed: Whether it wants none yet.)";

  int64_t agent = 0;
  int64_t epoch = 0;
  bool suppressed = false;

  static constexpr auto fields() {
    return std::tuple{Field{"agent", &Subscribe::agent}, Field{"epoch", &Subscribe::epoch},
                      Field{"suppressed", &Subscribe::suppressed}};
  }
};

// What an agent says without more.
template <class T>
struct Notice : EventOf<T> {
  int64_t agent = 0;
  int64_t epoch = 0;

  static constexpr auto fields() {
    return std::tuple{Field{"agent", &Notice::agent}, Field{"epoch", &Notice::epoch}};
  }
};

struct Suppress final : Notice<Suppress> {
  static constexpr EventType kType{kOffersKind, 2, Priority::Commit};
  static constexpr const char* kName = "Suppress";
  static constexpr const char* kDoc =
      "Agent -> allocator: the agent wants no offers until it revives them.";
};

struct Revive final : Notice<Revive> {
  static constexpr EventType kType{kOffersKind, 3, Priority::Commit};
  static constexpr const char* kName = "Revive";
  static constexpr const char* kDoc =
      "Agent -> allocator: the agent wants offers again, also of what it has declined.";
};

struct Offers final : EventOf<Offers> {
  static constexpr EventType kType{kOffersKind, 4, Priority::Sync};
  static constexpr const char* kName = "Offers";
  static constexpr const char* kDoc =
      R"(Allocator -> agent: it may use this room.

Attributes:
    epoch: Of the agent that they are for.
    made_us: When the allocator made them.
    offer: int64[n], their ids. Where offers hold room they are those of the cell's holds.
    machine: int32[n].
    amount: int64[n, R], of each resource.)";

  int64_t epoch = 0;
  int64_t made_us = 0;
  SharedColumn<int64_t> offer;    // [n]
  SharedColumn<int32_t> machine;  // [n]
  SharedTable<int64_t> amount;    // [n, R]

  static constexpr auto fields() {
    return std::tuple{Field{"epoch", &Offers::epoch}, Field{"made_us", &Offers::made_us},
                      Field{"offer", &Offers::offer}, Field{"machine", &Offers::machine},
                      Field{"amount", &Offers::amount}};
  }
};

struct OffersAnswered final : EventOf<OffersAnswered> {
  static constexpr EventType kType{kOffersKind, 5, Priority::Commit};
  static constexpr const char* kName = "OffersAnswered";
  static constexpr const char* kDoc =
      R"(Agent -> allocator: what the agent made of offers.

Attributes:
    agent, epoch: Who, and of which start.
    accepted: int64[n], those that its claims of this instant rest on. Where offers hold room
        the cell tells the allocator of these, and the column is empty.
    accepted_amount: int64[n, R], what it claims of each accepted one.
    declined: int64[m], those that it does not want.)";

  int64_t agent = 0;
  int64_t epoch = 0;
  SharedColumn<int64_t> accepted;        // [n]
  SharedTable<int64_t> accepted_amount;  // [n, R]
  SharedColumn<int64_t> declined;        // [m]

  static constexpr auto fields() {
    return std::tuple{Field{"agent", &OffersAnswered::agent},
                      Field{"epoch", &OffersAnswered::epoch},
                      Field{"accepted", &OffersAnswered::accepted},
                      Field{"accepted_amount", &OffersAnswered::accepted_amount},
                      Field{"declined", &OffersAnswered::declined}};
  }
};

struct OffersRescinded final : EventOf<OffersRescinded> {
  static constexpr EventType kType{kOffersKind, 6, Priority::Sync};
  static constexpr const char* kName = "OffersRescinded";
  static constexpr const char* kDoc =
      R"(Allocator -> agent: these offers, int64[n], have ended: their machine was lost, or they had
no answer for too long.)";

  int64_t epoch = 0;
  SharedColumn<int64_t> offer;  // [n]

  static constexpr auto fields() {
    return std::tuple{Field{"epoch", &OffersRescinded::epoch},
                      Field{"offer", &OffersRescinded::offer}};
  }
};

struct TasksWanted final : EventOf<TasksWanted> {
  static constexpr EventType kType{kOffersKind, 10, Priority::Commit};
  static constexpr const char* kName = "TasksWanted";
  static constexpr const char* kDoc =
      R"(Agent -> allocator, where it offers room for one task at a time: what the agent wants room
for, instead of what it said before.

Attributes:
    agent, epoch: Who, and of which start.
    request: int64[k, R], the sizes of its tasks, in the order in which it wants room.
    tasks: int64[k], how many of each it has waiting.)";

  int64_t agent = 0;
  int64_t epoch = 0;
  SharedTable<int64_t> request;  // [k, R]
  SharedColumn<int64_t> tasks;   // [k]

  static constexpr auto fields() {
    return std::tuple{Field{"agent", &TasksWanted::agent}, Field{"epoch", &TasksWanted::epoch},
                      Field{"request", &TasksWanted::request}, Field{"tasks", &TasksWanted::tasks}};
  }
};

struct IntervalDue final : EventOf<IntervalDue> {
  static constexpr EventType kType{kOffersKind, 7, Priority::Decide};
  static constexpr const char* kName = "IntervalDue";
  static constexpr const char* kDoc = "Timer of the allocator: it looks at all machines.";

  static constexpr auto fields() { return std::tuple<>{}; }
};

struct AllocationDue final : EventOf<AllocationDue> {
  static constexpr EventType kType{kOffersKind, 8, Priority::Decide};
  static constexpr const char* kName = "AllocationDue";
  static constexpr const char* kDoc =
      "Timer of the allocator: the allocation run that was asked for takes place.";

  static constexpr auto fields() { return std::tuple<>{}; }
};

struct ExpiryDue final : EventOf<ExpiryDue> {
  static constexpr EventType kType{kOffersKind, 9, Priority::Decide};
  static constexpr const char* kName = "ExpiryDue";
  static constexpr const char* kDoc =
      "Timer of the allocator: the oldest offers have had no answer for too long.";

  static constexpr auto fields() { return std::tuple<>{}; }
};

}  // namespace agora::offers
