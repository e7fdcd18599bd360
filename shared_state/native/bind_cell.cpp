// The Python face of Cell. Outputs are written into arrays the caller made: see cell.py.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/tuple.h>

#include <optional>
#include <tuple>

#include "cell.hpp"
#include "bound_names.hpp"
#include "column.hpp"

namespace nb = nanobind;
using agora::AllocationColumns;
using agora::Cell;
using agora::Column;
using agora::length_of;

namespace {

// A read-only array onto the cell's memory. `stride` counts entries from row to row.
template <class T>
nb::object view_of(nb::handle self, const T* data, size_t rows, size_t width, size_t stride) {
  const size_t shape[] = {rows, width};
  const int64_t strides[] = {static_cast<int64_t>(stride), 1};
  return nb::cast(nb::ndarray<nb::numpy, const T>(data, width ? 2 : 1, shape, self, strides));
}

// The writable columns (task, machine, allocation, owner, request, version) of a tuple.
struct OutColumns {
  OutColumns(nb::tuple columns, size_t length, size_t dimensions)
      : task(columns[0], "task", length),
        machine(columns[1], "machine", length),
        allocation(columns[2], "allocation", length),
        owner(columns[3], "owner", length),
        request(columns[4], "request", length, dimensions),
        version(columns[5], "version", length) {}

  AllocationColumns columns() const {
    return {task.data(),  machine.data(), allocation.data(),
            owner.data(), request.data(), version.data()};
  }

  Column<int64_t> task;
  Column<int32_t> machine;
  Column<int64_t> allocation;
  Column<int32_t> owner;
  Column<int64_t> request;
  Column<int64_t> version;
};

size_t commit(Cell& cell, int64_t scheduler, nb::handle task, nb::handle machine,
              nb::handle request, nb::handle synced_us, bool all_or_nothing, nb::handle gang,
              nb::handle seqnum, nb::handle evict, int64_t now_us, nb::handle reason,
              nb::handle allocation, nb::handle rival, nb::handle age_us, nb::handle version,
              nb::handle evicted) {
  const size_t k = length_of(task, "transaction.task");
  const size_t e = evict.is_none() ? 0 : length_of(evict, "transaction.evict");
  if (scheduler < 0 || scheduler > 0x7fffffff)
    throw nb::value_error("transaction.scheduler: expected a number in 0..2^31-1");
  const Column<const int64_t> tasks(task, "transaction.task", k),
      requests(request, "transaction.request", k, cell.dimensions()),
      synced(synced_us, "transaction.synced_us", k);
  const Column<const int32_t> machines(machine, "transaction.machine", k);
  std::optional<Column<const int64_t>> gangs, victims;
  std::optional<Column<const uint32_t>> seen;
  if (!gang.is_none()) gangs.emplace(gang, "transaction.gang", k);
  if (!seqnum.is_none()) seen.emplace(seqnum, "transaction.seqnum", k);
  std::optional<Column<int64_t>> ended;
  if (e) {
    victims.emplace(evict, "transaction.evict", e);
    ended.emplace(evicted, "evicted", e);
  }
  const Column<int8_t> reasons(reason, "reason", k);
  const Column<int64_t> allocations(allocation, "allocation", k), ages(age_us, "age_us", k),
      versions(version, "version", k);
  const Column<int32_t> rivals(rival, "rival", k);
  return cell.commit(
      {static_cast<int32_t>(scheduler), all_or_nothing, now_us, k, tasks.data(), machines.data(),
       requests.data(), synced.data(), gangs ? gangs->data() : nullptr,
       seen ? seen->data() : nullptr, victims ? victims->span() : std::span<const int64_t>{}},
      {reasons.data(), allocations.data(), rivals.data(), ages.data(), versions.data(),
       ended ? ended->data() : nullptr});
}

size_t release(Cell& cell, nb::handle ids, nb::handle owner, nb::tuple out) {
  const size_t n = length_of(ids, "allocation");
  const Column<const int64_t> allocations(ids, "allocation", n);
  std::optional<Column<const int32_t>> owners;
  if (!owner.is_none()) owners.emplace(owner, "owner", n);
  const OutColumns columns(out, n, cell.dimensions());
  return cell.release(allocations.span(), owners ? owners->data() : nullptr, columns.columns());
}

void load(Cell& cell, nb::handle task, nb::handle machine, nb::handle request, nb::handle owner,
          nb::handle ids) {
  const size_t n = length_of(task, "task");
  const Column<const int64_t> tasks(task, "task", n),
      requests(request, "request", n, cell.dimensions());
  const Column<const int32_t> machines(machine, "machine", n), owners(owner, "owner", n);
  const Column<int64_t> allocations(ids, "allocation", n);
  cell.load(n, tasks.data(), machines.data(), requests.data(), owners.data(), allocations.data());
}

size_t set_machines(Cell& cell, nb::handle machine, nb::handle up, nb::tuple out) {
  const size_t n = length_of(machine, "machine");
  const Column<const int32_t> machines(machine, "machine", n);
  const Column<const bool> states(up, "up", n);
  const OutColumns columns(out, cell.live(), cell.dimensions());
  return cell.set_machines(n, machines.data(), states.data(), columns.columns());
}

size_t allocations(const Cell& cell, int32_t owner, nb::tuple out) {
  const OutColumns columns(out, cell.live(), cell.dimensions());
  return cell.allocations(owner, columns.columns());
}

void describe(const Cell& cell, nb::handle ids, nb::tuple out) {
  const size_t n = length_of(ids, "allocation");
  const Column<const int64_t> allocations(ids, "allocation", n);
  const OutColumns columns(out, n, cell.dimensions());
  cell.describe(allocations.span(), columns.columns());
}

// A scan with the widths (bytes) its rows and uses need.
struct Scan {
  agora::DeltaScan scan;

  int row_bytes() const { return scan.rows <= 0x10000 ? 2 : 4; }
  int used_bytes() const {
    return scan.largest <= INT8_MAX    ? 1
           : scan.largest <= INT16_MAX ? 2
           : scan.largest <= INT32_MAX ? 4
                                       : 8;
  }
};

template <class Used>
void write_used(const Cell& cell, const Scan& scan, nb::handle used) {
  cell.write_used(scan.scan, Column<Used>(used, "used", scan.scan.count, cell.dimensions()).data());
}

void write_delta(const Cell& cell, const Scan& scan, nb::handle row, nb::handle used, nb::handle up,
                 nb::handle seqnum) {
  const size_t n = scan.scan.count;
  if (scan.row_bytes() == 2) {
    cell.write_rows(scan.scan, Column<uint16_t>(row, "row", n).data());
  } else {
    cell.write_rows(scan.scan, Column<uint32_t>(row, "row", n).data());
  }
  switch (scan.used_bytes()) {
    case 1:
      write_used<int8_t>(cell, scan, used);
      break;
    case 2:
      write_used<int16_t>(cell, scan, used);
      break;
    case 4:
      write_used<int32_t>(cell, scan, used);
      break;
    default:
      write_used<int64_t>(cell, scan, used);
  }
  std::optional<Column<uint32_t>> numbers;
  if (!seqnum.is_none()) numbers.emplace(seqnum, "seqnum", n);
  cell.write_state(scan.scan, Column<bool>(up, "up", n).data(),
                   numbers ? numbers->data() : nullptr);
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
  nb::class_<Scan>(module, "DeltaScan")
      .def_prop_ro("count", [](const Scan& scan) { return scan.scan.count; })
      .def_prop_ro("row_bytes", &Scan::row_bytes)
      .def_prop_ro("used_bytes", &Scan::used_bytes);
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
      .def("commit", &commit, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(),
           nb::arg().none(), nb::arg().none(), nb::arg().none(), nb::arg(), nb::arg(), nb::arg(),
           nb::arg(), nb::arg(), nb::arg(), nb::arg().none())
      .def("release", &release, nb::arg(), nb::arg().none(), nb::arg())
      .def("load", &load)
      .def("set_machines", &set_machines)
      .def("allocations", &allocations)
      .def("describe", &describe)
      .def("scan", [](Cell& cell, size_t partition,
                      int64_t from) { return Scan{cell.scan(partition, from)}; })
      .def("write_delta", &write_delta, nb::arg(), nb::arg(), nb::arg(), nb::arg(),
           nb::arg().none())
      .def("checkpoint", &checkpoint)
      .def("restore", &restore)
      .def_prop_ro("live", &Cell::live)
      .def_prop_ro("machines_up", &Cell::machines_up)
      .def_prop_ro("used",
                   [](nb::handle_t<Cell> self) {
                     const auto& cell = nb::cast<const Cell&>(self);
                     return view_of(self, cell.used().data(), cell.machines(), cell.dimensions(),
                                    cell.dimensions());
                   })
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
