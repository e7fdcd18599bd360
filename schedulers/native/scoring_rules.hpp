// How the scoring kinds choose a machine: Kubernetes, SwarmKit, Nomad, and stranded resources after
// Borg. docs/scoring.md lists where each differs from its original.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "objective.hpp"
#include "scoring_memory.hpp"
#include "shared_state/native/random.hpp"
#include "shared_state/native/view.hpp"

namespace agora {

// The tasks of a plan, columns of one length.
struct ScoreRequest {
  std::span<const int64_t> task;     // ids
  std::span<const int64_t> job;      // job of each
  std::span<const int64_t> request;  // [n, dimensions]
  size_t dimensions;
  std::span<const int32_t> preference;
  std::span<const int64_t> gang;       // negative: none
  std::span<const int8_t> task_class;  // shared_state.tasks.TaskClass
  uint64_t stream;                     // key of the plan's random numbers
  int64_t now_us;

  size_t count() const { return task.size(); }
  const int64_t* request_of(size_t at) const { return request.data() + at * dimensions; }
};

// Counted work: rows held against the filters, or looked at again; rows scored, or scored again.
struct ScoreWork {
  int64_t filtered = 0;
  int64_t scored = 0;
};

// What a preference set makes of each machine: an affinity of 0 to 100, and for a constraint
// whether the machine is allowed at all.
//
// A set is read as nested terms: a term per cost, which matches all machines that cost at most
// that, weighted by what it saves against the next dearer cost. So the terms that a machine matches
// sum to what it saves against running elsewhere. The greatest saving is 100; a smaller one is in
// proportion, rounded down, but at least 1. A constraint saves against the dearest place it lists.
class RowAffinity {
 public:
  explicit RowAffinity(size_t machines) : of_row_(machines, kUnlisted) {}

  void use(const Catalog& catalog, int32_t set);
  bool allows(int32_t row) const {
    return !required_ || of_row_[static_cast<size_t>(row)] != kUnlisted;
  }
  int64_t of(int32_t row) const { return std::max<int64_t>(of_row_[static_cast<size_t>(row)], 0); }
  // Whether some machine is better than others.
  bool differs() const { return differs_; }
  bool required() const { return required_; }
  // All machines that the set lists, ascending.
  std::span<const int32_t> listed() const { return listed_; }

 private:
  static constexpr int8_t kUnlisted = -1;

  std::vector<int8_t> of_row_;
  std::vector<int32_t> listed_;
  int32_t set_ = -1;
  bool required_ = false;
  bool differs_ = false;
};

// What a rule reads of the plan that is being made, and where it counts its work.
struct ScoringPlan {
  ClusterView& view;
  const ScoreRequest& tasks;
  const OwnTasks& own;
  const RecentFailures& failures;
  const AvoidedMachines& avoided;
  const RowAffinity& affinity;  // of the set of the group
  Stream& stream;
  ScoreWork work;

  // The filters: is the machine up, does the task fit, and may it run there?
  bool passes(int32_t row, const int64_t* request) {
    ++work.filtered;
    return view.fits(row, request) && affinity.allows(row);
  }
};

// Chooses machines. Called for one plan: begin(); then for each group begin_group() and, for its
// tasks in turn, choose(), followed by took() where it found a machine.
class ScoringRule {
 public:
  virtual ~ScoringRule() = default;

  virtual void begin(ScoringPlan& plan) { plan_ = &plan; }
  // `count` tasks alike begin with this one.
  virtual void begin_group(size_t /*task*/, size_t /*count*/) {}
  // A machine with room for the task; -1: there is none.
  virtual int32_t choose(size_t task) = 0;
  virtual void took(int32_t /*row*/) {}
  // A gang found no room: its members that had a place have none any more. A new group follows.
  virtual void rolled_back() {}

 protected:
  ScoringPlan& plan() const { return *plan_; }

 private:
  ScoringPlan* plan_ = nullptr;
};

// Kubernetes: pkg/scheduler/schedule_one.go (findNodesThatPassFilters, numFeasibleNodesToFind) and
// framework/plugins/{noderesources,nodeaffinity}. Machines are tested in turn from where the last
// search ended, until enough pass: all below 100 machines, else `percentage` of them (0: 50 less
// one per 125 machines, at least 5), and at least 100. Score: least-allocated + balanced-allocation
// + 2 x affinity, which is in percent of the best of those that passed. Ties at random.
std::unique_ptr<ScoringRule> kubernetes_rule(int64_t percentage);

// How many machines that pass are enough, of n.
size_t kubernetes_enough(size_t n, int64_t percentage);

// SwarmKit: manager/scheduler/scheduler.go (scheduleTaskGroup). All machines that pass; first those
// where the job failed fewer than five times in five minutes, then by the number of failures; then
// by the scheduler's own tasks of the job there; then by all of its tasks there. Ties in an order
// drawn for each group.
std::unique_ptr<ScoringRule> swarmkit_rule();

// Nomad: scheduler/feasible/{stack,select,rank}.go and nomad/structs/funcs.go (ScoreFitBinPack).
// Each group shuffles the machines and goes through them in turn, round and round. A task looks at
// two that pass (services: at least ceil(log2 machines)), besides up to three whose score is 0 or
// less; with affinities at max(100, tasks of the job). The score is the mean of those that apply:
// bin packing (or spreading) / 18, -(tasks of the job there + 1) / tasks of the job, -1 where the
// task was rejected or lost, and affinity / 100. The first of the best is taken.
std::unique_ptr<ScoringRule> nomad_rule(bool spread);

// After Borg (Verma et al., EuroSys 2015, section 3.4), whose formula is not published; this one is
// Agora's. Machines are looked at in random order until `enough` pass. Tasks of one request and set
// are a class, and share these machines and their scores through the plan: a machine is scored
// again where the plan has changed it, and where one no longer passes the search goes on. The best
// machine has the highest affinity; then strands least more; then is the fullest; then was found
// first. Stranded is what is free of each resource beyond the scarcest, as shares of the machine;
// how much more is rounded to 1,024ths.
std::unique_ptr<ScoringRule> stranded_rule(size_t enough);

}  // namespace agora
