#include "commit_log.hpp"

#include <stdexcept>
#include <string>

namespace agora {

namespace {

// The columns of the tables in the order of tables.py, and the bytes of each.
enum Tasks : size_t {
  kTask,
  kJob,
  kAgent,
  kMachine,
  kSubmitUs,
  kCommitUs,
  kStartUs,
  kAttempts,
  kFirst,
  kPrefers,
  kPreferred,
  kCost,
  kAgeUs
};
constexpr std::array<size_t, 13> kTasksBytes{8, 8, 4, 4, 8, 8, 8, 4, 1, 1, 1, 8, 8};
enum Rejections : size_t {
  kLostTask,
  kLostAgent,
  kLostSequence,
  kLostMachine,
  kLostReason,
  kLostRival,
  kLostAgeUs,
  kLostRejectedUs,
  kLostAtUs
};
constexpr std::array<size_t, 9> kRejectionsBytes{8, 4, 8, 4, 1, 4, 8, 8, 8};

template <size_t N>
void expect(const RowBuffer& buffer, const std::array<size_t, N>& bytes, const char* table) {
  bool same = buffer.columns() == N;
  for (size_t i = 0; same && i < N; ++i) same = buffer.bytes_of(i) == bytes[i];
  if (!same)
    throw std::invalid_argument(std::string(table) +
                                ": its columns are not those that the commit log writes");
}

}  // namespace

CommitLog::CommitLog(int32_t agent, const TaskTable& table, const PreferenceColumns& catalog,
                     RowBuffer& tasks, RowBuffer& rejections)
    : agent_(agent), table_(table), catalog_(catalog), tasks_(tasks), rejections_(rejections) {
  check_lengths(catalog);
  expect(tasks, kTasksBytes, "tasks");
  expect(rejections, kRejectionsBytes, "rejections");
  if (table.submit_us.size() != table.job.size() || table.preference.size() != table.job.size())
    throw std::invalid_argument("task table: expected columns of one length");
}

OutcomeSums CommitLog::add(int64_t now_us, const Outcome& outcome) {
  const size_t count = outcome.task.size();
  OutcomeSums sums;
  preference_.resize(count);
  cost_.resize(count);
  preferred_.resize(count);
  for (size_t i = 0; i < count; ++i) {
    const auto task = static_cast<size_t>(outcome.task[i]);
    const auto reason = static_cast<size_t>(outcome.reason[i]);
    if (task >= table_.job.size())
      throw std::invalid_argument("task[" + std::to_string(i) + "]: there is no such task");
    if (reason >= kReasons)
      throw std::invalid_argument("reason[" + std::to_string(i) + "]: there is no such reason");
    preference_[i] = table_.preference[task];
    ++sums.claims[reason];
  }
  placement_cost(catalog_, preference_, {outcome.machine, count}, cost_.data(),
                 reinterpret_cast<bool*>(preferred_.data()));

  const auto accepted = static_cast<size_t>(sums.claims[0]);
  tasks_.grow(accepted);
  rejections_.grow(count - accepted);
  tasks_.fill(kAgent, agent_);
  tasks_.fill(kCommitUs, now_us);
  tasks_.fill(kStartUs, outcome.cell_us);
  rejections_.fill(kLostAgent, agent_);
  rejections_.fill(kLostSequence, outcome.sequence);
  rejections_.fill(kLostRejectedUs, outcome.cell_us);
  rejections_.fill(kLostAtUs, now_us);
  size_t row = 0, lost = 0;
  for (size_t i = 0; i < count; ++i) {
    if (outcome.reason[i] != 0) {
      rejections_.write(kLostTask, lost, outcome.task[i]);
      rejections_.write(kLostMachine, lost, outcome.machine[i]);
      rejections_.write(kLostReason, lost, outcome.reason[i]);
      rejections_.write(kLostRival, lost, outcome.rival[i]);
      rejections_.write(kLostAgeUs, lost, outcome.age_us[i]);
      ++lost;
      continue;
    }
    const auto task = static_cast<size_t>(outcome.task[i]);
    const int64_t submit_us = table_.submit_us[task];
    if (outcome.first[i] != 0) {
      ++sums.first_commits;
      sums.delay_us += now_us - submit_us;
    }
    tasks_.write(kTask, row, outcome.task[i]);
    tasks_.write(kJob, row, table_.job[task]);
    tasks_.write(kMachine, row, outcome.machine[i]);
    tasks_.write(kSubmitUs, row, submit_us);
    tasks_.write(kAttempts, row, outcome.attempts[i]);
    tasks_.write(kFirst, row, outcome.first[i]);
    tasks_.write(kPrefers, row, preference_[i] > 0);
    tasks_.write(kPreferred, row, preferred_[i]);
    tasks_.write(kCost, row, cost_[i]);
    tasks_.write(kAgeUs, row, outcome.age_us[i]);
    ++row;
  }
  return sums;
}

}  // namespace agora
