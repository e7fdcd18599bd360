// The unscheduled aggregators U_j of the flow graph. The flow of a job's tasks that stay waiting
// passes through its U_j, whose arc to the sink costs the waiting price (schedulers/flow/graph.py).
//
// A job has a place while tasks of it are in the graph. The place holds the solver's ids of the
// node and of its arc to the sink, and the quantum of time from which that arc counts the waiting
// price:
//
//                enter()            name()                leave() of the last task
//     (no place) -------> unnamed --------> tasks > 0 --------------------------> empty
//         ^                                     ^------------ enter() ------------- |
//         '-------------------------- close_empty() -------------------------------'
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "row_pool.hpp"

namespace agora {

class UnscheduledAggregators {
 public:
  static constexpr int64_t kNoNode = -1;

  // A column for each attribute of the jobs that have a place.
  struct Open {
    std::vector<int64_t> node;
    std::vector<int64_t> arc;            // to the sink
    std::vector<int64_t> first_quantum;  // from which the arc counts the waiting price
  };

  UnscheduledAggregators() : pool_(64) {}

  // Adds one task for each entry of `job`, submitted in that quantum.
  //
  // Writes the place of each task's job. Returns the first quantum of each job that had no place,
  // in ascending order of jobs: that in which the first of its tasks was submitted. These jobs are
  // to be named before anything else is called, or std::logic_error is thrown.
  std::vector<int64_t> enter(std::span<const int64_t> job, std::span<const int64_t> submitted,
                             std::span<int64_t> place);

  // The solver's ids for the jobs that enter() found new, in its order. Throws
  // std::invalid_argument for another number of them, or ids that are negative.
  void name(std::span<const int64_t> node, std::span<const int64_t> arc);

  // A task of the job of this place leaves the graph.
  void leave(int64_t place);

  // Frees the places without tasks. Returns their nodes, in order of places.
  std::vector<int64_t> close_empty();

  // The jobs with a place, in order of places.
  Open open() const;

  int64_t node(int64_t place) const { return at(place).node; }
  int64_t first_quantum(int64_t place) const { return at(place).first_quantum; }

 private:
  struct Place {
    int64_t job = 0;
    int64_t node = kNoNode;  // kNoNode: the place is free, or unnamed
    int64_t arc = 0;
    int64_t first_quantum = 0;
    int64_t tasks = 0;
  };

  Place& at(int64_t place) { return places_[static_cast<size_t>(place)]; }
  const Place& at(int64_t place) const { return places_[static_cast<size_t>(place)]; }
  void require_named() const;

  std::vector<Place> places_;
  RowPool pool_;
  std::unordered_map<int64_t, int64_t> place_of_;  // by job
  std::vector<int64_t> unnamed_;                   // places
};

}  // namespace agora
