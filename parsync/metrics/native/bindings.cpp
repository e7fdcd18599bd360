// The Python module parsync.metrics._native: measurements and the log of an agent; table folds, and
// the slots and buckets that figures are made with; what observes the cell (the causes of
// conflicts, and the regret of sampled transactions and instants).
#include <nanobind/nanobind.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bound_agent_log.hpp"
#include "conflict_causes.hpp"
#include "measurements.hpp"
#include "regret.hpp"
#include "schedulers/native/bound_types.hpp"
#include "shared_state/native/bound_fields.hpp"
#include "shared_state/native/column.hpp"
#include "table_fold.hpp"

namespace nb = nanobind;
using namespace agora;
using Binary = TableFold::Binary;

namespace nanobind::detail {

// What names values and choices of rows of a fold are plain numbers in Python.
template <class Id>
struct IdCaster {
  NB_TYPE_CASTER(Id, const_name("int"))
  bool from_python(handle number, uint8_t flags, cleanup_list* cleanup) noexcept {
    make_caster<uint32_t> caster;
    if (!caster.from_python(number, flags, cleanup)) return false;
    value = static_cast<Id>(caster.value);
    return true;
  }
  static handle from_cpp(Id id, rv_policy, cleanup_list*) noexcept {
    return PyLong_FromUnsignedLong(static_cast<uint32_t>(id));
  }
};
template <>
struct type_caster<TableFold::Value> : IdCaster<TableFold::Value> {};
template <>
struct type_caster<TableFold::Rows> : IdCaster<TableFold::Rows> {};

}  // namespace nanobind::detail

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

  static std::vector<TableLayout> layouts_of(const std::vector<BoundTable>& tables) {
    std::vector<TableLayout> layouts;
    for (const BoundTable& table : tables) {
      TableLayout& layout = layouts.emplace_back(TableLayout{table.name.c_str(), {}});
      for (const auto& [name, dtype] : table.columns)
        layout.bytes.push_back(nb::cast<size_t>(dtype.attr("itemsize")));
    }
    return layouts;
  }

  nb::object array_of(size_t table, size_t column) const {
    const RowBuffer& buffer = this->rows(table);
    const NewArrayOf array(tables_[table].columns[column].second, buffer.rows());
    std::memcpy(array.data(), buffer.data(column), buffer.rows() * buffer.bytes_of(column));
    return array.object();
  }

  std::vector<BoundTable> tables_;
  nb::dict places_;  // of the tables, by name
};

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
              const std::array<int64_t, kRoundFigures>& figures) {
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

// The memory of a contiguous array that rows change. It stays where it is as long as the array
// lives.
class Kept {
 public:
  explicit Kept(nb::handle array) {
    Py_buffer buffer;
    if (PyObject_GetBuffer(array.ptr(), &buffer,
                           PyBUF_WRITABLE | PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) != 0)
      throw nb::python_error();
    data_ = buffer.buf;
    bytes_ = static_cast<uint8_t>(buffer.itemsize);
    kind_ = std::strlen(buffer.format) == 1 ? *buffer.format : '\0';
    length_ = static_cast<size_t>(buffer.len / buffer.itemsize);
    PyBuffer_Release(&buffer);
  }

  int64_t* sums() const {
    if (bytes_ != 8 || !kind_ || !std::strchr("lq", kind_))
      throw nb::value_error("fold: expected a kept array of int64");
    return static_cast<int64_t*>(data_);
  }
  double* squares() const {
    if (kind_ != 'd') throw nb::value_error("fold: expected a kept array of float64");
    return static_cast<double*>(data_);
  }
  IntegerArray integers() const {
    if (!kind_ || !std::strchr("?bhilq", kind_))
      throw nb::value_error("fold: expected a kept array of signed integers or bools");
    return {data_, bytes_};
  }
  size_t length() const { return length_; }

 private:
  void* data_;
  uint8_t bytes_;
  char kind_;
  size_t length_;
};

// A TimeSeries (parsync/metrics/metric.py): its array `counts`, int64[names, rows, buckets], is
// another one once it has grown, be it for another table or by a merge. So it is looked up before
// every batch.
class PythonCounts : public GrowingCounts {
 public:
  explicit PythonCounts(nb::object series) : series_(std::move(series)) { look_up(); }

  void look_up() {
    nb::object array = series_.attr("counts");
    if (array.is(array_)) return;
    const nb::tuple shape = nb::cast<nb::tuple>(array.attr("shape"));
    rows_ = nb::cast<size_t>(shape[1]);
    buckets_ = nb::cast<size_t>(shape[2]);
    counts_ = Kept(array).sums();
    array_ = std::move(array);
  }

  nb::handle series() const { return series_; }
  size_t rows() const override { return rows_; }
  size_t buckets() const override { return buckets_; }
  void grow(size_t buckets) override {
    series_.attr("reach")(buckets);
    look_up();
    if (buckets_ < buckets) throw std::logic_error("fold: a time series did not grow");
  }
  int64_t* counts(size_t name) override { return counts_ + name * rows_ * buckets_; }

 private:
  nb::object series_;
  nb::object array_;  // whose memory counts_ is
  int64_t* counts_ = nullptr;
  size_t rows_ = 0, buckets_ = 0;
};

// A column of a batch: an array of integers or bools of any strides, or a list.
class BatchColumn {
 public:
  explicit BatchColumn(nb::handle values) {
    if (PyList_Check(values.ptr())) {
      copied_.reserve(static_cast<size_t>(PyList_GET_SIZE(values.ptr())));
      for (const nb::handle value : nb::borrow<nb::list>(values)) {
        const long long number = PyLong_AsLongLong(value.ptr());
        if (number == -1 && PyErr_Occurred()) throw nb::python_error();
        copied_.push_back(number);
      }
      return;
    }
    if (PyObject_GetBuffer(values.ptr(), &buffer_, PyBUF_STRIDES | PyBUF_FORMAT) != 0)
      throw nb::python_error();
    held_ = true;
    const bool is_integer =
        std::strlen(buffer_.format) == 1 && std::strchr("?bBhHiIlLqQ", *buffer_.format) != nullptr;
    if (buffer_.ndim != 1 || !is_integer) {
      PyBuffer_Release(&buffer_);
      throw nb::value_error("expected an array of integers with one value per row");
    }
  }
  BatchColumn(const BatchColumn&) = delete;
  BatchColumn& operator=(const BatchColumn&) = delete;
  ~BatchColumn() {
    if (held_) PyBuffer_Release(&buffer_);
  }

  RowColumn view() const {
    if (!held_)
      return {reinterpret_cast<const char*>(copied_.data()), sizeof(int64_t), sizeof(int64_t),
              true};
    return {static_cast<const char*>(buffer_.buf), buffer_.strides[0],
            static_cast<uint8_t>(buffer_.itemsize),
            std::strchr("bhilq", *buffer_.format) != nullptr};
  }

 private:
  Py_buffer buffer_{};
  bool held_ = false;
  std::vector<int64_t> copied_;
};

// A fold with the arrays, functions and series that its sinks change, which it keeps alive.
class BoundTableFold : public TableFold {
 public:
  BoundTableFold(const std::vector<nb::str>& names, nb::handle edges)
      : TableFold(names.size()),
        names_(names),
        windows_(Column<const int64_t>(edges, "edges", length_of(edges, "edges")).span()) {}
  BoundTableFold(const BoundTableFold&) = delete;  // its steps point into it
  BoundTableFold& operator=(const BoundTableFold&) = delete;

  Value slot(Value at_us) { return TableFold::slot(at_us, windows_); }
  Value place_of(Value value, const nb::object& ids) {
    return TableFold::place_of(value, table(ids));
  }
  Value gather(Rows rows, const nb::object& from, Value index, const std::string& name) {
    return TableFold::gather(rows, table(from), index, name);
  }
  Value place_in(Rows rows, const nb::object& series, Value row, Value bucket) {
    return TableFold::place_in(rows, counts_of(series), row, bucket);
  }

  void add(Rows rows, Value place, const nb::object& sums, Value weight) {
    TableFold::add(rows, place, kept(sums).sums(), weight);
  }
  void count_rows(Rows rows, const nb::object& count) {
    TableFold::count_rows(rows, kept(count).sums());
  }
  void add_in(Rows rows, Value place, const nb::object& series, size_t name, Value weight) {
    TableFold::add_in(rows, place, counts_of(series), name, weight);
  }
  void add_squares(Rows rows, Value place, const nb::object& sums, Value value) {
    TableFold::add_squares(rows, place, kept(sums).squares(), value);
  }
  void largest(Rows rows, Value place, const nb::object& values, Value value) {
    TableFold::largest(rows, place, kept(values).sums(), value);
  }
  void smallest(Rows rows, Value place, const nb::object& values, Value value) {
    TableFold::smallest(rows, place, kept(values).sums(), value);
  }
  void store(Rows rows, Value place, const nb::object& values, Value value) {
    TableFold::store(rows, place, kept(values).integers(), value);
  }
  void earliest(Rows rows, Value place, const nb::object& keys, Value key,
                const std::vector<std::pair<nb::object, Value>>& beside) {
    std::vector<std::pair<IntegerArray, Value>> stored;
    for (const auto& [values, value] : beside) stored.emplace_back(kept(values).integers(), value);
    TableFold::earliest(rows, place, kept(keys).sums(), key, std::move(stored));
  }
  void call(Rows rows, nb::object function, std::vector<Value> values) {
    TableFold::call(
        rows,
        [function = std::move(function)](const std::vector<std::vector<int64_t>>& selected) {
          nb::list arrays;
          for (const std::vector<int64_t>& column : selected) {
            const NewArray<int64_t> array(column.size());
            std::ranges::copy(column, array.data());
            arrays.append(array.object());
          }
          function(*arrays);
        },
        std::move(values));
  }

  // columns: of the table, by name. False, with nothing added up, if one is missing or they are not
  // of one length.
  bool fold(const nb::dict& columns) {
    std::deque<BatchColumn> held;  // which the views look at
    std::vector<RowColumn> views(names_.size(), RowColumn{nullptr, 0, 8, true});
    Py_ssize_t rows = -1;
    for (size_t i = 0; i < names_.size(); ++i) {
      PyObject* const column = PyDict_GetItemWithError(columns.ptr(), names_[i].ptr());
      if (column == nullptr && PyErr_Occurred()) throw nb::python_error();
      if (column == nullptr) return false;
      const Py_ssize_t length = PyObject_Size(column);
      if (length < 0) throw nb::python_error();
      if (rows >= 0 && length != rows) return false;
      rows = length;
      if (reads(i)) views[i] = held.emplace_back(column).view();
    }
    for (const auto& series : series_) series->look_up();
    TableFold::fold(views, static_cast<size_t>(std::max<Py_ssize_t>(rows, 0)));
    return true;
  }

 private:
  Kept kept(const nb::object& array) {
    alive_.push_back(array);
    return Kept(array);
  }

  std::span<const int64_t> table(const nb::object& array) {
    const Kept memory = kept(array);
    return {memory.sums(), memory.length()};
  }

  PythonCounts& counts_of(const nb::object& series) {
    for (const auto& known : series_)
      if (known->series().is(series)) return *known;
    return *series_.emplace_back(std::make_unique<PythonCounts>(series));
  }

  std::vector<nb::str> names_;
  Windows windows_;
  std::vector<nb::object> alive_;
  std::vector<std::unique_ptr<PythonCounts>> series_;
};

nb::object slots_of(nb::handle edges, nb::handle at_us) {
  const size_t count = length_of(at_us, "at_us");
  const Column<const int64_t> times(at_us, "at_us", count);
  const Windows windows(Column<const int64_t>(edges, "edges", length_of(edges, "edges")).span());
  const NewArray<int64_t> slots(count);
  windows.slots_of(times.data(), count, slots.data());
  return slots.object();
}

nb::object buckets_of(nb::handle values) {
  const size_t count = length_of(values, "values");
  const Column<const int64_t> given(values, "values", count);
  const NewArray<int64_t> buckets(count);
  for (size_t i = 0; i < count; ++i) buckets.data()[i] = bucket_of(given.data()[i]);
  return buckets.object();
}

void bind_table_fold(nb::module_& module) {
  module.attr("HISTOGRAM_BUCKETS") = kBuckets;
  module.def("slots_of", &slots_of, nb::arg("edges"), nb::arg("at_us"));
  module.def("buckets_of", &buckets_of, nb::arg("values"));
  nb::enum_<Binary>(module, "Binary")
      .value("ADD", Binary::kAdd)
      .value("SUBTRACT", Binary::kSubtract)
      .value("MULTIPLY", Binary::kMultiply)
      .value("EQUAL", Binary::kEqual)
      .value("LESS", Binary::kLess)
      .value("AND", Binary::kAnd)
      .value("OR", Binary::kOr);
  using Fold = BoundTableFold;
  nb::class_<Fold>(module, "TableFold", "What is added up of a table's rows; see table_fold.hpp.")
      .def(nb::init<const std::vector<nb::str>&, nb::handle>(), nb::arg("names"), nb::arg("edges"))
      .def("column", &Fold::column, nb::arg("number"))
      .def("constant", &Fold::constant, nb::arg("number"))
      .def("binary", &Fold::binary, nb::arg("what"), nb::arg("left"), nb::arg("right"))
      .def("choose", &Fold::choose, nb::arg("mask"), nb::arg("yes"), nb::arg("no"))
      .def("divide", &Fold::divide, nb::arg("value"), nb::arg("by"))
      .def("clamp", &Fold::clamp, nb::arg("value"), nb::arg("lowest"), nb::arg("highest"))
      .def("slot", &Fold::slot, nb::arg("at_us"))
      .def("histogram_bucket", &Fold::histogram_bucket, nb::arg("value"))
      .def("place_of", &Fold::place_of, nb::arg("value"), nb::arg("ids"))
      .def("gather", &Fold::gather, nb::arg("rows"), nb::arg("table"), nb::arg("index"),
           nb::arg("name"))
      .def("where", &Fold::where, nb::arg("within"), nb::arg("mask"))
      .def("place", &Fold::place, nb::arg("rows"), nb::arg("indices"), nb::arg("shape"),
           nb::arg("names"))
      .def("place_in", &Fold::place_in, nb::arg("rows"), nb::arg("series"), nb::arg("row"),
           nb::arg("bucket"))
      .def("add", &Fold::add, nb::arg("rows"), nb::arg("place"), nb::arg("sums"), nb::arg("weight"))
      .def("count_rows", &Fold::count_rows, nb::arg("rows"), nb::arg("count"))
      .def("add_in", &Fold::add_in, nb::arg("rows"), nb::arg("place"), nb::arg("series"),
           nb::arg("name"), nb::arg("weight"))
      .def("add_squares", &Fold::add_squares, nb::arg("rows"), nb::arg("place"), nb::arg("sums"),
           nb::arg("value"))
      .def("largest", &Fold::largest, nb::arg("rows"), nb::arg("place"), nb::arg("kept"),
           nb::arg("value"))
      .def("smallest", &Fold::smallest, nb::arg("rows"), nb::arg("place"), nb::arg("kept"),
           nb::arg("value"))
      .def("store", &Fold::store, nb::arg("rows"), nb::arg("place"), nb::arg("kept"),
           nb::arg("value"))
      .def("earliest", &Fold::earliest, nb::arg("rows"), nb::arg("place"), nb::arg("kept"),
           nb::arg("key"), nb::arg("beside"))
      .def("call", &Fold::call, nb::arg("rows"), nb::arg("function"), nb::arg("values"))
      .def("has_sinks", &Fold::has_sinks)
      .def("fold", &Fold::fold, nb::arg("columns"));
}

SharedColumn<int64_t> column(nb::handle array, const char* field) {
  return BoundValue<SharedColumn<int64_t>>::from(array, field);
}

void bind_conflict_causes(nb::module_& module) {
  nb::class_<ConflictCauses, CellObserver>(module, "ConflictCauses",
                                           "Conflicts counted by cause; see conflict_causes.hpp.")
      .def(
          "__init__",
          [](ConflictCauses* self, size_t machines, nb::handle preference,
             const CatalogColumns& catalog, std::vector<int64_t> from_us,
             std::vector<int64_t> to_us) {
            new (self) ConflictCauses(
                machines, BoundValue<SharedColumn<int32_t>>::from(preference, "preference"),
                catalog.spans(), std::move(from_us), std::move(to_us));
          },
          nb::arg("machines"), nb::arg("preference"), nb::arg("catalog"), nb::arg("from_us"),
          nb::arg("to_us"), nb::keep_alive<1, 4>())
      .def(
          "counts",
          [](const ConflictCauses& self) {
            return nb::make_tuple(self.same_tick(), self.quality(), self.stale());
          },
          "(same tick, quality, staleness).");
}

void bind_regret(nb::module_& module) {
  nb::class_<RegretWatch, CellObserver>(module, "RegretWatch",
                                        "Regret of what is sampled; see regret.hpp.")
      .def(
          "__init__",
          [](RegretWatch* self, BestPlacement& best, nb::handle preference, nb::handle request,
             nb::handle arrival_us, nb::handle arrival_offsets, nb::handle arrival_rows,
             nb::handle initial, bool has_gangs,
             const std::vector<std::pair<int64_t, int64_t>>& phases, int64_t batches_per_phase,
             int64_t instants_per_phase, uint64_t seed) {
            std::vector<RegretWatch::Phase> settled;
            for (const auto& [from_us, to_us] : phases) settled.push_back({from_us, to_us});
            new (self) RegretWatch(
                best,
                {BoundValue<SharedColumn<int32_t>>::from(preference, "preference"),
                 BoundValue<SharedTable<int64_t>>::from(request, "request"),
                 column(arrival_us, "arrival_us"), column(arrival_offsets, "arrival_offsets"),
                 column(arrival_rows, "arrival_rows"), column(initial, "initial"), has_gangs},
                {std::move(settled), batches_per_phase, instants_per_phase, seed});
          },
          nb::arg("best"), nb::arg("preference"), nb::arg("request"), nb::arg("arrival_us"),
          nb::arg("arrival_offsets"), nb::arg("arrival_rows"), nb::arg("initial"),
          nb::arg("has_gangs"), nb::arg("phases"), nb::arg("batches_per_phase"),
          nb::arg("instants_per_phase"), nb::arg("seed"), nb::keep_alive<1, 2>())
      .def("end", &RegretWatch::end, nb::arg("ended_us"))
      .def(
          "decisions",
          [](const RegretWatch& self) {
            nb::list rows;
            for (const auto& row : self.decisions())
              rows.append(nb::make_tuple(row.at_us, row.agent, row.sequence, row.tasks, row.losers,
                                         row.regret, row.exact));
            return rows;
          },
          "The columns of DecisionRegret, in order.")
      .def(
          "systems",
          [](const RegretWatch& self) {
            nb::list rows;
            for (const auto& row : self.systems())
              rows.append(nb::make_tuple(row.at_us, row.running, row.waiting, row.cost,
                                         row.without_migration, row.with_migration, row.exact));
            return rows;
          },
          "The columns of SystemRegret, in order.");
}

}  // namespace

NB_MODULE(_native, module) {
  nb::module_::import_("shared_state._native");  // has the classes of arguments
  nb::module_::import_("schedulers._native");
  bind_measurements(module);
  bind_table_fold(module);
  bind_conflict_causes(module);
  bind_regret(module);
}
