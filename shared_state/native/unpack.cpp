#include "unpack.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>

namespace agora {

namespace {

[[noreturn]] void refuse(size_t at, const std::string& why) {
  throw std::invalid_argument("packed columns: malformed at byte " + std::to_string(at) + " (" +
                              why + ")");
}

template <class T, class Offset>
void unpack_offsets(const PackedColumn& packed, T* values) {
  const size_t count = packed.count();
  for (size_t i = 0; i < count; ++i) {
    Offset offset;
    std::memcpy(&offset, packed.offsets + i * sizeof(Offset), sizeof(Offset));
    values[i] = static_cast<T>(packed.base + offset);
  }
}

template <class T>
void unpack_values(const PackedColumn& packed, T* values) {
  switch (packed.offset_bytes) {
    case 1:
      return unpack_offsets<T, uint8_t>(packed, values);
    case 2:
      return unpack_offsets<T, uint16_t>(packed, values);
    case 4:
      return unpack_offsets<T, uint32_t>(packed, values);
    case 8:
      return unpack_offsets<T, uint64_t>(packed, values);
    default:
      std::fill_n(values, packed.count(), static_cast<T>(packed.base));
  }
}

}  // namespace

PackedColumn PackedColumns::next() {
  const size_t begin = at_;
  if (bytes_.size() - at_ < kColumnHeaderBytes) refuse(begin, "a column's head is cut off");
  const char* const head = bytes_.data() + at_;
  PackedColumn column;
  column.shape.letter = head[0];
  column.offset_bytes = static_cast<uint8_t>(head[1]);
  column.shape.width = static_cast<uint8_t>(head[2]);
  std::memcpy(&column.shape.rows, head + 4, sizeof(column.shape.rows));
  std::memcpy(&column.base, head + 8, sizeof(column.base));
  column.offsets = head + kColumnHeaderBytes;
  at_ += kColumnHeaderBytes;
  if (!column.shape.letter || !std::strchr("?bBhHiIqQ", column.shape.letter))
    refuse(begin, "no type of a column");
  if (const uint8_t size = column.offset_bytes; size > 8 || (size & (size - 1)))
    refuse(begin, "offsets of " + std::to_string(size) + " bytes");
  if (column.count() > left_)
    refuse(begin, "a column of " + std::to_string(column.count()) + " values");
  left_ -= column.count();
  if (column.count() * column.offset_bytes > bytes_.size() - at_)
    refuse(begin, "a column's values are cut off");
  at_ += column.count() * column.offset_bytes;
  return column;
}

void PackedColumn::unpack(void* values) const {
  switch (shape.letter) {
    case '?':
      return unpack_values(*this, static_cast<bool*>(values));
    case 'b':
    case 'B':
      return unpack_values(*this, static_cast<uint8_t*>(values));
    case 'h':
    case 'H':
      return unpack_values(*this, static_cast<uint16_t*>(values));
    case 'i':
    case 'I':
      return unpack_values(*this, static_cast<uint32_t*>(values));
    default:
      return unpack_values(*this, static_cast<uint64_t*>(values));
  }
}

AnyColumn unpacked(const PackedColumn& packed) {
  const auto& [letter, width, rows] = packed.shape;
  const size_t bytes = packed.count() * bytes_of(letter);
  auto memory = std::make_shared_for_overwrite<uint64_t[]>((bytes + 7) / 8);
  void* const values = memory.get();
  packed.unpack(values);
  return {letter, rows, width, values, std::move(memory)};
}

}  // namespace agora
