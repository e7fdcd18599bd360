#include "optimum.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>

#include "flowsolver/flowsolver.hpp"
#include "shared_state/native/fit.hpp"

namespace agora {

namespace {

constexpr uint32_t kNoNode = UINT32_MAX;

// Tasks of one set that ask alike.
struct TaskClass {
  size_t set;
  int64_t size;
  const int64_t* request;
  bool has_place = true;  // fits some machine
};

// An entry of a class's set: a machine that some of its tasks fit, and what they cost there.
struct Listed {
  uint32_t task_class;
  uint32_t machine;
  int64_t cost;
};

void check_entries(std::span<const int64_t> offsets, std::span<const int32_t> column, size_t bound,
                   const char* what) {
  const bool ascend = std::is_sorted(offsets.begin(), offsets.end()) && offsets.front() >= 0 &&
                      offsets.back() <= static_cast<int64_t>(column.size());
  const auto is_known = [bound](int32_t id) { return id >= 0 && static_cast<size_t>(id) < bound; };
  if (!ascend || !std::ranges::all_of(column, is_known))
    throw std::invalid_argument(std::string("preference catalog: ") + what + " out of range");
}

std::pair<size_t, size_t> entries_of(std::span<const int64_t> offsets, size_t set) {
  return {static_cast<size_t>(offsets[set]), static_cast<size_t>(offsets[set + 1])};
}

bool costs_are_ordered(const PreferenceColumns& catalog) {
  for (size_t set = 0; set < catalog.sets(); ++set) {
    const int64_t elsewhere = catalog.elsewhere_cost[set];
    const auto [first, last] = entries_of(catalog.rack_offsets, set);
    for (size_t at = first; at < last; ++at)
      if (catalog.rack_cost[at] > elsewhere) return false;
    const auto racks = catalog.rack.subspan(first, last - first);
    const auto [begin, end] = entries_of(catalog.machine_offsets, set);
    for (size_t at = begin; at < end; ++at) {
      const int32_t rack = catalog.rack_of[static_cast<size_t>(catalog.machine[at])];
      const auto listed = std::ranges::lower_bound(racks, rack);
      const bool is_listed = listed != racks.end() && *listed == rack;
      const int64_t otherwise =
          is_listed ? catalog.rack_cost[first + static_cast<size_t>(listed - racks.begin())]
                    : elsewhere;
      if (catalog.machine_cost[at] > otherwise) return false;
    }
  }
  return true;
}

// What is placed where: tasks and room as they were given.
struct Problem {
  std::span<const int64_t> room;
  size_t dimensions;
  std::span<const int32_t> preference;
  std::span<const int64_t> request;

  const int64_t* request_of(size_t task) const { return request.data() + task * dimensions; }
  const int64_t* room_of(size_t machine) const { return room.data() + machine * dimensions; }
  size_t machines() const { return room.size() / dimensions; }
  bool fits(const int64_t* asked, size_t machine) const {
    return fits_in(asked, room_of(machine), dimensions);
  }

  bool is_alike() const {
    for (size_t task = 1; task < preference.size(); ++task)
      if (!std::equal(request.begin(), request.begin() + static_cast<ptrdiff_t>(dimensions),
                      request_of(task)))
        return false;
    return true;
  }
};

// Each set's tasks, which all ask for the same.
std::vector<TaskClass> classes_by_set(const Problem& problem, size_t sets) {
  std::vector<int64_t> size(sets, 0);
  for (const int32_t set : problem.preference) ++size[static_cast<size_t>(set)];
  std::vector<TaskClass> classes;
  for (size_t set = 0; set < sets; ++set)
    if (size[set]) classes.push_back({set, size[set], problem.request_of(0)});
  return classes;
}

std::vector<TaskClass> classes_by_request(const Problem& problem) {
  std::vector<size_t> order(problem.preference.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto compare = [&](size_t left, size_t right) {
    if (problem.preference[left] != problem.preference[right])
      return problem.preference[left] <=> problem.preference[right];
    const int64_t* of_left = problem.request_of(left);
    const int64_t* of_right = problem.request_of(right);
    return std::lexicographical_compare_three_way(of_left, of_left + problem.dimensions, of_right,
                                                  of_right + problem.dimensions);
  };
  std::ranges::sort(order, [&](size_t left, size_t right) { return compare(left, right) < 0; });
  std::vector<TaskClass> classes;
  for (size_t at = 0; at < order.size(); ++at) {
    if (at == 0 || compare(order[at - 1], order[at]) != 0)
      classes.push_back(
          {static_cast<size_t>(problem.preference[order[at]]), 0, problem.request_of(order[at])});
    ++classes.back().size;
  }
  return classes;
}

// A bound on the number of tasks that fit each machine, whichever they are, at most `count`: in
// each resource, that many of the smallest requests must fit. Exact if all ask for the same.
// Machines without any room take none.
std::vector<int64_t> slots_of(const Problem& problem, bool alike) {
  const auto count = static_cast<int64_t>(problem.preference.size());
  const size_t machines = problem.machines();
  std::vector<int64_t> slots(machines, count);
  std::vector<int64_t> smallest, sums;
  for (size_t r = 0; r < problem.dimensions; ++r) {
    const auto room = [&](size_t m) { return std::max<int64_t>(problem.room_of(m)[r], 0); };
    if (alike) {
      const int64_t asked = problem.request_of(0)[r];
      if (asked <= 0) continue;
      for (size_t m = 0; m < machines; ++m)
        if (slots[m]) slots[m] = std::min(slots[m], room(m) / asked);
      continue;
    }
    int64_t most = 0;
    for (size_t m = 0; m < machines; ++m) most = std::max(most, room(m));
    smallest.clear();
    for (size_t task = 0; task < problem.preference.size(); ++task)
      smallest.push_back(problem.request_of(task)[r]);
    std::ranges::sort(smallest);
    sums.clear();
    for (const int64_t asked : smallest) {
      int64_t sum = 0;
      if (__builtin_add_overflow(sums.empty() ? 0 : sums.back(), asked, &sum) || sum > most) break;
      sums.push_back(sum);
    }
    for (size_t m = 0; m < machines; ++m)
      slots[m] =
          std::min<int64_t>(slots[m], std::ranges::upper_bound(sums, room(m)) - sums.begin());
  }
  for (size_t m = 0; m < machines; ++m) {
    const int64_t* const room = problem.room_of(m);
    if (std::all_of(room, room + problem.dimensions, [](int64_t free) { return free <= 0; }))
      slots[m] = 0;
  }
  return slots;
}

void find_places(const Problem& problem, std::vector<TaskClass>& classes) {
  const auto fits_somewhere = [&](const int64_t* request) {
    for (size_t m = 0; m < problem.machines(); ++m)
      if (problem.fits(request, m)) return true;
    return false;
  };
  std::vector<int64_t> largest(problem.dimensions, 0);
  for (const TaskClass& one : classes)
    for (size_t r = 0; r < problem.dimensions; ++r)
      largest[r] = std::max(largest[r], one.request[r]);
  if (fits_somewhere(largest.data())) return;
  for (TaskClass& one : classes) one.has_place = fits_somewhere(one.request);
}

// The machines that classes list, grouped by who lists them at what cost. Refines a partition of
// the machines by one list of equal cost after another; a group of machines that a list names
// leaves those that it does not name.
class MachineGroups {
 public:
  // group[m]: numbers below `groups`, different for machines that are told apart from the
  // beginning.
  MachineGroups(std::vector<uint32_t> group, size_t groups)
      : group_(std::move(group)), is_listed_(group_.size(), 0), split_(groups) {}

  // All that one class lists, in any order.
  void split_by(std::span<Listed> entries) {
    const auto by_cost = [](const Listed& left, const Listed& right) {
      return left.cost < right.cost;
    };
    if (!std::ranges::is_sorted(entries, by_cost)) std::ranges::sort(entries, by_cost);
    for (size_t at = 0; at < entries.size(); ++at) {
      if (at == 0 || entries[at].cost != entries[at - 1].cost) ++list_;
      const uint32_t machine = entries[at].machine;
      const uint32_t group = group_[machine];
      if (split_[group].by != list_) {
        split_[group] = {list_, static_cast<uint32_t>(split_.size())};
        split_.emplace_back();
      }
      group_[machine] = split_[group].into;
      is_listed_[machine] = 1;
    }
  }

  bool is_listed(size_t machine) const { return is_listed_[machine] != 0; }
  uint32_t of(size_t machine) const { return group_[machine]; }
  size_t count() const { return split_.size(); }

 private:
  struct Split {
    uint32_t by = 0;  // the last list that named some of the group
    uint32_t into = 0;
  };

  std::vector<uint32_t> group_;
  std::vector<uint8_t> is_listed_;
  std::vector<Split> split_;  // by group
  uint32_t list_ = 0;
};

// The network of optimum.hpp. Nodes: the classes, the sink, X, listed racks, groups of machines.
class PlacementNetwork {
 public:
  // rack_begin: [racks + 1], the first machine of each rack. slots: tasks that each machine takes.
  PlacementNetwork(const PreferenceColumns& catalog, std::span<const size_t> rack_begin,
                   const Problem& problem, std::span<const TaskClass> classes,
                   std::span<const int64_t> slots)
      : catalog_(catalog),
        rack_begin_(rack_begin),
        problem_(problem),
        classes_(classes),
        slots_(slots),
        total_(static_cast<int64_t>(problem.preference.size())) {
    for (const TaskClass& one : classes_) add_node(one.size);
    sink_ = add_node(-total_);
    anywhere_ = add_node(0);
    above_.assign(slots_.size(), anywhere_);
    add_classes();
    add_machines(groups_of_listed_machines());
  }

  const flowsolver::Network& network() const { return network_; }

 private:
  uint32_t add_node(int64_t supply) {
    network_.supply.push_back(supply);
    return static_cast<uint32_t>(network_.supply.size() - 1);
  }
  void add_arc(uint32_t tail, uint32_t head, int64_t capacity, int64_t cost) {
    network_.tail.push_back(tail);
    network_.head.push_back(head);
    network_.capacity.push_back(capacity);
    network_.cost.push_back(cost);
  }

  // Classes, and the racks that they list.
  void add_classes() {
    std::vector<uint32_t> node_of(rack_begin_.size() - 1, kNoNode);
    for (uint32_t c = 0; c < classes_.size(); ++c) {
      const TaskClass& one = classes_[c];
      add_arc(c, sink_, one.size, catalog_.unscheduled_cost[one.set]);
      if (!one.has_place) continue;
      add_arc(c, anywhere_, one.size, catalog_.elsewhere_cost[one.set]);
      const auto [begin, end] = entries_of(catalog_.rack_offsets, one.set);
      for (size_t at = begin; at < end; ++at) {
        const auto rack = static_cast<size_t>(catalog_.rack[at]);
        if (node_of[rack] == kNoNode) node_of[rack] = add_rack(rack);
        add_arc(c, node_of[rack], one.size, catalog_.rack_cost[at]);
      }
    }
  }

  uint32_t add_rack(size_t rack) {
    const uint32_t node = add_node(0);
    racks_.push_back(node);
    for (size_t machine = rack_begin_[rack]; machine < rack_begin_[rack + 1]; ++machine)
      above_[machine] = node;
    return node;
  }

  MachineGroups groups_of_listed_machines() {
    MachineGroups groups(above_, network_.num_nodes());
    for (uint32_t c = 0; c < classes_.size(); ++c) {
      const size_t first = listed_.size();
      const auto [begin, end] = entries_of(catalog_.machine_offsets, classes_[c].set);
      for (size_t at = begin; at < end; ++at) {
        const auto machine = static_cast<size_t>(catalog_.machine[at]);
        if (slots_[machine] > 0 && problem_.fits(classes_[c].request, machine))
          listed_.push_back({c, static_cast<uint32_t>(machine), catalog_.machine_cost[at]});
      }
      groups.split_by(std::span(listed_).subspan(first));
    }
    return groups;
  }

  // Groups of machines, and the room of everything. The first machine of a group stands for it.
  void add_machines(const MachineGroups& groups) {
    const size_t first_group = network_.num_nodes();
    std::vector<uint32_t> node_of(groups.count(), kNoNode), first_machine;
    std::vector<int64_t> room(first_group, 0);  // by node
    for (uint32_t machine = 0; machine < slots_.size(); ++machine) {
      uint32_t node = above_[machine];
      if (groups.is_listed(machine)) {
        uint32_t& of_group = node_of[groups.of(machine)];
        if (of_group == kNoNode) {
          of_group = add_node(0);
          room.push_back(0);
          first_machine.push_back(machine);
        }
        node = of_group;
      }
      room[node] += slots_[machine];
    }
    for (const Listed& entry : listed_) {
      const uint32_t node = node_of[groups.of(entry.machine)];
      if (first_machine[node - first_group] == entry.machine)
        add_arc(entry.task_class, node, classes_[entry.task_class].size, entry.cost);
    }
    for (size_t group = 0; group < first_machine.size(); ++group) {
      const auto node = static_cast<uint32_t>(first_group + group);
      add_arc(above_[first_machine[group]], node, room[node], 0);
      add_arc(node, sink_, room[node], 0);
    }
    for (const uint32_t rack : racks_) {
      add_arc(anywhere_, rack, total_, 0);
      add_arc(rack, sink_, room[rack], 0);
    }
    add_arc(anywhere_, sink_, room[anywhere_], 0);
  }

  const PreferenceColumns& catalog_;
  std::span<const size_t> rack_begin_;
  const Problem& problem_;
  std::span<const TaskClass> classes_;
  std::span<const int64_t> slots_;
  const int64_t total_;  // tasks
  flowsolver::Network network_;
  uint32_t sink_ = 0, anywhere_ = 0;
  std::vector<uint32_t> above_;  // by machine: the node of its rack, or X
  std::vector<uint32_t> racks_;  // the nodes of racks
  std::vector<Listed> listed_;
};

}  // namespace

BestPlacement::BestPlacement(const PreferenceColumns& catalog) : catalog_(catalog) {
  check_lengths(catalog);
  const auto rack_of = catalog.rack_of;
  if (!std::ranges::is_sorted(rack_of) || (!rack_of.empty() && rack_of.front() < 0))
    throw std::invalid_argument("rack: expected non-decreasing numbers from 0");
  const size_t racks = rack_of.empty() ? 0 : static_cast<size_t>(rack_of.back()) + 1;
  check_entries(catalog.machine_offsets, catalog.machine, rack_of.size(), "machines");
  check_entries(catalog.rack_offsets, catalog.rack, racks, "racks");
  rack_begin_.assign(racks + 1, rack_of.size());
  for (size_t machine = rack_of.size(), rack = racks; rack-- > 0;) {
    while (machine > 0 && rack_of[machine - 1] >= static_cast<int32_t>(rack)) --machine;
    rack_begin_[rack] = machine;
  }
  ordered_ = costs_are_ordered(catalog);
}

Optimum BestPlacement::cost(std::span<const int64_t> room, size_t dimensions,
                            std::span<const int32_t> preference,
                            std::span<const int64_t> request) const {
  if (dimensions == 0 || room.size() != machines() * dimensions ||
      request.size() != preference.size() * dimensions)
    throw std::invalid_argument(
        "least placement cost: expected room for each machine and a "
        "request for each task");
  for (const int32_t set : preference)
    if (set < 0 || static_cast<size_t>(set) >= catalog_.sets())
      throw std::invalid_argument("least placement cost: there is no set " + std::to_string(set));
  if (preference.empty()) return {0, true};
  const Problem problem{room, dimensions, preference, request};
  const bool alike = problem.is_alike();
  std::vector<TaskClass> classes =
      alike ? classes_by_set(problem, catalog_.sets()) : classes_by_request(problem);
  const std::vector<int64_t> slots = slots_of(problem, alike);
  if (!alike) find_places(problem, classes);

  const PlacementNetwork made(catalog_, rack_begin_, problem, classes, slots);
  const flowsolver::Solution solution =
      flowsolver::algorithms().front().solve(made.network(), {}, flowsolver::Control());
  if (solution.status != flowsolver::Status::kOptimal)
    throw std::invalid_argument(
        "least placement cost: costs or numbers of tasks are out of the solver's range");
  return {solution.cost, alike && ordered_};
}

}  // namespace agora
