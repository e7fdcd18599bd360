// Canonical msgpack: every value in its shortest form. Each function appends to `out`.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
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

// Reads msgpack that anybody may have written: what is no such value is a std::invalid_argument.
namespace agora::msgpack {

enum class Kind : uint8_t {
  Nil,
  Bool,
  Integer,
  Unsigned,  // beyond int64
  Float,
  String,
  Bytes,
  Array,
  Map,
  Extension
};

// The head of a value: its kind, and what the kind says is there.
struct Head {
  Kind kind;
  int64_t integer = 0;     // Bool, Integer; the code of an extension
  uint64_t size = 0;       // Unsigned: the number; Float: its bits; else its parts, or its bytes
  std::string_view bytes;  // String, Bytes, Extension
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : left_(bytes) {}

  bool at_end() const { return left_.empty(); }
  // What has not been read.
  std::string_view left() const { return left_; }

  // Takes a value off; of an array or a map the head only. These have no more parts than there are
  // bytes left.
  Head next() {
    const uint8_t code = byte();
    if (code < 0x80) return {Kind::Integer, code, 0, {}};
    if (code >= 0xe0) return {Kind::Integer, static_cast<int8_t>(code), 0, {}};
    if (code < 0x90) return parts(Kind::Map, code & 0x0f);
    if (code < 0xa0) return parts(Kind::Array, code & 0x0f);
    if (code < 0xc0) return text(Kind::String, code & 0x1f);
    switch (code) {
      case 0xc0:
        return {Kind::Nil, 0, 0, {}};
      case 0xc2:
      case 0xc3:
        return {Kind::Bool, code & 1, 0, {}};
      case 0xc4:
      case 0xc5:
      case 0xc6:
        return text(Kind::Bytes, number(1 << (code - 0xc4)));
      case 0xc7:
      case 0xc8:
      case 0xc9:
        return extension(number(1 << (code - 0xc7)));
      case 0xca: {
        const auto bits = static_cast<uint32_t>(number(4));
        return {Kind::Float, 0, bits_of(bits), {}};
      }
      case 0xcb:
        return {Kind::Float, 0, number(8), {}};
      case 0xcc:
      case 0xcd:
      case 0xce:
      case 0xcf: {
        const uint64_t value = number(1 << (code - 0xcc));
        if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
          return {Kind::Unsigned, 0, value, {}};
        return {Kind::Integer, static_cast<int64_t>(value), 0, {}};
      }
      case 0xd0:
        return {Kind::Integer, static_cast<int8_t>(number(1)), 0, {}};
      case 0xd1:
        return {Kind::Integer, static_cast<int16_t>(number(2)), 0, {}};
      case 0xd2:
        return {Kind::Integer, static_cast<int32_t>(number(4)), 0, {}};
      case 0xd3:
        return {Kind::Integer, static_cast<int64_t>(number(8)), 0, {}};
      case 0xd4:
      case 0xd5:
      case 0xd6:
      case 0xd7:
      case 0xd8:
        return extension(size_t{1} << (code - 0xd4));
      case 0xd9:
      case 0xda:
      case 0xdb:
        return text(Kind::String, number(1 << (code - 0xd9)));
      case 0xdc:
      case 0xdd:
        return parts(Kind::Array, number(2 << (code - 0xdc)));
      case 0xde:
      case 0xdf:
        return parts(Kind::Map, number(2 << (code - 0xde)));
      default:
        throw std::invalid_argument("msgpack: no value");
    }
  }

  // A value that must be of this kind. `what` names it in the error.
  Head expect(Kind kind, const char* what) {
    const Head head = next();
    if (head.kind != kind) refuse(what);
    return head;
  }
  int64_t integer(const char* what) { return expect(Kind::Integer, what).integer; }
  std::string_view bytes(const char* what) { return expect(Kind::Bytes, what).bytes; }
  size_t array(const char* what) { return expect(Kind::Array, what).size; }

  [[noreturn]] static void refuse(const char* what) {
    throw std::invalid_argument(std::string("msgpack: expected ") + what);
  }

 private:
  uint8_t byte() {
    if (left_.empty()) throw std::invalid_argument("msgpack: the bytes are cut off");
    const auto value = static_cast<uint8_t>(left_.front());
    left_.remove_prefix(1);
    return value;
  }
  uint64_t number(int bytes) {
    uint64_t value = 0;
    for (int i = 0; i < bytes; ++i) value = value << 8 | byte();
    return value;
  }
  std::string_view take(uint64_t size) {
    if (size > left_.size()) throw std::invalid_argument("msgpack: the bytes are cut off");
    const std::string_view taken = left_.substr(0, size);
    left_.remove_prefix(size);
    return taken;
  }
  Head text(Kind kind, uint64_t size) { return {kind, 0, size, take(size)}; }
  Head extension(uint64_t size) {
    const auto code = static_cast<int8_t>(byte());
    return {Kind::Extension, code, size, take(size)};
  }
  Head parts(Kind kind, uint64_t size) const {
    if (size * (kind == Kind::Map ? 2 : 1) > left_.size())
      throw std::invalid_argument("msgpack: the bytes are cut off");
    return {kind, 0, size, {}};
  }
  // The bits of the same number in 64.
  static uint64_t bits_of(uint32_t single) {
    return std::bit_cast<uint64_t>(static_cast<double>(std::bit_cast<float>(single)));
  }

  std::string_view left_;
};

}  // namespace agora::msgpack
