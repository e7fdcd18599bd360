// The windows in which the figures of a run count; parsync/metrics/run_frame.py has their meaning.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <stdexcept>
#include <vector>

namespace agora {

class Windows {
 public:
  // edges: begin and end of each window, ascending; a window does not hold its end.
  explicit Windows(std::span<const int64_t> edges) : edges_(edges.begin(), edges.end()) {
    if (edges_.size() % 2 != 0 || !std::ranges::is_sorted(edges_))
      throw std::invalid_argument("windows: expected a begin and an end of each, ascending");
  }

  int64_t outside() const { return static_cast<int64_t>(edges_.size() / 2); }
  int64_t start() const { return outside() + 1; }

  // The slot of each time: the number of the window that holds it; else start() up to time 0, and
  // outside() after it. Rows that follow each other are mostly within one stretch between two
  // edges.
  void slots_of(const int64_t* at_us, size_t count, int64_t* slot) const {
    Stretch now = stretch_of(count ? at_us[0] : 0);
    for (size_t i = 0; i < count; ++i) {
      if (at_us[i] < now.from_us || at_us[i] > now.last_us) now = stretch_of(at_us[i]);
      slot[i] = now.slot;
    }
  }

 private:
  struct Stretch {
    int64_t from_us, last_us;  // both within it
    int64_t slot;
  };

  Stretch stretch_of(int64_t at_us) const {
    constexpr auto kNever = std::numeric_limits<int64_t>::max();
    constexpr auto kAlways = std::numeric_limits<int64_t>::min();
    const auto next = std::ranges::upper_bound(edges_, at_us);
    const auto place = next - edges_.begin();
    Stretch found{place ? *(next - 1) : kAlways, next == edges_.end() ? kNever : *next - 1, 0};
    if (place % 2 == 1) {
      found.slot = place / 2;
    } else if (at_us <= 0) {
      found.slot = start();
      found.last_us = std::min<int64_t>(found.last_us, 0);
    } else {
      found.slot = outside();
      found.from_us = std::max<int64_t>(found.from_us, 1);
    }
    return found;
  }

  std::vector<int64_t> edges_;
};

}  // namespace agora
