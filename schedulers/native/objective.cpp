#include "objective.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>

#include "flowsolver/flowsolver.hpp"
#include "shared_state/native/cell.hpp"
#include "shared_state/native/free_amounts.hpp"

namespace agora {

namespace {

[[noreturn]] void refuse(const char* what, size_t set) {
  throw std::invalid_argument("preference set " + std::to_string(set) + ": " + what);
}

// The entries of a set in a CSR column of `size` entries.
std::pair<size_t, size_t> entries(std::span<const int64_t> offsets, size_t set, size_t size) {
  const int64_t begin = offsets[set], end = offsets[set + 1];
  if (begin < 0 || begin > end || end > static_cast<int64_t>(size))
    refuse("offsets out of range", set);
  return {static_cast<size_t>(begin), static_cast<size_t>(end)};
}

// The place of `value` among the ascending column[begin, end), or end. Without branches that depend
// on the values, which the processor could not predict.
size_t find(std::span<const int32_t> column, std::pair<size_t, size_t> range, int32_t value) {
  const auto [begin, end] = range;
  const int32_t* at = column.data() + begin;
  for (size_t left = end - begin; left > 1;) {
    const size_t half = left / 2;
    at += static_cast<size_t>(at[half] <= value) * half;
    left -= half;
  }
  return begin != end && *at == value ? static_cast<size_t>(at - column.data()) : end;
}

bool strictly_ascending(std::span<const int32_t> values) {
  return std::adjacent_find(values.begin(), values.end(), std::greater_equal<>()) == values.end();
}

// The entries [begin, end) by ascending cost; of equal cost the first first. (Sets are short and
// many: a stable sort asks for memory once for each.)
void put_in_order(std::span<const int64_t> cost, size_t begin, size_t end,
                  std::vector<size_t>& order) {
  order.resize(end - begin);
  std::iota(order.begin(), order.end(), begin);
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return cost[a] != cost[b] ? cost[a] < cost[b] : a < b; });
}

}  // namespace

void check_lengths(const PreferenceColumns& c) {
  const size_t sets = c.sets();
  if (c.machine_offsets.size() != sets + 1 || c.rack_offsets.size() != sets + 1 ||
      c.unscheduled_cost.size() != sets)
    throw std::invalid_argument(
        "preference catalog: offsets and costs are of different numbers of sets");
  if (c.machine.size() != c.machine_cost.size() || c.rack.size() != c.rack_cost.size())
    throw std::invalid_argument(
        "preference catalog: expected one cost per machine and one per rack");
}

void placement_cost(const PreferenceColumns& c, std::span<const int32_t> preference,
                    std::span<const int32_t> machine, int64_t* cost, bool* preferred) {
  for (size_t i = 0; i < preference.size(); ++i) {
    if (preference[i] < 0 || static_cast<size_t>(preference[i]) >= c.sets())
      throw std::invalid_argument("preference[" + std::to_string(i) + "]: there is no set " +
                                  std::to_string(preference[i]));
    if (machine[i] < -1 || machine[i] >= static_cast<int64_t>(c.rack_of.size()))
      throw std::invalid_argument("machine[" + std::to_string(i) + "]: there is no machine " +
                                  std::to_string(machine[i]));
    const size_t set = static_cast<size_t>(preference[i]);
    preferred[i] = false;
    if (machine[i] < 0) {
      cost[i] = c.unscheduled_cost[set];
      continue;
    }
    const auto listed = entries(c.machine_offsets, set, c.machine.size());
    const size_t at = find(c.machine, listed, machine[i]);
    if (at != listed.second) {
      preferred[i] = true;
      cost[i] = c.machine_cost[at];
      continue;
    }
    const auto racks = entries(c.rack_offsets, set, c.rack.size());
    const size_t rack = find(c.rack, racks, c.rack_of[static_cast<size_t>(machine[i])]);
    cost[i] = rack != racks.second ? c.rack_cost[rack] : c.elsewhere_cost[set];
  }
}

Catalog::Catalog(const PreferenceColumns& c)
    : machines_(c.rack_of.size()), elsewhere_cost_(c.elsewhere_cost) {
  check_lengths(c);
  if (c.machine.size() >= (size_t{1} << 32) || c.rack.size() >= (size_t{1} << 32))
    throw std::invalid_argument("preference catalog: more than 2^32 entries");
  if (!std::is_sorted(c.rack_of.begin(), c.rack_of.end()) ||
      (!c.rack_of.empty() && c.rack_of.front() < 0))
    throw std::invalid_argument("rack: expected non-decreasing numbers from 0");
  std::vector<RowRange> rows_of_rack(
      c.rack_of.empty() ? 0 : static_cast<size_t>(c.rack_of.back()) + 1, RowRange{0, 0});
  for (size_t row = 0; row < c.rack_of.size(); ++row) {
    RowRange& rows = rows_of_rack[static_cast<size_t>(c.rack_of[row])];
    if (rows.first == rows.end) rows.first = static_cast<int32_t>(row);
    rows.end = static_cast<int32_t>(row) + 1;
  }
  bool even = true;  // one cost per set: the column serves as it is
  for (size_t set = 0; set < c.sets() && even; ++set) {
    const auto [begin, end] = entries(c.machine_offsets, set, c.machine.size());
    even = std::is_sorted(c.machine_cost.begin() + static_cast<std::ptrdiff_t>(begin),
                          c.machine_cost.begin() + static_cast<std::ptrdiff_t>(end));
  }
  if (!even) by_cost_.assign(c.machine.begin(), c.machine.end());
  members_ = even ? c.machine : std::span<const int32_t>(by_cost_);
  level_offsets_.reserve(c.sets() + 1);
  std::vector<size_t> order;
  for (size_t set = 0; set < c.sets(); ++set) {
    add_machines(c, set, order);
    add_racks(c, set, rows_of_rack, order);
    level_offsets_.push_back(static_cast<uint32_t>(levels_.size()));
  }
}

void Catalog::add_machines(const PreferenceColumns& c, size_t set, std::vector<size_t>& order) {
  const auto [begin, end] = entries(c.machine_offsets, set, c.machine.size());
  const auto listed = c.machine.subspan(begin, end - begin);
  if (!strictly_ascending(listed)) refuse("machines must ascend", set);
  if (!listed.empty() && (listed.front() < 0 || static_cast<size_t>(listed.back()) >= machines_))
    refuse("a machine the cell does not have", set);
  order.clear();
  if (!by_cost_.empty()) {
    put_in_order(c.machine_cost, begin, end, order);
    for (size_t i = begin; i < end; ++i) by_cost_[i] = c.machine[order[i - begin]];
  }
  const auto cost = [&](size_t i) { return c.machine_cost[order.empty() ? i : order[i - begin]]; };
  for (size_t i = begin; i < end; ++i) {
    if (i == begin || cost(i) != cost(i - 1))
      levels_.push_back({static_cast<uint32_t>(i), static_cast<uint32_t>(i), false, cost(i)});
    ++levels_.back().end;
  }
}

void Catalog::add_racks(const PreferenceColumns& c, size_t set,
                        const std::vector<RowRange>& rows_of_rack, std::vector<size_t>& order) {
  const auto [begin, end] = entries(c.rack_offsets, set, c.rack.size());
  const auto listed = c.rack.subspan(begin, end - begin);
  if (!strictly_ascending(listed)) refuse("racks must ascend", set);
  if (!listed.empty() &&
      (listed.front() < 0 || static_cast<size_t>(listed.back()) >= rows_of_rack.size()))
    refuse("a rack the cell does not have", set);
  put_in_order(c.rack_cost, begin, end, order);
  for (size_t i = 0; i < order.size(); ++i) {
    const uint32_t at = static_cast<uint32_t>(rack_rows_.size());
    if (i == 0 || c.rack_cost[order[i]] != c.rack_cost[order[i - 1]])
      levels_.push_back({at, at, true, c.rack_cost[order[i]]});
    ++levels_.back().end;
    rack_rows_.push_back(rows_of_rack[static_cast<size_t>(c.rack[order[i]])]);
  }
}

namespace {

constexpr uint32_t kNoNode = UINT32_MAX, kNoGroup = UINT32_MAX;

// Tasks of one set that ask alike.
struct TaskClass {
  size_t set;
  int64_t size;
  const int64_t* request;
  bool has_place = true;  // fits some machine
};

// An entry of a class's set: a machine that some of its tasks fit, what they cost there, and how
// many tasks it takes.
struct Listed {
  uint32_t task_class;
  uint32_t machine;
  int64_t cost;
  int64_t slots;
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

// The tasks as they were given, and what machines have room for.
struct Problem {
  const MachineRoom& room;
  size_t machines, dimensions;
  std::span<const int32_t> preference;
  std::span<const int64_t> request;

  const int64_t* request_of(size_t task) const { return request.data() + task * dimensions; }
  bool fits(const int64_t* asked, size_t machine) const {
    std::array<int64_t, kMaxDimensions> free;
    room.read(machine, free.data());
    return fits_in(asked, free.data(), dimensions);
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

// A bound on the number of tasks that fit a machine, whichever they are: in each resource, that
// many of the smallest requests must fit. Exact if all ask for the same. A machine without any room
// takes none.
class SlotCount {
 public:
  SlotCount(const Problem& problem, bool alike) : problem_(problem), alike_(alike) {
    for (size_t r = 0; r < problem.dimensions && !alike; ++r) {
      std::vector<int64_t> smallest;
      for (size_t task = 0; task < problem.preference.size(); ++task)
        smallest.push_back(problem.request_of(task)[r]);
      std::ranges::sort(smallest);
      std::vector<int64_t>& sums = sums_.emplace_back();
      for (const int64_t asked : smallest) {
        int64_t sum = 0;
        if (__builtin_add_overflow(sums.empty() ? 0 : sums.back(), asked, &sum)) break;
        sums.push_back(sum);
      }
    }
  }

  bool is_exact() const { return alike_; }

  int64_t operator()(size_t machine) const {
    std::array<int64_t, kMaxDimensions> room;
    problem_.room.read(machine, room.data());
    auto slots = static_cast<int64_t>(problem_.preference.size());
    bool has_room = false;
    for (size_t r = 0; r < problem_.dimensions; ++r) {
      const int64_t free = std::max<int64_t>(room[r], 0);
      has_room |= free > 0;
      if (!alike_) {
        slots =
            std::min<int64_t>(slots, std::ranges::upper_bound(sums_[r], free) - sums_[r].begin());
      } else if (const int64_t asked = problem_.request_of(0)[r]; asked > 0) {
        slots = std::min(slots, free / asked);
      }
    }
    return has_room ? slots : 0;
  }

 private:
  const Problem& problem_;
  bool alike_;
  std::vector<std::vector<int64_t>> sums_;  // by resource, of the smallest requests
};

void find_places(const Problem& problem, std::vector<TaskClass>& classes) {
  const auto fits_somewhere = [&](const int64_t* request) {
    for (size_t m = 0; m < problem.machines; ++m)
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
  // group_of: room for the group of each machine, all kNoGroup; is so again when this ends. groups:
  // how many there are to begin with.
  MachineGroups(std::vector<uint32_t>& group_of, size_t groups)
      : group_of_(group_of), split_(groups) {}
  ~MachineGroups() {
    for (const uint32_t machine : listed_) group_of_[machine] = kNoGroup;
  }
  MachineGroups(const MachineGroups&) = delete;
  MachineGroups& operator=(const MachineGroups&) = delete;

  // All that one class lists, in any order. first_group(entry): of a machine that no class has
  // listed yet.
  template <class FirstGroup>
  void split_by(std::span<Listed> entries, FirstGroup first_group) {
    const auto by_cost = [](const Listed& left, const Listed& right) {
      return left.cost < right.cost;
    };
    if (!std::ranges::is_sorted(entries, by_cost)) std::ranges::sort(entries, by_cost);
    for (size_t at = 0; at < entries.size(); ++at) {
      if (at == 0 || entries[at].cost != entries[at - 1].cost) ++list_;
      const uint32_t machine = entries[at].machine;
      uint32_t& group = group_of_[machine];
      if (group == kNoGroup) {
        listed_.push_back(machine);
        group = first_group(entries[at]);
      }
      if (split_[group].by != list_) {
        split_[group] = {list_, static_cast<uint32_t>(split_.size())};
        split_.emplace_back();
      }
      group = split_[group].into;
    }
  }

  bool is_listed(size_t machine) const { return group_of_[machine] != kNoGroup; }
  const std::vector<uint32_t>& listed() const { return listed_; }
  uint32_t of(size_t machine) const { return group_of_[machine]; }
  size_t count() const { return split_.size(); }

 private:
  struct Split {
    uint32_t by = 0;  // the last list that named some of the group
    uint32_t into = 0;
  };

  std::vector<uint32_t>& group_of_;
  std::vector<uint32_t> listed_;  // machines
  std::vector<Split> split_;      // by group
  uint32_t list_ = 0;
};

// The network of BestPlacement (objective.hpp). Nodes: the classes, the sink, X, listed racks,
// groups of machines.
class PlacementNetwork {
 public:
  // rack_begin: [racks + 1], the first machine of each rack. group_of: as for MachineGroups.
  PlacementNetwork(const PreferenceColumns& catalog, std::span<const size_t> rack_begin,
                   const Problem& problem, std::span<const TaskClass> classes,
                   const SlotCount& slots, std::vector<uint32_t>& group_of)
      : catalog_(catalog),
        rack_begin_(rack_begin),
        problem_(problem),
        classes_(classes),
        slots_(slots),
        total_(static_cast<int64_t>(problem.preference.size())),
        rack_node_(rack_begin.size() - 1, kNoNode) {
    for (const TaskClass& one : classes_) add_node(one.size);
    sink_ = add_node(-total_);
    anywhere_ = add_node(0);
    add_classes();
    MachineGroups groups(group_of, network_.num_nodes());
    list_machines(groups);
    add_groups(groups);
    add_others(groups);
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

  // What a machine is reached from besides: the node of its rack, or X.
  uint32_t above(size_t machine) const {
    const uint32_t rack = rack_node_[static_cast<size_t>(catalog_.rack_of[machine])];
    return rack == kNoNode ? anywhere_ : rack;
  }

  // Classes, and the racks that they list.
  void add_classes() {
    for (uint32_t c = 0; c < classes_.size(); ++c) {
      const TaskClass& one = classes_[c];
      add_arc(c, sink_, one.size, catalog_.unscheduled_cost[one.set]);
      if (!one.has_place) continue;
      add_arc(c, anywhere_, one.size, catalog_.elsewhere_cost[one.set]);
      const auto [begin, end] = entries_of(catalog_.rack_offsets, one.set);
      for (size_t at = begin; at < end; ++at) {
        uint32_t& node = rack_node_[static_cast<size_t>(catalog_.rack[at])];
        if (node == kNoNode) node = add_node(0);
        add_arc(c, node, one.size, catalog_.rack_cost[at]);
      }
    }
  }

  void list_machines(MachineGroups& groups) {
    for (uint32_t c = 0; c < classes_.size(); ++c) {
      const size_t first = listed_.size();
      const auto [begin, end] = entries_of(catalog_.machine_offsets, classes_[c].set);
      for (size_t at = begin; at < end; ++at) {
        const auto machine = static_cast<size_t>(catalog_.machine[at]);
        const int64_t slots = slots_(machine);
        if (slots > 0 && (slots_.is_exact() || problem_.fits(classes_[c].request, machine)))
          listed_.push_back({c, static_cast<uint32_t>(machine), catalog_.machine_cost[at], slots});
      }
      groups.split_by(std::span(listed_).subspan(first), [this](const Listed& entry) {
        listed_slots_.push_back(entry.slots);
        return above(entry.machine);
      });
    }
  }

  // Groups of machines. The first machine of a group stands for it.
  void add_groups(const MachineGroups& groups) {
    const size_t first_group = network_.num_nodes();
    std::vector<uint32_t> node_of(groups.count(), kNoNode), first_machine;
    std::vector<int64_t> room;
    for (size_t i = 0; i < listed_slots_.size(); ++i) {
      const uint32_t machine = groups.listed()[i];
      uint32_t& node = node_of[groups.of(machine)];
      if (node == kNoNode) {
        node = add_node(0);
        room.push_back(0);
        first_machine.push_back(machine);
      }
      room[node - first_group] += listed_slots_[i];
    }
    for (const Listed& entry : listed_) {
      const uint32_t node = node_of[groups.of(entry.machine)];
      if (first_machine[node - first_group] == entry.machine)
        add_arc(entry.task_class, node, classes_[entry.task_class].size, entry.cost);
    }
    for (size_t group = 0; group < room.size(); ++group) {
      const auto node = static_cast<uint32_t>(first_group + group);
      add_arc(above(first_machine[group]), node, room[group], 0);
      add_arc(node, sink_, room[group], 0);
    }
  }

  // The machines without a node, of listed racks and of all others.
  void add_others(const MachineGroups& groups) {
    int64_t elsewhere = 0;
    for (size_t rack = 0; rack < rack_node_.size(); ++rack) {
      const uint32_t node = rack_node_[rack];
      if (node == kNoNode) {
        add_room(groups, rack, elsewhere);
        continue;
      }
      int64_t room = 0;
      add_room(groups, rack, room);
      add_arc(anywhere_, node, total_, 0);
      add_arc(node, sink_, room, 0);
    }
    add_arc(anywhere_, sink_, elsewhere, 0);
  }

  // Adds what a rack's machines without a node have room for, until it is enough for all tasks.
  void add_room(const MachineGroups& groups, size_t rack, int64_t& room) const {
    for (size_t m = rack_begin_[rack]; m < rack_begin_[rack + 1] && room < total_; ++m)
      if (!groups.is_listed(m)) room += slots_(m);
  }

  const PreferenceColumns& catalog_;
  std::span<const size_t> rack_begin_;
  const Problem& problem_;
  std::span<const TaskClass> classes_;
  const SlotCount& slots_;
  const int64_t total_;  // tasks
  flowsolver::Network network_;
  uint32_t sink_ = 0, anywhere_ = 0;
  std::vector<uint32_t> rack_node_;  // by rack: its node, if it is listed
  std::vector<Listed> listed_;
  std::vector<int64_t> listed_slots_;  // of MachineGroups::listed()
};

// The room of an array.
class ArrayRoom final : public MachineRoom {
 public:
  ArrayRoom(std::span<const int64_t> room, size_t dimensions)
      : room_(room), dimensions_(dimensions) {}
  void read(size_t machine, int64_t* to) const override {
    std::copy_n(room_.data() + machine * dimensions_, dimensions_, to);
  }

 private:
  std::span<const int64_t> room_;
  size_t dimensions_;
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
  group_of_.assign(rack_of.size(), kNoGroup);
}

Optimum BestPlacement::cost(std::span<const int64_t> room, size_t dimensions,
                            std::span<const int32_t> preference, std::span<const int64_t> request) {
  if (room.size() != machines() * dimensions)
    throw std::invalid_argument("least placement cost: expected room for each machine");
  return cost(ArrayRoom(room, dimensions), dimensions, preference, request);
}

Optimum BestPlacement::cost(const MachineRoom& room, size_t dimensions,
                            std::span<const int32_t> preference, std::span<const int64_t> request) {
  if (dimensions == 0 || dimensions > kMaxDimensions ||
      request.size() != preference.size() * dimensions)
    throw std::invalid_argument("least placement cost: expected a request for each task");
  for (const int32_t set : preference)
    if (set < 0 || static_cast<size_t>(set) >= catalog_.sets())
      throw std::invalid_argument("least placement cost: there is no set " + std::to_string(set));
  if (preference.empty()) return {0, true};
  const Problem problem{room, machines(), dimensions, preference, request};
  const bool alike = problem.is_alike();
  std::vector<TaskClass> classes =
      alike ? classes_by_set(problem, catalog_.sets()) : classes_by_request(problem);
  if (!alike) find_places(problem, classes);
  const SlotCount slots(problem, alike);
  const PlacementNetwork made(catalog_, rack_begin_, problem, classes, slots, group_of_);
  const flowsolver::Solution solution =
      flowsolver::algorithms().front().solve(made.network(), {}, flowsolver::Control());
  if (solution.status != flowsolver::Status::kOptimal)
    throw std::invalid_argument(
        "least placement cost: costs or numbers of tasks are out of the solver's range");
  return {solution.cost, alike && ordered_};
}

}  // namespace agora
