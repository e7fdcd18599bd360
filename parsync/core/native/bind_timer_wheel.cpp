#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "timer_wheel.hpp"

namespace nb = nanobind;
using agora::TimerWheel;
template <typename T>
using Column = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <typename T, typename Get>
static nb::ndarray<nb::numpy, T, nb::ndim<1>> column(const std::vector<TimerWheel::Entry>& entries, Get get) {
  T* data = new T[entries.size()];
  for (size_t i = 0; i < entries.size(); ++i) data[i] = get(entries[i]);
  nb::capsule owner(data, [](void* p) noexcept { delete[] static_cast<T*>(p); });
  return nb::ndarray<nb::numpy, T, nb::ndim<1>>(data, {entries.size()}, owner);
}

void bind_timer_wheel(nb::module_& m) {
  nb::class_<TimerWheel>(m, "TimerWheel", "Pending task ends by tick; see timer_wheel.hpp.")
      .def(nb::init<int64_t>(), nb::arg("tick_us"))
      .def("__len__", &TimerWheel::size)
      .def("add",
           [](TimerWheel& wheel, Column<int64_t> end_us, Column<int64_t> id, Column<int32_t> owner) {
             if (id.shape(0) != end_us.shape(0) || owner.shape(0) != end_us.shape(0))
               throw std::invalid_argument("end_us, id and owner differ in length");
             for (size_t i = 0; i < end_us.shape(0); ++i) wheel.add(end_us(i), id(i), owner(i));
           },
           nb::arg("end_us"), nb::arg("id"), nb::arg("owner"))
      .def("cancel",
           [](TimerWheel& wheel, Column<int64_t> id) {
             for (size_t i = 0; i < id.shape(0); ++i) wheel.cancel(id(i));
           },
           nb::arg("id"))
      .def("take",
           [](TimerWheel& wheel, int64_t now_us) {
             const auto taken = wheel.take(now_us);
             return nb::make_tuple(column<int64_t>(taken, [](const auto& e) { return e.end_us; }),
                                   column<int64_t>(taken, [](const auto& e) { return e.id; }),
                                   column<int32_t>(taken, [](const auto& e) { return e.owner; }));
           },
           nb::arg("now_us"), "Returns (end_us int64[n], id int64[n], owner int32[n]) of all entries due by now_us.")
      .def("next_us", &TimerWheel::next_us, "Time of the earliest occupied tick, -1 if empty.");
}
