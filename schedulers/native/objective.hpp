// The one placement cost (schedulers/objective.py): what a task of a preference set costs on a
// machine, the sets as levels of equal cost for placers (Catalog), and the least cost at which a
// set of tasks could be placed (BestPlacement).
//
// A task of set k placed on machine m costs the machine's cost if m is listed for k, else its
// rack's if the rack is listed, else elsewhere[k]. The machines listed are the preferred ones. As
// in Quincy, a machine listed is assumed no dearer than its rack, and a rack no dearer than
// elsewhere: a placer tries the listed machines by ascending cost, then the listed racks by
// ascending cost, then the rest. A set whose elsewhere is kNowhereElse is a constraint: its tasks
// may run only on what it lists.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace agora {

// As shared_state.tasks.NOWHERE_ELSE.
constexpr int64_t kNowhereElse = int64_t{1} << 38;

// Borrowed columns; whoever makes one keeps the arrays alive.
struct PreferenceColumns {
  std::span<const int64_t> machine_offsets;  // [K+1]
  std::span<const int32_t> machine;          // ascending within a set
  std::span<const int64_t> machine_cost;
  std::span<const int64_t> rack_offsets;  // [K+1]
  std::span<const int32_t> rack;          // ascending within a set
  std::span<const int64_t> rack_cost;
  std::span<const int64_t> elsewhere_cost;    // [K]
  std::span<const int64_t> unscheduled_cost;  // [K]
  std::span<const int32_t> rack_of;           // [M], non-decreasing

  size_t sets() const { return elsewhere_cost.size(); }
};

// Throws std::invalid_argument unless the columns' lengths go together.
void check_lengths(const PreferenceColumns& columns);

// cost[i], preferred[i] of a task of set preference[i] on machine[i]; machine -1 is left waiting:
// the unscheduled cost. O(n log set size). Throws std::invalid_argument for a set, machine or
// offset out of range.
void placement_cost(const PreferenceColumns& columns, std::span<const int32_t> preference,
                    std::span<const int32_t> machine, int64_t* cost, bool* preferred);

// The preference sets (shared_state.tasks.PreferenceCatalog) as levels of equal cost.
class Catalog {
 public:
  struct RowRange {
    int32_t first;
    int32_t end;
  };
  // Members of one set at one cost: rows [begin, end) of members(), or of rack_rows().
  struct Level {
    uint32_t begin;
    uint32_t end;
    bool racks;
    int64_t cost;
  };

  // Throws std::invalid_argument naming the set that is malformed. The columns are borrowed for the
  // catalog's life.
  explicit Catalog(const PreferenceColumns& columns);

  size_t sets() const { return level_offsets_.size() - 1; }
  size_t machines() const { return machines_; }
  size_t levels() const { return levels_.size(); }
  int64_t elsewhere_cost(int32_t set) const { return elsewhere_cost_[static_cast<size_t>(set)]; }
  // Whether tasks of the set may run only on what it lists.
  bool is_constraint(int32_t set) const { return elsewhere_cost(set) == kNowhereElse; }
  uint32_t first_level(int32_t set) const { return level_offsets_[static_cast<size_t>(set)]; }
  uint32_t end_level(int32_t set) const { return level_offsets_[static_cast<size_t>(set) + 1]; }
  const Level& level(uint32_t number) const { return levels_[number]; }
  // Ascending rows of a machine level.
  std::span<const int32_t> members(const Level& level) const {
    return members_.subspan(level.begin, level.end - level.begin);
  }
  // The machines of all levels of a set, by ascending cost. They are contiguous.
  std::span<const int32_t> listed_machines(int32_t set) const {
    const uint32_t first = first_level(set);
    uint32_t last = first;
    while (last < end_level(set) && !levels_[last].racks) ++last;
    if (last == first) return {};
    return members_.subspan(levels_[first].begin, levels_[last - 1].end - levels_[first].begin);
  }
  bool lists_machines(int32_t set) const {
    return first_level(set) < end_level(set) && !levels_[first_level(set)].racks;
  }
  // Ascending disjoint row ranges of a rack level.
  std::span<const RowRange> rack_rows(const Level& level) const {
    return std::span(rack_rows_).subspan(level.begin, level.end - level.begin);
  }

 private:
  // order: to work with.
  void add_machines(const PreferenceColumns& columns, size_t set, std::vector<size_t>& order);
  void add_racks(const PreferenceColumns& columns, size_t set,
                 const std::vector<RowRange>& rows_of_rack, std::vector<size_t>& order);

  size_t machines_;
  std::span<const int64_t> elsewhere_cost_;  // [K]
  std::vector<uint32_t> level_offsets_{0};   // [K+1]
  std::vector<Level> levels_;
  // the catalog's own column if costs ascend within every set, else by_cost_
  std::span<const int32_t> members_;
  std::vector<int32_t> by_cost_;
  std::vector<RowRange> rack_rows_;
};

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
//
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
