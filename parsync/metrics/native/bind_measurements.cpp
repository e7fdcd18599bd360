// Python's access to measurements and to the log of an agent.
#include <nanobind/nanobind.h>
#include <nanobind/stl/array.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "bound_agent_log.hpp"
#include "measurements.hpp"
#include "schedulers/native/bound_types.hpp"
#include "shared_state/native/column.hpp"
#include "shared_state/native/new_array.hpp"

namespace nb = nanobind;
using agora::BoundAgentLog;
using agora::CatalogColumns;
using agora::Measurements;
using agora::RowBuffer;

namespace {

// An array of any integer type or bool as the new rows of a column.
void copy_column(RowBuffer& rows, size_t column, PyObject* values, size_t count) {
  Py_buffer buffer;
  if (PyObject_GetBuffer(values, &buffer, PyBUF_STRIDES | PyBUF_FORMAT) != 0)
    throw nb::python_error();
  const struct Release {
    Py_buffer* buffer;
    ~Release() { PyBuffer_Release(buffer); }
  } release{&buffer};
  if (buffer.ndim != 1 || buffer.shape[0] != static_cast<Py_ssize_t>(count) ||
      std::strlen(buffer.format) != 1)
    throw nb::value_error("measurements: expected an array of integers with one value per row");
  const auto copy = [&]<class T>(T) {
    if (buffer.strides[0] == sizeof(T)) return rows.copy(column, static_cast<const T*>(buffer.buf));
    for (size_t row = 0; row < count; ++row) {
      T value;
      std::memcpy(
          &value,
          static_cast<const char*>(buffer.buf) + static_cast<Py_ssize_t>(row) * buffer.strides[0],
          sizeof value);
      rows.write(column, row, static_cast<int64_t>(value));
    }
  };
  switch (*buffer.format) {
    case 'b':
      return copy(int8_t{});
    case '?':
    case 'B':
      return copy(uint8_t{});
    case 'h':
      return copy(int16_t{});
    case 'H':
      return copy(uint16_t{});
    case 'i':
      return copy(int32_t{});
    case 'I':
      return copy(uint32_t{});
    case 'l':
    case 'q':
      return copy(int64_t{});
    case 'L':
    case 'Q':
      return copy(uint64_t{});
    default:
      throw nb::value_error("measurements: expected integers");
  }
}

// values: one number (repeated) or one array per column.
void add_rows(RowBuffer& rows, size_t count, const nb::tuple& values) {
  rows.grow(count);
  try {
    for (size_t column = 0; column < rows.columns(); ++column) {
      PyObject* const value = PyTuple_GET_ITEM(values.ptr(), static_cast<Py_ssize_t>(column));
      if (!PyLong_Check(value)) {
        copy_column(rows, column, value, count);
        continue;
      }
      const long long number = PyLong_AsLongLong(value);
      if (number == -1 && PyErr_Occurred()) throw nb::python_error();
      rows.fill(column, number);
    }
  } catch (...) {
    rows.ungrow();
    throw;
  }
}

// The schema of a table as Python knows it: its columns with their dtypes.
struct BoundTable {
  nb::str name;
  std::vector<std::pair<nb::str, nb::object>> columns;
};

// Measurements with what Python calls their tables and columns.
class BoundMeasurements : public Measurements {
 public:
  explicit BoundMeasurements(const nb::dict& tables) : BoundMeasurements(tables_of(tables)) {}

  void add(nb::handle table, size_t rows, const nb::tuple& columns) {
    PyObject* const place = PyDict_GetItemWithError(places_.ptr(), table.ptr());
    if (place == nullptr) {
      if (PyErr_Occurred()) throw nb::python_error();
      throw nb::key_error(nb::repr(table).c_str());
    }
    RowBuffer& buffer = this->rows(PyLong_AsSize_t(place));
    if (columns.size() != buffer.columns())
      throw nb::value_error("measurements: expected one value per column");
    add_rows(buffer, rows, columns);
  }

  // Table and columns by name of each table that has rows.
  nb::list take() {
    nb::list taken;
    for (size_t table = 0; table < tables_.size(); ++table) {
      RowBuffer& buffer = this->rows(table);
      if (buffer.rows() == 0) continue;
      nb::dict columns;
      for (size_t column = 0; column < buffer.columns(); ++column)
        columns[tables_[table].columns[column].first] = array_of(table, column);
      taken.append(nb::make_tuple(tables_[table].name, columns));
      buffer.clear();
    }
    return taken;
  }

  nb::tuple held() const {
    nb::list held;
    for (size_t table = 0; table < tables_.size(); ++table) {
      const RowBuffer& buffer = this->rows(table);
      if (buffer.rows() == 0) continue;
      nb::list columns;
      for (size_t column = 0; column < buffer.columns(); ++column)
        columns.append(array_of(table, column));
      held.append(nb::make_tuple(tables_[table].name, buffer.rows(), nb::tuple(columns)));
    }
    return nb::tuple(held);
  }

 private:
  explicit BoundMeasurements(std::vector<BoundTable> tables)
      : Measurements(layouts_of(tables)), tables_(std::move(tables)) {
    for (size_t table = 0; table < tables_.size(); ++table) places_[tables_[table].name] = table;
  }

  static std::vector<BoundTable> tables_of(const nb::dict& tables) {
    std::vector<BoundTable> result;
    for (const auto [name, columns] : tables) {
      BoundTable& table = result.emplace_back(BoundTable{nb::cast<nb::str>(name), {}});
      for (const auto [column, dtype] : nb::cast<nb::dict>(columns))
        table.columns.emplace_back(nb::cast<nb::str>(column), nb::borrow(dtype));
    }
    return result;
  }

  static std::vector<agora::TableLayout> layouts_of(const std::vector<BoundTable>& tables) {
    std::vector<agora::TableLayout> layouts;
    for (const BoundTable& table : tables) {
      agora::TableLayout& layout = layouts.emplace_back(agora::TableLayout{table.name.c_str(), {}});
      for (const auto& [name, dtype] : table.columns)
        layout.bytes.push_back(nb::cast<size_t>(dtype.attr("itemsize")));
    }
    return layouts;
  }

  nb::object array_of(size_t table, size_t column) const {
    const RowBuffer& buffer = this->rows(table);
    const agora::NewArrayOf array(tables_[table].columns[column].second, buffer.rows());
    std::memcpy(array.data(), buffer.data(column), buffer.rows() * buffer.bytes_of(column));
    return array.object();
  }

  std::vector<BoundTable> tables_;
  nb::dict places_;  // of the tables, by name
};

}  // namespace

void bind_measurements(nb::module_& module) {
  // what native participants of other modules add rows to
  nb::class_<Measurements>(module, "MeasurementRows", "See measurements.hpp.");
  nb::class_<BoundMeasurements, Measurements>(module, "Measurements",
                                              "Rows of tables; see measurements.hpp.")
      .def(nb::init<const nb::dict&>(), nb::arg("tables"))
      .def("add", &BoundMeasurements::add, nb::arg("table"), nb::arg("rows"), nb::arg("columns"))
      .def("take", &BoundMeasurements::take)
      .def("held", &BoundMeasurements::held)
      .def("clear", &Measurements::clear);
  nb::class_<BoundAgentLog>(module, "AgentLog", "What one agent measures; see agent_log.hpp.")
      .def(
          "__init__",
          [](BoundAgentLog* self, int32_t agent, nb::handle job, nb::handle submit_us,
             nb::handle preference, const CatalogColumns& catalog, BoundMeasurements& records) {
            new (self) BoundAgentLog(agent, job, submit_us, preference, catalog, records);
          },
          nb::arg("agent"), nb::arg("job"), nb::arg("submit_us"), nb::arg("preference"),
          nb::arg("catalog"), nb::arg("records"), nb::keep_alive<1, 6>(), nb::keep_alive<1, 7>())
      .def("commit", &BoundAgentLog::commit, nb::arg("at_us"), nb::arg("sequence"), nb::arg("task"),
           nb::arg("machine"), nb::arg("synced_us"), nb::arg("attempts"), nb::arg("first"),
           nb::arg("reason"), nb::arg("rival"), nb::arg("age_us"), nb::arg("start_us"),
           nb::arg("decision_us"), nb::arg("ranking"), nb::arg("tasks").none())
      .def("attempts", &BoundAgentLog::attempts)
      .def("sync", [](BoundAgentLog& self, int64_t now_us, int32_t partition, int64_t age_us,
                      int64_t rows) { self.log.sync(now_us, partition, age_us, rows); })
      .def("decided",
           [](BoundAgentLog& self, int64_t decision_us) { self.log.decided(decision_us); })
      .def("round",
           [](BoundAgentLog& self, int64_t now_us,
              const std::array<int64_t, agora::kRoundFigures>& figures) {
             self.log.round(now_us, figures);
           })
      .def("unplaceable", &BoundAgentLog::unplaceable)
      .def("hold", [](BoundAgentLog& self, int64_t task, int64_t from_us, int64_t until_us,
                      int64_t behind) { self.log.hold(task, from_us, until_us, behind); })
      .def("waiting", &BoundAgentLog::waiting)
      .def("sample", [](BoundAgentLog& self, int64_t now_us, int64_t queued, int64_t average_us,
                        bool latency_first, int64_t staleness_us) {
        self.log.sample(now_us, queued, average_us, latency_first, staleness_us);
      });
}
