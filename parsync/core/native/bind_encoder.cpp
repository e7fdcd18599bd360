// Python's access to the encoder.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>

#include "encoder.hpp"

namespace nb = nanobind;
using agora::Encoder;

namespace {

// Frames gathered until they are taken, e.g. to be hashed together.
struct Frames {
  explicit Frames(const Encoder& its_encoder) : encoder(its_encoder) {}

  size_t append(nb::handle value) {
    encoder.append_frame(value, bytes);
    return bytes.size();
  }
  nb::bytes take() {
    nb::bytes taken(bytes.data(), bytes.size());
    bytes.clear();
    return taken;
  }

  const Encoder& encoder;
  std::string bytes;
};

}  // namespace

void bind_encoder(nb::module_& module) {
  nb::class_<Encoder>(module, "Encoder", "Values and events as canonical msgpack; see encoder.hpp.")
      .def(nb::init<nb::object, nb::object, nb::object>(), nb::arg("array_type"),
           nb::arg("integer_type"), nb::arg("contiguous"))
      .def("add_class", &Encoder::add_class, nb::arg("cls"), nb::arg("code"), nb::arg("prefix"),
           nb::arg("fields"))
      .def("add_form", &Encoder::add_form, nb::arg("cls"), nb::arg("code"), nb::arg("prefix"),
           nb::arg("form"))
      .def("encode", &Encoder::encode, nb::arg("value").none());
  nb::class_<Frames>(module, "Frames", "Encoded values as frames, gathered until they are taken.")
      .def(nb::init<const Encoder&>(), nb::arg("encoder"), nb::keep_alive<1, 2>())
      .def("append", &Frames::append, nb::arg("value").none(), "Returns the bytes that wait.")
      .def("take", &Frames::take);
}
