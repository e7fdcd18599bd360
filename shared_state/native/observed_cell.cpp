#include "observed_cell.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "row_bits.hpp"

namespace agora {

namespace {

void check_rows(const AnyColumn& column, const char* field, size_t rows, size_t width = 0) {
  if (column.rows() == rows && column.width() == width) return;
  throw std::invalid_argument(std::string(field) + ": expected an array " +
                              name_of(column.letter()) + "[" + std::to_string(rows) +
                              (width ? ", " + std::to_string(width) : "") + "]");
}

// Room for n allocations, and what to make of the first few of them.
class NewReleased {
 public:
  NewReleased(size_t n, size_t dimensions)
      : task_(SharedColumn<int64_t>::make(n)),
        machine_(SharedColumn<int32_t>::make(n)),
        allocation_(SharedColumn<int64_t>::make(n)),
        owner_(SharedColumn<int32_t>::make(n)),
        request_(SharedTable<int64_t>::make(n, dimensions)),
        version_(SharedColumn<int64_t>::make(n)) {}

  AllocationColumns columns() const {
    return {task_.second,  machine_.second, allocation_.second,
            owner_.second, request_.second, version_.second};
  }

  Released first(size_t n) const {
    const auto& request = request_.first;
    return {task_.first.slice(0, n),
            machine_.first.slice(0, n),
            allocation_.first.slice(0, n),
            owner_.first.slice(0, n),
            {request.data(), n, request.width(), request.memory()},
            version_.first.slice(0, n)};
  }

 private:
  std::pair<SharedColumn<int64_t>, int64_t*> task_;
  std::pair<SharedColumn<int32_t>, int32_t*> machine_;
  std::pair<SharedColumn<int64_t>, int64_t*> allocation_;
  std::pair<SharedColumn<int32_t>, int32_t*> owner_;
  std::pair<SharedTable<int64_t>, int64_t*> request_;
  std::pair<SharedColumn<int64_t>, int64_t*> version_;
};

Holds columns_of(const std::vector<Hold>& each, size_t dimensions) {
  auto [hold, ids] = SharedColumn<int64_t>::make(each.size());
  auto [holder, holders] = SharedColumn<int32_t>::make(each.size());
  auto [machine, machines] = SharedColumn<int32_t>::make(each.size());
  auto [amount, amounts] = SharedTable<int64_t>::make(each.size(), dimensions);
  size_t i = 0;
  for (const Hold& one : each) {
    ids[i] = one.id;
    holders[i] = one.holder;
    machines[i] = one.machine;
    std::copy_n(one.amount.data(), dimensions, amounts + i++ * dimensions);
  }
  return {hold, holder, machine, amount};
}

template <class T>
AnyColumn rows_of(const Cell& cell, const DeltaScan& scan) {
  auto [column, rows] = SharedColumn<T>::make(scan.count);
  cell.write_rows(scan, rows);
  return column;
}

template <class T>
AnyColumn used_of(const Cell& cell, const DeltaScan& scan) {
  auto [table, used] = SharedTable<T>::make(scan.count, cell.dimensions());
  cell.write_used(scan, used);
  return table;
}

}  // namespace

CommitResult commit(Cell& cell, const Transaction& transaction, int64_t now_us) {
  const Transaction& t = transaction;
  const size_t k = t.size();
  if (t.scheduler < 0 || t.scheduler > std::numeric_limits<int32_t>::max())
    throw std::invalid_argument("transaction.scheduler: expected a number in 0..2^31-1");
  const bool by_sequence_number = t.conflict_check == ConflictCheck::SequenceNumber;
  if (by_sequence_number && !t.seqnum)
    throw std::invalid_argument("transaction.seqnum: expected under SEQUENCE_NUMBER");
  check_rows(t.request, "transaction.request", k, cell.dimensions());
  check_rows(t.synced_us, "transaction.synced_us", k);
  check_rows(t.machine, "transaction.machine", k);
  if (t.gang) check_rows(*t.gang, "transaction.gang", k);
  if (by_sequence_number) check_rows(*t.seqnum, "transaction.seqnum", k);
  const std::span<const int64_t> victims = t.evict ? t.evict->span() : std::span<const int64_t>{};
  const std::span<const int64_t> holds = t.holds ? t.holds->span() : std::span<const int64_t>{};

  auto [reason, reasons] = SharedColumn<int8_t>::make(k);
  auto [allocation, allocations] = SharedColumn<int64_t>::make(k);
  auto [rival, rivals] = SharedColumn<int32_t>::make(k);
  auto [age_us, ages] = SharedColumn<int64_t>::make(k);
  auto [version, versions] = SharedColumn<int64_t>::make(k);
  auto [evicted, ended] = SharedColumn<int64_t>::make(victims.size());
  const size_t count =
      cell.commit({static_cast<int32_t>(t.scheduler), t.commit_mode == CommitMode::AllOrNothing,
                   now_us, k, t.task.data(), t.machine.data(), t.request.data(), t.synced_us.data(),
                   t.gang ? t.gang->data() : nullptr,
                   by_sequence_number ? t.seqnum->data() : nullptr, victims, holds},
                  {reasons, allocations, rivals, ages, versions, ended});
  return {t.sequence, reason, allocation, rival, age_us, version, evicted.slice(0, count)};
}

Released release(Cell& cell, const SharedColumn<int64_t>& allocation,
                 const std::optional<SharedColumn<int32_t>>& owner) {
  if (owner) check_rows(*owner, "owner", allocation.size());
  const NewReleased made(allocation.size(), cell.dimensions());
  return made.first(
      cell.release(allocation.span(), owner ? owner->data() : nullptr, made.columns()));
}

SharedColumn<int64_t> load(Cell& cell, const SharedColumn<int64_t>& task,
                           const SharedColumn<int32_t>& machine,
                           const SharedTable<int64_t>& request,
                           const SharedColumn<int32_t>& owner) {
  check_rows(machine, "machine", task.size());
  check_rows(request, "request", task.size(), cell.dimensions());
  check_rows(owner, "owner", task.size());
  auto [allocation, ids] = SharedColumn<int64_t>::make(task.size());
  cell.load(task.size(), task.data(), machine.data(), request.data(), owner.data(), ids);
  return allocation;
}

Released set_machines(Cell& cell, const SharedColumn<int32_t>& machine,
                      const SharedColumn<bool>& up) {
  check_rows(up, "up", machine.size());
  const NewReleased made(cell.live(), cell.dimensions());
  return made.first(cell.set_machines(machine.size(), machine.data(), up.data(), made.columns()));
}

SharedColumn<int64_t> hold(Cell& cell, const SharedColumn<int32_t>& holder,
                           const SharedColumn<int32_t>& machine,
                           const SharedTable<int64_t>& amount) {
  check_rows(machine, "hold.machine", holder.size());
  check_rows(amount, "hold.amount", holder.size(), cell.dimensions());
  auto [hold, ids] = SharedColumn<int64_t>::make(holder.size());
  cell.hold(holder.size(), holder.data(), machine.data(), amount.data(), ids);
  return hold;
}

Holds end_holds(Cell& cell, const SharedColumn<int64_t>& hold) {
  auto [id, ids] = SharedColumn<int64_t>::make(hold.size());
  auto [holder, holders] = SharedColumn<int32_t>::make(hold.size());
  auto [machine, machines] = SharedColumn<int32_t>::make(hold.size());
  auto [amount, amounts] = SharedTable<int64_t>::make(hold.size(), cell.dimensions());
  const size_t ended = cell.end_holds(hold.span(), {ids, holders, machines, amounts});
  return {id.slice(0, ended),
          holder.slice(0, ended),
          machine.slice(0, ended),
          {amounts, ended, cell.dimensions(), amount.memory()}};
}

Holds ended_holds(const Cell& cell) { return columns_of(cell.ended_holds(), cell.dimensions()); }

Holds holds(const Cell& cell) { return columns_of(cell.holds().all(), cell.dimensions()); }

Released allocations(const Cell& cell, int32_t owner) {
  const NewReleased made(cell.live(), cell.dimensions());
  return made.first(cell.allocations(owner, made.columns()));
}

Released describe(const Cell& cell, const SharedColumn<int64_t>& allocation) {
  const NewReleased made(allocation.size(), cell.dimensions());
  cell.describe(allocation.span(), made.columns());
  return made.first(allocation.size());
}

PartitionDelta delta_since(Cell& cell, int64_t partition, int64_t version, int64_t now_us,
                           bool with_seqnum) {
  if (partition < 0) throw std::invalid_argument("partition: expected one of the cell's");
  const auto p = static_cast<size_t>(partition);
  if (cell.is_narrow() && !with_seqnum) {
    std::vector<uint64_t> changed = cell.changed_rows(p, version);
    const size_t count = count_bits(changed.data(), changed.size());
    if (count > 0)
      return {partition,    version,          cell.versions()[p], now_us, {}, {}, {},
              std::nullopt, cell.snapshot(p), std::move(changed), count};
  }
  const DeltaScan scan = cell.scan(p, version);
  const AnyColumn row =
      scan.rows <= 0x10000 ? rows_of<uint16_t>(cell, scan) : rows_of<uint32_t>(cell, scan);
  const AnyColumn used = scan.largest <= INT8_MAX    ? used_of<int8_t>(cell, scan)
                         : scan.largest <= INT16_MAX ? used_of<int16_t>(cell, scan)
                         : scan.largest <= INT32_MAX ? used_of<int32_t>(cell, scan)
                                                     : used_of<int64_t>(cell, scan);
  auto [up, up_values] = SharedColumn<bool>::make(scan.count);
  std::optional<SharedColumn<uint32_t>> seqnum;
  uint32_t* numbers = nullptr;
  if (with_seqnum) {
    auto [column, values] = SharedColumn<uint32_t>::make(scan.count);
    seqnum = std::move(column);
    numbers = values;
  }
  cell.write_state(scan, up_values, numbers);
  return {partition, version, cell.versions()[p], now_us, row, used, up, std::move(seqnum), nullptr,
          {},        0};
}

}  // namespace agora
