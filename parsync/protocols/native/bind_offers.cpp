// Python's access to the protocol of offers: its events, the allocator, and the allocator as a
// participant beside the master. parsync/protocols/offers/ puts them together.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "offer_allocator.hpp"
#include "offers_cell_side.hpp"
#include "offers_events.hpp"
#include "parsync/core/native/bound_participant.hpp"
#include "shared_state/native/bound_fields.hpp"
#include "shared_state/native/cell.hpp"
#include "shared_state/native/column.hpp"

namespace nb = nanobind;

void bind_offers_events(nb::module_& module) {
  using namespace agora::offers;
  nb::dict body;
  body["__slots__"] = nb::tuple();
  body["__module__"] = module.attr("__name__");
  body["kind"] = nb::str(kOffersKind.data(), kOffersKind.size());
  const nb::object base =
      nb::module_::import_("builtins")
          .attr("type")("OffersEvent",
                        nb::make_tuple(nb::module_::import_("parsync.core.event").attr("Event")),
                        body);
  module.attr("OffersEvent") = base;
  const auto bind = [&]<class... Events>() { (agora::bind_event<Events>(module, base), ...); };
  bind.operator()<Subscribe, Suppress, Revive, Offers, OffersAnswered, OffersRescinded, IntervalDue,
                  AllocationDue, ExpiryDue, TasksWanted>();
}

using namespace agora;

namespace {

template <class T = int64_t>
std::vector<T> values_of(nb::handle array, const char* field, size_t length) {
  const Column<const T> column(array, field, length);
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

// candidates: in any order, also repeated. free: of all machines.
nb::tuple allocate(OfferAllocator& self, int64_t now_us, nb::handle candidates, nb::handle free) {
  const size_t width = self.width();
  std::vector<int32_t> machine =
      values_of<int32_t>(candidates, "candidates", length_of(candidates, "candidates"));
  std::ranges::sort(machine);
  const auto repeated = std::ranges::unique(machine);
  machine.erase(repeated.begin(), repeated.end());
  const Column<const int64_t> rows(free, "free", self.machines(), width);
  std::vector<int64_t> free_of;
  for (const int32_t one : machine) {
    if (one < 0 || static_cast<size_t>(one) >= self.machines())
      throw nb::value_error("candidates: there is no such machine");
    const int64_t* const of = rows.data() + static_cast<size_t>(one) * width;
    free_of.insert(free_of.end(), of, of + width);
  }
  const OfferAllocator::Offers& made = self.allocate(now_us, machine, free_of.data(), rows.data());
  return nb::make_tuple(array_of(made.framework), array_of(made.machine),
                        array_of(made.amount, width));
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

class BoundOffersCellSide final : public BoundParticipant {
 public:
  BoundOffersCellSide(const nb::object& records, const nb::object& settings,
                      OfferAllocator& allocator, nb::object cell)
      : BoundParticipant(records),
        cell_(std::move(cell)),
        side_(settings_of(settings), allocator, nb::cast<const Cell&>(cell_),
              nb::cast<Measurements&>(records).rows("offers")) {}

  Participant& core() override { return side_; }
  offers::OffersCellSide& side() { return side_; }

 private:
  static offers::OffersCellSide::Settings settings_of(const nb::object& settings) {
    const auto number = [&](const char* name) {
      return BoundValue<int64_t>::from(settings.attr(name), name);
    };
    const auto is = [&](const char* name) { return nb::cast<bool>(settings.attr(name)); };
    offers::OffersCellSide::Settings made;
    made.address = number("address");
    made.sample_us = number("sample_us");
    made.interval_us = number("interval_us");
    made.allocation_us = number("allocation_us");
    if (!settings.attr("timeout_us").is_none()) made.timeout_us = number("timeout_us");
    made.locks = is("locks");
    made.freed_triggers = is("freed_triggers");
    made.request = BoundValue<SharedTable<int64_t>>::from(settings.attr("request"), "request");
    const nb::object refuse_us = settings.attr("refuse_us");
    made.refuse_us = values_of(refuse_us, "refuse_us", length_of(refuse_us, "refuse_us"));
    made.is_own = BoundValue<SharedColumn<bool>>::from(settings.attr("is_own"), "is_own");
    return made;
  }

  const nb::object cell_;  // keeps it alive
  offers::OffersCellSide side_;
};

using SideState = offers::OffersCellSide::State;

nb::tuple offers_of(const SideState::Offers& of, size_t width) {
  return nb::make_tuple(array_of(of.offer), array_of(of.agent), array_of(of.machine),
                        array_of(of.amount, width), array_of(of.made_us));
}

// A checkpoint's values, in the order of OffersCellSide::State.
nb::tuple state_of_side(BoundOffersCellSide& self) {
  const offers::OffersCellSide& side = self.side();
  const SideState of = side.state();
  return nb::make_tuple(
      array_of(of.epoch), offers_of(of.outstanding, side.width()),
      offers_of(of.asked, side.width()),
      nb::make_tuple(of.last_offer, of.requests, of.is_pending, of.runs, of.counted_us),
      array_of(of.candidates), array_of(of.rivals_use), of.rivals_changed,
      array_of(of.counts, side.agents()));
}

void load_offers(const nb::object& state, SideState::Offers& of, size_t width) {
  const size_t rows = length_of(state[1], "state");
  load(state[0], of.offer, rows);
  load(state[1], of.agent, rows);
  load(state[2], of.machine, rows);
  load(state[3], of.amount, rows, width);
  load(state[4], of.made_us, rows);
}

void restore_side(BoundOffersCellSide& self, const nb::tuple& state) {
  if (state.size() != 8) throw nb::value_error("state: expected 8 values");
  const offers::OffersCellSide& side = self.side();
  SideState of;
  load(state[0], of.epoch, side.agents());
  load_offers(state[1], of.outstanding, side.width());
  load_offers(state[2], of.asked, side.width());
  const nb::object numbers = state[3];
  of.last_offer = BoundValue<int64_t>::from(numbers[0], "state");
  of.requests = BoundValue<int64_t>::from(numbers[1], "state");
  of.is_pending = nb::cast<bool>(numbers[2]);
  of.runs = BoundValue<int64_t>::from(numbers[3], "state");
  of.counted_us = BoundValue<int64_t>::from(numbers[4], "state");
  load(state[4], of.candidates, side.machines());
  load(state[5], of.rivals_use, side.width());
  of.rivals_changed = nb::cast<bool>(state[6]);
  load(state[7], of.counts, offers::OffersCellSide::kCounts, side.agents());
  self.side().restore(of);
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
  nb::class_<BoundOffersCellSide, BoundParticipant>(module, "OffersCellSide",
                                                    "See offers_cell_side.hpp.")
      .def(nb::init<const nb::object&, const nb::object&, Allocator&, nb::object>(),
           nb::arg("records"), nb::arg("settings"), nb::arg("allocator"), nb::arg("cell"),
           nb::keep_alive<1, 4>())
      .def(
          "record", [](BoundOffersCellSide& self, int64_t now_us) { self.side().record(now_us); },
          nb::arg("now_us"))
      .def("state", &state_of_side)
      .def("load_state", &restore_side, nb::arg("state"));
}
