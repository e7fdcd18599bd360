// Python's access to synchronisation: the built-in sync policies, and the schedule of an agent.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "bound_parts.hpp"
#include "optimistic_events.hpp"
#include "parsync/core/native/bound_participant.hpp"
#include "shared_state/native/column.hpp"
#include "sync_policies.hpp"
#include "sync_schedule.hpp"

namespace nb = nanobind;

namespace {

using agora::BoundValue;
using agora::Column;
using agora::Effects;
using agora::length_of;
using agora::SyncContext;
using agora::SyncPolicy;

// A SyncContext of policy.py.
SyncContext context_from(nb::handle context) {
  const auto number = [&](const char* field) {
    return BoundValue<int64_t>::from(context.attr(field), field);
  };
  return {number("gap_us"), number("partitions"), number("index"), number("agents")};
}

// An agent's schedule with its policy.
class BoundSyncSchedule {
 public:
  BoundSyncSchedule(nb::object policy, size_t partitions)
      : policy_(std::move(policy)),
        native_(agora::sync_policy_from(policy_)),
        schedule_(*native_, partitions) {}

  agora::SyncSchedule& schedule() { return schedule_; }

  nb::object start(int64_t now_us) {
    Effects effects;
    schedule_.start(now_us, effects);
    return next(effects);
  }

  nb::tuple on_due(int64_t now_us, int64_t k, int64_t delay_us, int64_t queued,
                   const nb::object& load) {
    Effects effects;
    const auto used_permille = [&] {
      const nb::object array = load();
      const Column<const int64_t> used(array, "load", length_of(array, "load"));
      return std::vector<int64_t>(used.span().begin(), used.span().end());
    };
    const agora::SharedColumn<int32_t> partitions =
        schedule_.on_due(now_us, k, delay_us, queued, used_permille, effects);
    return nb::make_tuple(agora::array_of(partitions), next(effects));
  }

  void on_committed(nb::handle partition, nb::handle conflict) {
    const Column<const int32_t> of(partition, "partition", length_of(partition, "partition"));
    const Column<const bool> rejected(conflict, "conflict", length_of(conflict, "conflict"));
    schedule_.on_committed(of.span(),
                           {reinterpret_cast<const uint8_t*>(rejected.data()), rejected.size()});
  }

 private:
  // When the next synchronisation is due, and its number; None: there are no more.
  static nb::object next(Effects& effects) {
    if (effects.list().empty()) return nb::none();
    const auto& timer = std::get<agora::SetTimer>(effects.list().front());
    return nb::make_tuple(timer.at_us, agora::as<agora::optimistic::SyncDue>(timer.event).k);
  }

  const nb::object policy_;
  const std::shared_ptr<SyncPolicy> native_;
  agora::SyncSchedule schedule_;
};

// The memory of the schedule itself.
nb::object rows_changed(nb::handle self) {
  const std::span<int64_t> rows = nb::cast<BoundSyncSchedule&>(self).schedule().rows_changed();
  return nb::cast(nb::ndarray<nb::numpy, int64_t, nb::ndim<1>>(rows.data(), {rows.size()}, self));
}

void bind_policies(nb::module_& module) {
  nb::class_<SyncPolicy>(module, "SyncPolicy",
                         "A native SyncPolicy (parsync/protocols/optimistic/sync/policy.py).")
      .def_prop_ro("at_every_attempt", &SyncPolicy::at_every_attempt)
      .def_prop_ro("retry_us", &SyncPolicy::retry_us)
      .def_prop_ro("wants_feedback", &SyncPolicy::wants_feedback)
      .def("due_us", &SyncPolicy::due_us, nb::arg("k"))
      .def(
          "partitions",
          [](SyncPolicy& self, int64_t k) { return agora::array_of(self.partitions(k)); },
          nb::arg("k"))
      .def("latest", &SyncPolicy::latest, nb::arg("now_us"))
      .def("observe", [](SyncPolicy&, nb::handle) {}, nb::arg("feedback"), "Ignores it.");
  nb::class_<agora::StateSync, SyncPolicy>(module, "StateSync", nb::is_final())
      .def(
          "__init__",
          [](agora::StateSync* self, nb::handle context, bool staggered) {
            new (self) agora::StateSync(context_from(context), staggered);
          },
          nb::arg("context"), nb::arg("staggered"));
  nb::class_<agora::BlockSync, SyncPolicy>(module, "BlockSync", nb::is_final())
      .def(
          "__init__",
          [](agora::BlockSync* self, nb::handle context, bool same_block) {
            new (self) agora::BlockSync(context_from(context), same_block);
          },
          nb::arg("context"), nb::arg("same_block"));
  nb::class_<agora::SinglePartitionSync, SyncPolicy>(module, "SinglePartitionSync", nb::is_final())
      .def(
          "__init__",
          [](agora::SinglePartitionSync* self, nb::handle context) {
            new (self) agora::SinglePartitionSync(context_from(context));
          },
          nb::arg("context"));
  nb::class_<agora::EveryAttemptSync, SyncPolicy>(module, "EveryAttemptSync", nb::is_final())
      .def(
          "__init__",
          [](agora::EveryAttemptSync* self, nb::handle context) {
            new (self) agora::EveryAttemptSync(context_from(context));
          },
          nb::arg("context"));
}

}  // namespace

void bind_sync(nb::module_& module) {
  bind_policies(module);
  nb::class_<BoundSyncSchedule>(module, "SyncSchedule")
      .def(nb::init<nb::object, size_t>(), nb::arg("policy"), nb::arg("partitions"))
      .def("start", &BoundSyncSchedule::start, nb::arg("now_us"))
      .def("on_due", &BoundSyncSchedule::on_due, nb::arg("now_us"), nb::arg("k"),
           nb::arg("delay_us"), nb::arg("queued"), nb::arg("load"))
      .def("on_committed", &BoundSyncSchedule::on_committed, nb::arg("partition"),
           nb::arg("conflict"))
      .def_prop_ro("next_us", [](BoundSyncSchedule& self) { return self.schedule().next_us(); })
      .def_prop_ro("rows_changed", &rows_changed);
}
