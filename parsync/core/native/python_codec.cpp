#include "python_codec.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <bit>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "bound_participant.hpp"
#include "log_frames.hpp"
#include "msgpack.hpp"
#include "shared_state/native/bound_fields.hpp"

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

namespace {

constexpr int kDeepestEvents = 4;  // events within events: ours go two deep
constexpr int kDeepestValues = 512;

nb::object checked(PyObject* made) {
  if (!made) throw nb::python_error();
  return nb::steal(made);
}

[[noreturn]] void refuse(const std::string& why) {
  const nb::object error = nb::module_::import_("shared_state.errors").attr("AgoraError");
  PyErr_SetString(error.ptr(), why.c_str());
  throw nb::python_error();
}

// As Python shows a text in a message.
std::string quoted(std::string_view text) {
  PyObject* const shown = PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()),
                                               "backslashreplace");  // damaged bytes may be no text
  return nb::repr(nb::steal(shown)).c_str();
}

}  // namespace

void Decoder::add_class(nb::type_object cls, const std::string& kind, int64_t number,
                        size_t fields) {
  const nb::object native = nb::getattr(cls, kDecoderName, nb::none());
  DecodeEvent decode = nullptr;
  if (!native.is_none())
    decode = *static_cast<const DecodeEvent*>(nb::cast<nb::capsule>(native).data());
  classes_.insert_or_assign({kind, number}, Class{nb::borrow(cls), fields, decode});
}

int Decoder::traverse(visitproc visit, void* arg) const {
  Py_VISIT(make_array_.ptr());
  for (const auto& [key, cls] : classes_) {
    Py_VISIT(cls.type.ptr());
  }
  return 0;
}

nb::object Decoder::decode(const nb::bytes& data) const {
  Reader reader(std::string_view(data.c_str(), data.size()));
  EventDecoder events;
  const nb::object made = value(reader, events, {});
  EventDecoder::end_of(reader);
  return made;
}

nb::object Decoder::value(Reader& reader, EventDecoder& events, Levels levels) const {
  const Head head = reader.next();
  const auto size = static_cast<Py_ssize_t>(head.bytes.size());
  switch (head.kind) {
    case Kind::Nil:
      return nb::none();
    case Kind::Bool:
      return nb::borrow(head.integer ? Py_True : Py_False);
    case Kind::Integer:
      return checked(PyLong_FromLongLong(head.integer));
    case Kind::Unsigned:
      return checked(PyLong_FromUnsignedLongLong(head.size));
    case Kind::Float:
      return checked(PyFloat_FromDouble(std::bit_cast<double>(head.size)));
    case Kind::String:
      return checked(PyUnicode_DecodeUTF8(head.bytes.data(), size, nullptr));
    case Kind::Bytes:
      return checked(PyBytes_FromStringAndSize(head.bytes.data(), size));
    case Kind::Array:
      return sequence(head.size, reader, events, levels);
    case Kind::Map:
      return mapping(head.size, reader, events, levels);
    default:
      return extension(head, events, levels);
  }
}

nb::object Decoder::sequence(size_t size, Reader& reader, EventDecoder& events,
                             Levels levels) const {
  if (++levels.values > kDeepestValues) throw std::invalid_argument("msgpack: nested too deep");
  nb::object made = checked(PyTuple_New(static_cast<Py_ssize_t>(size)));
  for (size_t at = 0; at < size; ++at)
    PyTuple_SET_ITEM(made.ptr(), static_cast<Py_ssize_t>(at),
                     value(reader, events, levels).release().ptr());
  return made;
}

nb::object Decoder::mapping(size_t size, Reader& reader, EventDecoder& events,
                            Levels levels) const {
  if (++levels.values > kDeepestValues) throw std::invalid_argument("msgpack: nested too deep");
  nb::dict made;
  for (size_t at = 0; at < size; ++at) {
    const nb::object key = value(reader, events, levels);
    made[key] = value(reader, events, levels);
  }
  return made;
}

nb::object Decoder::extension(const Head& head, EventDecoder& events, Levels levels) const {
  if (levels.events++ == kDeepestEvents)
    refuse("events nested more than " + std::to_string(kDeepestEvents) + " deep");
  if (head.integer == kArrayCode)
    return make_array_(nb::bytes(head.bytes.data(), head.bytes.size()));
  if (head.integer != kEventCode)
    refuse("unknown extension " + std::to_string(head.integer) + ": written by another version?");
  Reader reader(head.bytes);
  const std::string_view kind = reader.expect(Kind::String, "an event's kind").bytes;
  const int64_t number = reader.integer("an event's number");
  if (kind == kPartKind) {
    switch (number) {
      case Transaction::kPart:
        return nb::cast(events.transaction(reader));
      case CommitResult::kPart:
        return nb::cast(events.fields<CommitResult>(reader));
      case PartitionDelta::kPart:
        return nb::cast(events.fields<PartitionDelta>(reader));
    }
  }
  const auto known = classes_.find({std::string(kind), number});
  if (known == classes_.end())
    refuse("unknown event " + std::to_string(number) + " of protocol " + quoted(kind) +
           ": of another version?");
  if (const DecodeEvent native = known->second.native) return nb::cast(native(events, reader));
  return python_event(known->second, reader, events, levels);
}

nb::object Decoder::python_event(const Class& cls, Reader& reader, EventDecoder& events,
                                 Levels levels) const {
  if (reader.array("the fields of an event") != 3) Reader::refuse("three parts");
  const Head where = reader.next();
  if (where.kind != Kind::Integer && where.kind != Kind::Unsigned)
    Reader::refuse("which fields are columns");
  const uint64_t bits =
      where.kind == Kind::Unsigned ? where.size : static_cast<uint64_t>(where.integer);
  const nb::object plain = sequence(reader.array("the plain fields"), reader, events, levels);
  PackedColumns columns = events.packed_columns(reader);
  std::vector<nb::object> values;
  Py_ssize_t next = 0;
  for (size_t at = 0; at < cls.fields; ++at) {
    if (bits >> at & 1) {
      if (columns.at_end()) throw std::invalid_argument("an event lacks a column");
      values.push_back(array_of(columns.next()));
    } else {
      if (next == PyTuple_GET_SIZE(plain.ptr()))
        throw std::invalid_argument("an event lacks a field");
      values.push_back(nb::borrow(PyTuple_GET_ITEM(plain.ptr(), next++)));
    }
  }
  if (next != PyTuple_GET_SIZE(plain.ptr()))
    throw std::invalid_argument("an event has a field too many");
  if (cls.fields < 64 && bits >> cls.fields)
    throw std::invalid_argument("an event has a column too many");
  events.take_over(columns);
  EventDecoder::end_of(reader);
  std::vector<PyObject*> arguments{nullptr};
  for (const nb::object& each : values) arguments.push_back(each.ptr());
  return checked(PyObject_Vectorcall(cls.type.ptr(), arguments.data() + 1,
                                     values.size() | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr));
}

}  // namespace agora

// Python's access to the encoder, the decoder, and what live logs hold.
using agora::Decoder;
using agora::EffectsDigest;
using agora::Encoder;
using agora::EventEffectsDigest;
using agora::HandledFrames;
using agora::LogFrames;

namespace {

template <class T>
int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  return nb::inst_ready(self) ? nb::inst_ptr<T>(self)->traverse(visit, arg) : 0;
}

template <class T>
int clear(PyObject* self) {
  nb::inst_ptr<T>(self)->clear();
  return 0;
}

template <class T>
PyType_Slot collected[] = {{Py_tp_traverse, reinterpret_cast<void*>(&traverse<T>)},
                           {Py_tp_clear, reinterpret_cast<void*>(&clear<T>)},
                           {0, nullptr}};

}  // namespace

void bind_encoder(nb::module_& module) {
  nb::class_<Encoder>(module, "Encoder",
                      "Values and events as canonical msgpack; see python_codec.hpp.",
                      nb::type_slots(collected<Encoder>))
      .def(nb::init<nb::object, nb::object>(), nb::arg("array_type"), nb::arg("integer_type"))
      .def("add_class", &Encoder::add_class, nb::arg("cls"), nb::arg("code"), nb::arg("prefix"),
           nb::arg("fields"))
      .def("encode", &Encoder::encode, nb::arg("value").none())
      .def("log_entry", &Encoder::log_entry, nb::arg("address"), nb::arg("at_us"),
           nb::arg("event").none());
  nb::class_<Decoder>(module, "Decoder", "The inverse of Encoder.",
                      nb::type_slots(collected<Decoder>))
      .def(nb::init<nb::object>(), nb::arg("make_array"))
      .def("add_class", &Decoder::add_class, nb::arg("cls"), nb::arg("kind"), nb::arg("number"),
           nb::arg("fields"))
      .def("decode", &Decoder::decode, nb::arg("data"));
  nb::class_<LogFrames>(module, "LogFrames",
                        "Entries of an event log as frames, gathered until they are taken.")
      .def(nb::init<Encoder&>(), nb::arg("encoder"), nb::keep_alive<1, 2>())
      .def(
          "append",
          [](LogFrames& self, int64_t address, int64_t at_us, nb::handle event) {
            return self.append(address, at_us, *agora::event_from(event));
          },
          nb::arg("address"), nb::arg("at_us"), nb::arg("event").none(),
          "Returns the bytes that wait.")
      .def("take", &LogFrames::take);
  const auto bytes_of = [](const std::string& digest) {
    return nb::bytes(digest.data(), digest.size());
  };
  nb::class_<EffectsDigest>(module, "EffectsDigest",
                            "blake2b over encoded values, in order; see log_frames.hpp.")
      .def(nb::init<Encoder&, size_t>(), nb::arg("encoder"), nb::arg("digest_bytes"),
           nb::keep_alive<1, 2>())
      .def("add", nb::overload_cast<nb::handle>(&EffectsDigest::add), nb::arg("value").none())
      .def("add_outgoing", &EffectsDigest::add_outgoing, nb::arg("to"), nb::arg("event").none())
      .def("take", [bytes_of](EffectsDigest& self) { return bytes_of(self.take()); });
  nb::class_<EventEffectsDigest>(module, "EventEffectsDigest",
                                 "Digests of the effects of one event each.")
      .def(nb::init<Encoder&, nb::object>(), nb::arg("encoder"), nb::arg("measured"),
           nb::keep_alive<1, 2>())
      .def(
          "of",
          [bytes_of](EventEffectsDigest& self, nb::handle effects) {
            return bytes_of(self.of(effects));
          },
          nb::arg("effects"));
  nb::class_<HandledFrames>(module, "HandledFrames",
                            "The frames of an actor's log, gathered until they are taken.")
      .def(nb::init<Encoder&, nb::object>(), nb::arg("encoder"), nb::arg("measured"),
           nb::keep_alive<1, 2>())
      .def(
          "append",
          [](HandledFrames& self, int64_t address, int64_t at_us, nb::handle event,
             nb::handle effects) {
            return self.append(address, at_us, *agora::event_from(event), effects);
          },
          nb::arg("address"), nb::arg("at_us"), nb::arg("event").none(), nb::arg("effects"),
          "Returns the bytes that wait.")
      .def("take", &HandledFrames::take);
}
