// A catalog as Python holds it: with the arrays it borrows.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <span>
#include <utility>

#include "catalog.hpp"

namespace agora {

template <typename T>
using In = nanobind::ndarray<const T, nanobind::ndim<1>, nanobind::c_contig, nanobind::device::cpu>;

template <typename T>
std::span<const T> span_of(const In<T>& column) {
  return {column.data(), column.size()};
}

// The arrays of a PreferenceCatalog and the racks of a cell, kept alive.
struct CatalogColumns {
  In<int64_t> machine_offsets;
  In<int32_t> machine;
  In<int64_t> machine_cost;
  In<int64_t> rack_offsets;
  In<int32_t> rack;
  In<int64_t> rack_cost;
  In<int64_t> elsewhere_cost;
  In<int64_t> unscheduled_cost;
  In<int32_t> rack_of;

  PreferenceColumns spans() const {
    return {span_of(machine_offsets),
            span_of(machine),
            span_of(machine_cost),
            span_of(rack_offsets),
            span_of(rack),
            span_of(rack_cost),
            span_of(elsewhere_cost),
            span_of(unscheduled_cost),
            span_of(rack_of)};
  }
};

struct BoundCatalog {
  explicit BoundCatalog(CatalogColumns arrays)
      : columns(std::move(arrays)), catalog(columns.spans()) {}
  const CatalogColumns columns;
  const Catalog catalog;
};

}  // namespace agora
