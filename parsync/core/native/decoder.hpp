// What encoder.hpp encodes, as Python's values again. Native events are decoded to native memory
// (event_decoder.hpp); their arrays are made when somebody looks.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "event_decoder.hpp"
#include "msgpack_reader.hpp"

namespace agora {

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
