// Events to come against a stable sort by (time, priority), also after they were taken out and put
// back as a checkpoint does; and the waits of a host's tasks.
#include <algorithm>
#include <memory>
#include <span>
#include <tuple>
#include <vector>

#include "check.hpp"
#include "parsync/core/native/event_heap.hpp"
#include "parsync/core/native/step_waits.hpp"

using namespace agora;

namespace {

struct Expected {
  int64_t at_us;
  Priority priority;
  int64_t address;  // which numbers the events in the order of adding
};

EventPtr event_of(uint64_t kind) {
  switch (kind) {
    case 0:
      return std::make_shared<const CommitRequest>();
    case 1:
      return std::make_shared<const SyncRequest>();
    default:
      return std::make_shared<const TasksSubmitted>();
  }
}

void check_order(uint64_t seed) {
  Draws draws(seed);
  EventHeap heap;
  std::vector<Expected> waiting;
  int64_t added = 0;
  for (int step = 0; step < 2000; ++step) {
    if (draws(3) > 0) {
      const auto at_us = static_cast<int64_t>(draws(50));
      const EventPtr event = event_of(draws(3));
      heap.push(at_us, added, event);
      waiting.push_back({at_us, event->priority(), added++});
      std::stable_sort(waiting.begin(), waiting.end(), [](const Expected& a, const Expected& b) {
        return std::tuple(a.at_us, a.priority) < std::tuple(b.at_us, b.priority);
      });
    } else if (!waiting.empty()) {
      CHECK(heap.next_us() == waiting.front().at_us);
      const EventHeap::Entry entry = heap.pop();
      CHECK(entry.address == waiting.front().address);
      CHECK(entry.event->priority() == waiting.front().priority);
      waiting.erase(waiting.begin());
    }
    CHECK(heap.empty() == waiting.empty());
    if (draws(100) == 0) {
      std::vector<EventHeap::Entry> kept;
      for (const EventHeap::Entry* entry : heap.in_order()) {
        CHECK(entry->address == waiting[kept.size()].address);
        kept.push_back(*entry);
      }
      std::reverse(kept.begin(), kept.end());
      EventHeap restored;
      restored.restore(std::move(kept), heap.added());
      heap = std::move(restored);
    }
  }
  heap.clear();
  CHECK(heap.empty() && heap.added() == static_cast<uint64_t>(added));
}

SharedColumn<int64_t> column(std::vector<int64_t> values) {
  return SharedColumn<int64_t>(std::span<const int64_t>(values));
}

void check_waits() {
  const auto groups = [](std::vector<int32_t> values) {
    return SharedColumn<int32_t>(std::span<const int32_t>(values));
  };
  check_throws<std::invalid_argument>([&] { StepWaits(column({0}), groups({0, 0}), 1); });
  check_throws<std::invalid_argument>([&] { StepWaits(column({0}), groups({1}), 1); });
  StepWaits waits(column({1000, 2000, 2000}), groups({1, 1, 1}), 2);
  TasksSubmitted submitted;
  submitted.task = column({0, 2});
  auto transaction = std::make_shared<Transaction>();
  transaction->task = column({0, 1, 2});
  CommitRequest request;
  request.transaction = transaction;
  Effects effects;
  effects.send(-1, request);
  effects.start_decision(1);
  effects.set_timer(0, request);  // no message
  waits.handled(5000, submitted, effects);
  CHECK(waits.tasks() == std::vector<int64_t>({0, 2}));
  CHECK(waits.submission_us() == std::vector<int64_t>({0, 4000 + 3000}));
  waits.stepped(5100);
  waits.stepped(9000);  // nothing waits
  CHECK(waits.claim_us() == std::vector<int64_t>({0, 3 * 100}));
  submitted.task = column({3});
  check_throws<std::out_of_range>([&] { waits.handled(0, submitted, {}); });
  submitted.task = column({-1});
  check_throws<std::out_of_range>([&] { waits.handled(0, submitted, {}); });
  CHECK(waits.tasks() == std::vector<int64_t>({0, 2}));
}

}  // namespace

int main() {
  for (const uint64_t seed : {1, 7, 1234567}) check_order(seed);
  check_waits();
  return EXIT_SUCCESS;
}
