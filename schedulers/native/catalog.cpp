#include "catalog.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <string>

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

}  // namespace agora
