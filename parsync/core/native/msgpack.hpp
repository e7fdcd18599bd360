// Canonical msgpack: every value in its shortest form. Each function appends to `out`.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace agora::msgpack {

inline void put(std::string& out, uint8_t byte) { out.push_back(static_cast<char>(byte)); }

// msgpack is big-endian.
template <class T>
void put_number(std::string& out, T value) {
  for (int shift = static_cast<int>(sizeof(T)) * 8 - 8; shift >= 0; shift -= 8)
    put(out, static_cast<uint8_t>(value >> shift));
}

inline void put_unsigned(std::string& out, uint64_t value) {
  if (value < 0x80) {
    put(out, static_cast<uint8_t>(value));
  } else if (value <= UINT8_MAX) {
    put(out, 0xcc), put(out, static_cast<uint8_t>(value));
  } else if (value <= UINT16_MAX) {
    put(out, 0xcd), put_number(out, static_cast<uint16_t>(value));
  } else if (value <= UINT32_MAX) {
    put(out, 0xce), put_number(out, static_cast<uint32_t>(value));
  } else {
    put(out, 0xcf), put_number(out, value);
  }
}

inline void put_integer(std::string& out, int64_t value) {
  if (value >= 0) {
    put_unsigned(out, static_cast<uint64_t>(value));
  } else if (value >= -0x20) {
    put(out, static_cast<uint8_t>(value));
  } else if (value >= INT8_MIN) {
    put(out, 0xd0), put(out, static_cast<uint8_t>(value));
  } else if (value >= INT16_MIN) {
    put(out, 0xd1), put_number(out, static_cast<uint16_t>(value));
  } else if (value >= INT32_MIN) {
    put(out, 0xd2), put_number(out, static_cast<uint32_t>(value));
  } else {
    put(out, 0xd3), put_number(out, static_cast<uint64_t>(value));
  }
}

inline void put_nil(std::string& out) { put(out, 0xc0); }
inline void put_bool(std::string& out, bool value) { put(out, value ? 0xc3 : 0xc2); }

// The head of something of `size` parts: one byte with the size in it below `few`, else a code
// (`byte_code` 0: none for one byte) and the size.
inline void put_head(std::string& out, size_t size, size_t few, uint8_t few_code, uint8_t byte_code,
                     uint8_t short_code) {
  if (size > UINT32_MAX) throw std::invalid_argument("cannot encode: more than 2^32 - 1 parts");
  if (size < few) {
    put(out, static_cast<uint8_t>(few_code | size));
  } else if (size <= UINT8_MAX && byte_code) {
    put(out, byte_code), put(out, static_cast<uint8_t>(size));
  } else if (size <= UINT16_MAX) {
    put(out, short_code), put_number(out, static_cast<uint16_t>(size));
  } else {
    put(out, static_cast<uint8_t>(short_code + 1)), put_number(out, static_cast<uint32_t>(size));
  }
}

inline void put_array_head(std::string& out, size_t size) {
  put_head(out, size, 16, 0x90, 0, 0xdc);
}
inline void put_map_head(std::string& out, size_t size) { put_head(out, size, 16, 0x80, 0, 0xde); }
inline void put_string_head(std::string& out, size_t size) {
  put_head(out, size, 32, 0xa0, 0xd9, 0xda);
}
inline void put_bytes_head(std::string& out, size_t size) { put_head(out, size, 0, 0, 0xc4, 0xc5); }

inline void put_string(std::string& out, std::string_view text) {
  put_string_head(out, text.size());
  out.append(text);
}
inline void put_bytes(std::string& out, std::string_view bytes) {
  put_bytes_head(out, bytes.size());
  out.append(bytes);
}

inline void put_extension_head(std::string& out, size_t size, int8_t code) {
  if (size <= 16 && std::has_single_bit(size)) {
    put(out, static_cast<uint8_t>(0xd4 + std::countr_zero(size)));
  } else {
    put_head(out, size, 0, 0, 0xc7, 0xc8);
  }
  put(out, static_cast<uint8_t>(code));
}

// Puts before out[start..] the head that depends on its size.
template <class PutHead>
void insert_head(std::string& out, size_t start, PutHead put_head_of) {
  std::string head;
  put_head_of(head, out.size() - start);
  out.insert(start, head);
}

}  // namespace agora::msgpack
