// Row buffers and the log of an agent against plain vectors, on random transactions; what is
// refused leaves nothing behind.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <stdexcept>

#include "check.hpp"
#include "parsync/metrics/native/agent_log.hpp"
#include "record_tables.hpp"

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
  agora::LoggedTasks table() const { return {job, submit_us, preference}; }
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

using Rows = std::vector<std::vector<int64_t>>;

// k random claims of random tasks.
struct Claims {
  std::vector<int64_t> task, synced_us, age_us;
  std::vector<int32_t> machine, attempts, rival;
  std::vector<int8_t> first, reason;

  Claims(size_t count, int64_t cell_us) {
    for (size_t i = 0; i < count; ++i) {
      task.push_back(static_cast<int64_t>(draw(kTasks)));
      machine.push_back(static_cast<int32_t>(draw(kMachines)));
      attempts.push_back(static_cast<int32_t>(draw(1000)));
      rival.push_back(static_cast<int32_t>(draw(20)) - 1);
      first.push_back(static_cast<int8_t>(draw(2)));
      reason.push_back(static_cast<int8_t>(draw(2) ? 0 : draw(agora::kReasons)));
      age_us.push_back(static_cast<int64_t>(draw(uint64_t{1} << 40)));
      synced_us.push_back(cell_us - age_us.back());
    }
  }
  agora::Outcome outcome(int64_t sequence) const {
    return {sequence,     task,          machine.data(), synced_us.data(), attempts.data(),
            first.data(), reason.data(), rival.data(),   age_us.data()};
  }
};

// The log of agent 3 beside what it should have written.
class Checked {
 public:
  Checked() : records_(kAgentTables), log_(3, world_.table(), world_.catalog(), records_) {}

  void commit(int64_t round, bool of_round) {
    const int64_t at_us = 10'000 + round, cell_us = at_us - round % 7;
    const Claims claims(draw(40), cell_us);
    std::vector<int64_t> about = claims.task;  // and some that it left waiting
    for (uint64_t more = draw(10); more > 0; --more)
      about.push_back(static_cast<int64_t>(draw(kTasks)));
    const int64_t decision_us = static_cast<int64_t>(draw(uint64_t{1} << 40));
    agora::CommittedRound committed;
    if (of_round) committed = {round, decision_us, 2, about};

    std::array<int64_t, agora::kReasons> by_reason{};
    int64_t delay_us = 0, first_commits = 0;
    std::vector<int64_t> placed, conflicted;
    for (size_t i = 0; i < claims.task.size(); ++i) {
      const int64_t task = claims.task[i];
      const auto t = static_cast<size_t>(task);
      const int32_t machine = claims.machine[i], set = world_.preference[t];
      const int8_t reason = claims.reason[i];
      ++by_reason[static_cast<size_t>(reason)];
      if (reason == 1 || reason == 2 || reason == 4 || reason == 7) conflicted.push_back(task);
      if (reason != 0) {
        expected_["rejections"].push_back(
            {task, 3, round, machine, reason, claims.rival[i], claims.age_us[i], cell_us, at_us});
        continue;
      }
      if (claims.first[i]) {
        placed.push_back(task);
        ++first_commits;
        delay_us += at_us - world_.submit_us[t];
      }
      expected_["tasks"].push_back({task, world_.job[t], 3, machine, world_.submit_us[t], at_us,
                                    cell_us, claims.attempts[i], claims.first[i], set > 0,
                                    world_.preferred(set, machine), world_.cost(set, machine),
                                    claims.age_us[i]});
    }
    std::vector<int64_t> commit{3,
                                round,
                                committed.start_us,
                                at_us,
                                committed.decision_us,
                                committed.ranking,
                                static_cast<int64_t>(claims.task.size())};
    commit.insert(commit.end(), by_reason.begin(), by_reason.end());
    expected_["commits"].push_back(commit);
    if (of_round && !conflicted.empty()) wasted_us_ += decision_us;
    expect_attempts(committed.start_us, committed.decision_us, of_round ? about : claims.task,
                    claims.task, placed, conflicted);

    const agora::OutcomeSums sums = log_.commit(at_us, claims.outcome(round), committed);
    CHECK(sums.delay_us == delay_us && sums.first_commits == first_commits &&
          sums.claims == by_reason);
    refuses_broken(claims, at_us, round, committed);
  }

  void others(int64_t now_us) {
    std::vector<int64_t> task;
    for (uint64_t more = draw(5); more > 0; --more)
      task.push_back(static_cast<int64_t>(draw(kTasks)));
    const std::vector<int8_t> reason(task.size(), 4);
    const std::vector<int32_t> resource(task.size(), -2);
    const std::vector<int64_t> machines(task.size(), 6), unseen(task.size(), 7);
    log_.unplaceable(now_us, task, reason);
    log_.unplaceable(now_us, task, int8_t{1});
    log_.waiting({task, resource.data(), machines.data(), unseen.data()}, 9, -1);
    for (const int8_t why : {4, 1})
      for (const int64_t one : task) expected_["unplaceable"].push_back({one, 3, now_us, why});
    for (const int64_t one : task) expected_["waiting"].push_back({one, 3, 9, -1, -2, 6, 7});
    log_.hold(5, 6, now_us, 8);
    expected_["holds"].push_back({5, 3, 6, now_us, 8});
    log_.sync(now_us, 4, 50, 60);
    expected_["syncs"].push_back({3, 4, now_us, 50, 60});
    const std::array<int64_t, agora::kRoundFigures> figures{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
    log_.round(now_us, figures);
    expected_["rounds"].push_back({now_us, 3, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
    log_.decided(now_us);
    busy_us_ += now_us;
    log_.sample(now_us, 70, 80, true, 90);
    expected_["agents"].push_back({now_us, 3, 70, 80, 1, busy_us_, wasted_us_, 90});
    log_.attempts({now_us, 11, task});
    expect_attempts(now_us, 11, task, {}, {}, {});
  }

  void check_all() {
    for (size_t table = 0; table < records_.tables(); ++table)
      check_rows(records_.rows(table), expected_[records_.name(table)]);
    records_.clear();
    expected_.clear();
  }

 private:
  void expect_attempts(int64_t start_us, int64_t decision_us, const std::vector<int64_t>& about,
                       const std::vector<int64_t>& claimed, const std::vector<int64_t>& placed,
                       const std::vector<int64_t>& conflicted) {
    std::map<int64_t, std::array<int64_t, 4>> jobs;
    const std::array groups{&about, &claimed, &placed, &conflicted};
    if (!about.empty())
      for (size_t group = 0; group < groups.size(); ++group)
        for (const int64_t task : *groups[group])
          ++jobs[world_.job[static_cast<size_t>(task)]][group];
    for (const auto& [job, counts] : jobs) {
      const int64_t part_us =
          decision_us < 0 ? -1 : decision_us * counts[0] / static_cast<int64_t>(about.size());
      expected_["job_attempts"].push_back(
          {3, job, start_us, part_us, counts[0], counts[1], counts[2], counts[3]});
    }
  }

  void refuses_broken(Claims claims, int64_t at_us, int64_t round,
                      const agora::CommittedRound& committed) {
    if (claims.task.empty()) return;
    const auto broken = [&](auto& column, auto bad) {
      const auto good = column[0];
      column[0] = bad;
      check_refused([&] { log_.commit(at_us, claims.outcome(round), committed); });
      column[0] = good;
    };
    broken(claims.task, int64_t{-1});
    broken(claims.task, static_cast<int64_t>(kTasks));
    broken(claims.machine, static_cast<int32_t>(kMachines));
    broken(claims.reason, static_cast<int8_t>(-1));
    broken(claims.reason, static_cast<int8_t>(agora::kReasons));
    broken(claims.synced_us, INT64_MAX);
  }

  const World world_;
  agora::Measurements records_;
  agora::AgentLog log_;
  std::map<std::string, Rows> expected_;
  int64_t busy_us_ = 0, wasted_us_ = 0;
};

}  // namespace

int main() {
  Checked checked;
  for (int64_t round = 0; round < 2000; ++round) {
    checked.commit(round, draw(4) != 0);
    if (draw(20) == 0) checked.others(10'000 + round);
    if (draw(50) == 0) checked.check_all();
  }
  checked.check_all();

  const World world;
  agora::Measurements records(kAgentTables);
  agora::AgentLog log(3, world.table(), world.catalog(), records);
  const std::vector<int64_t> task{0}, other{kTasks - 1}, none{kTasks};
  check_refused([&] { log.attempts({0, 1, task, other}); });
  check_refused([&] { log.attempts({0, 1, none}); });
  check_refused([&] { log.unplaceable(0, task, std::span<const int8_t>()); });
  for (size_t table = 0; table < records.tables(); ++table) CHECK(records.rows(table).rows() == 0);

  check_refused([&] {
    auto tables = kAgentTables;
    tables[1].bytes[0] = 8;
    agora::Measurements others(tables);
    agora::AgentLog(3, world.table(), world.catalog(), others);
  });
  check_refused([&] {
    agora::Measurements others({kAgentTables.begin(), kAgentTables.begin() + 3});
    agora::AgentLog(3, world.table(), world.catalog(), others);
  });
  check_refused(
      [&] { agora::AgentLog(3, {world.job, world.submit_us, {}}, world.catalog(), records); });
  check_refused([] { agora::RowBuffer({8, 3}); });

  agora::RowBuffer rows({1, 8});
  rows.grow(2);
  rows.fill(0, -5);
  rows.fill(1, int64_t{1} << 40);
  rows.grow(3);
  rows.ungrow();
  rows.add({7, 8});
  check_refused([&] { rows.add({7}); });
  check_rows(rows, {{-5, int64_t{1} << 40}, {-5, int64_t{1} << 40}, {7, 8}});
  return EXIT_SUCCESS;
}
