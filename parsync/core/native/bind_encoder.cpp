// Python's access to the encoder.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "encoder.hpp"

namespace nb = nanobind;
using agora::Encoder;

void bind_encoder(nb::module_& module) {
    nb::class_<Encoder>(module, "Encoder", "Values and events as canonical msgpack; see encoder.hpp.")
        .def(nb::init<nb::object, nb::object, nb::object>(), nb::arg("array_type"), nb::arg("integer_type"), nb::arg("contiguous"))
        .def("add_class", &Encoder::add_class, nb::arg("cls"), nb::arg("code"), nb::arg("fields"))
        .def("add_form", &Encoder::add_form, nb::arg("cls"), nb::arg("code"), nb::arg("form"))
        .def("encode", &Encoder::encode, nb::arg("value").none());
}
