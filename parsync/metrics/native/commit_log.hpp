// What an agent measures of a transaction's outcome, claim by claim: rows of the tables "tasks" and
// "rejections" (tables.py).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "row_buffer.hpp"
#include "schedulers/native/catalog.hpp"

namespace agora {

constexpr size_t kReasons = 7;  // shared_state.transaction.Reason, 0 = accepted

// Columns of the task table every participant holds, by task id.
struct TaskTable {
  std::span<const int64_t> job;
  std::span<const int64_t> submit_us;
  std::span<const int32_t> preference;
};

// k claims of a transaction and what became of them.
struct Outcome {
  int64_t sequence;  // of the transaction
  int64_t cell_us;   // when the cell handled it
  std::span<const int64_t> task;
  const int32_t* machine;
  const int32_t* attempts;  // claims made so far, this one included
  const int8_t* first;
  const int8_t* reason;
  const int32_t* rival;
  const int64_t* age_us;
};

struct OutcomeSums {
  std::array<int64_t, kReasons> claims{};  // by reason
  int64_t first_commits = 0;
  // from submission to now_us, of those; a task that runs again waited less than that
  int64_t delay_us = 0;
};

class CommitLog {
 public:
  // tasks, rejections: buffers of these tables. Throws std::invalid_argument if their columns are
  // not those expected here.
  CommitLog(int32_t agent, const TaskTable& table, const PreferenceColumns& catalog,
            RowBuffer& tasks, RowBuffer& rejections);

  // Throws std::invalid_argument, with nothing added, for a task, reason, preference set or machine
  // that does not exist.
  OutcomeSums add(int64_t now_us, const Outcome& outcome);

 private:
  int32_t agent_;
  TaskTable table_;
  PreferenceColumns catalog_;
  RowBuffer& tasks_;
  RowBuffer& rejections_;
  std::vector<int32_t> preference_;
  std::vector<int64_t> cost_;
  std::vector<uint8_t> preferred_;
};

}  // namespace agora
