// Allocations: a slab of slots whose ids carry a generation, so that an id of an ended allocation
// never names a later one.
//
// id = generation << 32 | slot, non-negative. ExpiringOverlay an allocation leaves its record
// readable until the slot is used again. Requests are kept beside the records (R integers per
// slot). Freed slots are reused last in, first out; a slot whose generations are used up is
// retired.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace agora {

struct Allocation {
  int64_t task = -1;
  int32_t machine = -1;
  int32_t owner = -1;
  uint32_t generation = 0;
  uint32_t live = 0;
};

class AllocationSlab {
 public:
  static constexpr uint32_t kNoSlot = 0xffffffffU;
  static constexpr uint32_t kLastGeneration = 0x7fffffffU;

  explicit AllocationSlab(size_t dimensions) : dimensions_(dimensions) {}

  static uint32_t slot_of(int64_t id) { return static_cast<uint32_t>(id & 0xffffffff); }
  int64_t id_of(uint32_t slot) const {
    return static_cast<int64_t>(records_[slot].generation) << 32 | slot;
  }

  uint32_t slots() const { return static_cast<uint32_t>(records_.size()); }
  size_t live() const { return live_; }
  const Allocation& operator[](uint32_t slot) const { return records_[slot]; }
  const int64_t* request(uint32_t slot) const { return requests_.data() + slot * dimensions_; }

  // The slot of a live allocation, or kNoSlot.
  uint32_t find_live(int64_t id) const {
    const uint32_t slot = find_recorded(id);
    return slot != kNoSlot && records_[slot].live ? slot : kNoSlot;
  }

  // The slot of an allocation that is live, or ended and not yet overwritten, or kNoSlot.
  uint32_t find_recorded(int64_t id) const {
    const uint32_t slot = slot_of(id);
    if (id < 0 || slot >= records_.size() ||
        records_[slot].generation != static_cast<uint32_t>(id >> 32))
      return kNoSlot;
    return records_[slot].machine >= 0 ? slot : kNoSlot;
  }

  // Makes room, so that the next `count` begin() cannot fail: what may throw does so before
  // anything changed.
  void reserve(size_t count);

  // Starts an allocation; returns its id. Requires room (reserve).
  int64_t begin(int64_t task, int32_t machine, int32_t owner, const int64_t* request) {
    uint32_t slot;
    if (free_.empty()) {
      slot = static_cast<uint32_t>(records_.size());
      records_.emplace_back();
      requests_.resize(requests_.size() + dimensions_);
    } else {
      slot = free_.back();
      free_.pop_back();
      ++records_[slot].generation;
    }
    Allocation& record = records_[slot];
    record.task = task;
    record.machine = machine;
    record.owner = owner;
    record.live = 1;
    int64_t* to = requests_.data() + slot * dimensions_;
    for (size_t r = 0; r < dimensions_; ++r) to[r] = request[r];
    ++live_;
    return id_of(slot);
  }

  // Ends the live allocation in `slot`.
  void end(uint32_t slot) {
    records_[slot].live = 0;
    --live_;
    if (records_[slot].generation < kLastGeneration) free_.push_back(slot);
  }

  void prefetch_next(size_t ahead) const {
    if (free_.size() > ahead) {
      const uint32_t slot = free_[free_.size() - 1 - ahead];
      __builtin_prefetch(&records_[slot], 1);
      __builtin_prefetch(requests_.data() + slot * dimensions_, 1);
    }
  }

  template <class Archive>
  void archive(Archive& archive) {
    archive(records_);
    archive(requests_);
    archive(free_);
  }
  // Recounts what archive() does not hold; false if the parts do not belong together.
  bool settle();

 private:
  size_t dimensions_;
  size_t live_ = 0;
  std::vector<Allocation> records_;
  std::vector<int64_t> requests_;
  std::vector<uint32_t> free_;
};

}  // namespace agora
