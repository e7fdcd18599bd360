// How long a decision takes, in integers (schedulers/decision_time.py says what the clocks stand
// for). Durations round up to whole microseconds.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>

namespace agora {

// What one decision round came to.
struct DecisionWork {
  int64_t tasks;          // decided on, placed or not
  int64_t service_tasks;  // those of them that are of services
  int64_t partitions_scanned;
  int64_t operations;
  int64_t elapsed_ns;  // wall time in which the plan was computed
  int64_t priced_machines;
};

// A time per round, per task, per partition looked at, and per machine whose price is made anew.
struct ModelledTime {
  int64_t job_us;
  int64_t task_ns;
  int64_t partition_ns;
  int64_t price_machine_ns;

  int64_t duration_us(int64_t tasks, int64_t partitions_scanned, int64_t priced_machines) const;
  // How many tasks' decisions begin within window_us: at least 1. None if they take no time.
  std::optional<int64_t> tasks_within(int64_t window_us, int64_t partitions_per_task) const;
};

// Times that depend on the class of the tasks. What a round scanned is divided between the classes
// in proportion; prices count once.
struct ModelledTimeByClass {
  ModelledTime batch;
  ModelledTime service;

  int64_t duration_us(int64_t batch_tasks, int64_t service_tasks, int64_t partitions_scanned,
                      int64_t priced_machines) const;
};

struct CountedTime {
  int64_t ns_per_operation;

  int64_t duration_us(int64_t operations) const;
};

struct MeasuredTime {
  static int64_t duration_us(int64_t elapsed_ns);
};

using DecisionClock = std::variant<ModelledTime, ModelledTimeByClass, CountedTime, MeasuredTime>;

// Throws std::overflow_error, as all durations do, for times of 2^63 us or more.
int64_t duration_us(const DecisionClock& clock, const DecisionWork& work);
// None as well if it is not known before deciding.
std::optional<int64_t> tasks_within(const DecisionClock& clock, int64_t window_us,
                                    int64_t partitions_per_task);

}  // namespace agora
