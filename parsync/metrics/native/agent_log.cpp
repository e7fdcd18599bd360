#include "agent_log.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "shared_state/native/cell.hpp"

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
// agent, sequence, start_us, commit_us, decision_us, ranking, claims, and the claims by reason
constexpr std::array<size_t, 15> kCommitsBytes{4, 8, 8, 8, 8, 1, 4, 4, 4, 4, 4, 4, 4, 4, 4};
// agent, job, start_us, decision_us, tasks, claims, placed, conflicts
constexpr std::array<size_t, 8> kAttemptsBytes{4, 8, 8, 8, 8, 8, 8, 8};
// agent, partition, at_us, age_us, rows
constexpr std::array<size_t, 5> kSyncsBytes{4, 4, 8, 8, 4};
// at_us, agent, and the figures
constexpr std::array<size_t, 2 + kRoundFigures> kRoundsBytes{8, 4, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8};
enum UnplaceableTasks : size_t { kNeverTask, kNeverAgent, kNeverAtUs, kNeverReason };
constexpr std::array<size_t, 4> kUnplaceableBytes{8, 4, 8, 1};
// task, agent, from_us, until_us, behind
constexpr std::array<size_t, 5> kHoldsBytes{8, 4, 8, 8, 8};
enum Waiting : size_t {
  kWaitingTask,
  kWaitingAgent,
  kWaitingWhy,
  kWaitingAhead,
  kWaitingResource,
  kWaitingMachines,
  kWaitingUnseen
};
constexpr std::array<size_t, 7> kWaitingBytes{8, 4, 1, 8, 4, 8, 8};
// at_us, agent, queued, ema_us, latency_first, busy_us, wasted_us, staleness_us
constexpr std::array<size_t, 8> kAgentsBytes{8, 4, 8, 8, 1, 8, 8, 8};

template <size_t N>
RowBuffer& table_of(Measurements& records, const char* name, const std::array<size_t, N>& bytes) {
  RowBuffer& buffer = records.rows(name);
  bool same = buffer.columns() == N;
  for (size_t i = 0; same && i < N; ++i) same = buffer.bytes_of(i) == bytes[i];
  if (!same)
    throw std::invalid_argument(std::string(name) +
                                ": its columns are not those that the agent's log writes");
  return buffer;
}

}  // namespace

AgentLog::AgentLog(int32_t agent, const LoggedTasks& table, const PreferenceColumns& catalog,
                   Measurements& records)
    : agent_(agent),
      table_(table),
      catalog_(catalog),
      tasks_(table_of(records, "tasks", kTasksBytes)),
      rejections_(table_of(records, "rejections", kRejectionsBytes)),
      commits_(table_of(records, "commits", kCommitsBytes)),
      attempts_(table_of(records, "job_attempts", kAttemptsBytes)),
      syncs_(table_of(records, "syncs", kSyncsBytes)),
      rounds_(table_of(records, "rounds", kRoundsBytes)),
      unplaceable_(table_of(records, "unplaceable", kUnplaceableBytes)),
      holds_(table_of(records, "holds", kHoldsBytes)),
      waiting_(table_of(records, "waiting", kWaitingBytes)),
      agents_(table_of(records, "agents", kAgentsBytes)) {
  check_lengths(catalog);
  if (table.submit_us.size() != table.job.size() || table.preference.size() != table.job.size())
    throw std::invalid_argument("task table: expected columns of one length");
}

// --- transactions ---

OutcomeSums AgentLog::commit(int64_t at_us, const Outcome& outcome, const CommittedRound& round) {
  OutcomeSums sums;
  check(outcome, sums);
  // the cell's time, at which it handled the transaction
  int64_t cell_us = at_us;
  if (!outcome.task.empty() &&
      __builtin_add_overflow(outcome.synced_us[0], outcome.age_us[0], &cell_us))
    throw std::invalid_argument("age_us[0]: expected the difference of two times");
  if (round.tasks || round.decision_us == kNotKnown) {
    placed_.clear();
    conflicted_.clear();
    for (size_t i = 0; i < outcome.task.size(); ++i) {
      if (outcome.reason[i] == 0 && outcome.first[i] != 0) placed_.push_back(outcome.task[i]);
      if (is_conflict(outcome.reason[i])) conflicted_.push_back(outcome.task[i]);
    }
    attempts({round.start_us, round.decision_us, round.tasks.value_or(outcome.task), outcome.task,
              placed_, conflicted_});
  }
  add_claims(at_us, cell_us, outcome, sums);
  const auto& by = sums.claims;
  commits_.add({agent_, outcome.sequence, round.start_us, at_us, round.decision_us, round.ranking,
                static_cast<int64_t>(outcome.task.size()), by[0], by[1], by[2], by[3], by[4], by[5],
                by[6], by[7]});
  if (round.decision_us != kNotKnown && sums.conflicts() > 0) wasted_us_ += round.decision_us;
  return sums;
}

// Counts the claims by reason, and works out what the placements cost.
void AgentLog::check(const Outcome& outcome, OutcomeSums& sums) {
  const size_t count = outcome.task.size();
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
}

void AgentLog::add_claims(int64_t at_us, int64_t cell_us, const Outcome& outcome,
                          OutcomeSums& sums) {
  const size_t count = outcome.task.size();
  const auto accepted = static_cast<size_t>(sums.claims[0]);
  tasks_.grow(accepted);
  rejections_.grow(count - accepted);
  tasks_.fill(kAgent, agent_);
  tasks_.fill(kCommitUs, at_us);
  tasks_.fill(kStartUs, cell_us);
  rejections_.fill(kLostAgent, agent_);
  rejections_.fill(kLostSequence, outcome.sequence);
  rejections_.fill(kLostRejectedUs, cell_us);
  rejections_.fill(kLostAtUs, at_us);
  const struct {
    int64_t *task, *job, *submit_us, *cost, *age_us;
    int32_t *machine, *attempts;
    int8_t *first, *prefers, *preferred;
  } won{tasks_.added<int64_t>(kTask),     tasks_.added<int64_t>(kJob),
        tasks_.added<int64_t>(kSubmitUs), tasks_.added<int64_t>(kCost),
        tasks_.added<int64_t>(kAgeUs),    tasks_.added<int32_t>(kMachine),
        tasks_.added<int32_t>(kAttempts), tasks_.added<int8_t>(kFirst),
        tasks_.added<int8_t>(kPrefers),   tasks_.added<int8_t>(kPreferred)};
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
      sums.delay_us += at_us - submit_us;
    }
    won.task[row] = outcome.task[i];
    won.job[row] = table_.job[task];
    won.machine[row] = outcome.machine[i];
    won.submit_us[row] = submit_us;
    won.attempts[row] = static_cast<int32_t>(outcome.attempts[i]);
    won.first[row] = outcome.first[i] != 0;
    won.prefers[row] = preference_[i] > 0;
    won.preferred[row] = static_cast<int8_t>(preferred_[i]);
    won.cost[row] = cost_[i];
    won.age_us[row] = outcome.age_us[i];
    ++row;
  }
}

// --- scheduling attempts ---

int64_t AgentLog::job_of(int64_t task) const {
  if (task < 0 || static_cast<size_t>(task) >= table_.job.size())
    throw std::invalid_argument("task " + std::to_string(task) + ": there is no such task");
  return table_.job[static_cast<size_t>(task)];
}

void AgentLog::attempts(const Attempts& attempts) {
  if (attempts.task.empty()) return;
  jobs_.clear();
  for (const int64_t task : attempts.task) {
    const int64_t job = job_of(task);
    if (jobs_.empty() || jobs_.back() != job) jobs_.push_back(job);
  }
  if (jobs_.size() > 1) {
    std::sort(jobs_.begin(), jobs_.end());
    jobs_.erase(std::unique(jobs_.begin(), jobs_.end()), jobs_.end());
  }
  counts_.assign(jobs_.size(), {});
  const std::array groups{attempts.task, attempts.claimed, attempts.placed, attempts.conflicted};
  for (size_t group = 0; group < groups.size(); ++group) {
    size_t place = 0;  // tasks of a job mostly follow each other
    for (const int64_t task : groups[group]) {
      const int64_t job = job_of(task);
      if (jobs_[place] != job) {
        const auto at = std::lower_bound(jobs_.begin(), jobs_.end(), job);
        if (at == jobs_.end() || *at != job)
          throw std::invalid_argument("task " + std::to_string(task) +
                                      ": the round was not about its job");
        place = static_cast<size_t>(at - jobs_.begin());
      }
      ++counts_[place][group];
    }
  }
  const auto about = static_cast<int64_t>(attempts.task.size());
  const int64_t each_us = attempts.decision_us / about, rest_us = attempts.decision_us % about;
  for (size_t i = 0; i < jobs_.size(); ++i) {
    const auto& [tasks, claims, placed, conflicts] = counts_[i];
    // decision_us * tasks / about, without a product that could overflow
    const int64_t part_us =
        attempts.decision_us == kNotKnown ? kNotKnown : each_us * tasks + rest_us * tasks / about;
    attempts_.add({agent_, jobs_[i], attempts.start_us, part_us, tasks, claims,
                   attempts.placed_later ? kNotKnown : placed, conflicts});
  }
}

// --- the other tables ---

void AgentLog::sync(int64_t now_us, int32_t partition, int64_t age_us, int64_t rows) {
  syncs_.add({agent_, partition, now_us, age_us, rows});
}

void AgentLog::round(int64_t now_us, std::span<const int64_t, kRoundFigures> figures) {
  const auto& of = figures;
  rounds_.add({now_us, agent_, of[0], of[1], of[2], of[3], of[4], of[5], of[6], of[7], of[8], of[9],
               of[10]});
}

void AgentLog::unplaceable(int64_t now_us, std::span<const int64_t> task, int8_t reason) {
  unplaceable_.grow(task.size());
  unplaceable_.copy(kNeverTask, task.data());
  unplaceable_.fill(kNeverAgent, agent_);
  unplaceable_.fill(kNeverAtUs, now_us);
  unplaceable_.fill(kNeverReason, reason);
}

void AgentLog::unplaceable(int64_t now_us, std::span<const int64_t> task,
                           std::span<const int8_t> reason) {
  if (reason.size() != task.size())
    throw std::invalid_argument("unplaceable: expected one reason per task");
  unplaceable(now_us, task, int8_t{0});
  unplaceable_.copy(kNeverReason, reason.data());
}

void AgentLog::hold(int64_t task, int64_t from_us, int64_t until_us, int64_t behind) {
  holds_.add({task, agent_, from_us, until_us, behind});
}

void AgentLog::waiting(const WaitingRows& rows, int8_t why, int64_t ahead) {
  waiting_.grow(rows.task.size());
  waiting_.copy(kWaitingTask, rows.task.data());
  waiting_.fill(kWaitingAgent, agent_);
  waiting_.fill(kWaitingWhy, why);
  waiting_.fill(kWaitingAhead, ahead);
  waiting_.copy(kWaitingResource, rows.resource);
  waiting_.copy(kWaitingMachines, rows.machines);
  waiting_.copy(kWaitingUnseen, rows.unseen);
}

void AgentLog::sample(int64_t now_us, int64_t queued, int64_t average_us, bool latency_first,
                      int64_t staleness_us) {
  agents_.add(
      {now_us, agent_, queued, average_us, latency_first, busy_us_, wasted_us_, staleness_us});
}

}  // namespace agora
