// Python's access to table folds, and to the slots and buckets that figures are made with.
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <deque>
#include <memory>
#include <string>

#include "shared_state/native/column.hpp"
#include "shared_state/native/new_array.hpp"
#include "table_fold.hpp"

namespace nb = nanobind;
using agora::Column;
using agora::IntegerArray;
using agora::length_of;
using agora::NewArray;
using agora::RowColumn;
using agora::TableFold;
using agora::Windows;
using Binary = TableFold::Binary;

namespace {

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
class PythonCounts : public agora::GrowingCounts {
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
class BoundTableFold {
 public:
  using Value = TableFold::Value;
  using Rows = TableFold::Rows;

  BoundTableFold(const std::vector<nb::str>& names, nb::handle edges)
      : names_(names),
        windows_(Column<const int64_t>(edges, "edges", length_of(edges, "edges")).span()),
        fold_(names_.size()) {}
  BoundTableFold(const BoundTableFold&) = delete;  // its steps point into it
  BoundTableFold& operator=(const BoundTableFold&) = delete;

  uint32_t column(size_t number) { return id(fold_.column(number)); }
  uint32_t constant(int64_t number) { return id(fold_.constant(number)); }
  uint32_t binary(Binary what, uint32_t left, uint32_t right) {
    return id(fold_.binary(what, Value{left}, Value{right}));
  }
  uint32_t choose(uint32_t mask, uint32_t yes, uint32_t no) {
    return id(fold_.choose(Value{mask}, Value{yes}, Value{no}));
  }
  uint32_t divide(uint32_t value, int64_t by) { return id(fold_.divide(Value{value}, by)); }
  uint32_t clamp(uint32_t value, int64_t lowest, int64_t highest) {
    return id(fold_.clamp(Value{value}, lowest, highest));
  }
  uint32_t slot(uint32_t at_us) { return id(fold_.slot(Value{at_us}, windows_)); }
  uint32_t histogram_bucket(uint32_t value) { return id(fold_.histogram_bucket(Value{value})); }
  uint32_t place_of(uint32_t value, const nb::object& ids) {
    return id(fold_.place_of(Value{value}, table(ids)));
  }
  uint32_t gather(uint32_t rows, const nb::object& from, uint32_t index, const std::string& name) {
    return id(fold_.gather(Rows{rows}, table(from), Value{index}, name));
  }
  uint32_t where(uint32_t within, uint32_t mask) {
    return static_cast<uint32_t>(fold_.where(Rows{within}, Value{mask}));
  }
  uint32_t place(uint32_t rows, const std::vector<uint32_t>& indices,
                 const std::vector<size_t>& shape, const std::vector<std::string>& names) {
    std::vector<Value> values;
    for (const uint32_t index : indices) values.push_back(Value{index});
    return id(fold_.place(Rows{rows}, values, shape, names));
  }
  uint32_t place_in(uint32_t rows, const nb::object& series, uint32_t row, uint32_t bucket) {
    return id(fold_.place_in(Rows{rows}, counts_of(series), Value{row}, Value{bucket}));
  }

  void add(uint32_t rows, uint32_t place, const nb::object& sums, uint32_t weight) {
    fold_.add(Rows{rows}, Value{place}, kept(sums).sums(), Value{weight});
  }
  void count_rows(uint32_t rows, const nb::object& count) {
    fold_.count_rows(Rows{rows}, kept(count).sums());
  }
  void add_in(uint32_t rows, uint32_t place, const nb::object& series, size_t name,
              uint32_t weight) {
    fold_.add_in(Rows{rows}, Value{place}, counts_of(series), name, Value{weight});
  }
  void add_squares(uint32_t rows, uint32_t place, const nb::object& sums, uint32_t value) {
    fold_.add_squares(Rows{rows}, Value{place}, kept(sums).squares(), Value{value});
  }
  void largest(uint32_t rows, uint32_t place, const nb::object& values, uint32_t value) {
    fold_.largest(Rows{rows}, Value{place}, kept(values).sums(), Value{value});
  }
  void smallest(uint32_t rows, uint32_t place, const nb::object& values, uint32_t value) {
    fold_.smallest(Rows{rows}, Value{place}, kept(values).sums(), Value{value});
  }
  void store(uint32_t rows, uint32_t place, const nb::object& values, uint32_t value) {
    fold_.store(Rows{rows}, Value{place}, kept(values).integers(), Value{value});
  }
  void earliest(uint32_t rows, uint32_t place, const nb::object& keys, uint32_t key,
                const std::vector<std::pair<nb::object, uint32_t>>& beside) {
    std::vector<std::pair<IntegerArray, Value>> stored;
    for (const auto& [values, value] : beside)
      stored.emplace_back(kept(values).integers(), Value{value});
    fold_.earliest(Rows{rows}, Value{place}, kept(keys).sums(), Value{key}, std::move(stored));
  }
  void call(uint32_t rows, nb::object function, const std::vector<uint32_t>& values) {
    std::vector<Value> columns;
    for (const uint32_t value : values) columns.push_back(Value{value});
    fold_.call(
        Rows{rows},
        [function = std::move(function)](const std::vector<std::vector<int64_t>>& selected) {
          nb::list arrays;
          for (const std::vector<int64_t>& column : selected) {
            const NewArray<int64_t> array(column.size());
            std::ranges::copy(column, array.data());
            arrays.append(array.object());
          }
          function(*arrays);
        },
        std::move(columns));
  }

  bool has_sinks() const { return fold_.has_sinks(); }

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
      if (fold_.reads(i)) views[i] = held.emplace_back(column).view();
    }
    for (const auto& series : series_) series->look_up();
    fold_.fold(views, static_cast<size_t>(std::max<Py_ssize_t>(rows, 0)));
    return true;
  }

 private:
  static uint32_t id(Value value) { return static_cast<uint32_t>(value); }

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
  TableFold fold_;
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
  for (size_t i = 0; i < count; ++i) buckets.data()[i] = agora::bucket_of(given.data()[i]);
  return buckets.object();
}

}  // namespace

void bind_table_fold(nb::module_& module) {
  module.attr("HISTOGRAM_BUCKETS") = agora::kBuckets;
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
