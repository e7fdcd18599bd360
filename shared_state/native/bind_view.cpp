// Python's access to StaticCellState and ClusterView, and to fits_in() (shared_state.tasks.fits).
// The arrays handed out are read-only windows on the view's memory.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/shared_ptr.h>

#include <memory>
#include <stdexcept>
#include <vector>

#include "column.hpp"
#include "free_amounts.hpp"
#include "transaction.hpp"
#include "view.hpp"

namespace nb = nanobind;

namespace {

using agora::ClusterView;
using agora::StaticCellState;

template <typename T>
using In = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <typename T>
using InRows = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <typename T>
using Out = nb::ndarray<nb::numpy, const T>;

template <typename T>
std::span<const T> span_of(const In<T>& column) {
  return {column.data(), column.size()};
}

template <typename T>
std::vector<T> copy_of(const T* data, size_t size) {
  return size > 0 ? std::vector<T>(data, data + size) : std::vector<T>{};
}

void make_static_state(StaticCellState* self, const InRows<int64_t>& limit,
                       const In<int64_t>& score, const In<int64_t>& offsets) {
  new (self)
      StaticCellState(limit.shape(1), copy_of(limit.data(), limit.size()),
                      copy_of(score.data(), score.size()), copy_of(offsets.data(), offsets.size()));
}

void apply(ClusterView& view, const agora::PartitionDelta& delta) {
  nb::gil_scoped_release release;
  view.apply(delta);
}

void check_requests(const ClusterView& view, const In<int32_t>& machine,
                    const InRows<int64_t>& request) {
  if (request.shape(0) != machine.size() || request.shape(1) != view.static_state().dimensions())
    throw std::invalid_argument("request: expected a row per machine and a column per dimension");
}

int64_t first_oversubscribed(ClusterView& view, nb::handle machine, nb::handle request,
                             nb::handle freed, nb::handle amount) {
  using agora::Column;
  const size_t dimensions = view.static_state().dimensions();
  const Column<const int32_t> claimed(machine, "machine", agora::length_of(machine, "machine"));
  const Column<const int64_t> asked(request, "request", claimed.size(), dimensions);
  if (freed.is_none()) return view.first_oversubscribed(claimed.span(), asked.data(), {}, nullptr);
  const Column<const int32_t> rows(freed, "freed", agora::length_of(freed, "freed"));
  const Column<const int64_t> given(amount, "amount", rows.size(), dimensions);
  for (const int32_t row : rows.span())
    if (row < 0 || static_cast<size_t>(row) >= view.static_state().machines())
      throw std::invalid_argument("freed: there is no such machine");
  return view.first_oversubscribed(claimed.span(), asked.data(), rows.span(), given.data());
}

constexpr const char* first_oversubscribed_doc =
    "Which of k claims is the first that does not fit `free` beside those before it, or names no\n"
    "machine that is up; -1 if all fit. Changes nothing.\n\n"
    "machine: int32[k]; request: int64[k, R]. freed: int32[e], machines where amount int64[e, R] "
    "is\n"
    "taken to be free, too (evictions). ValueError for arrays of other dtypes or shapes.";

void fit_empty_machines(const StaticCellState& static_state, nb::handle request, nb::handle fits) {
  using agora::Column;
  const Column<bool> out(fits, "fits", agora::length_of(fits, "fits"));
  const size_t dimensions = static_state.dimensions();
  const Column<const int64_t> asked(request, "request", out.size(), dimensions);
  for (size_t i = 0; i < out.size(); ++i)
    out.data()[i] = static_state.fits_some_machine(asked.data() + i * dimensions);
}

template <typename T>
Out<T> window(nb::handle owner, std::span<const T> data) {
  return Out<T>(data.data(), {data.size()}, owner);
}

}  // namespace

void bind_view(nb::module_& module) {
  nb::class_<StaticCellState>(module, "StaticCellState")
      .def("__init__", &make_static_state)
      .def("fit_empty_machines", &fit_empty_machines);
  nb::class_<ClusterView>(module, "ClusterView")
      .def("__init__",
           [](ClusterView* self, std::shared_ptr<StaticCellState> static_state, bool with_seqnum) {
             new (self) ClusterView(std::move(static_state), with_seqnum);
           })
      .def("apply", &apply, nb::arg("delta"))
      .def("claim",
           [](ClusterView& view, const In<int32_t>& machine, const InRows<int64_t>& request) {
             check_requests(view, machine, request);
             return view.claim(span_of(machine), request.data());
           })
      .def("settle",
           [](ClusterView& view, int64_t ticket, const In<int8_t>& reason,
              const In<int64_t>& version) {
             view.settle(ticket, span_of(reason), span_of(version));
           })
      .def("synced_at",
           [](const ClusterView& view, nb::handle machine) {
             using agora::Column;
             const Column<const int32_t> rows(machine, "machine",
                                              agora::length_of(machine, "machine"));
             const agora::IndexLayout& layout = view.static_state().index;
             for (const int32_t row : rows.span())
               if (row < 0 || static_cast<size_t>(row) >= layout.rows())
                 throw std::invalid_argument("machine: there is no such machine");
             const agora::NewArray<int64_t> synced_us(rows.size());
             for (size_t i = 0; i < rows.size(); ++i)
               synced_us.data()[i] = view.synced_us()[layout.partition_of(rows.data()[i])];
             return synced_us.object();
           })
      .def("withdraw", &ClusterView::withdraw)
      .def("released",
           [](ClusterView& view, const In<int32_t>& machine, const InRows<int64_t>& request,
              const In<int64_t>& version) {
             check_requests(view, machine, request);
             view.released(span_of(machine), request.data(), span_of(version));
           })
      .def("reset", &ClusterView::reset)
      .def("first_oversubscribed", &first_oversubscribed, nb::arg("machine"), nb::arg("request"),
           nb::arg("freed").none() = nb::none(), nb::arg("amount").none() = nb::none(),
           first_oversubscribed_doc)
      .def_prop_ro("claims_in_flight", &ClusterView::claims_in_flight)
      .def_prop_ro("free",
                   [](nb::handle_t<ClusterView> self) {
                     ClusterView& view = nb::cast<ClusterView&>(self);
                     return Out<int64_t>(
                         view.all_free().data(),
                         {view.static_state().machines(), view.static_state().dimensions()}, self);
                   })
      .def_prop_ro("up",
                   [](nb::handle_t<ClusterView> self) {
                     const std::span<const uint8_t> up = nb::cast<ClusterView&>(self).up();
                     return Out<bool>(reinterpret_cast<const bool*>(up.data()), {up.size()}, self);
                   })
      .def_prop_ro("seqnum",
                   [](nb::handle_t<ClusterView> self) {
                     const std::span<const uint32_t> seqnum =
                         nb::cast<const ClusterView&>(self).seqnum();
                     if (seqnum.empty())
                       throw std::invalid_argument("this view was made without sequence numbers");
                     return window(self, seqnum);
                   })
      .def_prop_ro("synced_us",
                   [](nb::handle_t<ClusterView> self) {
                     return window(self, nb::cast<const ClusterView&>(self).synced_us());
                   })
      .def_prop_ro("versions",
                   [](nb::handle_t<ClusterView> self) {
                     return window(self, nb::cast<const ClusterView&>(self).versions());
                   })
      .def_prop_ro("open_rows", [](const ClusterView& view) { return view.index().count(); });
}

namespace {

using Amounts = agora::Column<const int64_t>;

// Whether one request, int64[R], fits each row of `free`, int64[n, R]: bool[n].
nb::object fits_rows(nb::handle request, nb::handle free) {
  const size_t dimensions = agora::length_of(request, "request");
  const Amounts wanted(request, "request", dimensions);
  const Amounts rows(free, "free", agora::length_of(free, "free"), dimensions);
  const agora::NewArray<bool> fit(rows.size());
  agora::fits_rows(wanted.data(), rows.data(), dimensions, fit.span());
  return fit.object();
}

// Whether each request fits what is free in its row, int64[n, R] both: bool[n].
nb::object fits_each(nb::handle request, nb::handle free, size_t dimensions) {
  const size_t n = agora::length_of(request, "request");
  const Amounts wanted(request, "request", n, dimensions), rows(free, "free", n, dimensions);
  const agora::NewArray<bool> fit(n);
  for (size_t i = 0; i < n; ++i)
    fit.data()[i] =
        agora::fits_in(wanted.data() + i * dimensions, rows.data() + i * dimensions, dimensions);
  return fit.object();
}

}  // namespace

void bind_fit(nb::module_& module) {
  module.def("fits_rows", &fits_rows);
  module.def("fits_each", &fits_each);
}
