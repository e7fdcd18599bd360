// The Python classes of Cell (see cell.py), of transactions and their parts, and of native
// observers of the cell, for Python code that calls the cell itself (observed_cell.py).

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/shared_ptr.h>

#include <algorithm>
#include <optional>

#include "bound_fields.hpp"
#include "column.hpp"
#include "observed_cell.hpp"
#include "transaction.hpp"

namespace nb = nanobind;

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

using agora::BoundValue;
using agora::Cell;
using agora::CellObserver;
using agora::Column;
using agora::CommitResult;
using agora::Holds;
using agora::length_of;
using agora::PartitionDelta;
using agora::Released;
using agora::SharedColumn;
using agora::SharedTable;
using agora::Transaction;

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
        else any claim on its machine. If there is none, an own one ends.
    holds: int64[h], this scheduler's holds that end before the claims are judged, whatever becomes
        of these; others are skipped. If it names any, a claim on a machine on which none of them
        was left is STALE. None: the claims rest on no holds.)";

constexpr const char* kCommitResult = R"(The answer to a Transaction of k claims.

accepted + rejected == k, and a rejected transaction changed nothing.

Attributes:
    sequence: Of the transaction.
    reason: int8[k], a Reason; 0 is accepted.
    allocation: int64[k], NO_ALLOCATION where rejected.
    rival: int32[k], the other scheduler that last claimed the machine, where rejected as stale
        or full, or for which room was last held there, where rejected as held; NO_RIVAL where
        there is none, and for other outcomes.
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
    used: [k, R], what is in use or held, of the narrowest signed dtype that holds it.
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

constexpr const char* kHolds =
    R"(Room held for offers, columnar, n holds: ended ones, or as they stand.

Attributes:
    hold: int64[n], ids, which ascend over time; -1 where a hold was refused.
    holder: int32[n], the scheduler.
    machine: int32[n].
    amount: int64[n, R].)";

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

  nb::class_<Holds> holds(module, "Holds", kHolds, nb::type_slots(agora::field_slots<Holds>()));
  agora::bind_fields<Holds>(holds);
  holds.def("__len__", &Holds::size);
}

namespace {

// A read-only array onto the cell's memory. `stride` counts entries from row to row.
template <class T>
nb::object view_of(nb::handle self, const T* data, size_t rows, size_t width, size_t stride) {
  const size_t shape[] = {rows, width};
  const int64_t strides[] = {static_cast<int64_t>(stride), 1};
  return nb::cast(nb::ndarray<nb::numpy, const T>(data, width ? 2 : 1, shape, self, strides));
}

template <class T>
SharedColumn<T> column(nb::handle array, const char* field) {
  return BoundValue<SharedColumn<T>>::from(array, field);
}

SharedTable<int64_t> table(nb::handle array, const char* field) {
  return BoundValue<SharedTable<int64_t>>::from(array, field);
}

Released release(Cell& cell, nb::handle allocation, nb::handle owner) {
  return agora::release(cell, column<int64_t>(allocation, "allocation"),
                        BoundValue<std::optional<SharedColumn<int32_t>>>::from(owner, "owner"));
}

nb::object load(Cell& cell, nb::handle task, nb::handle machine, nb::handle request,
                nb::handle owner) {
  return agora::array_of(agora::load(cell, column<int64_t>(task, "task"),
                                     column<int32_t>(machine, "machine"), table(request, "request"),
                                     column<int32_t>(owner, "owner")));
}

Released set_machines(Cell& cell, nb::handle machine, nb::handle up) {
  return agora::set_machines(cell, column<int32_t>(machine, "machine"), column<bool>(up, "up"));
}

Released describe(const Cell& cell, nb::handle allocation) {
  return agora::describe(cell, column<int64_t>(allocation, "allocation"));
}

nb::object hold(Cell& cell, nb::handle holder, nb::handle machine, nb::handle amount) {
  return agora::array_of(agora::hold(cell, column<int32_t>(holder, "hold.holder"),
                                     column<int32_t>(machine, "hold.machine"),
                                     table(amount, "hold.amount")));
}

Holds end_holds(Cell& cell, nb::handle hold) {
  return agora::end_holds(cell, column<int64_t>(hold, "hold"));
}

// Adds what is held to amounts [M, R], or with sign -1 takes it off.
void add_held(const Cell& cell, int64_t* amounts, int64_t sign) {
  const size_t width = cell.dimensions();
  for (const auto& one : cell.holds().all())
    for (size_t r = 0; r < width; ++r)
      amounts[static_cast<size_t>(one.machine) * width + r] += sign * one.amount[r];
}

// What is used: the cell's memory, or a copy while something is held.
nb::object used(nb::handle_t<Cell> self) {
  auto& cell = nb::cast<Cell&>(self);
  const size_t rows = cell.machines(), width = cell.dimensions();
  if (cell.holds().empty()) return view_of(self, cell.taken().data(), rows, width, width);
  auto [table, amounts] = SharedTable<int64_t>::make(rows, width);
  std::copy(cell.taken().begin(), cell.taken().end(), amounts);
  add_held(cell, amounts, -1);
  return agora::array_of(table);
}

// [M, R]
nb::object held(const Cell& cell) {
  auto [table, amounts] = SharedTable<int64_t>::make(cell.machines(), cell.dimensions());
  std::fill_n(amounts, table.count(), 0);
  add_held(cell, amounts, +1);
  return agora::array_of(table);
}

nb::bytes checkpoint(Cell& cell) {
  std::string bytes;
  {
    nb::gil_scoped_release unlocked;
    bytes = cell.checkpoint();
  }
  return nb::bytes(bytes.data(), bytes.size());
}

void restore(Cell& cell, nb::bytes bytes) {
  const std::span<const char> span(bytes.c_str(), bytes.size());
  nb::gil_scoped_release unlocked;
  cell.restore(span);
}

}  // namespace

void bind_cell(nb::module_& module) {
  nb::class_<Cell>(module, "Cell")
      .def(
          "__init__",
          [](Cell* self, nb::handle limit, nb::handle offsets, size_t dimensions,
             nb::handle priority) {
            const Column<const int64_t> limits(limit, "limit", length_of(limit, "limit"),
                                               dimensions);
            const Column<const int64_t> bounds(offsets, "offsets", length_of(offsets, "offsets"));
            std::optional<Column<const int32_t>> priorities;
            if (!priority.is_none())
              priorities.emplace(priority, "priority", length_of(priority, "priority"));
            new (self)
                Cell(limits.size(), dimensions, {limits.data(), limits.size() * dimensions},
                     bounds.span(), priorities ? priorities->span() : std::span<const int32_t>{});
          },
          nb::arg(), nb::arg(), nb::arg(), nb::arg().none())
      .def("commit", &agora::commit)
      .def("release", &release, nb::arg(), nb::arg().none())
      .def("load", &load)
      .def("set_machines", &set_machines)
      .def("hold", &hold)
      .def("end_holds", &end_holds)
      .def("ended_holds", &agora::ended_holds)
      .def("holds", &agora::holds)
      .def("allocations", &agora::allocations)
      .def("describe", &describe)
      .def("delta_since", &agora::delta_since)
      .def("checkpoint", &checkpoint)
      .def("restore", &restore)
      .def_prop_ro("live", &Cell::live)
      .def_prop_ro("machines_up", &Cell::machines_up)
      .def_prop_ro("used", &used)
      .def_prop_ro("held", &held)
      .def_prop_ro("seqnum",
                   [](nb::handle_t<Cell> self) {
                     const auto& cell = nb::cast<const Cell&>(self);
                     return view_of(self, &cell.rows()[0].seqnum, cell.machines(), 0,
                                    sizeof(agora::RowState) / sizeof(uint32_t));
                   })
      .def_prop_ro("up",
                   [](nb::handle_t<Cell> self) {
                     const auto& cell = nb::cast<const Cell&>(self);
                     return view_of(self,
                                    reinterpret_cast<const bool*>(&cell.rows()[0].partition_and_up),
                                    cell.machines(), 0, sizeof(agora::RowState));
                   })
      .def_prop_ro("versions", [](nb::handle_t<Cell> self) {
        const auto& cell = nb::cast<const Cell&>(self);
        return view_of(self, cell.versions().data(), cell.partitions(), 0, 1);
      });
  module.attr("REASON_NAMES") = agora::bound_names(agora::kReasonNames);
  module.attr("MAX_DIMENSIONS") = agora::kMaxDimensions;
  module.attr("MAX_AMOUNT") = agora::kMaxAmount;
}

namespace {

template <class T>
std::shared_ptr<const T> part(nb::handle value, const char* field) {
  return BoundValue<std::shared_ptr<const T>>::from(value, field);
}

void on_load(CellObserver& self, nb::handle task, nb::handle machine, nb::handle request,
             nb::handle owner, nb::handle allocation) {
  self.on_load({column<int64_t>(task, "task"), column<int32_t>(machine, "machine"),
                table(request, "request"), column<int32_t>(owner, "owner"),
                column<int64_t>(allocation, "allocation")});
}

}  // namespace

void bind_observed_cell(nb::module_& module) {
  nb::class_<CellObserver>(module, "CellObserver", "A native observer; see observed_cell.hpp.")
      .def("attach", &CellObserver::attach, nb::arg("cell"), nb::keep_alive<1, 2>())
      .def("before_change", &CellObserver::before_change, nb::arg("now_us"))
      .def(
          "before_commit",
          [](CellObserver& self, nb::handle transaction, int64_t now_us) {
            self.before_commit(part<Transaction>(transaction, "transaction"), now_us);
          },
          nb::arg("transaction"), nb::arg("now_us"))
      .def(
          "on_commit",
          [](CellObserver& self, nb::handle transaction, nb::handle result, int64_t now_us) {
            self.on_commit(part<Transaction>(transaction, "transaction"),
                           part<CommitResult>(result, "result"), now_us);
          },
          nb::arg("transaction"), nb::arg("result"), nb::arg("now_us"))
      .def("on_release", &CellObserver::on_release, nb::arg("released"), nb::arg("now_us"))
      .def("on_load", &on_load, nb::arg("task"), nb::arg("machine"), nb::arg("request"),
           nb::arg("owner"), nb::arg("allocation"))
      .def("on_hold", &CellObserver::on_hold, nb::arg("holds"), nb::arg("now_us"))
      .def("on_holds_ended", &CellObserver::on_holds_ended, nb::arg("ended"), nb::arg("now_us"))
      .def(
          "on_machines",
          [](CellObserver& self, nb::handle machine, nb::handle up, const Released& lost,
             int64_t now_us) {
            self.on_machines(column<int32_t>(machine, "machine"), column<bool>(up, "up"), lost,
                             now_us);
          },
          nb::arg("machine"), nb::arg("up"), nb::arg("lost"), nb::arg("now_us"))
      .def(
          "on_delta",
          [](CellObserver& self, nb::handle delta, int64_t now_us) {
            self.on_delta(part<PartitionDelta>(delta, "delta"), now_us);
          },
          nb::arg("delta"), nb::arg("now_us"));
}
