// Units of a flow (schedulers/units.py), and array idioms of the flow scheduler that numpy takes
// several passes for (schedulers/flow).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace agora {

// How many of `unit` (R) fit each row of `resources` ([M, R]). A resource of which the unit is 0 is
// not checked, not even on machines that are overdrawn in it. If the unit is 0 in all, rows with
// room in some resource hold `most`, and others none. No row holds more than `most`. Throws
// std::invalid_argument if `resources` has another number of rows than `units`.
void units_in(std::span<const int64_t> resources, std::span<const int64_t> unit, int64_t most,
              std::span<int64_t> units);

// The entries of the named rows of a CSR table: begin[0], begin[0] + 1, ... (size[0] of them),
// begin[1], ... Throws std::invalid_argument for columns of different lengths, and sizes below 0.
std::vector<int64_t> ranges(std::span<const int64_t> begin, std::span<const int64_t> size);

// The entries of sets of a CSR table, as arcs: those of set[0] out of row[0], those of set[1] out
// of row[1], ... Throws std::invalid_argument for columns of different lengths, sets that do not
// exist, and offsets that do not ascend within the table.
struct ListedArcs {
  std::vector<int64_t> row, head, cost;
};
ListedArcs listed_arcs(std::span<const int64_t> offsets, std::span<const int64_t> head,
                       std::span<const int64_t> cost, std::span<const int64_t> row,
                       std::span<const int64_t> set);

// The entries of the named rows of a CSR table with these offsets: order[offsets[row[0]]], ...
// Throws std::invalid_argument for rows that do not exist, and offsets that do not ascend within
// `order`.
std::vector<int64_t> entries_of(std::span<const int64_t> offsets, std::span<const int64_t> order,
                                std::span<const int64_t> row);

// The places where two columns differ. Throws std::invalid_argument if their lengths do.
std::vector<int64_t> differing(std::span<const int64_t> a, std::span<const int64_t> b);

// The aggregators that these heads name (-1 - a for aggregator a; others are machines) and that
// have no node yet (negative), ascending. Throws std::invalid_argument for aggregators beyond those
// of `node`.
std::vector<int64_t> without_node(std::span<const int64_t> head, std::span<const int64_t> node);

// A cycle of the graph that has these arcs: the nodes along it, of which the last is the first once
// more. Empty if there is none. O(k log k) for k arcs. Throws std::invalid_argument for columns of
// different lengths.
std::vector<int64_t> cycle_among(std::span<const int64_t> tail, std::span<const int64_t> head);

// The first place of a number that is not within these bounds, or -1.
int64_t first_outside(std::span<const int64_t> column, int64_t lowest, int64_t highest);

}  // namespace agora
