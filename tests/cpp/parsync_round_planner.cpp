// The planner of decision rounds against plain models of what it counts: units that can never be
// placed, decision times, claims that fit the view.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>

#include "check.hpp"
#include "parsync/protocols/native/round_planner.hpp"

static Draws draw(81);

namespace {

constexpr size_t kMachines = 12, kTasks = 40, kPartitions = 3;

struct World {
  std::vector<int64_t> request, gang, task_us, gang_us, gang_size;
  std::vector<int32_t> preference;
  std::vector<int8_t> task_class;
  std::vector<int64_t> offsets{0, 0}, none64{}, zero{0};
  std::vector<int32_t> none32{}, rack = std::vector<int32_t>(kMachines, 0);
  agora::Catalog catalog;
  agora::ClusterView view;
  agora::UnplaceableUnits units;

  World()
      : catalog({offsets, none32, none64, offsets, none32, none64, zero, zero, rack}),
        view(std::make_shared<agora::StaticCellState>(1, std::vector<int64_t>(kMachines, 4),
                                                      std::vector<int64_t>(kMachines, 0),
                                                      std::vector<int64_t>{0, 4, 8, 12}),
             true) {
    for (size_t i = 0; i < kTasks; ++i) {
      request.push_back(1 + static_cast<int64_t>(draw(3)));
      gang.push_back(draw(3) == 0 ? static_cast<int64_t>(draw(4)) : -1);
      preference.push_back(0);
      task_class.push_back(static_cast<int8_t>(draw(3)));
      task_us.push_back(draw(8) == 0 ? 100 : INT64_MAX);
    }
    for (size_t i = 0; i < kTasks; ++i) {
      gang_size.push_back(gang[i] < 0 ? 0 : std::count(gang.begin(), gang.end(), gang[i]));
      gang_us.push_back(gang[i] == 0 ? 50 : INT64_MAX);
    }
    units = {task_us, gang_us, gang, gang_size};
    sync(0);
  }
  agora::PlacingColumns columns() const {
    return {kTasks, 1, request.data(), 1, 1, preference.data(), 1, gang.data(), 1};
  }
  void sync(int64_t at_us) {
    for (int32_t p = 0; p < static_cast<int32_t>(kPartitions); ++p) {
      const uint16_t row[4]{0, 1, 2, 3};
      int8_t used[4];
      const bool up[4]{true, true, true, draw(5) != 0};
      const uint32_t seqnum[4]{7, 8, 9, 10};
      for (int8_t& one : used) one = static_cast<int8_t>(draw(5));
      const auto version = static_cast<int64_t>(at_us + 1);
      view.apply({p, 0, version, at_us, 4, row, 2, used, 1, up, seqnum});
    }
  }
  // Which of these tasks can never be placed, the plain way.
  std::vector<uint8_t> never(const std::vector<int64_t>& task, int64_t now_us) const {
    std::set<int64_t> lost;  // gangs
    std::vector<uint8_t> result(task.size());
    const auto row = [&](size_t i) { return static_cast<size_t>(task[i]); };
    for (size_t i = 0; i < task.size(); ++i) {
      const int64_t members = std::count_if(task.begin(), task.end(), [&](int64_t other) {
        return gang[static_cast<size_t>(other)] == gang[row(i)];
      });
      result[i] = task_us[row(i)] <= now_us ||
                  (gang[row(i)] >= 0 && gang_us[row(i)] <= now_us && members == gang_size[row(i)]);
      if (result[i] && gang[row(i)] >= 0) lost.insert(gang[row(i)]);
    }
    for (size_t i = 0; i < task.size(); ++i)
      if (lost.contains(gang[row(i)])) result[i] = 1;
    return result;
  }
};

void check_round(int64_t number) {
  World world;
  const agora::ModelledTime batch{5, 300, 70, 0}, service{9, 1100, 20, 0};
  const bool charges_kept = draw(2);
  const std::array<int64_t, 4> weights{8'000'000, 61'000, 1'030, 20'500};
  agora::GreedyPlanner greedy(world.catalog, world.columns(), agora::PlacementKind::Random, false,
                              weights);
  agora::RoundPlanner planner(
      {3, "agent-1", agora::PartitionQuality::MeanWeight, true, charges_kept},
      agora::ModelledTimeByClass{batch, service}, greedy, world.task_class, &world.units);
  std::vector<int64_t> task;
  for (size_t i = 0; i < kTasks; ++i)
    if (draw(2)) task.push_back(static_cast<int64_t>(i));
  const int64_t now_us = draw(2) ? 60 : draw(2) ? 200 : 0;
  const std::vector<int32_t> order{2, 0, 1};
  const std::vector<int64_t> free(world.view.all_free().begin(), world.view.all_free().end());
  const std::vector<uint8_t> never = world.never(task, now_us);
  const auto lost = static_cast<size_t>(std::count(never.begin(), never.end(), 1));

  planner.plan(world.view, {number, now_us, agora::PartitionRanking::LatencyFirst, task}, order);
  const std::vector<uint32_t> seqnum = planner.seqnum();
  const int64_t decision_us = planner.decision_us(0);
  const agora::ClaimedPlan plan = planner.take();
  CHECK(plan.too_large == lost && plan.in_full() == (plan.task == task));
  CHECK(world.view.claims_in_flight() == 1 && seqnum.size() == plan.task.size());

  // Each task once: claimed in order, or pending; those that can never be placed at the end.
  std::map<int64_t, int64_t> taken;  // by machine
  size_t claim = 0, left = 0, too_large = plan.pending.size() - lost;
  for (size_t i = 0; i < task.size(); ++i) {
    const auto row = static_cast<size_t>(task[i]);
    if (never[i]) {
      CHECK(plan.pending[too_large] == task[i] && plan.pending_reason[too_large] == 1);
      ++too_large;
    } else if (claim < plan.task.size() && plan.task[claim] == task[i]) {
      const int32_t machine = plan.machine[claim];
      taken[machine] += world.request[row];
      CHECK(plan.request[claim] == world.request[row] && plan.gang[claim] == world.gang[row]);
      CHECK(plan.synced_us[claim] == 0 && seqnum[claim] == 7 + static_cast<uint32_t>(machine) % 4);
      CHECK(plan.ticket >= 0);
      ++claim;
    } else {
      CHECK(plan.pending[left] == task[i] && plan.pending_reason[left] == 0);
      ++left;
    }
  }
  CHECK(claim == plan.task.size() && too_large == plan.pending.size());
  for (const auto& [machine, amount] : taken) CHECK(amount <= free[static_cast<size_t>(machine)]);

  const auto tasks = static_cast<int64_t>(task.size() - (charges_kept ? 0 : lost));
  const int64_t services = std::min(
      tasks, static_cast<int64_t>(std::count_if(task.begin(), task.end(), [&](int64_t one) {
        return world.task_class[static_cast<size_t>(one)] == 1;
      })));
  const auto up = [](int64_t ns) { return (ns + 999) / 1000; };
  const int64_t scanned = plan.partitions_scanned,
                of_service = scanned * services / std::max<int64_t>(1, tasks);
  int64_t expected_us = 0;
  if (services > 0) expected_us += 9 + up(1100 * services + 20 * of_service);
  if (tasks > services || services == 0)
    expected_us += 5 + up(300 * (tasks - services) + 70 * (scanned - of_service));
  CHECK(decision_us == expected_us);
  const int64_t work_ps = 8'000'000 + 61'000 * static_cast<int64_t>(task.size() - lost) +
                          1'030 * plan.counted_work[2] + 20'500 * plan.counted_work[3];
  const bool offered = task.size() > lost || lost == 0;
  CHECK(plan.operations == (offered ? work_ps / 100'000 : 0));
}

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

}  // namespace

int main() {
  for (int64_t number = 0; number < 500; ++number) check_round(number);
  check_clocks();
  check_windows();

  World world;
  agora::GreedyPlanner greedy(world.catalog, world.columns(), agora::PlacementKind::Random, false,
                              {1, 1, 1, 1});
  agora::RoundPlanner planner({3, "agent-1", agora::PartitionQuality::MeanWeight, false, false},
                              std::nullopt, greedy, world.task_class, nullptr);
  const std::vector<int32_t> order{2, 0, 1}, twice{2, 2, 1};
  const std::vector<int64_t> unknown{kTasks}, negative{-1}, one{1};
  using agora::PartitionRanking;
  for (const auto* task : {&unknown, &negative})
    check_throws<std::invalid_argument>(
        [&] { planner.plan(world.view, {1, 0, PartitionRanking::Optimistic, *task}, order); });
  check_throws<std::invalid_argument>(
      [&] { planner.plan(world.view, {1, 0, PartitionRanking::Optimistic, one}, twice); });
  CHECK(world.view.claims_in_flight() == 0);
  check_throws<std::logic_error>([&] { planner.decision_us(0); });
  CHECK(!planner.most_tasks(agora::RoundWindow{5, 1}));
  return EXIT_SUCCESS;
}
