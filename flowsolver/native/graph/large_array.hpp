// Arrays of tens of megabytes that are read at random. They lie on huge pages where the system
// offers them, because searches spend more time on TLB misses than on computing.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>
#include <utility>
#include <vector>

#ifdef __linux__
#include <sys/mman.h>
#endif
#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace flowsolver {

// Fetches the cache line at an address that is about to be read or written.
inline void fetch_line(const void* address) {
  __builtin_prefetch(address);
  // GCC takes a function that only fetches for one without effect, and leaves out calls of it.
  asm volatile("");
}

template <class T>
struct LargeAllocator {
  using value_type = T;
  static constexpr std::size_t kHugePage = std::size_t{1} << 21;

  LargeAllocator() = default;
  template <class U>
  LargeAllocator(const LargeAllocator<U>&) {}  // NOLINT: allocators convert

  T* allocate(std::size_t count) {
    const std::size_t bytes = count * sizeof(T);
    const std::size_t alignment = bytes >= kHugePage ? kHugePage : std::size_t{64};
    void* memory = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
    if (memory == nullptr) throw std::bad_alloc();
#ifdef __linux__
    // a hint; failure has no effect
    if (alignment == kHugePage) madvise(memory, bytes, MADV_HUGEPAGE);
#endif
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, std::size_t) { std::free(memory); }
  template <class U>
  bool operator==(const LargeAllocator<U>&) const {
    return true;
  }
};

// As LargeAllocator, but leaves elements uninitialised on resize; the caller writes them at once.
template <class T>
struct UninitialisedAllocator : LargeAllocator<T> {
  template <class U>
  struct rebind {
    using other = UninitialisedAllocator<U>;
  };
  UninitialisedAllocator() = default;
  template <class U>
  UninitialisedAllocator(const UninitialisedAllocator<U>&) {}  // NOLINT: allocators convert
  template <class U>
  void construct(U* place) {
    ::new (static_cast<void*>(place)) U;
  }
  template <class U, class... Args>
  void construct(U* place, Args&&... args) {
    ::new (static_cast<void*>(place)) U(std::forward<Args>(args)...);
  }
};

// Returns free memory to the system. Otherwise arrays that are made next and reserve room to grow
// would lie on pages that are counted already. Takes milliseconds.
inline void release_free_memory() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

template <class T>
using LargeArray = std::vector<T, UninitialisedAllocator<T>>;

}  // namespace flowsolver
