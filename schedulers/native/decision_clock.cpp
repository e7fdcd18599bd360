#include "decision_clock.hpp"

#include <algorithm>
#include <stdexcept>

#include "shared_state/native/random.hpp"

namespace agora {

namespace {

int64_t narrowed(Int128 value) {
  if (value < INT64_MIN || value > INT64_MAX)
    throw std::overflow_error("decision time: expected less than 2^63 us");
  return static_cast<int64_t>(value);
}

// The quotient by a positive divisor, rounded up.
Int128 divided_up(Int128 value, Int128 by) {
  const Int128 quotient = value / by;
  return value % by > 0 ? quotient + 1 : quotient;
}

// Of numbers that are not negative: below 2^126.
Int128 product(int64_t one, int64_t other) {
  if (one < 0 || other < 0)
    throw std::invalid_argument("decision time: expected counts of 0 or more");
  return Int128{one} * other;
}

Int128 to_us(Int128 ns) { return divided_up(ns, 1000); }

template <class... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};

}  // namespace

int64_t ModelledTime::duration_us(int64_t tasks, int64_t partitions_scanned,
                                  int64_t priced_machines) const {
  Int128 ns = product(task_ns, tasks) + product(partition_ns, partitions_scanned);
  narrowed(to_us(ns));  // so that the sum of all three cannot overflow
  ns += product(price_machine_ns, priced_machines);
  return narrowed(job_us + to_us(ns));
}

std::optional<int64_t> ModelledTime::tasks_within(int64_t window_us,
                                                  int64_t partitions_per_task) const {
  const Int128 per_task_ns = task_ns + Int128{partition_ns} * partitions_per_task;
  if (per_task_ns <= 0) return std::nullopt;
  const Int128 window_ns = (Int128{window_us} - job_us) * 1000;
  return narrowed(std::max<Int128>(1, divided_up(window_ns, per_task_ns)));
}

int64_t ModelledTimeByClass::duration_us(int64_t batch_tasks, int64_t service_tasks,
                                         int64_t partitions_scanned,
                                         int64_t priced_machines) const {
  const Int128 tasks = Int128{batch_tasks} + service_tasks;
  const auto of_service =
      static_cast<int64_t>(Int128{partitions_scanned} * service_tasks / std::max<Int128>(1, tasks));
  Int128 total_us = 0;
  if (service_tasks > 0)
    total_us +=
        service.duration_us(service_tasks, of_service, batch_tasks > 0 ? 0 : priced_machines);
  if (batch_tasks > 0 || service_tasks == 0)
    total_us += batch.duration_us(batch_tasks, partitions_scanned - of_service, priced_machines);
  return narrowed(total_us);
}

int64_t CountedTime::duration_us(int64_t operations) const {
  return narrowed(to_us(Int128{ns_per_operation} * operations));
}

int64_t MeasuredTime::duration_us(int64_t elapsed_ns) { return narrowed(to_us(elapsed_ns)); }

int64_t duration_us(const DecisionClock& clock, const DecisionWork& work) {
  const Overloaded duration{
      [&](const ModelledTime& times) {
        return times.duration_us(work.tasks, work.partitions_scanned, work.priced_machines);
      },
      [&](const ModelledTimeByClass& times) {
        return times.duration_us(work.tasks - work.service_tasks, work.service_tasks,
                                 work.partitions_scanned, work.priced_machines);
      },
      [&](const CountedTime& times) { return times.duration_us(work.operations); },
      [&](const MeasuredTime&) { return MeasuredTime::duration_us(work.elapsed_ns); }};
  return std::visit(duration, clock);
}

std::optional<int64_t> tasks_within(const DecisionClock& clock, int64_t window_us,
                                    int64_t partitions_per_task) {
  const auto* modelled = std::get_if<ModelledTime>(&clock);
  return modelled ? modelled->tasks_within(window_us, partitions_per_task) : std::nullopt;
}

}  // namespace agora
