// Which waiting tasks are worth another round: those that may find a place in the view.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "catalog.hpp"
#include "shared_state/native/view.hpp"

namespace agora {

// Which of n waiting tasks may find a place: bool[n]. One that waits for its listed machines may if
// one of them has room for it, any other if the view has an open row. Returns the rows looked at.
// O(n + sizes of the distinct sets) where the tasks of a set ask for the same.
struct WaitingTasks {
  size_t count;
  const int64_t* request;               // [count, R]
  std::span<const int32_t> preference;  // [count]
  std::span<const bool> waits;          // [count]
};
int64_t may_be_placed(const ClusterView& view, const Catalog& catalog, const WaitingTasks& tasks,
                      bool* may);

}  // namespace agora
