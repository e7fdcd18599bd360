// The events of the optimistic protocol: timers of its agents, and the messages by which schedulers
// share demand. (Its other messages are the cell's own: sync and commit.) Demand messages have one
// priority, so that those of one agent arrive in the order in which it sent them, also within one
// instant.
#pragma once

#include <cstdint>
#include <string_view>
#include <tuple>

#include "parsync/core/native/event.hpp"
#include "shared_state/native/fields.hpp"

namespace agora::optimistic {

inline constexpr std::string_view kOptimisticKind = "optimistic";

struct SyncDue final : EventOf<SyncDue> {
  static constexpr EventType kType{kOptimisticKind, 1, Priority::Sync};
  static constexpr const char* kName = "SyncDue";
  static constexpr const char* kDoc = "The k-th periodic synchronisation is due.";

  int64_t k = 0;

  static constexpr auto fields() { return std::tuple{Field{"k", &SyncDue::k}}; }
};

struct RequeueDue final : EventOf<RequeueDue> {
  static constexpr EventType kType{kOptimisticKind, 2, Priority::Decide};
  static constexpr const char* kName = "RequeueDue";
  static constexpr const char* kDoc =
      R"(The pause of requeued tasks is over.

Attributes:
    key: The number of the pause.)";

  int64_t key = 0;

  static constexpr auto fields() { return std::tuple{Field{"key", &RequeueDue::key}}; }
};

struct RetryDue final : EventOf<RetryDue> {
  static constexpr EventType kType{kOptimisticKind, 3, Priority::Decide};
  static constexpr const char* kName = "RetryDue";
  static constexpr const char* kDoc =
      R"(Decide again on tasks that round `round` left waiting: the scheduler asked for it, or no
periodic synchronisation wakes the agent, or the pause between such rounds is over.)";

  int64_t round = 0;

  static constexpr auto fields() { return std::tuple{Field{"round", &RetryDue::round}}; }
};

struct RoundDue final : EventOf<RoundDue> {
  static constexpr EventType kType{kOptimisticKind, 4, Priority::Start};
  static constexpr const char* kName = "RoundDue";
  static constexpr const char* kDoc =
      R"(A decision round begins, now that everything else of this instant has been handled.)";

  static constexpr auto fields() { return std::tuple<>{}; }
};

struct DemandReport final : EventOf<DemandReport> {
  static constexpr EventType kType{kOptimisticKind, 5, Priority::Sync};
  static constexpr const char* kName = "DemandReport";
  static constexpr const char* kDoc =
      R"(Agent -> demand ledger: tasks that its scheduler was offered for the first time.

Attributes:
    task: int64[n], ids.)";

  SharedColumn<int64_t> task;  // [n]

  static constexpr auto fields() { return std::tuple{Field{"task", &DemandReport::task}}; }
};

struct DemandRequest final : EventOf<DemandRequest> {
  static constexpr EventType kType{kOptimisticKind, 6, Priority::Sync};
  static constexpr const char* kName = "DemandRequest";
  static constexpr const char* kDoc =
      R"(Agent -> demand ledger: what has changed since a version?

Attributes:
    version: Of the last reply; 0: nothing is known.)";

  int64_t agent = 0;
  int64_t version = 0;

  static constexpr auto fields() {
    return std::tuple{Field{"agent", &DemandRequest::agent},
                      Field{"version", &DemandRequest::version}};
  }
};

struct DemandReply final : EventOf<DemandReply> {
  static constexpr EventType kType{kOptimisticKind, 7, Priority::Sync};
  static constexpr const char* kName = "DemandReply";
  static constexpr const char* kDoc =
      R"(Demand ledger -> agent: the sums that have changed, the longest unknown first.

A sum is over all reports since the start of the run. So an agent that receives one twice, or
misses one, is right again with the next.

Attributes:
    version: What the agent is to ask with the next time.
    waiting: How many further sums have changed, which did not find room in this reply.
    preference: int32[n], sets.
    tasks: int64[n], tasks of each set that were reported.
    squares: int64[n], the sum over reports of the tasks of each set, squared.)";

  int64_t version = 0;
  int64_t waiting = 0;
  SharedColumn<int32_t> preference;  // [n], sets
  SharedColumn<int64_t> tasks;       // [n]
  SharedColumn<int64_t> squares;     // [n]

  static constexpr auto fields() {
    return std::tuple{Field{"version", &DemandReply::version},
                      Field{"waiting", &DemandReply::waiting},
                      Field{"preference", &DemandReply::preference},
                      Field{"tasks", &DemandReply::tasks}, Field{"squares", &DemandReply::squares}};
  }
};

}  // namespace agora::optimistic
