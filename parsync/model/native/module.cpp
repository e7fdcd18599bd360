// The Python module parsync.model._native: access to the slot simulator. Columns of all bins leave
// as one flat array each; their shapes are those of measurements.hpp.
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <functional>
#include <string>
#include <utility>

#include "shared_state/native/column.hpp"
#include "slot_simulator.hpp"

namespace nb = nanobind;
using agora::bound_names;
using agora::NewArray;
using namespace agora::slots;

namespace {

// An enum as its number.
template <class Class, class Enum, size_t names>
void bind_choice(nb::class_<Class>& bound, const char* name, Enum Class::* field,
                 const std::array<const char*, names>&) {
  bound.def_prop_rw(
      name, [field](const Class& of) { return static_cast<int>(of.*field); },
      [field, name](Class& of, int value) {
        if (value < 0 || value >= static_cast<int>(names))
          throw nb::value_error((std::string(name) + ": no such choice").c_str());
        of.*field = static_cast<Enum>(value);
      });
}

void bind_settings(nb::module_& module) {
  nb::class_<GroupSettings> group(module, "GroupSettings", "See slot_settings.hpp.");
  group.def(nb::init<>())
      .def_rw("schedulers", &GroupSettings::schedulers)
      .def_rw("batch_tasks", &GroupSettings::batch_tasks)
      .def_rw("decision_ns", &GroupSettings::decision_ns)
      .def_rw("tau_ns", &GroupSettings::tau_ns)
      .def_rw("average_permille", &GroupSettings::average_permille);
  bind_choice(group, "strategy", &GroupSettings::strategy, kStrategyNames);
  nb::class_<PhaseSettings>(module, "PhaseSettings", "See slot_settings.hpp.")
      .def(nb::init<>())
      .def_rw("duration_ns", &PhaseSettings::duration_ns)
      .def_rw("rate_per_ks", &PhaseSettings::rate_per_ks);
  nb::class_<SlotSettings> settings(module, "SlotSettings", "See slot_settings.hpp.");
  settings.def(nb::init<>())
      .def_rw("slots", &SlotSettings::slots)
      .def_rw("partitions", &SlotSettings::partitions)
      .def_rw("score_variance", &SlotSettings::score_variance)
      .def_rw("task_ns", &SlotSettings::task_ns)
      .def_rw("groups", &SlotSettings::groups)
      .def_rw("phases", &SlotSettings::phases)
      .def_rw("gap_ns", &SlotSettings::gap_ns)
      .def_rw("cut_at_sync", &SlotSettings::cut_at_sync)
      .def_rw("freed_at_once", &SlotSettings::freed_at_once)
      .def_rw("commit_pipelining", &SlotSettings::commit_pipelining)
      .def_rw("requeue_ns", &SlotSettings::requeue_ns)
      .def_rw("scan_permille", &SlotSettings::scan_permille)
      .def_rw("latency_ns", &SlotSettings::latency_ns)
      .def_rw("service_ns", &SlotSettings::service_ns)
      .def_rw("seed", &SlotSettings::seed)
      .def_rw("horizon_ns", &SlotSettings::horizon_ns)
      .def_rw("bin_ns", &SlotSettings::bin_ns)
      .def_rw("gap_slices", &SlotSettings::gap_slices)
      .def_rw("growing_bins", &SlotSettings::growing_bins)
      .def_rw("finish_by_ns", &SlotSettings::finish_by_ns);
  bind_choice(settings, "weighting", &SlotSettings::weighting, kSlotWeightingNames);
  bind_choice(settings, "quality", &SlotSettings::quality, kPartitionQualityNames);
  bind_choice(settings, "sync", &SlotSettings::sync, kSyncModeNames);
  bind_choice(settings, "losers", &SlotSettings::losers, kLoserPolicyNames);
}

// A number of each bin.
template <class Value>
nb::object column(const SlotSimulator& simulator, Value value) {
  const std::vector<Bin>& bins = simulator.measurements().bins();
  NewArray<int64_t> array(bins.size());
  std::transform(bins.begin(), bins.end(), array.data(), value);
  return array.object();
}

// A number of each element of a list that every bin has.
template <class Element, class Value>
nb::object column(const SlotSimulator& simulator, std::vector<Element> Bin::* list, Value value) {
  const std::vector<Bin>& bins = simulator.measurements().bins();
  size_t elements = 0;
  for (const Bin& bin : bins) elements += (bin.*list).size();
  NewArray<int64_t> array(elements);
  int64_t* next = array.data();
  for (const Bin& bin : bins)
    for (const Element& element : bin.*list) *next++ = std::invoke(value, element);
  return array.object();
}

constexpr std::array<std::pair<const char*, int64_t ConflictCauses::*>, 4> kCauseColumns{
    {{"same_tick_conflicts", &ConflictCauses::same_tick},
     {"quality_conflicts", &ConflictCauses::quality},
     {"stale_conflicts", &ConflictCauses::stale},
     {"visible_conflicts", &ConflictCauses::visible}}};

nb::dict columns(const SlotSimulator& of) {
  nb::dict all;
  all["end_ns"] = column(of, [](const Bin& bin) { return bin.end_ns; });
  all["busy_ns"] = column(of, [](const Bin& bin) { return bin.cell.busy_ns; });
  all["busy"] = column(of, [](const Bin& bin) { return bin.cell.busy; });
  all["idle"] = column(of, [](const Bin& bin) { return bin.cell.idle; });
  all["in_use_score_ms"] = column(of, [](const Bin& bin) { return bin.cell.score_ms; });
  all["best_score_ms"] = column(of, [](const Bin& bin) { return bin.cell.best_score_ms; });
  all["backlog"] = column(of, &Bin::backlog, [](int64_t tasks) { return tasks; });
  all["arrived"] = column(of, &Bin::groups, &GroupCounts::arrived);
  all["transactions"] = column(of, &Bin::groups, &GroupCounts::transactions);
  all["claims"] = column(of, &Bin::groups, &GroupCounts::claims);
  all["conflicts"] = column(of, &Bin::groups, &GroupCounts::conflicts);
  for (const auto& [name, cause] : kCauseColumns)
    all[name] = column(of, &Bin::groups,
                       [cause](const GroupCounts& counts) { return counts.causes.*cause; });
  all["commits"] = column(of, &Bin::groups, &GroupCounts::commits);
  all["delay_ns"] = column(of, &Bin::groups, &GroupCounts::delay_ns);
  all["conflict_delay_ns"] = column(of, &Bin::groups, &GroupCounts::conflict_delay_ns);
  all["score_steps"] = column(of, &Bin::groups, &GroupCounts::score);
  all["slice_claims"] = column(of, &Bin::slices, &SliceCounts::claims);
  all["slice_conflicts"] = column(of, &Bin::slices, &SliceCounts::conflicts);
  all["slice_commits"] = column(of, &Bin::slices, &SliceCounts::commits);
  all["slice_conflict_delay_ns"] = column(of, &Bin::slices, &SliceCounts::conflict_delay_ns);
  return all;
}

// One row per bin and group, up to the largest bucket in use.
nb::object histograms(const SlotSimulator& simulator, std::vector<Histogram> Bin::* list) {
  size_t rows = 0, width = 1;
  for (const Bin& bin : simulator.measurements().bins())
    for (const Histogram& histogram : bin.*list) {
      ++rows;
      width = std::max(width, histogram.counts().size());
    }
  NewArray<uint32_t> array(rows, width);
  std::fill(array.span().begin(), array.span().end(), 0);
  uint32_t* row = array.data();
  for (const Bin& bin : simulator.measurements().bins())
    for (const Histogram& histogram : bin.*list) {
      std::copy(histogram.counts().begin(), histogram.counts().end(), row);
      row += width;
    }
  return array.object();
}

void bind_simulator(nb::module_& module) {
  nb::class_<SlotSimulator>(module, "SlotSimulator", "See slot_simulator.hpp.")
      .def(
          "__init__",
          [](SlotSimulator* self, const SlotSettings& settings) {
            if (const Refusal refusal = check(settings); refusal.refused())
              throw nb::value_error((refusal.field + ": " + refusal.reason).c_str());
            const nb::gil_scoped_release release;
            new (self) SlotSimulator(settings);
          },
          nb::arg("settings"))
      .def(
          "run", [](SlotSimulator& of, int64_t steps) { return static_cast<int>(of.run(steps)); },
          nb::arg("steps"), nb::call_guard<nb::gil_scoped_release>(),
          "Go on for about so many decisions and events; the Ending.")
      .def("columns", &columns)
      .def("delay_histograms", [](const SlotSimulator& of) { return histograms(of, &Bin::delay); })
      .def("conflict_delay_histograms",
           [](const SlotSimulator& of) { return histograms(of, &Bin::conflict_delay); })
      .def("score_histograms", [](const SlotSimulator& of) { return histograms(of, &Bin::score); })
      .def_prop_ro("ending", [](const SlotSimulator& of) { return static_cast<int>(of.ending()); })
      .def_prop_ro("decisions", &SlotSimulator::decisions)
      .def_prop_ro("events", &SlotSimulator::events)
      .def_prop_ro("last_commit_ns", &SlotSimulator::last_commit_ns)
      .def_prop_ro("lowest_score", [](const SlotSimulator& of) { return of.table().lowest_score; })
      .def_prop_ro("score_step", [](const SlotSimulator& of) { return of.table().score_step; });
}

}  // namespace

NB_MODULE(_native, module) {
  bind_settings(module);
  bind_simulator(module);
  module.def(
      "check",
      [](const SlotSettings& settings) {
        const Refusal refusal = check(settings);
        return std::pair(refusal.field, refusal.reason);
      },
      nb::arg("settings"), "The field that is wrong, and how; two empty strings: nothing is.");
  module.def(
      "sync_event",
      [](const SlotSettings& settings, int64_t event, int64_t scheduler) {
        const SyncTimes times(settings);
        const SyncTimes::Range range = times.partitions(event, scheduler);
        return nb::make_tuple(times.due_ns(event), range.first, range.end);
      },
      nb::arg("settings"), nb::arg("event"), nb::arg("scheduler"),
      "When a sync event is due in ns, and the first partition a scheduler refreshes then, and the "
      "first after those; see scheduler.hpp.");
  module.attr("STRATEGY_NAMES") = bound_names(kStrategyNames);
  module.attr("SYNC_MODE_NAMES") = bound_names(kSyncModeNames);
  module.attr("SLOT_WEIGHTING_NAMES") = bound_names(kSlotWeightingNames);
  module.attr("PARTITION_QUALITY_NAMES") = bound_names(kPartitionQualityNames);
  module.attr("LOSER_POLICY_NAMES") = bound_names(kLoserPolicyNames);
  module.attr("ENDING_NAMES") = bound_names(kEndingNames);
  module.attr("DELAY_BUCKETS") = kDelayBuckets;
  module.attr("SCORE_BUCKETS") = kScoreBuckets;
}
