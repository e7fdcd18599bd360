#include "encoder.hpp"

#include <bit>
#include <cstring>
#include <stdexcept>

#include "shared_state/native/pack_array.hpp"

namespace nb = nanobind;

namespace agora {

namespace {

constexpr int8_t kArrayCode = 0;
// of an array's data within its extension: native code takes no misaligned arrays
constexpr size_t kAlignment = 8;
constexpr size_t kMaxFields = 64;

void put(std::string& out, uint8_t byte) { out.push_back(static_cast<char>(byte)); }

// msgpack is big-endian.
template <class T>
void put_number(std::string& out, T value) {
  for (int shift = static_cast<int>(sizeof(T)) * 8 - 8; shift >= 0; shift -= 8)
    put(out, static_cast<uint8_t>(value >> shift));
}

void put_unsigned(std::string& out, uint64_t value) {
  if (value < 0x80) {
    put(out, static_cast<uint8_t>(value));
  } else if (value <= UINT8_MAX) {
    put(out, 0xcc), put(out, static_cast<uint8_t>(value));
  } else if (value <= UINT16_MAX) {
    put(out, 0xcd), put_number(out, static_cast<uint16_t>(value));
  } else if (value <= UINT32_MAX) {
    put(out, 0xce), put_number(out, static_cast<uint32_t>(value));
  } else {
    put(out, 0xcf), put_number(out, value);
  }
}

void put_negative(std::string& out, int64_t value) {
  if (value >= -0x20) {
    put(out, static_cast<uint8_t>(value));
  } else if (value >= INT8_MIN) {
    put(out, 0xd0), put(out, static_cast<uint8_t>(value));
  } else if (value >= INT16_MIN) {
    put(out, 0xd1), put_number(out, static_cast<uint16_t>(value));
  } else if (value >= INT32_MIN) {
    put(out, 0xd2), put_number(out, static_cast<uint32_t>(value));
  } else {
    put(out, 0xd3), put_number(out, static_cast<uint64_t>(value));
  }
}

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
  } else if (number >= 0) {
    put_unsigned(out, static_cast<uint64_t>(number));
  } else {
    put_negative(out, number);
  }
}

// The head of something of `size` parts: one byte with the size in it below `few`, else a code
// (`byte_code` 0: none for one byte) and the size.
void put_head(std::string& out, size_t size, size_t few, uint8_t few_code, uint8_t byte_code,
              uint8_t short_code) {
  if (size > UINT32_MAX) throw std::invalid_argument("cannot encode: more than 2^32 - 1 parts");
  if (size < few) {
    put(out, static_cast<uint8_t>(few_code | size));
  } else if (size <= UINT8_MAX && byte_code) {
    put(out, byte_code), put(out, static_cast<uint8_t>(size));
  } else if (size <= UINT16_MAX) {
    put(out, short_code), put_number(out, static_cast<uint16_t>(size));
  } else {
    put(out, static_cast<uint8_t>(short_code + 1)), put_number(out, static_cast<uint32_t>(size));
  }
}

void put_array_head(std::string& out, size_t size) { put_head(out, size, 16, 0x90, 0, 0xdc); }
void put_map_head(std::string& out, size_t size) { put_head(out, size, 16, 0x80, 0, 0xde); }
void put_string_head(std::string& out, size_t size) { put_head(out, size, 32, 0xa0, 0xd9, 0xda); }
void put_bytes_head(std::string& out, size_t size) { put_head(out, size, 0, 0, 0xc4, 0xc5); }

void put_extension_head(std::string& out, size_t size, int8_t code) {
  if (size <= 16 && std::has_single_bit(size)) {
    put(out, static_cast<uint8_t>(0xd4 + std::countr_zero(size)));
  } else {
    put_head(out, size, 0, 0, 0xc7, 0xc8);
  }
  put(out, static_cast<uint8_t>(code));
}

// Puts before out[start..] the head that depends on its size.
template <class PutHead>
void insert_head(std::string& out, size_t start, PutHead put_head_of) {
  std::string head;
  put_head_of(head, out.size() - start);
  out.insert(start, head);
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
  Class known{cls, code, std::string(prefix.c_str(), prefix.size()), {}, {}};
  for (const std::string& field : fields)
    known.fields.push_back(nb::steal(PyUnicode_InternFromString(field.c_str())));
  classes_.insert_or_assign(cls.ptr(), std::move(known));
}

void Encoder::add_form(nb::type_object cls, int8_t code, nb::bytes prefix, nb::object form) {
  classes_.insert_or_assign(
      cls.ptr(), Class{cls, code, std::string(prefix.c_str(), prefix.size()), {}, std::move(form)});
}

void Encoder::add_log_form(nb::type_object cls, nb::object form) {
  log_forms_.insert_or_assign(cls.ptr(), std::move(form));
}

int Encoder::traverse(visitproc visit, void* arg) const {
  for (const nb::object* held : {&array_type_, &integer_type_}) Py_VISIT(held->ptr());
  for (const auto& [type, cls] : classes_) {
    Py_VISIT(cls.type.ptr());
    Py_VISIT(cls.form.ptr());
  }
  for (const auto& [type, form] : log_forms_) Py_VISIT(form.ptr());
  return 0;
}

void Encoder::clear() {
  classes_.clear();
  log_forms_.clear();
}

nb::bytes Encoder::encode(nb::handle value) const {
  std::string out;
  out.reserve(1024);
  pack(value, out);
  return nb::bytes(out.data(), out.size());
}

nb::bytes Encoder::log_entry(nb::handle address, nb::handle at_us, nb::handle event) const {
  std::string out;
  out.reserve(1024);
  pack_log_entry(address, at_us, event, out);
  return nb::bytes(out.data(), out.size());
}

void Encoder::append_log_frame(nb::handle address, nb::handle at_us, nb::handle event,
                               std::string& frames) const {
  const size_t start = frames.size();
  try {
    frames.append(sizeof(uint32_t), '\0');
    pack_log_entry(address, at_us, event, frames);
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

void Encoder::pack_log_entry(nb::handle address, nb::handle at_us, nb::handle event,
                             std::string& out) const {
  put_array_head(out, 3);
  pack(address, out);
  pack(at_us, out);
  const auto form = log_forms_.find(Py_TYPE(event.ptr()));
  if (form == log_forms_.end()) return pack(event, out);
  pack(form->second(event), out);
}

bool Encoder::is_array(nb::handle value) const {
  return Py_TYPE(value.ptr()) == reinterpret_cast<PyTypeObject*>(array_type_.ptr());
}

void Encoder::pack(nb::handle value, std::string& out) const {
  PyObject* object = value.ptr();
  if (value.is_none()) return put(out, 0xc0);
  if (object == Py_False) return put(out, 0xc2);
  if (object == Py_True) return put(out, 0xc3);
  if (PyLong_Check(object)) return put_int(out, value);
  if (const auto known = classes_.find(Py_TYPE(object)); known != classes_.end())
    return pack_event(known->second, value, out);
  if (PyTuple_Check(object) || PyList_Check(object)) return pack_sequence(value, out);
  if (is_array(value)) return pack_array(value, out);
  if (PyUnicode_Check(object)) {
    Py_ssize_t size = 0;
    const char* text = PyUnicode_AsUTF8AndSize(object, &size);
    if (!text) throw nb::python_error();
    put_string_head(out, static_cast<size_t>(size));
    out.append(text, static_cast<size_t>(size));
  } else if (PyBytes_Check(object)) {
    const auto size = static_cast<size_t>(PyBytes_GET_SIZE(object));
    put_bytes_head(out, size);
    out.append(PyBytes_AS_STRING(object), size);
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

void Encoder::pack_event(const Class& cls, nb::handle event, std::string& out) const {
  const size_t start = out.size();
  out += cls.prefix;
  if (cls.form.is_valid()) {
    pack(cls.form(event), out);
  } else {
    pack_fields(cls, event, out);
  }
  insert_head(out, start,
              [&](std::string& head, size_t size) { put_extension_head(head, size, cls.code); });
}

void Encoder::pack_fields(const Class& cls, nb::handle event, std::string& out) const {
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
  put_bytes_head(out, columns.size());
  out += columns;
}

void Encoder::pack_array(nb::handle array, std::string& out) const {
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

void Encoder::pack_sequence(nb::handle sequence, std::string& out) const {
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

void Encoder::pack_mapping(nb::handle mapping, std::string& out) const {
  const nb::dict entries = nb::borrow<nb::dict>(mapping);
  put_map_head(out, entries.size());
  for (const auto& [key, value] : entries) {
    pack(key, out);
    pack(value, out);
  }
}

}  // namespace agora
