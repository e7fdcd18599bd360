// What a scoring scheduler remembers from one plan to the next: its own tasks, where they failed
// lately, and which machines a task was turned away from.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <stdexcept>
#include <unordered_map>
#include <vector>

namespace agora {

// The tasks of one scheduler that are claimed or run, by job and by machine.
//
// Entries are by task, so what the scheduler was not told about a claim (it turned out to run
// already, or was never sent) is put right when the task is placed again, adopted or over.
class OwnTasks {
 public:
  struct Place {
    int64_t job;
    int32_t machine;
  };
  using CountByMachine = std::unordered_map<int32_t, int32_t>;

  explicit OwnTasks(size_t machines) : on_machine_(machines) {}

  // The task is there, and nowhere else. Throws std::invalid_argument for an unknown machine.
  void put(int64_t task, const Place& place) {
    if (place.machine < 0 || static_cast<size_t>(place.machine) >= on_machine_.size())
      throw std::invalid_argument("machine: there is no such machine");
    remove(task);
    tasks_.emplace(task, place);
    JobTasks& job = jobs_[place.job];
    ++job.count;
    ++job.by_machine[place.machine];
    ++on_machine_[static_cast<size_t>(place.machine)];
  }
  // Nothing happens if the task is not known.
  void remove(int64_t task) {
    const auto found = tasks_.find(task);
    if (found == tasks_.end()) return;
    const Place place = found->second;
    tasks_.erase(found);
    --on_machine_[static_cast<size_t>(place.machine)];
    const auto job = jobs_.find(place.job);
    const auto there = job->second.by_machine.find(place.machine);
    if (--there->second == 0) job->second.by_machine.erase(there);
    if (--job->second.count == 0) jobs_.erase(job);
  }

  std::optional<Place> find(int64_t task) const {
    const auto found = tasks_.find(task);
    return found == tasks_.end() ? std::nullopt : std::optional(found->second);
  }
  int32_t on_machine(int32_t row) const { return on_machine_[static_cast<size_t>(row)]; }
  int64_t of_job(int64_t job) const {
    const auto found = jobs_.find(job);
    return found == jobs_.end() ? 0 : found->second.count;
  }
  // Null if the job has none.
  const CountByMachine* machines_of(int64_t job) const {
    const auto found = jobs_.find(job);
    return found == jobs_.end() ? nullptr : &found->second.by_machine;
  }
  int32_t of_job_on(int64_t job, int32_t row) const {
    const CountByMachine* machines = machines_of(job);
    if (machines == nullptr) return 0;
    const auto found = machines->find(row);
    return found == machines->end() ? 0 : found->second;
  }

 private:
  struct JobTasks {
    int64_t count = 0;
    CountByMachine by_machine;
  };
  std::unordered_map<int64_t, Place> tasks_;
  std::unordered_map<int64_t, JobTasks> jobs_;
  std::vector<int32_t> on_machine_;
};

// How often tasks of a job failed on a machine within the last five minutes (SwarmKit:
// monitorFailures in manager/scheduler/nodeinfo.go).
class RecentFailures {
 public:
  static constexpr int64_t kWindowUs = 300'000'000;

  void add(int64_t job, int32_t machine, int64_t at_us) {
    failures_.push_back({job, at_us, machine});
    ++jobs_[job][machine];
  }
  // Forgets what is more than the window ago. Times do not go back.
  void expire(int64_t now_us) {
    for (; !failures_.empty() && now_us - failures_.front().at_us > kWindowUs;
         failures_.pop_front()) {
      const Failure& failure = failures_.front();
      const auto job = jobs_.find(failure.job);
      const auto there = job->second.find(failure.machine);
      if (--there->second == 0) job->second.erase(there);
      if (job->second.empty()) jobs_.erase(job);
    }
  }
  // Null if the job has none.
  const OwnTasks::CountByMachine* machines_of(int64_t job) const {
    const auto found = jobs_.find(job);
    return found == jobs_.end() ? nullptr : &found->second;
  }

 private:
  struct Failure {
    int64_t job;
    int64_t at_us;
    int32_t machine;
  };
  std::deque<Failure> failures_;
  std::unordered_map<int64_t, OwnTasks::CountByMachine> jobs_;
};

// The machines that turned a task away, or failed under it: the last five (Nomad:
// maxPastRescheduleEvents in scheduler/util.go).
class AvoidedMachines {
 public:
  static constexpr size_t kKept = 5;

  void add(int64_t task, int32_t machine) {
    std::vector<int32_t>& machines = tasks_[task];
    if (machines.size() == kKept) machines.erase(machines.begin());
    machines.push_back(machine);
  }
  void forget(int64_t task) { tasks_.erase(task); }
  std::span<const int32_t> of(int64_t task) const {
    const auto found = tasks_.find(task);
    return found == tasks_.end() ? std::span<const int32_t>{} : std::span(found->second);
  }

 private:
  std::unordered_map<int64_t, std::vector<int32_t>> tasks_;
};

}  // namespace agora
