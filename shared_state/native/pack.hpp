// Integer columns as few bytes: the smallest value once, the others as offsets from it in the
// fewest bytes that hold them (0, 1, 2, 4 or 8).
//
// A packed column: dtype letter (as numpy's: b B h H i I q Q, ? for bool), bytes per offset, width
// of a row (0 for one dimension), 0; u32 rows; i64 smallest value (two's complement of the value's
// 64 bits); rows * max(width, 1) offsets. Little-endian, unaligned.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

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

}  // namespace agora
