// What events and transactions are made of: named fields, and columns whose memory their holders
// share; and the packed form of columns.
#pragma once

#include <algorithm>
#include <cassert>
#include <cctype>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace agora {

// A named member of a struct: from the list of them, encoder and Python class are made, so that a
// struct is described once.
//
//   struct Point { int64_t x, y;
//     static constexpr auto fields() { return std::tuple{Field{"x", &Point::x}, ...}; } };
template <class Owner, class Value>
struct Field {
  const char* name;
  Value Owner::* member;
};

// Makes what a struct makes only when it is looked at: before any of its fields is read.
template <class T>
void complete(const T& of) {
  if constexpr (requires { of.complete(); }) of.complete();
}

// Calls visit(name, value) for each field, in order.
template <class T, class Visit>
void for_each_field(const T& of, Visit&& visit) {
  complete(of);
  std::apply([&](const auto&... field) { (visit(field.name, of.*field.member), ...); },
             T::fields());
}

template <class T>
constexpr size_t kFieldCount = std::tuple_size_v<decltype(T::fields())>;

// Columns of events and transactions: immutable integers whose memory their holders share.
//
// SharedColumn<T> is n values, SharedTable<T> [n, width]; AnyColumn is either, of any integer type,
// for what chooses its type by its values (PartitionDelta.used) and for code that treats all alike
// (the encoder). Copying one copies no values. The memory is native, or that of a numpy array
// (bound_fields.hpp); nothing here knows Python.

// The letter by which numpy and the packed form know a type.
template <class T>
constexpr char letter_of() {
  if constexpr (std::same_as<T, bool>) return '?';
  constexpr char letters[2][4] = {{'B', 'H', 'I', 'Q'}, {'b', 'h', 'i', 'q'}};
  constexpr size_t power = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;
  return letters[std::is_signed_v<T>][power];
}

constexpr size_t bytes_of(char letter) {
  switch (letter) {
    case '?':
    case 'b':
    case 'B':
      return 1;
    case 'h':
    case 'H':
      return 2;
    case 'i':
    case 'I':
      return 4;
    default:
      return 8;
  }
}

// As numpy names it, e.g. "uint32".
inline std::string name_of(char letter) {
  if (letter == '?') return "bool";
  return (std::isupper(static_cast<unsigned char>(letter)) ? "uint" : "int") +
         std::to_string(bytes_of(letter) * 8);
}

class AnyColumn {
 public:
  // An empty column of int64.
  AnyColumn() = default;

  // rows * max(width, 1) values; width 0: one dimension. `memory` keeps them alive.
  AnyColumn(char letter, size_t rows, size_t width, const void* values,
            std::shared_ptr<const void> memory)
      : letter_(letter), width_(width), rows_(rows), values_(values), memory_(std::move(memory)) {}

  char letter() const { return letter_; }
  size_t rows() const { return rows_; }
  size_t width() const { return width_; }
  bool is_table() const { return width_ > 0; }
  size_t count() const { return rows_ * std::max<size_t>(width_, 1); }
  size_t bytes() const { return count() * bytes_of(letter_); }
  const void* values() const { return values_; }
  const std::shared_ptr<const void>& memory() const { return memory_; }

  template <class T>
  std::span<const T> as() const {
    assert(letter_ == letter_of<T>());
    return {static_cast<const T*>(values_), count()};
  }

  // Equal in type, shape and values.
  bool operator==(const AnyColumn& other) const {
    return letter_ == other.letter_ && rows_ == other.rows_ && width_ == other.width_ &&
           (bytes() == 0 || std::memcmp(values_, other.values_, bytes()) == 0);
  }

  // What another language shows of this column, kept from one look to the next: see
  // bound_fields.hpp. Not part of its value.
  std::shared_ptr<void>& face() const { return face_; }

 private:
  char letter_ = 'q';
  size_t width_ = 0;
  size_t rows_ = 0;
  const void* values_ = nullptr;
  std::shared_ptr<const void> memory_;
  mutable std::shared_ptr<void> face_;
};

namespace detail {

template <class T>
std::pair<std::shared_ptr<T[]>, T*> new_values(size_t count) {
  std::shared_ptr<T[]> memory = std::make_shared_for_overwrite<T[]>(count);
  T* const values = memory.get();
  return {std::move(memory), values};
}

}  // namespace detail

template <class T>
class SharedColumn : public AnyColumn {
 public:
  using Value = T;

  SharedColumn() : SharedColumn(nullptr, 0, nullptr) {}
  SharedColumn(const T* values, size_t rows, std::shared_ptr<const void> memory)
      : AnyColumn(letter_of<T>(), rows, 0, values, std::move(memory)) {}
  // Expects one dimension of T.
  explicit SharedColumn(AnyColumn column) : AnyColumn(std::move(column)) {
    assert(letter() == letter_of<T>() && !is_table());
  }
  // A copy of the values.
  explicit SharedColumn(std::span<const T> values) {
    auto [column, to] = make(values.size());
    std::copy(values.begin(), values.end(), to);
    *this = std::move(column);
  }

  // A column of uninitialised values, and where to write them before anybody reads it.
  static std::pair<SharedColumn, T*> make(size_t rows) {
    auto [memory, values] = detail::new_values<T>(rows);
    return {SharedColumn(values, rows, std::move(memory)), values};
  }
  static SharedColumn filled(size_t rows, T value) {
    auto [column, values] = make(rows);
    std::fill_n(values, rows, value);
    return column;
  }

  size_t size() const { return rows(); }
  const T* data() const { return static_cast<const T*>(values()); }
  const T& operator[](size_t row) const { return data()[row]; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size(); }
  std::span<const T> span() const { return {data(), size()}; }

  // Rows [from, to) of the same memory.
  SharedColumn slice(size_t from, size_t to) const {
    return SharedColumn(data() + from, to - from, memory());
  }
};

// A copy of the values.
template <class T>
SharedColumn<T> copied_column(const std::vector<T>& values) {
  return SharedColumn<T>(std::span<const T>(values));
}

template <class T>
class SharedTable : public AnyColumn {
 public:
  using Value = T;

  SharedTable() : SharedTable(nullptr, 0, 1, nullptr) {}
  SharedTable(const T* values, size_t rows, size_t width, std::shared_ptr<const void> memory)
      : AnyColumn(letter_of<T>(), rows, width, values, std::move(memory)) {}

  // Expects two dimensions of T.
  explicit SharedTable(AnyColumn column) : AnyColumn(std::move(column)) {
    assert(letter() == letter_of<T>() && is_table());
  }

  static std::pair<SharedTable, T*> make(size_t rows, size_t width) {
    auto [memory, values] = detail::new_values<T>(rows * width);
    return {SharedTable(values, rows, width, std::move(memory)), values};
  }

  const T* data() const { return static_cast<const T*>(values()); }
  const T* row(size_t at) const { return data() + at * width(); }
};

// The rows of a column, or of a table, at `rows`.
template <class T>
SharedColumn<T> rows_of(const SharedColumn<T>& column, const std::vector<size_t>& rows) {
  auto [picked, values] = SharedColumn<T>::make(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) values[i] = column[rows[i]];
  return picked;
}
template <class T>
SharedTable<T> rows_of(const SharedTable<T>& table, const std::vector<size_t>& rows) {
  auto [picked, values] = SharedTable<T>::make(rows.size(), table.width());
  for (size_t i = 0; i < rows.size(); ++i)
    std::copy_n(table.row(rows[i]), table.width(), values + i * table.width());
  return picked;
}

// Integer columns as few bytes: the smallest value once, the others as offsets from it in the
// fewest bytes that hold them (0, 1, 2, 4 or 8).
//
// A packed column: dtype letter (as numpy's: b B h H i I q Q, ? for bool), bytes per offset, width
// of a row (0 for one dimension), 0; u32 rows; i64 smallest value (two's complement of the value's
// 64 bits); rows * max(width, 1) offsets. Little-endian, unaligned.
//
// Packed bytes may be anybody's: what is wrong with them is a std::invalid_argument.

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
