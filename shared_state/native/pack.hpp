// Integer columns as few bytes: the smallest value once, the others as offsets from it in the
// fewest bytes that hold them (0, 1, 2, 4 or 8).
//
// A packed column: dtype letter (as numpy's: b B h H i I q Q, ? for bool), bytes per offset, width
// of a row (0 for one dimension), 0; u32 rows; i64 smallest value (two's complement of the value's
// 64 bits); rows * max(width, 1) offsets. Little-endian, unaligned.
//
// Packed bytes may be anybody's: what is wrong with them is a std::invalid_argument.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "fields.hpp"

namespace agora {

struct ColumnShape {
  char letter;
  uint8_t width;
  uint32_t rows;
};

constexpr size_t kColumnHeaderBytes = 16;

// Appends the packed form of rows * max(width, 1) values, of the type that the letter names, to
// `bytes`. Returns false, with `bytes` as it was, if it names none.
bool pack_column(const void* values, ColumnShape shape, std::string& bytes);

// A packed column that is known to be whole, its values still packed.
struct PackedColumn {
  ColumnShape shape{};
  uint8_t offset_bytes = 0;
  uint64_t base = 0;
  const char* offsets = nullptr;

  size_t count() const { return size_t{shape.rows} * (shape.width ? shape.width : 1); }
  // Writes count() values of the type that the letter names.
  void unpack(void* values) const;
};

// A column of native memory.
AnyColumn unpacked(const PackedColumn& packed);

// Several packed columns, one after the other.
class PackedColumns {
 public:
  // most_values: all columns together, because a few bytes may claim to stand for any number of
  // equal values.
  explicit PackedColumns(std::string_view bytes, size_t most_values = kMostValues)
      : bytes_(bytes), left_(most_values) {}

  bool at_end() const { return at_ == bytes_.size(); }
  // How many values the columns to come may have.
  size_t values_left() const { return left_; }
  PackedColumn next();

  static constexpr size_t kMostValues = size_t{1} << 28;

 private:
  std::string_view bytes_;
  size_t left_;
  size_t at_ = 0;
};

}  // namespace agora
