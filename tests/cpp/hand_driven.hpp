// What tests share that drive native participants by hand: the events that are still to come, and
// columns with random contents.
#pragma once

#include <cstdint>
#include <span>
#include <tuple>
#include <vector>

#include "check.hpp"
#include "parsync/core/native/event.hpp"
#include "shared_state/native/fields.hpp"

template <class T>
agora::SharedColumn<T> column(const std::vector<T>& values) {
  return agora::SharedColumn<T>(std::span<const T>(values));
}

// An event that is still to come, for a std::priority_queue whose top is the first of all.
struct PendingEvent {
  int64_t at_us;
  agora::Priority priority;
  uint64_t sequence;
  int64_t address;
  agora::EventPtr event;
  bool operator<(const PendingEvent& other) const {
    return std::tie(at_us, priority, sequence) >
           std::tie(other.at_us, other.priority, other.sequence);
  }
};

// A column of at most three values: two in three of them between -20 and `bound`.
template <class T>
agora::SharedColumn<T> odd_column(Draws& draw, uint64_t bound) {
  std::vector<T> values(draw(4));
  for (T& value : values)
    value = static_cast<T>(draw(3) ? static_cast<int64_t>(draw(bound + 20)) - 20
                                   : static_cast<int64_t>(draw(uint64_t{1} << 62)));
  return column(values);
}

// A table with as many values in all.
inline agora::SharedTable<int64_t> odd_table(Draws& draw, uint64_t bound) {
  const agora::SharedColumn<int64_t> values = odd_column<int64_t>(draw, bound);
  const size_t width = values.size() > 1 && draw(2) ? values.size() : 1;
  return {values.data(), values.size() / width, width, values.memory()};
}
