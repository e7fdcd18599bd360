#include "flow_units.hpp"

#include <algorithm>
#include <numeric>
#include <cstddef>
#include <stdexcept>
#include <utility>

namespace agora {

namespace {

void require(bool holds, const char* what) {
  if (!holds) throw std::invalid_argument(what);
}

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
