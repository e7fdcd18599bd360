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

// Tasks that go to one aggregator and pay the same from there.
struct Class {
  size_t aggregator;
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
        paid_(in.head.size()) {
    for (size_t e = 0; e < inner_room_.size(); ++e)
      inner_room_[e] = in.inner_capacity[e] - in.inner_flow[e];
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
    std::vector<uint32_t> tasks;
    for (size_t i = 0; i < in_.head.size(); ++i)
      if (in_.head[i] < 0) tasks.push_back(static_cast<uint32_t>(i));
    std::stable_sort(tasks.begin(), tasks.end(), [&](uint32_t a, uint32_t b) {
      return std::tie(in_.head[a], paid_[a]) < std::tie(in_.head[b], paid_[b]);
    });
    std::vector<Class> classes;
    for (auto first = tasks.begin(); first != tasks.end();) {
      auto end = first + 1;
      while (end != tasks.end() && in_.head[*end] == in_.head[*first] &&
             paid_[*end] == paid_[*first])
        ++end;
      classes.push_back({aggregator(in_.head[*first]), paid_[*first], {first, end}, {}});
      first = end;
    }
    for (auto first = classes.begin(); first != classes.end();) {
      auto end = first + 1;
      while (end != classes.end() && end->aggregator == first->aggregator) ++end;
      find_arcs({first, end}, first->aggregator, 0, 0);
      first = end;
    }
    std::stable_sort(classes.begin(), classes.end(),
                     [](const Class& a, const Class& b) { return a.arcs.size() < b.arcs.size(); });
    for (const Class& each : classes) choose_for(each);
  }

  // Adds the arcs into machines that are reached from here at a class's cost, with room or not.
  // classes: in ascending order of cost. passed: aggregators on the way.
  void find_arcs(std::span<Class> classes, size_t from, int64_t paid, size_t passed) {
    require(passed < in_.first.size(), "the arcs between aggregators form a cycle");
    const auto [first, end] = arcs_of(from);
    for (int64_t e = first; e < end; ++e) {
      const int64_t head = in_.inner_head[at(e)], cost = paid + in_.inner_cost[at(e)];
      if (head < 0) {
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
  std::vector<int64_t> paid_;          // [n]: what the path costs from its first aggregator on
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

}  // namespace agora
