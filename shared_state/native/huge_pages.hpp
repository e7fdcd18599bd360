// Arrays of megabytes that are read at random lie on huge pages where the system offers them:
// schedulers look at views of 200,000 machines in no order, and then spend more time on TLB misses
// than on computing.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>
#include <vector>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace agora {

template <class T>
struct HugePageAllocator {
  using value_type = T;
  static constexpr size_t kHugePage = size_t{1} << 21;
  static constexpr size_t kFewestBytes = kHugePage / 2;  // below, most of the page would be empty

  HugePageAllocator() = default;
  template <class U>
  HugePageAllocator(const HugePageAllocator<U>&) {}  // NOLINT: allocators convert

  T* allocate(size_t count) {
    const size_t bytes = count * sizeof(T);
    const size_t alignment = bytes >= kFewestBytes ? kHugePage : size_t{64};
    const size_t rounded = (bytes + alignment - 1) / alignment * alignment;
    void* memory = std::aligned_alloc(alignment, rounded);
    if (memory == nullptr) throw std::bad_alloc();
#ifdef __linux__
    // a hint; failure has no effect
    if (alignment == kHugePage) madvise(memory, rounded, MADV_HUGEPAGE);
#endif
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, size_t) { std::free(memory); }
  template <class U>
  bool operator==(const HugePageAllocator<U>&) const {
    return true;
  }
};

template <class T>
using HugePageVector = std::vector<T, HugePageAllocator<T>>;

}  // namespace agora
