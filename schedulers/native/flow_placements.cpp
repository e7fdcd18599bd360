#include "flow_placements.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "shared_state/native/random.hpp"

namespace agora {

namespace {

constexpr int64_t kNoArc = -1;

size_t at(int64_t index) { return static_cast<size_t>(index); }
size_t aggregator(int64_t head) { return static_cast<size_t>(-1 - head); }

void require(bool holds, const char* what) {
  if (!holds) throw std::invalid_argument(what);
}

// What is looked up by row is checked where it is used: a round touches few of the aggregators.
void check(const ClusterView& view, const SolvedFlow& in) {
  const size_t machines = view.static_state().machines();
  require(in.arc_task.size() == in.arc_head.size() && in.arc_task.size() == in.arc_cost.size(),
          "arcs of tasks: expected columns of one length");
  require(in.first.size() == in.end.size(), "first, end: expected one of each per aggregator");
  const size_t inner = in.inner_head.size();
  require(in.inner_cost.size() == inner && in.inner_flow.size() == inner &&
              in.inner_capacity.size() == inner,
          "arcs out of aggregators: expected columns of one length");
  require(in.machine_room.size() == machines, "machine_room: expected one per machine");
  const SlotCosts& slots = in.priced.slots;
  require(slots.levels == 0 || (slots.cost.size() == machines * slots.levels &&
                                slots.slots.size() == machines && slots.free.size() == machines &&
                                slots.units.size() == machines && in.priced.inner.size() == inner),
          "slots: expected columns per machine, and whether each arc out of aggregators is priced");
  require(std::all_of(in.arc_task.begin(), in.arc_task.end(),
                      [&](int64_t task) { return 0 <= task && at(task) < in.head.size(); }),
          "an arc of a task that does not exist");
}

// A machine that may be chosen, and the arc out of an aggregator that leads there.
struct Option {
  int64_t price;  // of the machine's next slot: the lowest first
  int64_t rank;   // then the room that is taken, up to a constant: the lowest first
  uint64_t tie;   // then the lowest first
  int64_t machine;
  int64_t arc;  // kNoArc: an arc of the task's own

  bool operator>(const Option& other) const {
    return std::tie(price, rank, tie, arc) >
           std::tie(other.price, other.rank, other.tie, other.arc);
  }
};

// Tasks that go to one aggregator and pay the same from there. within: they may take other arcs out
// of that aggregator only.
struct Class {
  size_t aggregator;
  bool within;
  int64_t cost;
  std::span<const uint32_t> tasks;
  std::vector<int64_t> arcs;  // into the machines they may choose from
};

class TieBreaking {
 public:
  TieBreaking(const ClusterView& view, const SolvedFlow& in, uint64_t stream)
      : view_(view),
        in_(in),
        stream_(stream),
        dimensions_(view.static_state().dimensions()),
        inner_room_(in.inner_head.size()),
        machine_room_(in.machine_room.begin(), in.machine_room.end()),
        placed_(in.machine_room.size()),
        entered_(in.machine_room.size()),
        counted_(in.machine_room.size()),
        arc_(in.head.size(), kNoArc),
        last_(in.head.size()),
        paid_(in.head.size()) {
    for (size_t e = 0; e < inner_room_.size(); ++e)
      inner_room_[e] = in.inner_capacity[e] - in.inner_flow[e];
    if (in.bounded) leads_to_bound_.resize(in.first.size(), kUnknown);
  }

  FlowPlacements run() {
    decompose();
    choose_directly();
    choose_by_class();
    return std::move(out_);
  }

 private:
  std::pair<int64_t, int64_t> arcs_of(size_t aggregator) const {
    require(aggregator < in_.first.size(), "an arc leads to an aggregator that does not exist");
    const int64_t first = in_.first[aggregator], end = in_.end[aggregator];
    require(0 <= first && first <= end && at(end) <= in_.inner_head.size(),
            "first, end: expected rows of the arcs out of aggregators");
    return {first, end};
  }

  void require_machine(int64_t machine) const {
    require(at(machine) < machine_room_.size(), "an arc leads to a machine that does not exist");
  }

  // One path per task: the units that leave an aggregator, in the order of its arcs, go to the
  // tasks that reach it.
  void decompose() {
    out_.solved.assign(in_.head.begin(), in_.head.end());
    struct Cursor {
      int64_t arc;
      int64_t taken;  // of its flow
    };
    std::unordered_map<size_t, Cursor> cursors;  // by aggregator
    for (size_t i = 0; i < out_.solved.size(); ++i) {
      int64_t& head = out_.solved[i];
      while (head < 0) {
        const size_t a = aggregator(head);
        const auto [first, end] = arcs_of(a);
        auto& [arc, taken] = cursors.try_emplace(a, Cursor{first, 0}).first->second;
        while (arc < end && taken >= in_.inner_flow[at(arc)]) {
          ++arc;
          taken = 0;
        }
        if (arc == end)
          throw std::runtime_error("more tasks flow into an aggregator than out of it");
        ++taken;
        arc_[i] = arc;
        last_[i] = a;
        paid_[i] += in_.inner_cost[at(arc)];
        head = in_.inner_head[at(arc)];
      }
      require_machine(head);
      --machine_room_[at(head)];
      enter(head, arc_[i], 1);
    }
    out_.chosen = out_.solved;
  }

  void choose_directly() {
    const size_t n = in_.head.size();
    std::vector<int64_t> cost(n, std::numeric_limits<int64_t>::max());  // of the arc with the flow
    for (size_t k = 0; k < in_.arc_task.size(); ++k) {
      const size_t i = at(in_.arc_task[k]);
      if (in_.head[i] >= 0 && in_.arc_head[k] == in_.head[i])
        cost[i] = std::min(cost[i], in_.arc_cost[k]);
    }
    const auto is_option = [&](size_t k) {
      const size_t i = at(in_.arc_task[k]);
      return in_.head[i] >= 0 && in_.arc_head[k] >= 0 && in_.arc_cost[k] == cost[i];
    };
    std::vector<uint32_t> begin(n + 1);
    for (size_t k = 0; k < in_.arc_task.size(); ++k)
      if (is_option(k)) ++begin[at(in_.arc_task[k]) + 1];
    std::partial_sum(begin.begin(), begin.end(), begin.begin());
    std::vector<int64_t> machines(begin.back());
    std::vector<uint32_t> filled(begin.begin(), begin.end() - 1);
    for (size_t k = 0; k < in_.arc_task.size(); ++k)
      if (is_option(k)) machines[filled[at(in_.arc_task[k])]++] = in_.arc_head[k];

    for (const int64_t machine : machines) prefetch_price(machine);

    std::vector<uint32_t> order;
    for (size_t i = 0; i < n; ++i)
      if (in_.head[i] >= 0) order.push_back(static_cast<uint32_t>(i));
    std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
      return begin[a + 1] - begin[a] < begin[b + 1] - begin[b];
    });
    for (const uint32_t i : order) {
      ++machine_room_[at(in_.head[i])];
      enter(in_.head[i], kNoArc, -1);
      Option best = option(in_.head[i], kNoArc);
      for (uint32_t k = begin[i]; k < begin[i + 1]; ++k) {
        require_machine(machines[k]);
        if (machine_room_[at(machines[k])] <= 0) continue;
        const Option other = option(machines[k], kNoArc);
        if (best > other) best = other;
      }
      place(i, best);
    }
  }

  void choose_by_class() {
    struct Key {
      bool within;
      int64_t head, cost;
      auto operator<=>(const Key&) const = default;
    };
    std::vector<uint32_t> tasks;
    std::vector<Key> key(in_.head.size());
    for (size_t i = 0; i < in_.head.size(); ++i) {
      if (in_.head[i] >= 0) continue;
      tasks.push_back(static_cast<uint32_t>(i));
      key[i] = {false, in_.head[i], paid_[i]};
      if (in_.bounded && leads_to_bound(aggregator(in_.head[i]), 0))
        key[i] = {true, -1 - static_cast<int64_t>(last_[i]), in_.inner_cost[at(arc_[i])]};
    }
    std::stable_sort(tasks.begin(), tasks.end(),
                     [&](uint32_t a, uint32_t b) { return key[a] < key[b]; });
    std::vector<Class> classes;
    for (auto first = tasks.begin(); first != tasks.end();) {
      auto end = first + 1;
      while (end != tasks.end() && key[*end] == key[*first]) ++end;
      const Key& its = key[*first];
      classes.push_back({aggregator(its.head), its.within, its.cost, {first, end}, {}});
      first = end;
    }
    for (auto first = classes.begin(); first != classes.end();) {
      auto end = first + 1;
      while (end != classes.end() && end->aggregator == first->aggregator &&
             end->within == first->within)
        ++end;
      find_arcs({first, end}, first->aggregator, 0, 0);
      first = end;
    }
    std::stable_sort(classes.begin(), classes.end(),
                     [](const Class& a, const Class& b) { return a.arcs.size() < b.arcs.size(); });
    for (const Class& each : classes) choose_for(each);
  }

  bool is_bounded(size_t arc) const {
    const int64_t capacity = in_.inner_capacity[arc];
    return in_.inner_head[arc] < 0 && 0 < capacity && capacity < kUnbounded;
  }

  // Whether the capacity of an arc between aggregators bounds what flows on from here.
  bool leads_to_bound(size_t from, size_t passed) {
    require(passed < in_.first.size(), "the arcs between aggregators form a cycle");
    const auto [first, end] = arcs_of(from);
    if (leads_to_bound_[from] != kUnknown) return leads_to_bound_[from] == kYes;
    bool found = false;
    for (int64_t e = first; e < end && !found; ++e) {
      if (in_.inner_head[at(e)] >= 0 || in_.inner_capacity[at(e)] <= 0) continue;
      found = is_bounded(at(e)) || leads_to_bound(aggregator(in_.inner_head[at(e)]), passed + 1);
    }
    leads_to_bound_[from] = found ? kYes : kNo;
    return found;
  }

  // Adds the arcs into machines that are reached from here at a class's cost, with room or not.
  // classes: in ascending order of cost. passed: aggregators on the way.
  void find_arcs(std::span<Class> classes, size_t from, int64_t paid, size_t passed) {
    require(passed < in_.first.size(), "the arcs between aggregators form a cycle");
    const auto [first, end] = arcs_of(from);
    for (int64_t e = first; e < end; ++e) {
      const int64_t head = in_.inner_head[at(e)], cost = paid + in_.inner_cost[at(e)];
      if (head < 0) {
        if (classes.front().within || in_.inner_capacity[at(e)] <= 0) continue;
        find_arcs(classes, aggregator(head), cost, passed + 1);
        continue;
      }
      require_machine(head);
      if (in_.inner_capacity[at(e)] <= 0) continue;
      const auto found =
          std::lower_bound(classes.begin(), classes.end(), cost,
                           [](const Class& each, int64_t wanted) { return each.cost < wanted; });
      if (found != classes.end() && found->cost == cost) found->arcs.push_back(e);
    }
  }

  void choose_for(const Class& each) {
    for (const uint32_t i : each.tasks) {
      ++inner_room_[at(arc_[i])];
      ++machine_room_[at(out_.solved[i])];
      enter(out_.solved[i], arc_[i], -1);
    }
    size_t done = 0;
    while (done < each.tasks.size()) {
      gather(each, each.tasks.size() - done);
      while (done < each.tasks.size() && !heap_.empty()) {
        std::pop_heap(heap_.begin(), heap_.end(), std::greater<>{});
        const Option option = heap_.back();
        heap_.pop_back();
        if (!has_room(option)) continue;
        if (option.rank != rank(option.machine) ||
            option.price != price(option.machine, option.arc)) {  // it was chosen over another arc
          push(option);
          continue;
        }
        --inner_room_[at(option.arc)];
        place(each.tasks[done++], option);
        push(option);
      }
    }
  }

  // The best options of a class, on as many machines as there are tasks to place: no task can need
  // another, as each placed leaves those on one of these machines as they were.
  void gather(const Class& each, size_t wanted) {
    heap_.clear();
    for (const int64_t e : each.arcs) {
      const int64_t machine = in_.inner_head[at(e)];
      if (inner_room_[at(e)] > 0 && machine_room_[at(machine)] > 0)
        heap_.push_back(option(machine, e));
    }
    if (heap_.empty()) throw std::logic_error("a class of tasks has lost its places");
    for (size_t kept = wanted; kept < heap_.size(); kept *= 2) {
      const auto last = heap_.begin() + static_cast<std::ptrdiff_t>(kept);
      std::nth_element(heap_.begin(), last, heap_.end(),
                       [](const Option& a, const Option& b) { return b > a; });
      if (machines_among(kept) < wanted) continue;  // several arcs lead to some machine
      heap_.erase(last, heap_.end());
    }
    std::make_heap(heap_.begin(), heap_.end(), std::greater<>{});
  }

  // How many machines the first options of the heap lead to.
  size_t machines_among(size_t options) {
    ++counts_;
    size_t machines = 0;
    for (size_t k = 0; k < options; ++k) {
      uint64_t& counted = counted_[at(heap_[k].machine)];
      machines += counted != counts_;
      counted = counts_;
    }
    return machines;
  }

  void push(const Option& stale) {
    if (!has_room(stale)) return;
    heap_.push_back(option(stale.machine, stale.arc));
    std::push_heap(heap_.begin(), heap_.end(), std::greater<>{});
  }

  bool has_room(const Option& option) const {
    return inner_room_[at(option.arc)] > 0 && machine_room_[at(option.machine)] > 0;
  }

  void place(size_t task, const Option& option) {
    out_.chosen[task] = option.machine;
    --machine_room_[at(option.machine)];
    enter(option.machine, option.arc, 1);
    placed_[at(option.machine)] +=
        view_.static_state().normalised(in_.request + task * dimensions_);
  }

  int64_t rank(int64_t machine) const {
    return placed_[at(machine)] -
           view_.static_state().normalised(view_.free(static_cast<int32_t>(machine)));
  }

  bool is_priced(int64_t arc) const {
    if (in_.priced.slots.levels == 0) return false;
    return arc == kNoArc ? in_.priced.direct : in_.priced.inner[at(arc)];
  }

  void enter(int64_t machine, int64_t arc, int64_t units) {
    if (is_priced(arc)) entered_[at(machine)] += units;
  }

  // The machines of many tasks are scattered in memory. Fetching what their prices are read from
  // before any is read saves most of the waiting.
  void prefetch_price(int64_t machine) const {
    const SlotCosts& slots = in_.priced.slots;
    if (slots.levels == 0 || at(machine) >= machine_room_.size()) return;
    __builtin_prefetch(&slots.slots[at(machine)]);
    __builtin_prefetch(&slots.units[at(machine)]);
    __builtin_prefetch(&slots.cost[(at(machine) + 1) * slots.levels - 1]);
    __builtin_prefetch(&entered_[at(machine)]);
  }

  // What one more unit over this arc pays for its slot.
  int64_t price(int64_t machine, int64_t arc) const {
    if (!is_priced(arc)) return 0;
    const int64_t taken = entered_[at(machine)];
    const SlotCosts& slots = in_.priced.slots;
    return taken < slots.units[at(machine)] ? slots.next(at(machine), taken) : in_.priced.beyond;
  }

  Option option(int64_t machine, int64_t arc) const {
    return {price(machine, arc), rank(machine), hash64(machine, stream_), machine, arc};
  }

  const ClusterView& view_;
  const SolvedFlow& in_;
  const uint64_t stream_;
  const size_t dimensions_;
  std::vector<int64_t> inner_room_;    // residual capacities of arcs out of aggregators
  std::vector<int64_t> machine_room_;  // and of machines to the sink
  std::vector<int64_t> placed_;        // [M]: what this call has placed, as shares of room
  std::vector<int64_t> entered_;       // [M]: units over priced arcs
  std::vector<uint64_t> counted_;      // [M]: the last count of machines_among() it was part of
  std::vector<int64_t> arc_;           // [n]: the last arc of each task's path
  std::vector<size_t> last_;           // [n]: the last aggregator of it
  std::vector<int64_t> paid_;          // [n]: what the path costs from its first aggregator on
  enum Known : int8_t { kUnknown, kNo, kYes };
  std::vector<Known> leads_to_bound_;  // by aggregator, if there are bounds
  uint64_t counts_ = 0;
  std::vector<Option> heap_;
  FlowPlacements out_;
};

}  // namespace

FlowPlacements flow_placements(const ClusterView& view, const SolvedFlow& flow, uint64_t stream) {
  check(view, flow);
  return TieBreaking(view, flow, stream).run();
}

void fit_together(const Placed& placed, std::span<const int64_t> free, size_t dimensions,
                  std::span<bool> fits) {
  const size_t n = placed.task.size();
  require(placed.priority.size() == n && placed.machine.size() == n && fits.size() == n &&
              placed.request.size() == n * dimensions,
          "tasks: expected columns of one length, and a column of request per dimension");
  for (const int64_t m : placed.machine)
    require(m >= 0 && (static_cast<size_t>(m) + 1) * dimensions <= free.size(),
            "machine: expected rows of the view");
  std::vector<size_t> order(n);
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::tuple(placed.machine[a], -int64_t{placed.priority[a]}, placed.task[a]) <
           std::tuple(placed.machine[b], -int64_t{placed.priority[b]}, placed.task[b]);
  });
  std::vector<int64_t> total(dimensions);
  for (size_t k = 0; k < n; ++k) {
    const size_t i = order[k];
    if (k == 0 || placed.machine[order[k - 1]] != placed.machine[i])
      std::fill(total.begin(), total.end(), 0);
    const int64_t* const request = placed.request.data() + i * dimensions;
    const int64_t* const left = free.data() + static_cast<size_t>(placed.machine[i]) * dimensions;
    fits[i] = true;
    for (size_t r = 0; r < dimensions; ++r) {
      total[r] += request[r];
      if (request[r] != 0 && total[r] > left[r]) fits[i] = false;
    }
  }
}

void in_whole_gangs(std::span<const int64_t> gang, std::span<const int64_t> waiting_gang,
                    std::span<bool> whole) {
  require(whole.size() == gang.size(), "whole: expected one per placement");
  std::unordered_map<int64_t, int64_t> without_place;  // by gang
  for (const int64_t each : gang)
    if (each >= 0) --without_place[each];
  for (const int64_t each : waiting_gang) {
    if (without_place.empty()) break;
    const auto found = without_place.find(each);
    if (found != without_place.end()) ++found->second;
  }
  for (size_t i = 0; i < gang.size(); ++i)
    whole[i] = gang[i] < 0 || without_place.find(gang[i])->second == 0;
}

namespace {

// The entries [begin, end) of a row of a CSR table of `size` entries.
std::pair<size_t, size_t> entries_of_row(std::span<const int64_t> offsets, int64_t row,
                                         size_t size) {
  require(row >= 0 && static_cast<size_t>(row) + 1 < offsets.size(),
          "row: expected rows of the table");
  const int64_t begin = offsets[static_cast<size_t>(row)];
  const int64_t end = offsets[static_cast<size_t>(row) + 1];
  require(0 <= begin && begin <= end && static_cast<size_t>(end) <= size,
          "offsets: expected ascending places of the table");
  return {static_cast<size_t>(begin), static_cast<size_t>(end)};
}

}  // namespace

void units_in(std::span<const int64_t> resources, std::span<const int64_t> unit, int64_t most,
              std::span<int64_t> units) {
  const size_t dimensions = unit.size();
  require(resources.size() == units.size() * dimensions,
          "resources: expected a row of each resource per machine");
  const bool counts = std::any_of(unit.begin(), unit.end(), [](int64_t u) { return u != 0; });
  for (size_t m = 0; m < units.size(); ++m) {
    const int64_t* const row = resources.data() + m * dimensions;
    if (!counts) {
      units[m] = std::any_of(row, row + dimensions, [](int64_t r) { return r > 0; }) ? most : 0;
      continue;
    }
    int64_t held = most;
    for (size_t r = 0; r < dimensions; ++r)
      if (unit[r] != 0 && row[r] <= 0)
        held = 0;
      else if (unit[r] != 0)
        held = std::min(held, unit[r] == 1 ? row[r] : row[r] / unit[r]);
    units[m] = held;
  }
}

std::vector<int64_t> ranges(std::span<const int64_t> begin, std::span<const int64_t> size) {
  require(begin.size() == size.size(), "begin, size: expected columns of one length");
  size_t total = 0;
  for (const int64_t each : size) {
    require(each >= 0, "size: expected 0 or more");
    total += static_cast<size_t>(each);
  }
  std::vector<int64_t> entries;
  entries.reserve(total);
  for (size_t i = 0; i < begin.size(); ++i)
    for (int64_t k = 0; k < size[i]; ++k) entries.push_back(begin[i] + k);
  return entries;
}

ListedArcs listed_arcs(std::span<const int64_t> offsets, std::span<const int64_t> head,
                       std::span<const int64_t> cost, std::span<const int64_t> row,
                       std::span<const int64_t> set) {
  require(head.size() == cost.size(), "head, cost: expected columns of one length");
  require(row.size() == set.size(), "row, set: expected columns of one length");
  ListedArcs arcs;
  for (auto* column : {&arcs.row, &arcs.head, &arcs.cost}) column->reserve(4 * row.size());
  for (size_t i = 0; i < row.size(); ++i) {
    const auto [first, last] = entries_of_row(offsets, set[i], head.size());
    const auto begin = static_cast<std::ptrdiff_t>(first), end = static_cast<std::ptrdiff_t>(last);
    arcs.row.insert(arcs.row.end(), last - first, row[i]);
    arcs.head.insert(arcs.head.end(), head.begin() + begin, head.begin() + end);
    arcs.cost.insert(arcs.cost.end(), cost.begin() + begin, cost.begin() + end);
  }
  return arcs;
}

std::vector<int64_t> entries_of(std::span<const int64_t> offsets, std::span<const int64_t> order,
                                std::span<const int64_t> row) {
  std::vector<int64_t> entries;
  for (const int64_t each : row) {
    const auto [begin, end] = entries_of_row(offsets, each, order.size());
    for (size_t k = begin; k < end; ++k) entries.push_back(order[k]);
  }
  return entries;
}

std::vector<int64_t> differing(std::span<const int64_t> a, std::span<const int64_t> b) {
  require(a.size() == b.size(), "expected columns of one length");
  std::vector<int64_t> places;
  for (size_t i = 0; i < a.size(); ++i)
    if (a[i] != b[i]) places.push_back(static_cast<int64_t>(i));
  return places;
}

std::vector<int64_t> without_node(std::span<const int64_t> head, std::span<const int64_t> node) {
  std::vector<int64_t> named;
  for (const int64_t each : head) {
    if (each >= 0) continue;
    const size_t aggregator = static_cast<size_t>(-1 - each);
    require(aggregator < node.size(), "head: expected aggregators of the graph");
    if (node[aggregator] < 0) named.push_back(-1 - each);
  }
  std::sort(named.begin(), named.end());
  named.erase(std::unique(named.begin(), named.end()), named.end());
  return named;
}

std::vector<int64_t> cycle_among(std::span<const int64_t> tail, std::span<const int64_t> head) {
  require(tail.size() == head.size(), "tail, head: expected columns of one length");
  std::vector<size_t> arcs(tail.size());  // by tail
  std::iota(arcs.begin(), arcs.end(), size_t{0});
  std::stable_sort(arcs.begin(), arcs.end(), [&](size_t a, size_t b) { return tail[a] < tail[b]; });
  std::vector<int64_t> node;  // that have arcs, ascending; only they can lie on a cycle
  std::vector<size_t> first;  // of node's arcs
  for (size_t i = 0; i < arcs.size(); ++i)
    if (node.empty() || node.back() != tail[arcs[i]]) {
      node.push_back(tail[arcs[i]]);
      first.push_back(i);
    }
  first.push_back(arcs.size());

  enum class Visit : uint8_t { kNo, kOnPath, kDone };
  std::vector<Visit> visit(node.size(), Visit::kNo);
  std::vector<size_t> next(first.begin(), first.end());  // arc to follow out of each node
  std::vector<size_t> path;
  for (size_t start = 0; start < node.size(); ++start) {
    if (visit[start] != Visit::kNo) continue;
    visit[start] = Visit::kOnPath;
    path.assign(1, start);
    while (!path.empty()) {
      const size_t at = path.back();
      if (next[at] == first[at + 1]) {
        visit[at] = Visit::kDone;
        path.pop_back();
        continue;
      }
      const int64_t to = head[arcs[next[at]++]];
      const auto found = std::lower_bound(node.begin(), node.end(), to);
      if (found == node.end() || *found != to) continue;
      const size_t reached = static_cast<size_t>(found - node.begin());
      if (visit[reached] == Visit::kOnPath) {
        std::vector<int64_t> cycle;
        for (auto on = std::find(path.begin(), path.end(), reached); on != path.end(); ++on)
          cycle.push_back(node[*on]);
        cycle.push_back(to);
        return cycle;
      }
      if (visit[reached] == Visit::kDone) continue;
      visit[reached] = Visit::kOnPath;
      path.push_back(reached);
    }
  }
  return {};
}

int64_t first_outside(std::span<const int64_t> column, int64_t lowest, int64_t highest) {
  for (size_t i = 0; i < column.size(); ++i)
    if (column[i] < lowest || column[i] > highest) return static_cast<int64_t>(i);
  return -1;
}

}  // namespace agora
