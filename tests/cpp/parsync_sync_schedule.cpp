// An agent's schedule of synchronisations against a plain model, on policies whose answers are
// written down; and the built-in policies at the ends of their ranges.
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

static Draws draw(29);

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
  bool wants_feedback() const override { return learns; }
  void observe(const agora::SyncFeedback& given) override {
    calls.push_back("observe");
    feedback.push_back(given);
  }

  int64_t count() const { return static_cast<int64_t>(syncs_.size()); }
  const Sync& of(int64_t k) const { return syncs_.at(static_cast<size_t>(k - 1)); }

  bool learns = false, tells_latest = false;
  std::vector<agora::SyncFeedback> feedback;
  std::vector<std::string> calls;

 private:
  const std::vector<Sync> syncs_;
};

// Ascending times, a few microseconds apart, with some partitions each in any order.
std::vector<Scripted::Sync> random_syncs(size_t count) {
  std::vector<Scripted::Sync> syncs;
  int64_t at_us = 0;
  for (size_t k = 0; k < count; ++k) {
    at_us += static_cast<int64_t>(1 + draw(9));
    std::vector<int32_t> partitions(kPartitions);
    std::iota(partitions.begin(), partitions.end(), 0);
    for (size_t i = kPartitions; i > 1; --i) std::swap(partitions[i - 1], partitions[draw(i)]);
    partitions.resize(draw(kPartitions + 1));
    syncs.push_back({at_us, partitions});
  }
  return syncs;
}

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

// Timers on time and late, of policies that go on and that end, until nothing follows.
void check_timers() {
  for (int run = 0; run < 400; ++run) {
    const size_t count = draw(40);
    Scripted policy(random_syncs(count));
    policy.tells_latest = draw(2) == 0;  // makes no difference to so few
    SyncSchedule schedule(policy, kPartitions);
    CHECK(!schedule.next_us());

    auto now_us = static_cast<int64_t>(draw(60));
    int64_t first = 1;
    while (first <= policy.count() && policy.of(first).due_us <= now_us) ++first;
    Effects effects;
    schedule.start(now_us, effects);
    for (int64_t k = first; k <= policy.count(); k = first) {
      CHECK(timer_of(effects) == std::pair(policy.of(k).due_us, k));
      CHECK(schedule.next_us() == policy.of(k).due_us);
      now_us = policy.of(k).due_us + static_cast<int64_t>(draw(2) ? draw(30) : 0);
      std::set<int32_t> together;
      for (; first <= policy.count() && policy.of(first).due_us <= now_us; ++first)
        together.insert(policy.of(first).partitions.begin(), policy.of(first).partitions.end());
      const std::vector<int32_t> expected =
          first == k + 1 ? policy.of(k).partitions
                         : std::vector<int32_t>(together.begin(), together.end());
      effects.clear();
      CHECK(on_due(schedule, now_us, k, effects) == expected);
    }
    CHECK(!timer_of(effects) && !schedule.next_us());
  }
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

void check_feedback() {
  using Counts = std::vector<int64_t>;
  Scripted policy(random_syncs(100));
  policy.learns = true;
  SyncSchedule schedule(policy, kPartitions);
  Counts claims(kPartitions), conflicts(kPartitions), rows_changed(kPartitions);
  for (int64_t k = 1; k < policy.count(); k += 2) {
    for (uint64_t n = draw(4); n > 0; --n) {
      std::vector<int32_t> partition;
      std::vector<uint8_t> conflict;
      for (uint64_t i = draw(5); i > 0; --i) {
        partition.push_back(static_cast<int32_t>(draw(kPartitions)));
        conflict.push_back(static_cast<uint8_t>(draw(2)));
        const auto p = static_cast<size_t>(partition.back());
        ++claims[p];
        conflicts[p] += conflict.back();
      }
      schedule.on_committed(partition, conflict);
      const size_t p = draw(kPartitions);
      schedule.rows_changed()[p] += 3;
      rows_changed[p] += 3;
    }
    policy.calls.clear();
    Effects effects;
    const int64_t now_us = policy.of(k + 1).due_us;  // two are done together
    on_due(schedule, now_us, k, effects);
    CHECK(policy.calls[0] == "observe" && std::ranges::count(policy.calls, "observe") == 1);
    const agora::SyncFeedback& given = policy.feedback.back();
    CHECK(given.claims == claims && given.conflicts == conflicts);
    CHECK(given.rows_changed == rows_changed && given.used_permille == Counts(kPartitions, 500));
    CHECK(given.now_us == now_us && given.delay_us == 7 && given.queued == 11);
    claims = conflicts = rows_changed = Counts(kPartitions);
  }

  const std::vector<int32_t> some{0}, negative{-1}, beyond{kPartitions};
  const std::vector<uint8_t> one{1}, two{1, 1};
  check_throws<std::invalid_argument>([&] { schedule.on_committed(some, two); });
  check_throws<std::invalid_argument>([&] { schedule.on_committed(negative, one); });
  check_throws<std::invalid_argument>([&] { schedule.on_committed(beyond, one); });

  policy.learns = false;  // then nobody counts the load, and nothing is observed
  policy.calls.clear();
  Effects effects;
  schedule.on_due(
      policy.of(1).due_us, 1, 0, 0, []() -> std::vector<int64_t> { std::abort(); }, effects);
  CHECK(std::ranges::count(policy.calls, "observe") == 0);
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
  check_timers();
  check_many_together();
  check_feedback();
  check_numbers();
  check_built_in();
  return EXIT_SUCCESS;
}
