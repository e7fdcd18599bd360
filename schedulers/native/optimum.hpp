// The least cost at which a set of tasks could be placed, and whether it is exact
// (schedulers/objective.py says when). A min-cost flow:
//
//   class of tasks --machine_cost--> group of machines --> sink     as many tasks as fit
//   class --rack_cost--> rack --> group, sink       to the sink: the rack's unlisted machines
//   class --elsewhere_cost--> X --> rack, group, sink
//   class --unscheduled_cost--> sink
//
// A class is the tasks that are of one preference set and ask alike. A group is the machines that
// are listed by the same classes at the same costs and lie in one listed rack, or in none: the flow
// does not tell them apart, so they are one node with the room of all. Machines that no class lists
// have no node; of these, no more are looked at than it takes to have room for all tasks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "catalog.hpp"

namespace agora {

struct Optimum {
  int64_t cost = 0;  // a lower bound if not exact
  bool exact = false;
};

// What tasks may take on each machine.
class MachineRoom {
 public:
  virtual ~MachineRoom() = default;
  // Writes an amount for each resource; below 0: none.
  virtual void read(size_t machine, int64_t* room) const = 0;
};

// Not thread-safe.
class BestPlacement {
 public:
  // The columns are borrowed for this object's life. Throws std::invalid_argument if they are
  // malformed.
  explicit BestPlacement(const PreferenceColumns& catalog);

  const PreferenceColumns& catalog() const { return catalog_; }
  size_t machines() const { return catalog_.rack_of.size(); }

  // The best placement of tasks of sets preference[n] that ask for request[n * dimensions], on
  // room[machines() * dimensions] (below 0: none). A task left waiting costs its unscheduled cost.
  // Throws std::invalid_argument: lengths, a set that does not exist, costs beyond the solver's
  // range.
  Optimum cost(std::span<const int64_t> room, size_t dimensions,
               std::span<const int32_t> preference, std::span<const int64_t> request);
  Optimum cost(const MachineRoom& room, size_t dimensions, std::span<const int32_t> preference,
               std::span<const int64_t> request);

 private:
  PreferenceColumns catalog_;
  std::vector<size_t> rack_begin_;  // [racks + 1], the first machine of each rack
  // No listed machine costs more than its rack, and no listed rack more than elsewhere: then the
  // cheapest path is the right price.
  bool ordered_;
  std::vector<uint32_t> group_of_;  // by machine: used while a network is made
};

}  // namespace agora
