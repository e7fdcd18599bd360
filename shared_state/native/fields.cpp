#include "fields.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>

namespace agora {

namespace {

template <class Offset, class T>
void write_offsets(const T* values, size_t count, uint64_t base, char* to) {
  for (size_t i = 0; i < count; ++i) {
    const auto offset = static_cast<Offset>(static_cast<uint64_t>(values[i]) - base);
    std::memcpy(to + i * sizeof(Offset), &offset, sizeof(Offset));
  }
}

template <class T>
void pack_values(const T* values, ColumnShape shape, std::string& bytes) {
  const size_t count = static_cast<size_t>(shape.rows) * std::max<size_t>(shape.width, 1);
  T low{}, high{};
  if (count) low = high = values[0];
  for (size_t i = 1; i < count; ++i) {
    low = std::min(low, values[i]);
    high = std::max(high, values[i]);
  }
  const auto base = static_cast<uint64_t>(low);
  const uint64_t range = static_cast<uint64_t>(high) - base;
  const uint8_t size = range == 0            ? 0
                       : range <= UINT8_MAX  ? 1
                       : range <= UINT16_MAX ? 2
                       : range <= UINT32_MAX ? 4
                                             : 8;

  const size_t start = bytes.size();
  bytes.resize(start + kColumnHeaderBytes + count * size);
  char* to = bytes.data() + start;
  to[0] = shape.letter;
  to[1] = static_cast<char>(size);
  to[2] = static_cast<char>(shape.width);
  to[3] = 0;
  std::memcpy(to + 4, &shape.rows, 4);
  std::memcpy(to + 8, &base, 8);
  to += kColumnHeaderBytes;
  switch (size) {
    case 1:
      write_offsets<uint8_t>(values, count, base, to);
      break;
    case 2:
      write_offsets<uint16_t>(values, count, base, to);
      break;
    case 4:
      write_offsets<uint32_t>(values, count, base, to);
      break;
    case 8:
      write_offsets<uint64_t>(values, count, base, to);
      break;
    default:
      break;
  }
}

}  // namespace

bool pack_column(const void* values, ColumnShape shape, std::string& bytes) {
  const auto pack = [&]<class T>(T) {
    pack_values(static_cast<const T*>(values), shape, bytes);
    return true;
  };
  switch (shape.letter) {
    case 'b':
      return pack(int8_t{});
    case 'B':
    case '?':
      return pack(uint8_t{});
    case 'h':
      return pack(int16_t{});
    case 'H':
      return pack(uint16_t{});
    case 'i':
      return pack(int32_t{});
    case 'I':
      return pack(uint32_t{});
    case 'q':
      return pack(int64_t{});
    case 'Q':
      return pack(uint64_t{});
    default:
      return false;
  }
}

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
