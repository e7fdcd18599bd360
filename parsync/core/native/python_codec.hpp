// Values and events as canonical msgpack: equal values give equal bytes; and back.
//
// Plain values (None, bool, int, float, str, bytes, tuple, list, dict) are msgpack's own, in their
// shortest form. An array is extension 0: msgpack (dtype, shape), zeros up to a multiple of 8, the
// data. An event is an extension of its class's code: the class's prefix, which names it, then
// msgpack of (where, plain fields, packed columns), bit i of `where` telling that field i is an
// array (shared_state/native/pack.hpp). Native events, and native parts of events, encode
// themselves in that form (event.hpp).
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "event.hpp"
#include "msgpack.hpp"

namespace agora {

class Encoder : public EventEncoder {
 public:
  // array_type: numpy.ndarray; integer_type: numpy.integer.
  Encoder(nanobind::object array_type, nanobind::object integer_type)
      : array_type_(std::move(array_type)), integer_type_(std::move(integer_type)) {}

  // An event class by its fields, at most 64.
  void add_class(nanobind::type_object cls, int8_t code, nanobind::bytes prefix,
                 const std::vector<std::string>& fields);

  // Throws TypeError for what has no encoding, OverflowError for an int beyond 64 bits.
  nanobind::bytes encode(nanobind::handle value);
  // An entry of an event log: (address, at_us, event), the event in its log form. Throws as
  // encode().
  nanobind::bytes log_entry(int64_t address, int64_t at_us, nanobind::handle event);
  // Appends the same.
  void append_log_entry(int64_t address, int64_t at_us, const Event& event, std::string& out);
  // Appends an entry as a frame (shared_state/journal.py): its length, u32 little-endian, then its
  // bytes. As encode() if it throws, with `frames` as it was.
  void append_log_frame(int64_t address, int64_t at_us, const Event& event, std::string& frames);
  // Appends a value. Throws as encode().
  void pack(nanobind::handle value, std::string& out);
  // Appends an event of a Python class.
  void put_foreign(const void* event, std::string& out) override;

  // For Python's garbage collector: the objects that the encoder holds form cycles with it.
  int traverse(visitproc visit, void* arg) const;
  void clear();

 private:
  struct Class {
    nanobind::object type;  // kept alive: classes_ knows it by its address
    int8_t code;
    std::string prefix;
    std::vector<nanobind::object> fields;  // interned names
  };

  bool pack_native(nanobind::handle value, std::string& out);
  void pack_event(const Class& cls, nanobind::handle event, std::string& out);
  void pack_fields(const Class& cls, nanobind::handle event, std::string& out);
  void pack_array(nanobind::handle array, std::string& out);
  void pack_sequence(nanobind::handle sequence, std::string& out);
  void pack_mapping(nanobind::handle mapping, std::string& out);
  bool is_array(nanobind::handle value) const;

  nanobind::object array_type_;
  nanobind::object integer_type_;
  std::unordered_map<const void*, Class> classes_;
};

// What Encoder encodes, as Python's values again. Native events are decoded to native memory
// (event.hpp); their arrays are made when somebody looks.
class Decoder {
 public:
  // make_array: called with the bytes of an array's extension, for the array.
  explicit Decoder(nanobind::object make_array) : make_array_(std::move(make_array)) {}

  // An event class, by its kind and number. fields: how many it has.
  void add_class(nanobind::type_object cls, const std::string& kind, int64_t number, size_t fields);

  // Sequences are tuples. Throws AgoraError if an event is unknown, or nested deeper than any of
  // ours; ValueError if the bytes are no value; what a class throws that refuses its fields.
  nanobind::object decode(const nanobind::bytes& data) const;

  // For Python's garbage collector: the objects that the decoder holds form cycles with it.
  int traverse(visitproc visit, void* arg) const;
  void clear() { classes_.clear(); }

 private:
  struct Class {
    nanobind::object type;
    size_t fields;
    DecodeEvent native;  // null: the class is Python's
  };
  struct Levels {
    int values = 0;  // how deep sequences lie in each other
    int events = 0;
  };

  nanobind::object value(msgpack::Reader& reader, EventDecoder& events, Levels levels) const;
  nanobind::object sequence(size_t size, msgpack::Reader& reader, EventDecoder& events,
                            Levels levels) const;
  nanobind::object mapping(size_t size, msgpack::Reader& reader, EventDecoder& events,
                           Levels levels) const;
  nanobind::object extension(const msgpack::Head& head, EventDecoder& events, Levels levels) const;
  nanobind::object python_event(const Class& cls, msgpack::Reader& reader, EventDecoder& events,
                                Levels levels) const;

  nanobind::object make_array_;
  std::map<std::pair<std::string, int64_t>, Class> classes_;
};

}  // namespace agora
