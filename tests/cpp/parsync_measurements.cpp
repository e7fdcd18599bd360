// Row buffers and the commit log against plain vectors, on random transactions; what is refused
// leaves nothing behind.
#include <cstdlib>
#include <stdexcept>

#include "check.hpp"
#include "parsync/metrics/native/commit_log.hpp"

static Draws draw(4711);

namespace {

constexpr size_t kTasks = 50, kMachines = 8;

struct World {
  std::vector<int64_t> job, submit_us;
  std::vector<int32_t> preference;
  std::vector<int64_t> machine_offsets{0, 0, 2}, machine_cost{3, 5}, rack_offsets{0, 0, 1},
      rack_cost{7}, elsewhere{0, 11}, unscheduled{0, 99};
  std::vector<int32_t> machine{1, 6}, rack{0}, rack_of{0, 0, 0, 0, 1, 1, 1, 1};

  World() {
    for (size_t i = 0; i < kTasks; ++i) {
      job.push_back(static_cast<int64_t>(i / 4));
      submit_us.push_back(static_cast<int64_t>(i * 10));
      preference.push_back(static_cast<int32_t>(i % 2));
    }
  }
  agora::TaskTable table() const { return {job, submit_us, preference}; }
  agora::PreferenceColumns catalog() const {
    return {machine_offsets, machine,   machine_cost, rack_offsets, rack,
            rack_cost,       elsewhere, unscheduled,  rack_of};
  }
  // Cost and preference as the catalog says, looked up the plain way.
  int64_t cost(int32_t set, int32_t row) const {
    return set == 0 ? 0 : row == 1 ? 3 : row == 6 ? 5 : row < 4 ? 7 : 11;
  }
  bool preferred(int32_t set, int32_t row) const { return set == 1 && (row == 1 || row == 6); }
};

int64_t value(const agora::RowBuffer& rows, size_t column, size_t row) {
  const size_t size = rows.bytes_of(column);
  const char* at = rows.data(column) + row * size;
  switch (size) {
    case 1:
      return static_cast<int8_t>(*at);
    case 4: {
      int32_t narrow;
      std::memcpy(&narrow, at, sizeof narrow);
      return narrow;
    }
    default: {
      int64_t wide;
      std::memcpy(&wide, at, sizeof wide);
      return wide;
    }
  }
}

void check_rows(const agora::RowBuffer& rows, const std::vector<std::vector<int64_t>>& expected) {
  CHECK(rows.rows() == expected.size());
  for (size_t row = 0; row < expected.size(); ++row)
    for (size_t column = 0; column < rows.columns(); ++column)
      CHECK(value(rows, column, row) == expected[row][column]);
}

template <class Call>
void check_refused(Call call) {
  bool refused = false;
  try {
    call();
  } catch (const std::invalid_argument&) {
    refused = true;
  }
  CHECK(refused);
}

}  // namespace

int main() {
  const World world;
  agora::RowBuffer tasks({8, 8, 4, 4, 8, 8, 8, 4, 1, 1, 1, 8, 8}),
      rejections({8, 4, 8, 4, 1, 4, 8, 8, 8});
  agora::CommitLog log(3, world.table(), world.catalog(), tasks, rejections);
  std::vector<std::vector<int64_t>> won, lost;
  for (int round = 0; round < 2000; ++round) {
    const int64_t now_us = 10'000 + round, cell_us = now_us - round % 7;
    const size_t count = draw(40);
    std::vector<int64_t> task(count), age_us(count);
    std::vector<int32_t> machine(count), attempts(count), rival(count);
    std::vector<int8_t> first(count), reason(count);
    int64_t delay_us = 0, accepted = 0, first_commits = 0;
    for (size_t i = 0; i < count; ++i) {
      task[i] = static_cast<int64_t>(draw(kTasks));
      machine[i] = static_cast<int32_t>(draw(kMachines));
      attempts[i] = static_cast<int32_t>(draw(1000));
      rival[i] = static_cast<int32_t>(draw(20)) - 1;
      first[i] = static_cast<int8_t>(draw(2));
      reason[i] = static_cast<int8_t>(draw(2) ? 0 : draw(agora::kReasons));
      age_us[i] = static_cast<int64_t>(draw(uint64_t{1} << 40));
      const auto t = static_cast<size_t>(task[i]);
      const int32_t set = world.preference[t];
      if (reason[i] == 0) {
        ++accepted;
        first_commits += first[i];
        delay_us += first[i] ? now_us - world.submit_us[t] : 0;
        won.push_back({task[i], world.job[t], 3, machine[i], world.submit_us[t], now_us, cell_us,
                       attempts[i], first[i], set > 0, world.preferred(set, machine[i]),
                       world.cost(set, machine[i]), age_us[i]});
      } else {
        lost.push_back(
            {task[i], 3, round, machine[i], reason[i], rival[i], age_us[i], cell_us, now_us});
      }
    }
    const agora::OutcomeSums sums =
        log.add(now_us, {round, cell_us, task, machine.data(), attempts.data(), first.data(),
                         reason.data(), rival.data(), age_us.data()});
    CHECK(sums.delay_us == delay_us && sums.first_commits == first_commits &&
          sums.claims[0] == accepted);

    if (count > 0) {
      const auto broken = [&](auto& column, auto bad) {
        const auto good = column[0];
        column[0] = bad;
        check_refused([&] {
          log.add(now_us, {round, cell_us, task, machine.data(), attempts.data(), first.data(),
                           reason.data(), rival.data(), age_us.data()});
        });
        column[0] = good;
      };
      broken(task, int64_t{-1});
      broken(task, static_cast<int64_t>(kTasks));
      broken(machine, static_cast<int32_t>(kMachines));
      broken(reason, static_cast<int8_t>(-1));
      broken(reason, static_cast<int8_t>(agora::kReasons));
    }
    if (draw(50) != 0) continue;
    check_rows(tasks, won);
    check_rows(rejections, lost);
    tasks.clear(), won.clear();
    rejections.clear(), lost.clear();
  }
  check_refused(
      [&] { agora::CommitLog(3, world.table(), world.catalog(), rejections, rejections); });
  check_refused([&] {
    agora::CommitLog(3, {world.job, world.submit_us, {}}, world.catalog(), tasks, rejections);
  });
  check_refused([] { agora::RowBuffer({8, 3}); });

  agora::RowBuffer rows({1, 8});
  rows.grow(2);
  rows.fill(0, -5);
  rows.fill(1, int64_t{1} << 40);
  rows.grow(3);
  rows.ungrow();
  check_rows(rows, {{-5, int64_t{1} << 40}, {-5, int64_t{1} << 40}});
  return EXIT_SUCCESS;
}
