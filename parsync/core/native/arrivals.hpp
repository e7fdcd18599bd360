// The source of tasks and machine events: an open-loop participant that never waits for the cell.
//
//   ArrivalsDue -> TasksSubmitted of every batch that is due; a timer at the next batch
//   MachinesDue -> MachinesChanged of every change that is due; a timer at the next change
#pragma once

#include <cstddef>
#include <cstdint>

#include "events.hpp"
#include "participant.hpp"

namespace agora {

// B batches of arrivals, ascending in time: batch b is rows[offsets[b]..offsets[b + 1]).
struct ArrivalBatches {
  SharedColumn<int64_t> at_us;    // [B]
  SharedColumn<int64_t> offsets;  // [B + 1]
  SharedColumn<int64_t> rows;
  SharedColumn<int32_t> agent;    // [B], who gets it
  SharedColumn<int64_t> job;      // [B], of its first task
  SharedColumn<int64_t> prefers;  // [B], its tasks with preferences
};

// Machines that go down or come up, ascending in time.
struct MachineChanges {
  SharedColumn<int64_t> at_us;    // [k]
  SharedColumn<int32_t> machine;  // [k]
  SharedColumn<bool> up;          // [k]
};

class ArrivalSource : public Participant {
 public:
  // records: has the table "submissions".
  ArrivalSource(ArrivalBatches batches, MachineChanges changes, Measurements& records);

  void handle(int64_t now_us, const EventPtr& event, Effects& effects) override;

  // Whether all batches are submitted (machine events may still come).
  bool exhausted() const { return next_batch_ >= batches_.at_us.size(); }
  // The number of tasks submitted so far.
  int64_t submitted() const { return batches_.offsets[next_batch_]; }

 private:
  void submit(int64_t now_us, Effects& effects);
  void change_machines(int64_t now_us, Effects& effects);
  void arm_arrivals(Effects& effects) const;
  void arm_machines(Effects& effects) const;

  ArrivalBatches batches_;
  MachineChanges changes_;
  Measurements& records_;
  RowBuffer& submissions_;
  size_t next_batch_ = 0;
  size_t next_change_ = 0;
};

}  // namespace agora
