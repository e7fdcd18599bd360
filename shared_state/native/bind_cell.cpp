// The Python class of Cell; see cell.py.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <optional>

#include "bound_fields.hpp"
#include "bound_names.hpp"
#include "observed_cell.hpp"
#include "column.hpp"

namespace nb = nanobind;
using agora::Cell;
using agora::Column;
using agora::length_of;
using agora::Released;
using agora::SharedColumn;
using agora::SharedTable;

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
  return agora::BoundValue<SharedColumn<T>>::from(array, field);
}

SharedTable<int64_t> table(nb::handle array, const char* field) {
  return agora::BoundValue<SharedTable<int64_t>>::from(array, field);
}

Released release(Cell& cell, nb::handle allocation, nb::handle owner) {
  return agora::release(
      cell, column<int64_t>(allocation, "allocation"),
      agora::BoundValue<std::optional<SharedColumn<int32_t>>>::from(owner, "owner"));
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
      .def("allocations", &agora::allocations)
      .def("describe", &describe)
      .def("delta_since", &agora::delta_since)
      .def("checkpoint", &checkpoint)
      .def("restore", &restore)
      .def_prop_ro("live", &Cell::live)
      .def_prop_ro("machines_up", &Cell::machines_up)
      .def_prop_ro("used",
                   [](nb::handle_t<Cell> self) {
                     auto& cell = nb::cast<Cell&>(self);
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
