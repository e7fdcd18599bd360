// The parts of the protocol of offers in Python.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "offer_allocator.hpp"
#include "shared_state/native/bound_fields.hpp"
#include "shared_state/native/column.hpp"

namespace nb = nanobind;
using namespace agora;

namespace {

std::vector<int64_t> values_of(nb::handle array, const char* field, size_t length) {
  const Column<const int64_t> column(array, field, length);
  return {column.span().begin(), column.span().end()};
}

std::vector<int64_t> table_of(nb::handle array, const char* field, size_t rows, size_t width) {
  const Column<const int64_t> column(array, field, rows, width);
  return {column.data(), column.data() + rows * width};
}

OfferAllocator make_allocator(uint64_t seed, std::string name, nb::handle capacity,
                              const std::vector<std::string>& role, nb::handle weight_permille,
                              nb::handle guarantee, nb::handle limit, nb::handle smallest,
                              bool random, bool task_sized, int64_t machines_per_turn,
                              std::optional<std::string> rivals_role) {
  OfferAllocator::Settings settings;
  settings.seed = seed;
  settings.name = std::move(name);
  settings.capacity = BoundValue<SharedTable<int64_t>>::from(capacity, "capacity");
  const size_t width = settings.capacity.width(), roles = role.size();
  const std::vector<int64_t> weights = values_of(weight_permille, "weight_permille", roles);
  const std::vector<int64_t> guarantees = table_of(guarantee, "guarantee", roles, width);
  const std::vector<int64_t> limits = table_of(limit, "limit", roles, width);
  for (size_t i = 0; i < roles; ++i) {
    const auto row = [&](const std::vector<int64_t>& table) {
      return std::vector<int64_t>(table.data() + i * width, table.data() + (i + 1) * width);
    };
    settings.roles.push_back({role[i], weights[i], row(guarantees), row(limits)});
  }
  settings.smallest = values_of(smallest, "smallest", width);
  settings.random = random;
  settings.task_sized = task_sized;
  if (machines_per_turn < 1) throw nb::value_error("machines_per_turn: expected 1 or more");
  settings.machines_per_turn = static_cast<size_t>(machines_per_turn);
  settings.rivals_role = std::move(rivals_role);
  return OfferAllocator(std::move(settings));
}

nb::tuple allocate(OfferAllocator& self, int64_t now_us, nb::handle candidates, nb::handle free) {
  const Column<const int32_t> machine(candidates, "candidates",
                                      length_of(candidates, "candidates"));
  const Column<const int64_t> rows(free, "free", self.machines(), self.width());
  const OfferAllocator::Offers& made = self.allocate(now_us, machine.span(), rows.data());
  return nb::make_tuple(array_of(made.framework), array_of(made.machine),
                        array_of(made.amount, self.width()));
}

// A call with rows of frameworks and their amounts.
template <auto method>
void charge(OfferAllocator& self, nb::handle framework, nb::handle amount) {
  const size_t rows = length_of(framework, "framework");
  const Column<const int32_t> of(framework, "framework", rows);
  const Column<const int64_t> amounts(amount, "amount", rows, self.width());
  (self.*method)(of.span(), amounts.data());
}

// A checkpoint's values, in the order of OfferAllocator::State.
nb::tuple state_of(const OfferAllocator& self) {
  const OfferAllocator::State of = self.state();
  const size_t width = self.width();
  return nb::make_tuple(
      of.runs, array_of(of.rivals), array_of(of.up), array_of(of.framework), array_of(of.active),
      array_of(of.suppressed), array_of(of.offers), array_of(of.offered, width),
      array_of(of.allocated, width), array_of(of.wanted_row), array_of(of.wanted, width),
      array_of(of.wanted_tasks), array_of(of.filter_row), array_of(of.filter_machine),
      array_of(of.filter_amount, width), array_of(of.filter_until_us));
}

template <class T>
void load(nb::handle array, std::vector<T>& values, size_t rows, size_t width = 0) {
  const Column<const T> column(array, "state", rows, width);
  values.assign(column.data(), column.data() + rows * (width ? width : 1));
}

void restore(OfferAllocator& self, const nb::tuple& state) {
  if (state.size() != 16) throw nb::value_error("state: expected 16 values");
  OfferAllocator::State of;
  const size_t width = self.width(), rows = length_of(state[3], "state"),
               sizes = length_of(state[9], "state"), filters = length_of(state[12], "state");
  of.runs = BoundValue<int64_t>::from(state[0], "state");
  load(state[1], of.rivals, width);
  load(state[2], of.up, self.machines());
  load(state[3], of.framework, rows);
  load(state[4], of.active, rows);
  load(state[5], of.suppressed, rows);
  load(state[6], of.offers, rows);
  load(state[7], of.offered, rows, width);
  load(state[8], of.allocated, rows, width);
  load(state[9], of.wanted_row, sizes);
  load(state[10], of.wanted, sizes, width);
  load(state[11], of.wanted_tasks, sizes);
  load(state[12], of.filter_row, filters);
  load(state[13], of.filter_machine, filters);
  load(state[14], of.filter_amount, filters, width);
  load(state[15], of.filter_until_us, filters);
  self.restore(of);
}

}  // namespace

void bind_offers(nb::module_& module) {
  using Allocator = OfferAllocator;
  nb::class_<Allocator>(module, "OfferAllocator", "See offer_allocator.hpp.")
      .def(nb::new_(&make_allocator), nb::kw_only(), nb::arg("seed"), nb::arg("name"),
           nb::arg("capacity"), nb::arg("role"), nb::arg("weight_permille"), nb::arg("guarantee"),
           nb::arg("limit"), nb::arg("smallest"), nb::arg("random"), nb::arg("task_sized"),
           nb::arg("machines_per_turn"), nb::arg("rivals_role").none())
      .def("add_framework", &Allocator::add_framework, nb::arg("framework"), nb::arg("name"),
           nb::arg("role"))
      .def("activate", &Allocator::activate, nb::arg("framework"))
      .def("deactivate", &Allocator::deactivate, nb::arg("framework"))
      .def("suppress", &Allocator::suppress, nb::arg("framework"))
      .def("revive", &Allocator::revive, nb::arg("framework"))
      .def(
          "want",
          [](Allocator& self, int32_t framework, nb::handle amount, nb::handle tasks) {
            const size_t sizes = length_of(tasks, "tasks");
            self.want(framework, table_of(amount, "amount", sizes, self.width()),
                      values_of(tasks, "tasks", sizes));
          },
          nb::arg("framework"), nb::arg("amount"), nb::arg("tasks"))
      .def(
          "refuse",
          [](Allocator& self, int32_t framework, nb::handle machine, nb::handle amount,
             int64_t until_us) {
            const size_t rows = length_of(machine, "machine");
            const Column<const int32_t> machines(machine, "machine", rows);
            const Column<const int64_t> amounts(amount, "amount", rows, self.width());
            self.refuse(framework, machines.span(), amounts.data(), until_us);
          },
          nb::arg("framework"), nb::arg("machine"), nb::arg("amount"), nb::arg("until_us"))
      .def("on_offers_ended", &charge<&Allocator::on_offers_ended>, nb::arg("framework"),
           nb::arg("amount"))
      .def("on_allocated", &charge<&Allocator::on_allocated>, nb::arg("framework"),
           nb::arg("amount"))
      .def("on_freed", &charge<&Allocator::on_freed>, nb::arg("framework"), nb::arg("amount"))
      .def(
          "set_rivals_use",
          [](Allocator& self, nb::handle amount) {
            self.set_rivals_use(values_of(amount, "amount", self.width()));
          },
          nb::arg("amount"))
      .def(
          "on_machines_changed",
          [](Allocator& self, nb::handle machine, nb::handle up) {
            const size_t rows = length_of(machine, "machine");
            const Column<const int32_t> machines(machine, "machine", rows);
            self.on_machines_changed(machines.span(), Column<const bool>(up, "up", rows).span());
          },
          nb::arg("machine"), nb::arg("up"))
      .def("allocate", &allocate, nb::arg("now_us"), nb::arg("candidates"), nb::arg("free"))
      .def(
          "offered",
          [](const Allocator& self, int32_t framework) {
            return array_of(self.offered(framework));
          },
          nb::arg("framework"))
      .def(
          "allocated",
          [](const Allocator& self, int32_t framework) {
            return array_of(self.allocated(framework));
          },
          nb::arg("framework"))
      .def("shares",
           [](Allocator& self) {
             return nb::make_tuple(array_of(self.framework_numbers()), array_of(self.shares_ppm()));
           })
      .def_prop_ro("filters", &Allocator::filters)
      .def("state", &state_of)
      .def("restore", &restore, nb::arg("state"));
}
