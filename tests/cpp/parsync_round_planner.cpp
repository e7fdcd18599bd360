// Decision times and windows of rounds, and the average delay, at the ends of their ranges. (Rounds
// themselves: tests/unit/test_round_planner.py.)
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <stdexcept>

#include "check.hpp"
#include "parsync/protocols/native/round_planner.hpp"
#include "shared_state/native/random.hpp"

static Draws draw(5);

namespace {

void check_clocks() {
  using agora::CountedTime, agora::DecisionClock, agora::MeasuredTime, agora::ModelledTime;
  const DecisionClock modelled = ModelledTime{10, 250'000, 1'500, 100}, counted = CountedTime{15},
                      measured = MeasuredTime{};
  CHECK(agora::duration_us(modelled, {100, 0, 2000, 7, 9, 25}) == 10 + 25'000 + 3'000 + 3);
  CHECK(agora::duration_us(counted, {3, 0, 3, 1001, 9, 0}) == 16);
  CHECK(agora::duration_us(measured, {3, 0, 3, 7, 1'000'001, 0}) == 1001);
  CHECK(agora::tasks_within(modelled, 10'000, 20) == 36);  // 9,990 us at 280 us
  CHECK(agora::tasks_within(modelled, 0, 20) == 1 && !agora::tasks_within(counted, 1, 1));
  CHECK(!agora::tasks_within(ModelledTime{5, 0, 0, 0}, 100, 20));
  const DecisionClock longest = ModelledTime{INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX};
  check_throws<std::overflow_error>(
      [&] { agora::duration_us(longest, {INT64_MAX, 0, INT64_MAX, 0, 0, INT64_MAX}); });
  check_throws<std::overflow_error>([&] { agora::duration_us(longest, {1, 0, 0, 0, 0, 0}); });
  check_throws<std::invalid_argument>([&] { agora::duration_us(modelled, {-1, 0, 0, 0, 0, 0}); });
}

void check_windows() {
  using agora::PartitionRanking, agora::round_window;
  CHECK(!round_window(10, {}, {}, PartitionRanking::Optimistic, 8));
  const auto until = round_window(10, 25, {}, PartitionRanking::QualityFirst, 8);
  CHECK(until && until->us == 15 && until->partitions_per_task == 8);
  const auto late = round_window(30, 25, 7, PartitionRanking::LatencyFirst, 8);
  CHECK(late && late->us == 0 && late->partitions_per_task == 1);
  const auto longest = round_window(30, 90, 7, PartitionRanking::FreshestPreferred, 8);
  CHECK(longest && longest->us == 7 && longest->partitions_per_task == 1);
}

// a / b, rounded down.
agora::Int128 floor_of(agora::Int128 a, agora::Int128 b) { return a / b - (a % b < 0); }

// The average is kept in units of 2^-16 us, rounded down each time.
void check_average() {
  for (int run = 0; run < 200; ++run) {
    const auto permille = static_cast<int64_t>(1 + draw(1000));
    agora::DelayAverage average(permille);
    double exact = 0;
    agora::Int128 scaled = 0;
    for (int i = 0; i < 40; ++i) {
      const auto committed = static_cast<int64_t>(draw(150)), batch = int64_t{100};
      const auto sum_us = static_cast<int64_t>(draw(uint64_t{1} << 36));
      const int64_t before = average.scaled();
      average.add(sum_us, committed, batch);
      if (committed == 0) {
        CHECK(average.scaled() == before);
        continue;
      }
      exact += (static_cast<double>(sum_us) / static_cast<double>(committed) - exact) *
               static_cast<double>(permille) / 1000 *
               static_cast<double>(std::min(committed, batch)) / static_cast<double>(batch);
      CHECK(std::abs(static_cast<double>(average.us()) - exact) < 2 + exact * 1e-12);
      const agora::Int128 mean = (agora::Int128{sum_us} << 16) / committed;
      const agora::Int128 weight = agora::Int128{permille} * std::min(committed, batch);
      scaled += floor_of((mean - scaled) * weight, agora::Int128{1000} * batch);
      CHECK(average.scaled() == static_cast<int64_t>(scaled) && average.us() == scaled >> 16);
    }
  }
  agora::DelayAverage average(1000);
  check_throws<std::invalid_argument>([&] { average.add(1, 1, 0); });
  check_throws<std::overflow_error>([&] { average.add(INT64_MAX, 1, 1); });
  CHECK(average.scaled() == 0);
  average.add(int64_t{1} << 46, 1, 1);  // the longest delays do not overflow
  average.add(0, 1, INT32_MAX);
  CHECK(average.us() >> 45 == 1);
}

}  // namespace

int main() {
  check_clocks();
  check_windows();
  check_average();
  return EXIT_SUCCESS;
}
