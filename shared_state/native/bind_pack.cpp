// pack_columns(*arrays) -> bytes: see pack.hpp.
#include <nanobind/nanobind.h>

#include <cstring>
#include <limits>

#include "pack.hpp"

namespace nb = nanobind;

namespace {

[[noreturn]] void refuse() {
    throw nb::value_error("pack_columns: expected contiguous arrays [n] or [n, w] of integers or bools, n < 2^32, w < 256");
}

struct BufferGuard {
    Py_buffer* buffer;
    ~BufferGuard() { PyBuffer_Release(buffer); }
};

template <class T> void pack(const Py_buffer& buffer, agora::ColumnShape shape, std::string& bytes) {
    agora::pack_column(static_cast<const T*>(buffer.buf), shape, bytes);
}

void pack_one(nb::handle array, std::string& bytes) {
    Py_buffer buffer;
    if (PyObject_GetBuffer(array.ptr(), &buffer, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) != 0) {
        PyErr_Clear();
        refuse();
    }
    const BufferGuard guard{&buffer};
    const bool shaped = buffer.ndim == 1 || (buffer.ndim == 2 && buffer.shape[1] > 0 && buffer.shape[1] < 256);
    if (!shaped || buffer.shape[0] > std::numeric_limits<uint32_t>::max() || std::strlen(buffer.format) != 1) refuse();
    const char letter = *buffer.format == 'l' ? 'q' : *buffer.format == 'L' ? 'Q' : *buffer.format;
    const agora::ColumnShape shape{letter, static_cast<uint8_t>(buffer.ndim == 2 ? buffer.shape[1] : 0), static_cast<uint32_t>(buffer.shape[0])};
    switch (letter) {
        case 'b': return pack<int8_t>(buffer, shape, bytes);
        case 'B':
        case '?': return pack<uint8_t>(buffer, shape, bytes);
        case 'h': return pack<int16_t>(buffer, shape, bytes);
        case 'H': return pack<uint16_t>(buffer, shape, bytes);
        case 'i': return pack<int32_t>(buffer, shape, bytes);
        case 'I': return pack<uint32_t>(buffer, shape, bytes);
        case 'q': return pack<int64_t>(buffer, shape, bytes);
        case 'Q': return pack<uint64_t>(buffer, shape, bytes);
        default: refuse();
    }
}

nb::bytes pack_columns(nb::args arrays) {
    std::string bytes;
    for (nb::handle array : arrays) pack_one(array, bytes);
    return nb::bytes(bytes.data(), bytes.size());
}

}  // namespace

void bind_pack(nb::module_& module) { module.def("pack_columns", &pack_columns); }
