// What became of a task (schedulers.interface.ChangeKind).
#pragma once

#include <cstdint>

namespace agora {

enum class ChangeKind : int64_t {
  Adopted = 0,
  Committed = 1,
  Rejected = 2,
  Finished = 3,
  Evicted = 4,
  Lost = 5
};

}  // namespace agora
