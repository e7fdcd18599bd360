#include "encoder.hpp"

#include <bit>
#include <cstring>
#include <stdexcept>

#include "bound_event.hpp"
#include "msgpack.hpp"
#include "shared_state/native/bound_packed.hpp"

namespace nb = nanobind;

namespace agora {

using namespace msgpack;

namespace {

constexpr int8_t kArrayCode = 0;
// of an array's data within its extension: native code takes no misaligned arrays
constexpr size_t kAlignment = 8;
constexpr size_t kMaxFields = 64;

void put_int(std::string& out, nb::handle value) {
  int overflow = 0;
  const long long number = PyLong_AsLongLongAndOverflow(value.ptr(), &overflow);
  if (number == -1 && PyErr_Occurred()) throw nb::python_error();
  if (overflow > 0) {
    const unsigned long long large = PyLong_AsUnsignedLongLong(value.ptr());
    if (PyErr_Occurred()) throw nb::python_error();
    put_unsigned(out, large);
  } else if (overflow < 0) {
    PyErr_SetString(PyExc_OverflowError, "int too small to encode");
    throw nb::python_error();
  } else {
    put_integer(out, number);
  }
}

nb::object attribute(nb::handle owner, nb::handle name) {
  PyObject* value = PyObject_GetAttr(owner.ptr(), name.ptr());
  if (!value) throw nb::python_error();
  return nb::steal(value);
}

[[noreturn]] void refuse(nb::handle value) {
  PyErr_Format(PyExc_TypeError, "cannot encode %s", Py_TYPE(value.ptr())->tp_name);
  throw nb::python_error();
}

}  // namespace

void Encoder::add_class(nb::type_object cls, int8_t code, nb::bytes prefix,
                        const std::vector<std::string>& fields) {
  if (fields.size() > kMaxFields)
    throw std::invalid_argument("an event class has at most 64 fields");
  Class known{cls, code, std::string(prefix.c_str(), prefix.size()), {}};
  for (const std::string& field : fields)
    known.fields.push_back(nb::steal(PyUnicode_InternFromString(field.c_str())));
  classes_.insert_or_assign(cls.ptr(), std::move(known));
}

int Encoder::traverse(visitproc visit, void* arg) const {
  for (const nb::object* held : {&array_type_, &integer_type_}) Py_VISIT(held->ptr());
  for (const auto& [type, cls] : classes_) {
    Py_VISIT(cls.type.ptr());
  }
  return 0;
}

void Encoder::clear() { classes_.clear(); }

nb::bytes Encoder::encode(nb::handle value) {
  std::string out;
  out.reserve(1024);
  pack(value, out);
  return nb::bytes(out.data(), out.size());
}

nb::bytes Encoder::log_entry(int64_t address, int64_t at_us, nb::handle event) {
  std::string out;
  out.reserve(1024);
  append_log_entry(address, at_us, *event_from(event), out);
  return nb::bytes(out.data(), out.size());
}

void Encoder::append_log_frame(int64_t address, int64_t at_us, const Event& event,
                               std::string& frames) {
  const size_t start = frames.size();
  try {
    frames.append(sizeof(uint32_t), '\0');
    append_log_entry(address, at_us, event, frames);
    const size_t size = frames.size() - start - sizeof(uint32_t);
    if (size > UINT32_MAX)
      throw std::invalid_argument("cannot encode: a frame of 2^32 bytes or more");
    for (size_t i = 0; i < sizeof(uint32_t); ++i)
      frames[start + i] = static_cast<char>(size >> (8 * i));
  } catch (...) {
    frames.resize(start);
    throw;
  }
}

void Encoder::append_log_entry(int64_t address, int64_t at_us, const Event& event,
                               std::string& out) {
  put_array_head(out, 3);
  put_integer(out, address);
  put_integer(out, at_us);
  event.encode_for_log(*this, out);
}

void Encoder::put_foreign(const void* event, std::string& out) {
  pack(static_cast<PyObject*>(const_cast<void*>(event)), out);
}

bool Encoder::is_array(nb::handle value) const {
  return Py_TYPE(value.ptr()) == reinterpret_cast<PyTypeObject*>(array_type_.ptr());
}

void Encoder::pack(nb::handle value, std::string& out) {
  PyObject* object = value.ptr();
  if (value.is_none()) return put_nil(out);
  if (object == Py_False || object == Py_True) return put_bool(out, object == Py_True);
  if (PyLong_Check(object)) return put_int(out, value);
  if (const auto known = classes_.find(Py_TYPE(object)); known != classes_.end())
    return pack_event(known->second, value, out);
  if (PyTuple_Check(object) || PyList_Check(object)) return pack_sequence(value, out);
  if (is_array(value)) return pack_array(value, out);
  if (pack_native(value, out)) return;
  if (PyUnicode_Check(object)) {
    Py_ssize_t size = 0;
    const char* text = PyUnicode_AsUTF8AndSize(object, &size);
    if (!text) throw nb::python_error();
    put_string(out, {text, static_cast<size_t>(size)});
  } else if (PyBytes_Check(object)) {
    put_bytes(out, {PyBytes_AS_STRING(object), static_cast<size_t>(PyBytes_GET_SIZE(object))});
  } else if (PyFloat_Check(object)) {
    put(out, 0xcb), put_number(out, std::bit_cast<uint64_t>(PyFloat_AS_DOUBLE(object)));
  } else if (PyDict_Check(object)) {
    pack_mapping(value, out);
  } else if (const int integer = PyObject_IsInstance(object, integer_type_.ptr()); integer == 1) {
    const nb::object number = nb::steal(PyNumber_Index(object));
    if (!number.is_valid()) throw nb::python_error();
    put_int(out, number);
  } else {
    refuse(value);
  }
}

bool Encoder::pack_native(nb::handle value, std::string& out) {
  if (!nb::inst_check(value)) return false;
  const Event* event = nullptr;
  const Transaction* transaction = nullptr;
  const CommitResult* result = nullptr;
  const PartitionDelta* delta = nullptr;
  if (nb::try_cast(value, event, false) && event) {
    event->encode(*this, out);
  } else if (nb::try_cast(value, transaction, false) && transaction) {
    put_transaction(*transaction, out);
  } else if (nb::try_cast(value, result, false) && result) {
    put_part(*result, out);
  } else if (nb::try_cast(value, delta, false) && delta) {
    put_part(*delta, out);
  } else {
    return false;
  }
  return true;
}

void Encoder::pack_event(const Class& cls, nb::handle event, std::string& out) {
  const size_t start = out.size();
  out += cls.prefix;
  pack_fields(cls, event, out);
  insert_head(out, start,
              [&](std::string& head, size_t size) { put_extension_head(head, size, cls.code); });
}

void Encoder::pack_fields(const Class& cls, nb::handle event, std::string& out) {
  uint64_t where = 0;
  size_t count = 0;
  std::string plain, columns;
  for (size_t i = 0; i < cls.fields.size(); ++i) {
    const nb::object field = attribute(event, cls.fields[i]);
    if (!is_array(field)) {
      pack(field, plain);
      ++count;
      continue;
    }
    where |= uint64_t{1} << i;
    if (!agora::pack_array(field.ptr(), columns))
      throw nb::value_error("cannot encode: expected arrays [n] or [n, w] of integers or bools");
  }
  put_array_head(out, 3);
  put_unsigned(out, where);
  put_array_head(out, count);
  out += plain;
  put_bytes(out, columns);
}

void Encoder::pack_array(nb::handle array, std::string& out) {
  const ContiguousBuffer buffer(array.ptr());
  if (!buffer.valid()) refuse(array);
  const size_t start = out.size();
  put_array_head(out, 2);
  pack(nb::handle(array).attr("dtype").attr("str"), out);
  pack(nb::handle(array).attr("shape"), out);
  out.append((start - out.size()) % kAlignment, '\0');
  out.append(static_cast<const char*>(buffer.data()), buffer.bytes());
  insert_head(out, start,
              [](std::string& head, size_t size) { put_extension_head(head, size, kArrayCode); });
}

void Encoder::pack_sequence(nb::handle sequence, std::string& out) {
  const bool tuple = PyTuple_Check(sequence.ptr());
  const auto size = static_cast<size_t>(tuple ? PyTuple_GET_SIZE(sequence.ptr())
                                              : PyList_GET_SIZE(sequence.ptr()));
  put_array_head(out, size);
  for (size_t i = 0; i < size; ++i) {
    if (!tuple && i >= static_cast<size_t>(PyList_GET_SIZE(sequence.ptr())))
      throw std::runtime_error("cannot encode: a list that changes meanwhile");
    const auto at = static_cast<Py_ssize_t>(i);
    pack(nb::borrow(tuple ? PyTuple_GET_ITEM(sequence.ptr(), at)
                          : PyList_GET_ITEM(sequence.ptr(), at)),
         out);
  }
}

void Encoder::pack_mapping(nb::handle mapping, std::string& out) {
  const nb::dict entries = nb::borrow<nb::dict>(mapping);
  put_map_head(out, entries.size());
  for (const auto& [key, value] : entries) {
    pack(key, out);
    pack(value, out);
  }
}

}  // namespace agora
