#include "arrivals.hpp"

#include <algorithm>
#include <utility>

#include "event.hpp"

namespace agora {

namespace {

constexpr size_t kFlushBatches = 64;  // submissions are recorded in bundles of about this many

}  // namespace

ArrivalSource::ArrivalSource(ArrivalBatches batches, MachineChanges changes, Measurements& records)
    : batches_(std::move(batches)),
      changes_(std::move(changes)),
      records_(records),
      submissions_(records.rows("submissions")) {
  const size_t count = batches_.at_us.size();
  check_rows("arrivals", count, batches_.agent, batches_.job, batches_.prefers);
  check_rows("machine changes", changes_.at_us.size(), changes_.machine, changes_.up);
  const auto& offsets = batches_.offsets;
  if (offsets.size() != count + 1 || offsets[0] < 0 ||
      !std::is_sorted(offsets.begin(), offsets.end()) ||
      offsets[count] > static_cast<int64_t>(batches_.rows.size()))
    throw std::invalid_argument("arrivals: expected ascending offsets of the batches' rows");
}

void ArrivalSource::handle(int64_t now_us, const EventPtr& event, Effects& effects) {
  switch (event->key()) {
    case ArrivalsDue::kType.key():
      return submit(now_us, effects);
    case MachinesDue::kType.key():
      return change_machines(now_us, effects);
    case Started::kType.key():
      arm_arrivals(effects);
      return arm_machines(effects);
  }
  throw WrongEvent{"arrival source", event};
}

void ArrivalSource::submit(int64_t now_us, Effects& effects) {
  const size_t first = next_batch_;
  while (!exhausted() && batches_.at_us[next_batch_] <= now_us) ++next_batch_;
  if (next_batch_ == first) return arm_arrivals(effects);
  for (size_t b = first; b < next_batch_; ++b) {
    const int64_t from = batches_.offsets[b], to = batches_.offsets[b + 1];
    submissions_.add(
        {batches_.agent[b], batches_.job[b], batches_.at_us[b], to - from, batches_.prefers[b]});
    TasksSubmitted submitted;
    submitted.task = batches_.rows.slice(static_cast<size_t>(from), static_cast<size_t>(to));
    effects.send(batches_.agent[b], std::move(submitted));
  }
  if (first / kFlushBatches != next_batch_ / kFlushBatches) effects.hand_out();
  arm_arrivals(effects);
}

void ArrivalSource::change_machines(int64_t now_us, Effects& effects) {
  const size_t first = next_change_;
  const auto after = std::upper_bound(changes_.at_us.begin(), changes_.at_us.end(), now_us);
  next_change_ = std::max(first, static_cast<size_t>(after - changes_.at_us.begin()));
  if (next_change_ > first) {
    MachinesChanged changed;
    changed.machine = changes_.machine.slice(first, next_change_);
    changed.up = changes_.up.slice(first, next_change_);
    effects.send(kMaster, std::move(changed));
  }
  arm_machines(effects);
}

void ArrivalSource::arm_arrivals(Effects& effects) const {
  if (exhausted()) return;
  ArrivalsDue due;
  due.batch = static_cast<int64_t>(next_batch_);
  effects.set_timer(batches_.at_us[next_batch_], due);
}

void ArrivalSource::arm_machines(Effects& effects) const {
  if (next_change_ >= changes_.at_us.size()) return;
  MachinesDue due;
  due.row = static_cast<int64_t>(next_change_);
  effects.set_timer(changes_.at_us[next_change_], due);
}

}  // namespace agora
