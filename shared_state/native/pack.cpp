#include "pack.hpp"

#include <algorithm>
#include <cstring>

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

}  // namespace agora
