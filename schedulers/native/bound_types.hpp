// Catalogs, planners and decision clocks as Python holds them: with the arrays they borrow. Also
// what native code outside this package takes them as.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

#include "contract.hpp"
#include "placer.hpp"
#include "objective.hpp"
#include "shared_state/native/column.hpp"

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

template <typename T>
using InRows =
    nanobind::ndarray<const T, nanobind::ndim<2>, nanobind::c_contig, nanobind::device::cpu>;
template <typename T, int kDimensions>
using InAnyOrder = nanobind::ndarray<const T, nanobind::ndim<kDimensions>, nanobind::device::cpu>;

// An argument of a native function as Python passes it: an array for a span, any other as it is.
template <typename T>
struct Passed {
  using Given = T;
  Passed(T given, const char*) : value(given) {}
  T get() const { return value; }
  T value;
};
template <typename T>
struct Passed<std::span<T>> {
  using Given = nanobind::handle;
  Passed(nanobind::handle array, const char* name) : column(array, name, length_of(array, name)) {}
  std::span<T> get() const { return column.span(); }
  Column<T> column;
};

template <typename T>
T returned(T value) {
  return value;
}
template <typename T>
nanobind::object returned(const std::vector<T>& column) {
  return array_of(column);
}
// Columns of a native result, as a tuple of arrays.
template <typename... T>
nanobind::tuple arrays(const std::vector<T>&... column) {
  return nanobind::make_tuple(array_of(column)...);
}

// A native function of columns, as Python calls it: with an array of the right type and any layout
// for each span, and arrays for the vectors that it returns. names: of its arguments, for messages.
template <typename R, typename... A>
auto with_arrays(R (*function)(A...), std::array<const char*, sizeof...(A)> names) {
  return [=](typename Passed<A>::Given... given) {
    return [&]<size_t... I>(std::index_sequence<I...>) {
      return returned(function(Passed<A>(given, names[I]).get()...));
    }(std::index_sequence_for<A...>());
  };
}
template <class Self, typename R, typename... A>
auto method_with_arrays(auto method, std::array<const char*, sizeof...(A)> names) {
  return [=](Self& self, typename Passed<A>::Given... given) {
    return [&]<size_t... I>(std::index_sequence<I...>) {
      if constexpr (std::is_void_v<R>)
        (self.*method)(Passed<A>(given, names[I]).get()...);
      else
        return returned((self.*method)(Passed<A>(given, names[I]).get()...));
    }(std::index_sequence_for<A...>());
  };
}
template <class Self, typename R, typename... A>
auto with_arrays(R (Self::*method)(A...), std::array<const char*, sizeof...(A)> names) {
  return method_with_arrays<Self, R, A...>(method, names);
}
template <class Self, typename R, typename... A>
auto with_arrays(R (Self::*method)(A...) const, std::array<const char*, sizeof...(A)> names) {
  return method_with_arrays<const Self, R, A...>(method, names);
}

inline PartitionRanking ranking_of(int ranking) {
  if (ranking < 0 || ranking > static_cast<int>(kRankingNames.size()) - 1)
    throw std::invalid_argument("unknown ranking");
  return static_cast<PartitionRanking>(ranking);
}

inline PartitionQuality quality_of(int quality) {
  if (quality < 0 || quality > static_cast<int>(kQualityNames.size()) - 1)
    throw std::invalid_argument("unknown quality");
  return static_cast<PartitionQuality>(quality);
}

inline PlacementKind kind_of(int kind) {
  if (kind < 0 || kind > static_cast<int>(PlacementKind::WeightedSampling))
    throw std::invalid_argument("unknown placement kind");
  return static_cast<PlacementKind>(kind);
}

// The rows of a scheduler's view by price, with the catalog.
struct BoundPricedRows {
  BoundPricedRows(nanobind::object of, bool paid, int64_t weight_permille, bool elsewhere_only)
      : catalog(std::move(of)),
        rows(nanobind::cast<const BoundCatalog&>(catalog).catalog,
             {paid, weight_permille, elsewhere_only}) {}
  void set_prices(const InRows<int64_t>& price, const In<int64_t>& slots, const In<int64_t>& unit) {
    rows.set_prices(std::make_shared<SlotPrices>(std::span(price.data(), price.size()),
                                                 price.shape(1), span_of(slots), span_of(unit)));
  }
  const nanobind::object catalog;
  PricedRows rows;
};

// The columns of the task table that placing reads.
struct BoundTaskColumns {
  BoundTaskColumns(InAnyOrder<int64_t, 2> request, InAnyOrder<int32_t, 1> preference,
                   InAnyOrder<int64_t, 1> gang)
      : request(std::move(request)), preference(std::move(preference)), gang(std::move(gang)) {
    if (this->request.shape(0) != tasks() || this->gang.shape(0) != tasks())
      throw std::invalid_argument("task table: expected columns of one length");
  }

  size_t tasks() const { return preference.shape(0); }
  PlacingColumns columns() const {
    return {tasks(),           request.shape(1),  request.data(),       request.stride(0),
            request.stride(1), preference.data(), preference.stride(0), gang.data(),
            gang.stride(0)};
  }

  const InAnyOrder<int64_t, 2> request;
  const InAnyOrder<int32_t, 1> preference;
  const InAnyOrder<int64_t, 1> gang;
};

// A planner with what it borrows.
class BoundTaskPlanner {
 public:
  explicit BoundTaskPlanner(const BoundTaskColumns& table) : table(table) {}
  virtual ~BoundTaskPlanner() = default;
  BoundTaskPlanner(const BoundTaskPlanner&) = delete;
  BoundTaskPlanner& operator=(const BoundTaskPlanner&) = delete;

  virtual TaskPlanner& planner() = 0;

  const BoundTaskColumns table;
};

// The columns of schedulers.unplaceable.UnplaceableUnits.
struct BoundUnplaceableUnits {
  BoundUnplaceableUnits(In<int64_t> task_us, In<int64_t> gang_us, In<int64_t> gang,
                        In<int64_t> gang_size)
      : task_us(std::move(task_us)),
        gang_us(std::move(gang_us)),
        gang(std::move(gang)),
        gang_size(std::move(gang_size)),
        units{span_of(this->task_us), span_of(this->gang_us), span_of(this->gang),
              span_of(this->gang_size)} {
    check_lengths(units);
  }
  const In<int64_t> task_us, gang_us, gang, gang_size;
  const UnplaceableUnits units;
};

struct BoundDecisionClock {
  DecisionClock clock;
};

// A plan as Python takes it, (task int64[k], machine int32[k], request int64[k, R], gang int64[k],
// synced_us int64[k], pending int64[p], pending_reason int8[p], ticket, operations,
// partitions_scanned). If it claims all tasks, `task` is the array given, and the pending ones are
// None.
inline nanobind::tuple arrays_of(const ClaimedPlan& plan, size_t dimensions,
                                 nanobind::handle task) {
  const bool in_full = plan.in_full();
  return nanobind::make_tuple(in_full ? nanobind::borrow(task) : array_of(plan.task),
                              array_of(plan.machine), array_of(plan.request, dimensions),
                              array_of(plan.gang), array_of(plan.synced_us),
                              in_full ? nanobind::none() : array_of(plan.pending),
                              in_full ? nanobind::none() : array_of(plan.pending_reason),
                              plan.ticket, plan.operations, plan.partitions_scanned);
}

}  // namespace agora
