// A PartitionDelta (transaction.py) as native code takes it: with the arrays it borrows.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <stdexcept>

#include "column.hpp"
#include "contiguous_buffer.hpp"
#include "view.hpp"

namespace agora {

class BoundDelta {
 public:
  // dimensions: of the cell. Throws ValueError naming the column of another dtype or shape.
  BoundDelta(nanobind::handle delta, size_t dimensions)
      : row_(column(delta, "row").ptr()),
        used_(column(delta, "used").ptr()),
        up_(column(delta, "up"), "delta: up", length_of(column(delta, "up"), "delta: up")) {
    const size_t count = up_.size();
    if (!is_of(row_, "BHILQ") || row_.dimensions() != 1 || length(row_, 0) != count)
      throw std::invalid_argument("delta: row must be unsigned integers, one per entry of up");
    if (!is_of(used_, "bhilq") || used_.dimensions() != 2 || length(used_, 0) != count ||
        length(used_, 1) != dimensions)
      throw std::invalid_argument(
          "delta: used must be signed integers, a row per entry of up and a column per dimension");
    const nanobind::object seqnum = column(delta, "seqnum");
    if (!seqnum.is_none()) {
      if (length_of(seqnum, "delta: seqnum") != count)
        throw std::invalid_argument("delta: seqnum must have one entry per row");
      seqnum_.emplace(seqnum, "delta: seqnum", count);
    }
    delta_ = {nanobind::cast<int32_t>(column(delta, "partition")),
              nanobind::cast<int64_t>(column(delta, "from_version")),
              nanobind::cast<int64_t>(column(delta, "to_version")),
              nanobind::cast<int64_t>(column(delta, "at_us")),
              count,
              row_.data(),
              row_.bytes_per_value(),
              used_.data(),
              used_.bytes_per_value(),
              up_.data(),
              seqnum_ ? seqnum_->data() : nullptr};
  }

  const Delta& delta() const { return delta_; }

 private:
  static nanobind::object column(nanobind::handle delta, const char* name) {
    return nanobind::getattr(delta, name);
  }
  static bool is_of(const ContiguousBuffer& column, const char* formats) {
    return column.valid() && std::strlen(column.format()) == 1 &&
           std::strchr(formats, *column.format()) != nullptr;
  }
  static size_t length(const ContiguousBuffer& column, int dimension) {
    return static_cast<size_t>(column.length(dimension));
  }

  const ContiguousBuffer row_, used_;
  const Column<const bool> up_;
  std::optional<Column<const uint32_t>> seqnum_;
  Delta delta_;
};

}  // namespace agora
