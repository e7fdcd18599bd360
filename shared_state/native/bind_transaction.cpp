// The Python classes of transactions, their results, and partition deltas.
#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>

#include "bound_fields.hpp"
#include "transaction.hpp"

namespace nb = nanobind;
using agora::CommitResult;
using agora::PartitionDelta;
using agora::Released;
using agora::Transaction;

namespace agora {

// In Python these are the IntEnums of shared_state.transaction, which imports this module.
template <class Enum>
struct BoundEnum {
  static nb::object to(Enum value) { return member(static_cast<int64_t>(value)); }
  static Enum from(nb::handle value, const char* field) {
    const int64_t number = BoundValue<int64_t>::from(value, field);
    member(number);  // ValueError for what is none of them
    return static_cast<Enum>(number);
  }

 private:
  static nb::object member(int64_t number) {
    static const nb::handle type =
        nb::object(nb::module_::import_("shared_state.transaction").attr(BoundValue<Enum>::kType))
            .release();
    static const nb::handle members[] = {type(0).release(), type(1).release()};
    if (number == 0 || number == 1) return nb::borrow(members[number]);
    return type(number);
  }
};

template <>
struct BoundValue<CommitMode> : BoundEnum<CommitMode> {
  static constexpr const char* kType = "CommitMode";
};
template <>
struct BoundValue<ConflictCheck> : BoundEnum<ConflictCheck> {
  static constexpr const char* kType = "ConflictCheck";
};

}  // namespace agora

namespace {

constexpr const char* kTransaction = R"(k claims of one scheduler.

Attributes:
    scheduler: Its number.
    sequence: 1, 2, ... per scheduler. Claims that others make for it count elsewhere.
    task: int64[k].
    machine: int32[k].
    request: int64[k, R].
    synced_us: int64[k], the cell's time of the state that the claim was planned on (its
        partition's last sync): ages are differences of the cell's time.
    commit_mode: Whether claims are accepted one by one or in groups.
    conflict_check: How conflicts are detected.
    gang: int64[k], or None if all are NO_GANG.
    seqnum: uint32[k], the machine's sequence number as seen; None under RESOURCE_FIT.
    evict: int64[e], allocations that end first so that the claims fit: this scheduler's own, or
        others' where the cell permits it (native/commit.cpp); None for no eviction. One ends
        only if a claim that relies on it is accepted: the claim that places its task anew, or
        else any claim on its machine. If there is none, an own one ends.)";

constexpr const char* kCommitResult = R"(The answer to a Transaction of k claims.

accepted + rejected == k, and a rejected transaction changed nothing.

Attributes:
    sequence: Of the transaction.
    reason: int8[k], a Reason; 0 is accepted.
    allocation: int64[k], NO_ALLOCATION where rejected.
    rival: int32[k], the other scheduler that last claimed the machine, where rejected as stale
        or full; NO_RIVAL where nobody else did, and for other outcomes.
    age_us: int64[k], the cell's time minus that of the state the claim was planned on.
    version: int64[k], of the claim's partition after this commit: a view synced to it, or
        later, has seen the outcome.
    evicted: int64[j], the allocations ended by this commit.)";

constexpr const char* kPartitionDelta =
    R"(The rows of a partition that changed in versions (from_version, to_version].

Attributes:
    partition: Its number.
    from_version: 0 for a snapshot of all rows.
    to_version: The partition's version.
    at_us: The cell's time when it was taken.
    row: uint16[k] or uint32[k], offsets within the partition, ascending.
    used: [k, R], of the narrowest signed dtype that holds it.
    up: bool[k].
    seqnum: uint32[k], or None for schedulers that do not check it.)";

constexpr const char* kReleased = R"(Allocations, columnar, n of them: ended ones, or as they stand.

Attributes:
    task: int64[n].
    machine: int32[n].
    allocation: int64[n], ids.
    owner: int32[n], the scheduler.
    request: int64[n, R].
    version: int64[n], of the machine's partition after the call: a view synced to it, or later,
        has seen them end.)";

}  // namespace

void bind_transaction(nb::module_& module) {
  nb::class_<Transaction> transaction(module, "Transaction", kTransaction,
                                      nb::type_slots(agora::field_slots<Transaction>()));
  agora::bind_fields<Transaction>(transaction);
  transaction.def("__len__", &Transaction::size);

  nb::class_<CommitResult> result(module, "CommitResult", kCommitResult,
                                  nb::type_slots(agora::field_slots<CommitResult>()));
  agora::bind_fields<CommitResult>(result);
  result.def_prop_ro(
      "accepted",
      [](const CommitResult& self) {
        const agora::NewArray<bool> mask(self.reason.size());
        for (size_t i = 0; i < self.reason.size(); ++i) mask.data()[i] = self.reason[i] == 0;
        return mask.object();
      },
      "bool[k], the accepted claims.");

  nb::class_<PartitionDelta> delta(module, "PartitionDelta", kPartitionDelta,
                                   nb::type_slots(agora::field_slots<PartitionDelta>()));
  agora::bind_fields<PartitionDelta>(delta);

  nb::class_<Released> released(module, "Released", kReleased,
                                nb::type_slots(agora::field_slots<Released>()));
  agora::bind_fields<Released>(released);
  released.def("__len__", &Released::size);
}
