// Which placements can be claimed, against definitions in a few lines; how many units machines
// hold, and cycles among arcs. Columns that do not go together are refused.
#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <stdexcept>
#include <vector>

#include "check.hpp"
#include "schedulers/native/flow_placements.hpp"
#include "schedulers/native/flow_graph.hpp"

using namespace agora;

namespace {

using Ids = std::vector<int64_t>;
constexpr size_t kMachines = 3, kDimensions = 2, kMost = 8;

bool is_refused(const std::function<void()>& call) {
  try {
    call();
  } catch (const std::invalid_argument&) {
    return true;
  }
  return false;
}

Ids numbers(Draws& draw, size_t n, uint64_t bound, int64_t least) {
  Ids column;
  for (; n > 0; --n) column.push_back(static_cast<int64_t>(draw(bound)) + least);
  return column;
}

void placements_share_machines(Draws& draw) {
  const size_t n = draw(kMost + 1);
  const Ids free = numbers(draw, kMachines * kDimensions, 8, -2);
  const Ids request = numbers(draw, n * kDimensions, 4, 0),
            machine = numbers(draw, n, kMachines, 0);
  Ids task;
  std::vector<int32_t> priority;
  for (size_t i = 0; i < n; ++i) {
    task.push_back(static_cast<int64_t>((i * 5) % 11));  // distinct, in no order
    priority.push_back(static_cast<int32_t>(draw(3)) - 1);
  }
  std::array<bool, kMost> fits{};
  fit_together({task, priority, request, machine}, free, kDimensions, {fits.data(), n});
  for (size_t i = 0; i < n; ++i) {
    bool expected = true;
    for (size_t r = 0; r < kDimensions; ++r) {
      int64_t total = 0;  // of the tasks up to this one, as they come
      for (size_t k = 0; k < n; ++k) {
        const bool before =
            priority[k] > priority[i] || (priority[k] == priority[i] && task[k] <= task[i]);
        if (machine[k] == machine[i] && before) total += request[k * kDimensions + r];
      }
      expected &= request[i * kDimensions + r] == 0 ||
                  total <= free[static_cast<size_t>(machine[i]) * kDimensions + r];
    }
    CHECK(fits[i] == expected);
  }
}

void gangs_are_whole(Draws& draw) {
  const size_t n = draw(kMost + 1);
  const Ids gang = numbers(draw, n, 4, -1);
  Ids waiting = gang;  // the placed tasks wait too
  for (const int64_t more : numbers(draw, draw(3), 4, -1)) waiting.push_back(more);
  std::map<int64_t, int64_t> left;
  for (const int64_t g : waiting) ++left[g];
  for (const int64_t g : gang) --left[g];
  std::array<bool, kMost> whole{};
  in_whole_gangs(gang, waiting, {whole.data(), n});
  for (size_t i = 0; i < n; ++i) CHECK(whole[i] == (gang[i] < 0 || left[gang[i]] == 0));
}

void units_fill_machines(Draws& draw) {
  const Ids resources = numbers(draw, kMachines * kDimensions, 12, -3);
  const Ids unit = numbers(draw, kDimensions, 4, 0);
  const bool counts = unit[0] > 0 || unit[1] > 0;
  Ids units(kMachines);
  units_in(resources, unit, 5, units);
  for (size_t m = 0; m < kMachines; ++m) {
    const int64_t* const row = &resources[m * kDimensions];
    const auto holds = [&](int64_t count) {
      if (!counts) return row[0] > 0 || row[1] > 0;
      for (size_t r = 0; r < kDimensions; ++r)
        if (unit[r] > 0 && unit[r] * count > row[r]) return false;
      return true;
    };
    CHECK(units[m] >= 0 && units[m] <= 5);
    CHECK(units[m] == 0 || holds(units[m]));
    CHECK(units[m] == 5 || !holds(units[m] + 1));
  }
}

void columns_that_do_not_go_together_are_refused() {
  const Ids one{0}, two{0, 0};
  const std::vector<int32_t> priority{0};
  bool fits = false;
  const auto fit = [&](const Ids& request, const Ids& machine, const Ids& free) {
    fit_together({one, priority, request, machine}, free, kDimensions, {&fits, 1});
  };
  CHECK(is_refused([&] { fit(one, one, two); }));
  CHECK(is_refused([&] { fit(two, two, two); }));
  CHECK(is_refused([&] { fit(two, Ids{1}, two); }));
  CHECK(is_refused([&] { fit(two, Ids{-1}, two); }));
  CHECK(is_refused([&] { in_whole_gangs(two, two, {&fits, 1}); }));
  Ids units(2);
  CHECK(is_refused([&] { units_in(two, two, 5, units); }));
  CHECK(is_refused([&] { ranges(one, two); }));
  CHECK(is_refused([&] { ranges(one, Ids{-1}); }));
  CHECK(is_refused([&] { differing(one, two); }));
  CHECK(is_refused([&] { entries_of(two, one, Ids{1}); }));
  CHECK(is_refused([&] { entries_of(Ids{0, 2}, one, one); }));
  CHECK(is_refused([&] { without_node(Ids{-2}, one); }));
  CHECK(is_refused([&] { cycle_among(one, two); }));
  CHECK(is_refused([&] { listed_arcs(Ids{0, 1}, one, two, one, one); }));
  CHECK(is_refused([&] { listed_arcs(Ids{0, 1}, one, one, two, one); }));
  CHECK(is_refused([&] { listed_arcs(Ids{0, 1}, one, one, one, Ids{1}); }));
  CHECK(is_refused([&] { listed_arcs(Ids{0, 2}, one, one, one, one); }));
}

// A cycle that is found is one; where none is, the nodes can be put in an order that all arcs keep.
void cycles_are_found(Draws& draw) {
  const size_t n = draw(8);
  const Ids tail = numbers(draw, n, 6, 2), head = numbers(draw, n, 6, 2);
  const Ids cycle = cycle_among(tail, head);
  const auto leads = [&](int64_t from, int64_t to) {
    for (size_t k = 0; k < n; ++k)
      if (tail[k] == from && head[k] == to) return true;
    return false;
  };
  if (!cycle.empty()) {
    CHECK(cycle.size() > 1 && cycle.front() == cycle.back());
    for (size_t i = 1; i < cycle.size(); ++i) CHECK(leads(cycle[i - 1], cycle[i]));
    return;
  }
  std::map<int64_t, int64_t> place;  // the length of the longest way there
  for (size_t pass = 0; pass <= n; ++pass)
    for (size_t k = 0; k < n; ++k) place[head[k]] = std::max(place[head[k]], place[tail[k]] + 1);
  for (size_t k = 0; k < n; ++k) CHECK(place[tail[k]] < place[head[k]]);
}

}  // namespace

int main() {
  Draws draw(11);
  for (int i = 0; i < 3000; ++i) {
    placements_share_machines(draw);
    gangs_are_whole(draw);
    units_fill_machines(draw);
    cycles_are_found(draw);
  }
  columns_that_do_not_go_together_are_refused();
  CHECK((ranges(Ids{5, 0, 9}, Ids{2, 0, 1}) == Ids{5, 6, 9}));
  CHECK((entries_of(Ids{0, 2, 2, 3}, Ids{7, 8, 9}, Ids{2, 0, 1}) == Ids{9, 7, 8}));
  const ListedArcs listed =
      listed_arcs(Ids{0, 2, 2, 3}, Ids{7, 8, 9}, Ids{1, 2, 3}, Ids{4, 5, 6}, Ids{2, 1, 0});
  CHECK((listed.row == Ids{4, 6, 6} && listed.head == Ids{9, 7, 8} && listed.cost == Ids{3, 1, 2}));
  CHECK((without_node(Ids{-3, 5, -1, -3, -2}, Ids{-1, 4, -1}) == Ids{0, 2}));
  CHECK((differing(Ids{1, 2, 3}, Ids{1, 0, 4}) == Ids{1, 2}));
  CHECK(first_outside(Ids{-3, 4}, -3, 4) == -1 && first_outside(Ids{0, -4, 9}, -3, 4) == 1);
  return 0;
}
