// Which placements of a flow can be claimed: the flow knows units, machines have several resources,
// and a gang is placed as a whole (schedulers/flow/extraction.py).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace agora {

// n placements.
struct Placed {
  std::span<const int64_t> task;      // ids
  std::span<const int32_t> priority;  // of one machine's tasks the highest come first
  std::span<const int64_t> request;   // [n, R]
  std::span<const int64_t> machine;   // rows
};

// Writes which placements fit together in what is free ([M, R]). A resource that a task does not
// request is not checked, not even on machines that are overdrawn in it. On one machine tasks of
// higher priority come first, then lower ids. Tasks after one that does not fit are judged as if it
// did. O(n (log n + R)). Throws std::invalid_argument for columns that do not go together, and
// machines that do not exist.
void fit_together(const Placed& placed, std::span<const int64_t> free, size_t dimensions,
                  std::span<bool> fits);

// Writes which placements, of tasks of these gangs, are of no gang (negative), or of one that has
// no waiting task without a place. waiting_gang: the gangs of all waiting tasks, the placed ones
// among them. Throws std::invalid_argument for columns that do not go together.
void in_whole_gangs(std::span<const int64_t> gang, std::span<const int64_t> waiting_gang,
                    std::span<bool> whole);

}  // namespace agora
