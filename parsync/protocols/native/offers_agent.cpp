#include "offers_agent.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <memory>
#include <stdexcept>
#include <string>

#include "parsync/core/native/participant.hpp"
#include "round_planner.hpp"

namespace agora::offers {

OfferedRoom::OfferedRoom(ClusterView& view)
    : view_(view),
      width_(view.static_state().dimensions()),
      made_us_(view.static_state().machines()),
      of_machine_(machines() * width_),
      marked_((machines() + 63) / 64) {}

size_t OfferedRoom::row_of(int32_t machine) const {
  if (machine < 0 || static_cast<size_t>(machine) >= machines())
    throw std::invalid_argument("machine " + std::to_string(machine) + ": there is none");
  return static_cast<size_t>(machine);
}

size_t OfferedRoom::partitions() const {
  const StaticCellState& state = view_.static_state();
  std::vector<uint8_t> has_some(state.partitions());
  for (const int32_t machine : machine_) has_some[state.index.partition_of(machine)] = 1;
  return static_cast<size_t>(std::ranges::count(has_some, 1));
}

void OfferedRoom::start(int64_t now_us) {
  if (version_ > 0) return;
  for (size_t row = 0; row < machines(); ++row) mark(static_cast<int32_t>(row));
  show_marked(now_us);
}

void OfferedRoom::add(int64_t now_us, const Offers& event) {
  const size_t count = event.offer.size();
  check_rows("Offers", count, event.machine, event.amount);
  if (event.amount.width() != width_)
    throw std::invalid_argument("Offers: expected an amount of each resource");
  for (const int32_t machine : event.machine) row_of(machine);
  offer_.insert(offer_.end(), event.offer.begin(), event.offer.end());
  machine_.insert(machine_.end(), event.machine.begin(), event.machine.end());
  amount_.insert(amount_.end(), event.amount.data(), event.amount.data() + event.amount.count());
  in_round_.resize(offer_.size());
  rescinded_.resize(offer_.size());
  for (size_t i = 0; i < count; ++i) {
    const size_t row = row_of(event.machine[i]);
    made_us_[row] = event.made_us;
    for (size_t r = 0; r < width_; ++r) of_machine_[row * width_ + r] += event.amount.row(i)[r];
    mark(event.machine[i]);
  }
  show_marked(now_us);
}

void OfferedRoom::begin_round() { std::ranges::fill(in_round_, 1); }

std::vector<uint8_t> OfferedRoom::on_machines_of(std::span<const int32_t> machine) const {
  std::vector<uint64_t> claimed((machines() + 63) / 64);
  for (const int32_t one : machine) claimed[row_of(one) / 64] |= uint64_t{1} << (one % 64);
  std::vector<uint8_t> found(size());
  for (size_t i = 0; i < size(); ++i) {
    const auto row = static_cast<size_t>(machine_[i]);
    found[i] = in_round_[i] & (claimed[row / 64] >> (row % 64) & 1);
  }
  return found;
}

void OfferedRoom::rescind(int64_t now_us, std::span<const int64_t> offer) {
  std::vector<int64_t> ids(offer.begin(), offer.end());
  std::ranges::sort(ids);
  const auto ended = [&](size_t i) {
    return !rescinded_[i] && std::ranges::binary_search(ids, offer_[i]);
  };
  remove(now_us, [&](size_t i) { return !in_round_[i] && ended(i); });
  for (size_t i = 0; i < size(); ++i) {
    if (!ended(i)) continue;
    subtract(i);
    rescinded_[i] = 1;
  }
  show_marked(now_us);
}

void OfferedRoom::end_round(int64_t now_us, std::span<const bool> kept) {
  if (!kept.empty() && kept.size() != size())
    throw std::invalid_argument("kept: expected a value for each offer");
  remove(now_us,
         [&](size_t i) { return in_round_[i] && (kept.empty() || !kept[i] || rescinded_[i]); });
  std::ranges::fill(in_round_, 0);
}

std::vector<int64_t> OfferedRoom::remove_all(int64_t now_us) {
  assert(std::ranges::count(in_round_, 1) == 0);  // a round's offers end with the round
  const std::vector<int64_t> offer = offer_;
  remove(now_us, [](size_t) { return true; });
  return offer;
}

// Takes the room of an offer off its machine.
void OfferedRoom::subtract(size_t at) {
  const size_t row = row_of(machine_[at]);
  for (size_t r = 0; r < width_; ++r) of_machine_[row * width_ + r] -= amount_[at * width_ + r];
  mark(machine_[at]);
}

// Removes the offers that `goes(i)` says, and shows that.
template <class Goes>
void OfferedRoom::remove(int64_t now_us, const Goes& goes) {
  size_t stay = 0;
  for (size_t i = 0; i < size(); ++i) {
    if (goes(i)) {
      if (!rescinded_[i]) subtract(i);
      continue;
    }
    offer_[stay] = offer_[i];
    machine_[stay] = machine_[i];
    std::copy_n(amount_.data() + i * width_, width_, amount_.data() + stay * width_);
    in_round_[stay] = in_round_[i];
    rescinded_[stay++] = rescinded_[i];
  }
  offer_.resize(stay);
  machine_.resize(stay);
  amount_.resize(stay * width_);
  in_round_.resize(stay);
  rescinded_.resize(stay);
  show_marked(now_us);
}

// Shows in the view what offers hold of the machines that are marked.
void OfferedRoom::show_marked(int64_t now_us) {
  const StaticCellState& state = view_.static_state();
  const size_t stride = state.same_limits() ? 0 : width_;
  bool any = false;
  for (size_t partition = 0; partition < state.partitions(); ++partition) {
    const auto first = static_cast<size_t>(state.index.offsets[partition]);
    const auto end = static_cast<size_t>(state.index.offsets[partition + 1]);
    row_.clear();
    used_.clear();
    for (size_t word = first / 64; word * 64 < end; ++word) {
      for (uint64_t bits = marked_[word]; bits != 0; bits &= bits - 1) {
        const size_t row = word * 64 + static_cast<size_t>(std::countr_zero(bits));
        if (row < first || row >= end) continue;  // of the partition beside it
        row_.push_back(static_cast<uint32_t>(row - first));
        for (size_t r = 0; r < width_; ++r)
          used_.push_back(state.limit[row * stride + r] - of_machine_[row * width_ + r]);
      }
    }
    if (row_.empty()) continue;
    // a partition has all changes so far, whether they concern it or not
    if (!any) ++version_;
    any = true;
    const auto up = std::make_unique<bool[]>(row_.size());
    std::fill_n(up.get(), row_.size(), true);
    view_.apply(Delta{static_cast<int32_t>(partition), view_.versions()[partition], version_,
                      now_us, row_.size(), row_.data(), sizeof(uint32_t), used_.data(),
                      sizeof(int64_t), up.get(), nullptr});
  }
  std::ranges::fill(marked_, 0);
}

LookedAt looked_at(std::span<const int64_t> offered, std::span<const int64_t> placed,
                   std::span<const int64_t> job, std::span<const int8_t> task_class) {
  if (job.size() != task_class.size())
    throw std::invalid_argument("task_class: expected a value for each task");
  std::vector<int64_t> ids(placed.begin(), placed.end());
  std::ranges::sort(ids);
  size_t count = offered.size();
  while (count > 1 && !std::ranges::binary_search(ids, offered[count - 1])) --count;
  std::vector<int64_t> of_class[2];  // jobs with batch tasks, and with service tasks
  for (const int64_t task : offered.first(count)) {
    if (task < 0 || static_cast<size_t>(task) >= job.size())
      throw std::invalid_argument("task " + std::to_string(task) + ": there is none");
    const auto at = static_cast<size_t>(task);
    of_class[task_class[at] == kService].push_back(job[at]);
  }
  LookedAt found;
  found.tasks = static_cast<int64_t>(count);
  found.service_tasks = static_cast<int64_t>(of_class[1].size());
  for (std::vector<int64_t>& jobs : of_class) {
    std::ranges::sort(jobs);
    jobs.erase(std::unique(jobs.begin(), jobs.end()), jobs.end());
  }
  found.batch_jobs = static_cast<int64_t>(of_class[0].size());
  found.service_jobs = static_cast<int64_t>(of_class[1].size());
  found.jobs = found.batch_jobs + std::ranges::count_if(of_class[1], [&](int64_t one) {
                 return !std::ranges::binary_search(of_class[0], one);
               });
  return found;
}

}  // namespace agora::offers
