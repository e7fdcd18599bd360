// Python's access to random.hpp: whole arrays at a time.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <cmath>
#include <limits>
#include <memory>
#include <stdexcept>

#include "random.hpp"

namespace nb = nanobind;

namespace {

using agora::Stream;

template <typename T>
using Column = nb::ndarray<nb::numpy, T, nb::ndim<1>, nb::c_contig>;
template <typename T>
using InColumn = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <typename T, typename Fill>
Column<T> column(int64_t n, Fill fill) {
  if (n < 0) throw std::invalid_argument("the number of values is negative");
  const size_t size = static_cast<size_t>(n);
  auto data = std::make_unique<T[]>(size);
  for (size_t i = 0; i < size; ++i) data[i] = fill(i);
  T* raw = data.get();
  nb::capsule owner(raw, [](void* p) noexcept { delete[] static_cast<T*>(p); });
  data.release();
  return Column<T>(raw, {size}, owner);
}

Column<int64_t> lognormal(Stream& stream, int64_t n, int64_t mean_us, double sigma) {
  if (mean_us < 1) throw std::invalid_argument("mean_us must be at least 1");
  if (!(sigma >= 0.0 && sigma <= 10.0)) throw std::invalid_argument("sigma must lie in [0, 10]");
  const double location = agora::portable_log(static_cast<double>(mean_us)) - 0.5 * sigma * sigma;
  return column<int64_t>(n, [&](size_t) {
    const double value = agora::portable_exp(location + sigma * stream.normal()) + 0.5;
    if (value >= 0x1p62) return int64_t{1} << 62;
    return value < 1.0 ? int64_t{1} : static_cast<int64_t>(value);
  });
}

Column<int64_t> permutation(Stream& stream, int64_t n) {
  auto result = column<int64_t>(n, [](size_t i) { return static_cast<int64_t>(i); });
  int64_t* value = result.data();
  for (int64_t i = n; i > 1; --i)
    std::swap(value[i - 1], value[stream.below(static_cast<uint64_t>(i))]);
  return result;
}

template <typename F>
Column<double> elementwise(const InColumn<double>& x, F f) {
  return column<double>(static_cast<int64_t>(x.size()), [&](size_t i) { return f(x.data()[i]); });
}

}  // namespace

void bind_random(nb::module_& module) {
  module.def("stream_key", [](uint64_t seed, const std::string& name, uint64_t sequence) {
    return agora::stream_key(seed, name, sequence);
  });
  module.def("philox", [](uint64_t key, uint64_t counter) {
    const auto block = agora::philox4x64({counter, 0, 0, 0}, key, 0);
    return nb::make_tuple(block[0], block[1], block[2], block[3]);
  });
  module.def("hash64", [](InColumn<int64_t> value, uint64_t salt) {
    return column<uint64_t>(static_cast<int64_t>(value.size()),
                            [&](size_t i) { return agora::hash64(value.data()[i], salt); });
  });
  module.def("log", [](InColumn<double> x) {
    return elementwise(x, [](double v) {
      if (!(v > 0.0) || std::isinf(v))
        throw std::invalid_argument("log needs positive finite values");
      return agora::portable_log(v);
    });
  });
  module.def("exp", [](InColumn<double> x) {
    return elementwise(x, [](double v) {
      if (std::isnan(v)) throw std::invalid_argument("exp of a value that is not a number");
      return agora::portable_exp(v);
    });
  });
  nb::class_<Stream>(module, "Stream")
      .def(nb::init<uint64_t>())
      .def("integers",
           [](Stream& stream, int64_t n, int64_t bound) {
             if (bound < 1) throw std::invalid_argument("the bound must be at least 1");
             return column<int64_t>(n, [&](size_t) {
               return static_cast<int64_t>(stream.below(static_cast<uint64_t>(bound)));
             });
           })
      .def("uniform",
           [](Stream& stream, int64_t n) {
             return column<double>(n, [&](size_t) { return stream.uniform(); });
           })
      .def("normal",
           [](Stream& stream, int64_t n) {
             return column<double>(n, [&](size_t) { return stream.normal(); });
           })
      .def("exponential",
           [](Stream& stream, int64_t n) {
             return column<double>(n, [&](size_t) { return stream.exponential(); });
           })
      .def("lognormal", &lognormal)
      .def("permutation", &permutation);
}
