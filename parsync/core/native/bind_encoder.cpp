// Python's access to the encoder, the decoder, and what live logs hold.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bound_event.hpp"
#include "decoder.hpp"
#include "effects_digest.hpp"
#include "encoder.hpp"
#include "handled_frames.hpp"
#include "log_frames.hpp"

namespace nb = nanobind;
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
  nb::class_<Encoder>(module, "Encoder", "Values and events as canonical msgpack; see encoder.hpp.",
                      nb::type_slots(collected<Encoder>))
      .def(nb::init<nb::object, nb::object>(), nb::arg("array_type"), nb::arg("integer_type"))
      .def("add_class", &Encoder::add_class, nb::arg("cls"), nb::arg("code"), nb::arg("prefix"),
           nb::arg("fields"))
      .def("encode", &Encoder::encode, nb::arg("value").none())
      .def("log_entry", &Encoder::log_entry, nb::arg("address"), nb::arg("at_us"),
           nb::arg("event").none());
  nb::class_<Decoder>(module, "Decoder", "The inverse of Encoder; see decoder.hpp.",
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
                            "blake2b over encoded values, in order; see effects_digest.hpp.")
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
