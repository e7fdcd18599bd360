// The cell's calls as messages bring them: transactions and shared columns in, new ones out.
// Semantics and errors are those of the methods of the same names (cell.hpp); besides, each throws
// std::invalid_argument naming a column whose length is not that of the others.
#pragma once

#include <cstdint>
#include <optional>

#include "cell.hpp"
#include "transaction.hpp"

namespace agora {

CommitResult commit(Cell& cell, const Transaction& transaction, int64_t now_us);

// owner: none: owners are not checked.
Released release(Cell& cell, const SharedColumn<int64_t>& allocation,
                 const std::optional<SharedColumn<int32_t>>& owner);

// The ids of the new allocations.
SharedColumn<int64_t> load(Cell& cell, const SharedColumn<int64_t>& task,
                           const SharedColumn<int32_t>& machine,
                           const SharedTable<int64_t>& request, const SharedColumn<int32_t>& owner);

Released set_machines(Cell& cell, const SharedColumn<int32_t>& machine,
                      const SharedColumn<bool>& up);

// owner: negative: of all.
Released allocations(const Cell& cell, int32_t owner);

Released describe(const Cell& cell, const SharedColumn<int64_t>& allocation);

// The rows of a partition that changed after `version`; all of them for 0.
PartitionDelta delta_since(Cell& cell, int64_t partition, int64_t version, int64_t now_us,
                           bool with_seqnum);

}  // namespace agora
