#include "decoder.hpp"

#include <bit>
#include <stdexcept>
#include <vector>

#include "bound_event.hpp"
#include "shared_state/native/bound_packed.hpp"

namespace nb = nanobind;

namespace agora {

using msgpack::Head;
using msgpack::Kind;
using msgpack::Reader;

namespace {

constexpr int64_t kArrayCode = 0;
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
  return nb::repr(nb::str(text.data(), text.size())).c_str();
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
