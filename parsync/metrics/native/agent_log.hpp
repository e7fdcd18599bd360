// What one agent measures: rows of the tables that tables.py describes, gathered until they are
// handed out (measurements.hpp).
//
//   commit()       commits (1 row per transaction), tasks (1 per accepted claim), rejections (1 per
//                  other claim), job_attempts (as attempts())
//   attempts()     job_attempts: 1 row per job that a decision round was about
//   sync()         syncs             round()        rounds, of flow schedulers
//   unplaceable()  unplaceable       hold()         holds
//   waiting()      waiting           sample()       agents
//
// It also adds up the agent's busyness: the decision times of all rounds, and of those whose
// transaction met a conflict (as in Omega's simulator).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "measurements.hpp"
#include "schedulers/native/objective.hpp"

namespace agora {

constexpr size_t kReasons = 8;  // shared_state.transaction.Reason, 0 = accepted
constexpr int64_t kNotKnown = -1;
// The figures of a flow scheduler's round: columns of the table "rounds" after time and agent.
constexpr size_t kRoundFigures = 11;

// Columns of the task table every participant holds, by task id.
struct LoggedTasks {
  std::span<const int64_t> job;
  std::span<const int64_t> submit_us;
  std::span<const int32_t> preference;
};

// k claims of a transaction and what became of them.
struct Outcome {
  int64_t sequence;  // of the transaction
  std::span<const int64_t> task;
  const int32_t* machine;
  const int64_t* synced_us;  // the cell's time of the state that each was planned on
  const int32_t* attempts;   // claims made so far, this one included
  const int8_t* first;
  const int8_t* reason;
  const int32_t* rival;
  const int64_t* age_us;
};

// The decision round that a transaction is of.
struct CommittedRound {
  // Without one: recovered from the cell's log, or claimed by somebody else.
  int64_t start_us = kNotKnown;
  int64_t decision_us = kNotKnown;
  int64_t ranking = kNotKnown;
  // What it was about; none where there was no round.
  std::optional<std::span<const int64_t>> tasks = std::nullopt;
};

struct OutcomeSums {
  std::array<int64_t, kReasons> claims{};  // by reason
  int64_t first_commits = 0;
  // from submission to the commit, of those; a task that runs again waited less than that
  int64_t delay_us = 0;

  // stale, full, evicted, held
  int64_t conflicts() const { return claims[1] + claims[2] + claims[4] + claims[7]; }
};

// The scheduling attempts of a round that is over. claimed, placed and conflicted are among `task`.
struct Attempts {
  int64_t start_us;
  int64_t decision_us;  // kNotKnown: not known for any job
  std::span<const int64_t> task;
  std::span<const int64_t> claimed = {};
  std::span<const int64_t> placed = {};      // committed for the first time
  std::span<const int64_t> conflicted = {};  // whose claims met a conflict
  bool placed_later = false;                 // by queues at machines: placed is not known
};

// Tasks that still wait as a run ends, [n] each.
struct WaitingRows {
  std::span<const int64_t> task;
  const int32_t* resource;
  const int64_t* machines;
  const int64_t* unseen;
};

class AgentLog {
 public:
  // records: has the tables above. Throws std::invalid_argument if their columns are not those
  // expected here.
  AgentLog(int32_t agent, const LoggedTasks& table, const PreferenceColumns& catalog,
           Measurements& records);

  // Calls that throw std::invalid_argument have added nothing: for a task, reason, preference set
  // or machine that does not exist, and for attempts at jobs that the round was not about.
  OutcomeSums commit(int64_t at_us, const Outcome& outcome, const CommittedRound& round);
  void attempts(const Attempts& attempts);
  void sync(int64_t now_us, int32_t partition, int64_t age_us, int64_t rows);
  // The decision time of a round, which makes the agent busy.
  void decided(int64_t decision_us) { busy_us_ += decision_us; }
  void round(int64_t now_us, std::span<const int64_t, kRoundFigures> figures);
  // reason: schedulers.unplaceable.Unplaceable, of all tasks or of each.
  void unplaceable(int64_t now_us, std::span<const int64_t> task, int8_t reason);
  void unplaceable(int64_t now_us, std::span<const int64_t> task, std::span<const int8_t> reason);
  void hold(int64_t task, int64_t from_us, int64_t until_us, int64_t behind);
  void waiting(const WaitingRows& rows, int8_t why, int64_t ahead);
  void sample(int64_t now_us, int64_t queued, int64_t average_us, bool latency_first,
              int64_t staleness_us);

 private:
  int64_t job_of(int64_t task) const;
  void check(const Outcome& outcome, OutcomeSums& sums);
  void add_claims(int64_t at_us, int64_t cell_us, const Outcome& outcome, OutcomeSums& sums);

  int32_t agent_;
  LoggedTasks table_;
  PreferenceColumns catalog_;
  RowBuffer &tasks_, &rejections_, &commits_, &attempts_, &syncs_, &rounds_, &unplaceable_, &holds_,
      &waiting_, &agents_;
  int64_t busy_us_ = 0;
  int64_t wasted_us_ = 0;  // of rounds with a conflict

  // of the claims of one transaction
  std::vector<int32_t> preference_;
  std::vector<int64_t> cost_;
  std::vector<uint8_t> preferred_;
  std::vector<int64_t> placed_, conflicted_;
  // of the jobs of one round, ascending, and how many tasks of each are in each of four groups
  std::vector<int64_t> jobs_;
  std::vector<std::array<int64_t, 4>> counts_;
};

}  // namespace agora
