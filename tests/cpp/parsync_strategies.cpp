// Rankings of rounds and the average delay against plain models.
#include <algorithm>
#include <cstdlib>
#include <stdexcept>
#include <vector>

#include "check.hpp"
#include "parsync/protocols/native/round_planner.hpp"
#include "shared_state/native/random.hpp"

static Draws draw(5);

using agora::PartitionRanking;

namespace {

void check_rankings() {
  const agora::AdaptiveStrategy adaptive{800};
  const agora::FixedStrategy fixed{PartitionRanking::FreshestPreferred};
  std::vector<int8_t> task_class;
  for (int i = 0; i < 100; ++i) task_class.push_back(static_cast<int8_t>(draw(3)));
  agora::RoundRankings plain(adaptive, std::nullopt, task_class);
  agora::RoundRankings by_length(fixed, adaptive, task_class);
  CHECK(!plain.tells_lengths() && by_length.tells_lengths());
  CHECK(plain.ranking() == PartitionRanking::QualityFirst);
  for (int round = 0; round < 300; ++round) {
    const auto average_us = static_cast<int64_t>(draw(2) ? 799 + draw(2) : draw(2000));
    const PartitionRanking expected =
        average_us >= 800 ? PartitionRanking::LatencyFirst : PartitionRanking::QualityFirst;
    plain.begin_batch(average_us);
    by_length.begin_batch(average_us);
    CHECK(plain.ranking() == expected && by_length.ranking() == fixed.ranking);
    std::vector<int64_t> task;
    for (uint64_t n = draw(6); n > 0; --n) task.push_back(static_cast<int64_t>(draw(100)));
    const auto shared = by_length.of(task);
    size_t alike = 0;
    const auto is_long = [&](size_t i) { return task_class[static_cast<size_t>(task[i])] == 1; };
    while (alike < task.size() && is_long(alike) == is_long(0)) ++alike;
    CHECK(shared.tasks == alike);
    CHECK(shared.ranking == (alike > 0 && is_long(0) ? expected : fixed.ranking));
  }
  for (const int64_t unknown : {int64_t{-1}, int64_t{100}})
    check_throws<std::invalid_argument>([&] { by_length.of(std::vector<int64_t>{unknown}); });
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
  check_rankings();
  check_average();
  return EXIT_SUCCESS;
}
