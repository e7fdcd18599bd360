// Priority preemption as Kubernetes has it: pkg/scheduler/framework/preemption/preemption.go
// (DryRunPreemption, pickOneNodeForPreemption) and framework/plugins/defaultpreemption
// (SelectVictimsOnNode, GetOffsetAndNumCandidates).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "scoring_rules.hpp"
#include "shared_state/native/random.hpp"
#include "shared_state/native/view.hpp"

namespace agora {

// Tasks that run on the cell, n of them by machine; on a machine the most important first: of
// higher priority, then the one that has run longer.
struct RunningByMachine {
  std::span<const int64_t> offsets;   // [M+1]: those of machine m are [offsets[m], offsets[m+1])
  std::span<const int32_t> priority;  // [n]
  std::span<const int64_t> since_us;  // [n]
  std::span<const int64_t> request;   // [n, R]
  std::span<const uint8_t> fate;      // [n], a Fate
};

// What a plan may do to a running task.
enum Fate : uint8_t {
  kRunsOn = 0,
  kMayEnd = 1,
  kEnds = 2,  // for other claims of the plan: tasks of higher priority find its room free
};

// Who needs room.
struct Preemptor {
  std::span<const int64_t> request;  // [R]
  int32_t priority;
};

// How many machines are compared: so many percent of those that could make room, but at least so
// many.
struct CandidateShare {
  int64_t percentage;
  int64_t at_least;
};

// A machine, -1: none; the tasks that end there, rows of RunningByMachine, the most important
// first; and how many rows and tasks were held against the filters.
struct MadeRoom {
  int32_t machine = -1;
  std::vector<int64_t> victims;
  int64_t looked_at = 0;
};

// The fewest victims on one machine: all tasks there that may end and are of lower priority are
// taken to end; then each, the most important first, runs on if the task still fits. Returns
// whether it fits at all. The view shows what is free besides. Adds to made.victims and
// made.looked_at.
bool select_victims(const ClusterView& view, const RunningByMachine& running, const Preemptor& task,
                    int32_t machine, MadeRoom& made);

// The machine whose victims are least important. Machines that are up, allowed and large enough are
// tested in turn from a random one on, until enough of them could make room. Of these the one is
// taken whose most important victim has the lowest priority; then with the least sum of priorities,
// each counted from the lowest possible; then with the fewest victims; then where the victims of
// that highest priority began latest; then the one tested first.
MadeRoom make_room(const ClusterView& view, const RunningByMachine& running, const Preemptor& task,
                   const RowAffinity& affinity, const CandidateShare& share, Stream& stream);

}  // namespace agora
