// Python's access to row buffers and the commit log.
#include <nanobind/nanobind.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <string>

#include "commit_log.hpp"
#include "schedulers/native/bound_catalog.hpp"
#include "shared_state/native/column.hpp"
#include "shared_state/native/new_array.hpp"

namespace nb = nanobind;
using agora::CatalogColumns;
using agora::Column;
using agora::CommitLog;
using agora::length_of;
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

// values: a tuple of one number (repeated) or one array per column.
void add(RowBuffer& rows, size_t count, const nb::tuple& values) {
  if (values.size() != rows.columns())
    throw nb::value_error("measurements: expected one value per column");
  rows.grow(count);
  try {
    for (size_t column = 0; column < values.size(); ++column) {
      PyObject* value = PyTuple_GET_ITEM(values.ptr(), static_cast<Py_ssize_t>(column));
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

// All rows, as one array of signed integers per column.
nb::tuple arrays_of(const RowBuffer& rows) {
  static const std::array<nb::handle, 9> dtype = [] {
    std::array<nb::handle, 9> by_bytes;
    for (const size_t bytes : {1, 2, 4, 8})
      by_bytes[bytes] = agora::dtype_named("int" + std::to_string(bytes * 8));
    return by_bytes;
  }();
  nb::object arrays = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(rows.columns())));
  for (size_t column = 0; column < rows.columns(); ++column) {
    const size_t bytes = rows.bytes_of(column);
    const agora::NewArrayOf array(dtype[bytes], rows.rows());
    if (rows.rows() > 0) std::memcpy(array.data(), rows.data(column), rows.rows() * bytes);
    PyTuple_SET_ITEM(arrays.ptr(), static_cast<Py_ssize_t>(column), array.object().inc_ref().ptr());
  }
  return nb::borrow<nb::tuple>(arrays);
}

// A commit log with what it borrows: the task table's arrays, the catalog, the buffers (kept alive
// by nanobind).
struct BoundCommitLog {
  BoundCommitLog(int32_t agent, nb::handle job, nb::handle submit_us, nb::handle preference,
                 const CatalogColumns& catalog, RowBuffer& tasks, RowBuffer& rejections)
      : tasks_(length_of(job, "job")),
        job_(job, "job", tasks_),
        submit_us_(submit_us, "submit_us", tasks_),
        preference_(preference, "preference", tasks_),
        log(agent, {job_.span(), submit_us_.span(), preference_.span()}, catalog.spans(), tasks,
            rejections) {}

  nb::tuple add(int64_t now_us, int64_t sequence, int64_t cell_us, nb::handle task,
                nb::handle machine, nb::handle attempts, nb::handle first, nb::handle reason,
                nb::handle rival, nb::handle age_us) {
    const size_t n = length_of(task, "task");
    const Column<const int64_t> tasks(task, "task", n), ages(age_us, "age_us", n);
    const Column<const int32_t> machines(machine, "machine", n), tried(attempts, "attempts", n),
        rivals(rival, "rival", n);
    const Column<const int8_t> firsts(first, "first", n), reasons(reason, "reason", n);
    const agora::OutcomeSums sums =
        log.add(now_us, {sequence, cell_us, tasks.span(), machines.data(), tried.data(),
                         firsts.data(), reasons.data(), rivals.data(), ages.data()});
    nb::object claims = nb::steal(PyTuple_New(agora::kReasons));
    for (size_t reason_number = 0; reason_number < agora::kReasons; ++reason_number)
      PyTuple_SET_ITEM(claims.ptr(), static_cast<Py_ssize_t>(reason_number),
                       PyLong_FromLongLong(sums.claims[reason_number]));
    return nb::make_tuple(claims, sums.first_commits, sums.delay_us);
  }

  size_t tasks_;
  Column<const int64_t> job_, submit_us_;
  Column<const int32_t> preference_;
  CommitLog log;
};

}  // namespace

void bind_measurements(nb::module_& module) {
  nb::class_<RowBuffer>(module, "RowBuffer", "Rows of one table by column; see row_buffer.hpp.")
      .def(nb::init<const std::vector<size_t>&>(), nb::arg("bytes"))
      .def("__len__", &RowBuffer::rows)
      .def("add", &add, nb::arg("rows"), nb::arg("values"))
      .def("arrays", &arrays_of, "All rows: an array of signed integers per column.")
      .def("clear", &RowBuffer::clear);
  nb::class_<BoundCommitLog>(module, "CommitLog",
                             "Rows of a transaction's outcome; see commit_log.hpp.")
      .def(nb::init<int32_t, nb::handle, nb::handle, nb::handle, const CatalogColumns&, RowBuffer&,
                    RowBuffer&>(),
           nb::arg("agent"), nb::arg("job"), nb::arg("submit_us"), nb::arg("preference"),
           nb::arg("catalog"), nb::arg("tasks"), nb::arg("rejections"), nb::keep_alive<1, 6>(),
           nb::keep_alive<1, 7>(), nb::keep_alive<1, 8>())
      .def("add", &BoundCommitLog::add, nb::arg("now_us"), nb::arg("sequence"), nb::arg("cell_us"),
           nb::arg("task"), nb::arg("machine"), nb::arg("attempts"), nb::arg("first"),
           nb::arg("reason"), nb::arg("rival"), nb::arg("age_us"));
}
