// An agent's schedule where many synchronisations are due together, and policies and schedule at
// the ends of their ranges. (All else: tests/unit/test_sync_schedule.py.)
#include <algorithm>
#include <cstdlib>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "check.hpp"
#include "parsync/protocols/native/optimistic_events.hpp"
#include "parsync/protocols/native/sync.hpp"

namespace {

using agora::Effects;
using agora::SharedColumn;
using agora::SyncSchedule;

constexpr size_t kPartitions = 6;
constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();
constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();

// Answers from a list, whose k-th entry is the k-th synchronisation; keeps what it is asked.
class Scripted final : public agora::PeriodicSync {
 public:
  struct Sync {
    int64_t due_us;
    std::vector<int32_t> partitions;
  };

  explicit Scripted(std::vector<Sync> syncs) : syncs_(std::move(syncs)) {}

  std::optional<int64_t> due_us(int64_t k) override {
    calls.push_back("due " + std::to_string(k));
    return k > count() ? std::nullopt : std::optional(of(k).due_us);
  }
  SharedColumn<int32_t> partitions(int64_t k) override {
    calls.push_back("partitions " + std::to_string(k));
    return SharedColumn<int32_t>(std::span<const int32_t>(of(k).partitions));
  }
  std::optional<int64_t> latest(int64_t now_us) override {
    if (!tells_latest) return std::nullopt;
    int64_t k = 0;
    while (k < count() && of(k + 1).due_us <= now_us) ++k;
    return k;
  }

  int64_t count() const { return static_cast<int64_t>(syncs_.size()); }
  const Sync& of(int64_t k) const { return syncs_.at(static_cast<size_t>(k - 1)); }

  bool tells_latest = false;
  std::vector<std::string> calls;

 private:
  const std::vector<Sync> syncs_;
};

// (time, k) of the only timer; none if there is no effect.
std::optional<std::pair<int64_t, int64_t>> timer_of(Effects& effects) {
  if (effects.list().empty()) return std::nullopt;
  CHECK(effects.list().size() == 1);
  const auto& timer = std::get<agora::SetTimer>(effects.list().front());
  CHECK(timer.event->key() == agora::optimistic::SyncDue::kType.key());
  return std::pair(timer.at_us, agora::as<agora::optimistic::SyncDue>(timer.event).k);
}

std::vector<int32_t> on_due(SyncSchedule& schedule, int64_t now_us, int64_t k, Effects& effects) {
  const SharedColumn<int32_t> partitions = schedule.on_due(
      now_us, k, 7, 11, [] { return std::vector<int64_t>(kPartitions, 500); }, effects);
  return {partitions.begin(), partitions.end()};
}

// Of more than kMostTogether the policy is not asked for each, if it can tell the last.
void check_many_together() {
  const std::vector<int32_t> all{0, 1, 2, 3, 4, 5};
  std::vector<Scripted::Sync> syncs;
  for (int64_t k = 1; k <= 2000; ++k) syncs.push_back({10 * k, {static_cast<int32_t>(k % 2)}});
  for (const bool tells_latest : {true, false}) {
    for (const int64_t more : {int64_t{1}, SyncSchedule::kMostTogether,
                               SyncSchedule::kMostTogether + 1, int64_t{1000}, int64_t{1997}}) {
      Scripted policy(syncs);
      policy.tells_latest = tells_latest;
      SyncSchedule schedule(policy, kPartitions);
      Effects effects;
      const std::vector<int32_t> found = on_due(schedule, 10 * (3 + more), 3, effects);
      const bool leaps = tells_latest && more > SyncSchedule::kMostTogether;
      CHECK(found == (leaps ? all : std::vector<int32_t>{0, 1}));
      CHECK(policy.calls.size() == (leaps ? 2 : 2 + 2 * static_cast<size_t>(more)));
      if (3 + more == policy.count()) {
        CHECK(!timer_of(effects));
      } else {
        CHECK(timer_of(effects) == std::pair(10 * (4 + more), 4 + more));
      }
    }
  }
}

// Anybody may send a timer of any number.
void check_numbers() {
  agora::StateSync policy({1, 1, 0, 1}, false);
  SyncSchedule schedule(policy, 1);
  Effects effects;
  check_throws<std::invalid_argument>([&] { on_due(schedule, 5, 0, effects); });
  check_throws<std::invalid_argument>([&] { on_due(schedule, 5, kLeast, effects); });
  check_throws<std::overflow_error>([&] { on_due(schedule, 5, kLargest, effects); });
  check_throws<std::overflow_error>([&] { on_due(schedule, kLargest, 1, effects); });
  CHECK(effects.list().empty());
  on_due(schedule, kLargest - 1, 1, effects);
  CHECK(timer_of(effects) == std::pair(kLargest, kLargest));
}

// The largest numbers give the exact answer, or are refused.
void check_built_in() {
  const auto policies = [](const agora::SyncContext& of) {
    std::vector<std::unique_ptr<agora::SyncPolicy>> made;
    made.push_back(std::make_unique<agora::StateSync>(of, false));
    made.push_back(std::make_unique<agora::StateSync>(of, true));
    made.push_back(std::make_unique<agora::BlockSync>(of, false));
    made.push_back(std::make_unique<agora::BlockSync>(of, true));
    made.push_back(std::make_unique<agora::SinglePartitionSync>(of));
    return made;
  };
  for (const auto& policy : policies({1, 1, 0, 1})) {
    for (const int64_t k : {kLeast, int64_t{-1}, int64_t{0}, int64_t{1}, kLargest}) {
      CHECK(policy->due_us(k) == k && policy->latest(k) == k);
      CHECK(policy->partitions(k).size() == 1 && policy->partitions(k)[0] == 0);
    }
  }
  for (const auto& policy : policies({kLargest, 5, 3, 4})) {
    check_throws<std::overflow_error>([&] { policy->due_us(kLargest); });
    check_throws<std::overflow_error>([&] { policy->due_us(kLeast); });
    CHECK(policy->due_us(0).value() < kLargest && policy->latest(kLargest).value() >= 0);
    CHECK(policy->latest(kLeast).value() < 0);
    for (const int64_t k : {kLeast, kLargest})
      for (const int32_t partition : policy->partitions(k)) CHECK(partition >= 0 && partition < 5);
  }
  for (const agora::SyncContext& none :
       {agora::SyncContext{0, 1, 0, 1}, agora::SyncContext{9, 0, 0, 1},
        agora::SyncContext{9, 1, 1, 1}, agora::SyncContext{9, 1, -1, 1},
        agora::SyncContext{9, 1, 0, 0}, agora::SyncContext{kLargest, int64_t{1} << 31, 0, 1}}) {
    check_throws<std::invalid_argument>([&] { agora::BlockSync(none, false); });
    check_throws<std::invalid_argument>([&] { agora::EveryAttemptSync{none}; });
  }
  check_throws<std::invalid_argument>([] { agora::StateSync({4, 5, 0, 1}, false); });
  check_throws<std::invalid_argument>([] { agora::SinglePartitionSync({4, 1, 0, 5}); });
}

}  // namespace

int main() {
  check_many_together();
  check_numbers();
  check_built_in();
  return EXIT_SUCCESS;
}
