#include "offered_demand.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace agora {

namespace {

using Wide = __int128;

[[noreturn]] void refuse(size_t set, const std::string& what) {
  throw std::invalid_argument("preference set " + std::to_string(set) + ": " + what);
}

int64_t kept(int64_t value, int64_t keep) { return static_cast<int64_t>(Wide{value} * keep >> 31); }

int64_t gain_of(const PreferenceColumns& c, size_t set, size_t entry) {
  const int64_t elsewhere = c.elsewhere_cost[set], here = c.machine_cost[entry];
  return elsewhere > here ? elsewhere - here : 0;
}

}  // namespace

OfferedDemand::OfferedDemand(const PreferenceColumns& columns, size_t dimensions, size_t samples)
    : columns_(columns),
      dimensions_(dimensions),
      samples_(samples),
      since_(columns.sets()),
      listed_(columns.sets()),
      sample_(samples * dimensions),
      demand_(columns.rack_of.size()),
      saving_(columns.rack_of.size()),
      members_(columns.rack_of.size()) {
  check_lengths(columns);
  if (dimensions == 0 || samples == 0)
    throw std::invalid_argument("expected at least one dimension and one sample");
  const auto& offsets = columns.machine_offsets;
  for (size_t set = 0; set < columns.sets(); ++set) {
    if (offsets[set] < 0 || offsets[set] > offsets[set + 1] ||
        offsets[set + 1] > static_cast<int64_t>(columns.machine.size()))
      refuse(set, "offsets out of range");
    for (auto entry = static_cast<size_t>(offsets[set]);
         entry < static_cast<size_t>(offsets[set + 1]); ++entry) {
      if (columns.machine[entry] < 0 ||
          static_cast<size_t>(columns.machine[entry]) >= columns.rack_of.size())
        refuse(set, "a machine the cell does not have");
      if (Wide{columns.elsewhere_cost[set]} - columns.machine_cost[entry] > kMaxGain)
        refuse(set,
               "elsewhere_cost: slot prices expect at most 2^32 more than a machine costs, "
               "got " +
                   std::to_string(columns.elsewhere_cost[set]));
    }
  }
}

void OfferedDemand::offered(std::span<const int64_t> task, std::span<const int32_t> preference,
                            const int64_t* request) {
  int64_t last = -1;
  for (size_t i = 0; i < task.size(); ++i) {
    if (task[i] < 0 || task[i] >= kMaxTask)
      throw std::invalid_argument("task[" + std::to_string(i) + "]: expected 0 to 2^30, got " +
                                  std::to_string(task[i]));
    if (preference[i] < 0 || static_cast<size_t>(preference[i]) >= since_.size())
      throw std::invalid_argument("preference[" + std::to_string(i) + "]: there is no set " +
                                  std::to_string(preference[i]));
    last = std::max(last, task[i]);
  }
  const auto words = static_cast<size_t>(last + 64) / 64;
  if (words > seen_.size()) seen_.resize(std::max(words, 2 * seen_.size()));
  for (size_t i = 0; i < task.size(); ++i) {
    if (!is_new(task[i])) continue;
    const auto set = static_cast<size_t>(preference[i]);
    if (since_[set]++ == 0) touched_.push_back(preference[i]);
    std::copy_n(request + i * dimensions_, dimensions_,
                sample_.data() + static_cast<size_t>(tasks_) % samples_ * dimensions_);
    ++tasks_;
    ++total_since_;
  }
}

bool OfferedDemand::is_new(int64_t task) {
  uint64_t& word = seen_[static_cast<size_t>(task) / 64];
  const uint64_t bit = uint64_t{1} << (task % 64);
  if (word & bit) return false;
  word |= bit;
  return true;
}

int64_t OfferedDemand::advance(int64_t keep) {
  if (keep < 0 || keep > kKeepAll) throw std::invalid_argument("keep: expected 0 to 2^31");
  if (keep < kKeepAll) {
    total_ = kept(total_, keep);
    for (int64_t& demand : demand_) demand = kept(demand, keep);
    for (Wide& saving : saving_) saving = saving * keep >> 31;
  }
  int64_t entries = 0;
  for (const int32_t touched : touched_) {
    const auto set = static_cast<size_t>(touched);
    const auto begin = static_cast<size_t>(columns_.machine_offsets[set]),
               end = static_cast<size_t>(columns_.machine_offsets[set + 1]);
    const int32_t is_first = listed_[set] ? 0 : 1;
    const int64_t each = end > begin ? since_[set] * kTask / static_cast<int64_t>(end - begin) : 0;
    for (size_t entry = begin; entry < end; ++entry) {
      const auto m = static_cast<size_t>(columns_.machine[entry]);
      demand_[m] += each;
      saving_[m] += Wide{each} * gain_of(columns_, set, entry);
      members_[m] += is_first;
    }
    listed_[set] = 1;
    since_[set] = 0;
    entries += static_cast<int64_t>(end - begin);
  }
  total_ += total_since_ * kTask;
  total_since_ = 0;
  touched_.clear();
  return entries;
}

void OfferedDemand::gain(std::span<int64_t> gain) const {
  for (size_t m = 0; m < demand_.size(); ++m)
    gain[m] = demand_[m] > 0 ? static_cast<int64_t>(saving_[m] / demand_[m]) : 0;
}

int64_t OfferedDemand::mean_gain() const {
  Wide demand = 0, saving = 0;
  for (const int64_t d : demand_) demand += d;
  for (const Wide s : saving_) saving += s;
  return demand > 0 ? static_cast<int64_t>(saving / demand) : 0;
}

void OfferedDemand::load(int64_t busy, std::span<int64_t> load) const {
  if (busy < 0 || busy > kMaxSlots)
    throw std::invalid_argument("busy: expected 0 to 2^30 slots, got " + std::to_string(busy));
  for (size_t m = 0; m < demand_.size(); ++m)
    load[m] = total_ > 0 ? static_cast<int64_t>(((Wide{busy} * demand_[m]) << 32) / total_) : 0;
}

std::span<const int64_t> OfferedDemand::recent_requests() const {
  const size_t count = std::min(static_cast<size_t>(tasks_), samples_);
  return std::span(sample_).first(count * dimensions_);
}

}  // namespace agora
