// The rows of several tables, gathered until they are taken out together: once per sample interval.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace agora {

// Rows of one table, kept by column until they are taken out together.
//
// Columns are signed integers of 1, 2, 4 or 8 bytes. Values are narrowed without a check: whoever
// adds a row knows its table.
class RowBuffer {
 public:
  // bytes: of a value of each column.
  explicit RowBuffer(const std::vector<size_t>& bytes) {
    for (const size_t size : bytes) {
      if (size != 1 && size != 2 && size != 4 && size != 8)
        throw std::invalid_argument("row buffer: expected columns of 1, 2, 4 or 8 bytes");
      columns_.push_back({size, {}});
    }
  }

  size_t rows() const { return rows_; }
  size_t columns() const { return columns_.size(); }
  size_t bytes_of(size_t column) const { return columns_[column].size; }
  const char* data(size_t column) const { return columns_[column].bytes.data(); }

  // To add rows: grow() once, then write every column of the new rows, numbered from the first new
  // one.
  void grow(size_t rows) {
    first_ = rows_;
    rows_ += rows;
    for (Column& column : columns_) column.bytes.resize(rows_ * column.size);
  }
  // Takes the last grow() back.
  void ungrow() {
    rows_ = first_;
    for (Column& column : columns_) column.bytes.resize(rows_ * column.size);
  }
  void write(size_t column, size_t row, int64_t value) {
    with_rows(column, [row, value](auto* to) {
      to[row] = static_cast<std::remove_pointer_t<decltype(to)>>(value);
    });
  }
  void fill(size_t column, int64_t value) {
    with_rows(column, [this, value](auto* to) {
      std::fill_n(to, rows_ - first_, static_cast<std::remove_pointer_t<decltype(to)>>(value));
    });
  }
  // The column's new rows. Requires: values of T are as many bytes as the column's.
  template <class T>
  T* added(size_t column) {
    assert(columns_[column].size == sizeof(T));
    return reinterpret_cast<T*>(columns_[column].bytes.data()) + first_;
  }
  // One row: a value per column.
  void add(std::initializer_list<int64_t> values) {
    if (values.size() != columns_.size())
      throw std::invalid_argument("row buffer: expected one value per column");
    grow(1);
    size_t column = 0;
    for (const int64_t value : values) write(column++, 0, value);
  }
  // values: one per new row. From is any integer type, or bool.
  template <class From>
  void copy(size_t column, const From* values) {
    with_rows(column, [this, values](auto* to) {
      using To = std::remove_pointer_t<decltype(to)>;
      std::transform(values, values + (rows_ - first_), to,
                     [](From value) { return static_cast<To>(value); });
    });
  }

  // Whether rows of the other have columns of the same sizes.
  bool is_like(const RowBuffer& other) const {
    return std::ranges::equal(columns_, other.columns_, {}, &Column::size, &Column::size);
  }
  // Adds the rows of one that is like this.
  void append(const RowBuffer& other) {
    first_ = rows_;
    rows_ += other.rows_;
    for (size_t column = 0; column < columns_.size(); ++column) {
      const std::vector<char>& bytes = other.columns_[column].bytes;
      columns_[column].bytes.insert(columns_[column].bytes.end(), bytes.begin(), bytes.end());
    }
  }

  // Forgets the rows; keeps their memory for the next.
  void clear() {
    rows_ = first_ = 0;
    for (Column& column : columns_) column.bytes.clear();
  }

 private:
  struct Column {
    size_t size;
    std::vector<char> bytes;
  };

  // Calls visit with a pointer to the column's new rows, of its type.
  template <class Visit>
  void with_rows(size_t column, const Visit& visit) {
    switch (columns_[column].size) {
      case 1:
        return visit(added<int8_t>(column));
      case 2:
        return visit(added<int16_t>(column));
      case 4:
        return visit(added<int32_t>(column));
      default:
        return visit(added<int64_t>(column));
    }
  }

  std::vector<Column> columns_;
  size_t rows_ = 0;
  size_t first_ = 0;  // of the rows being added
};

// A table: its name, and the bytes of a value of each column.
struct TableLayout {
  std::string name;
  std::vector<size_t> bytes;
};

class Measurements {
 public:
  explicit Measurements(const std::vector<TableLayout>& tables) {
    for (const TableLayout& table : tables) {
      names_.push_back(table.name);
      buffers_.emplace_back(table.bytes);
    }
  }
  // Not copied or moved: those who add rows keep references to the buffers.
  Measurements(const Measurements&) = delete;
  Measurements& operator=(const Measurements&) = delete;

  size_t tables() const { return buffers_.size(); }
  const std::string& name(size_t table) const { return names_[table]; }
  RowBuffer& rows(size_t table) { return buffers_[table]; }
  const RowBuffer& rows(size_t table) const { return buffers_[table]; }

  // Throws std::invalid_argument if there is no such table.
  RowBuffer& rows(std::string_view name) {
    for (size_t table = 0; table < names_.size(); ++table)
      if (names_[table] == name) return buffers_[table];
    throw std::invalid_argument(std::string(name) + ": there is no such table");
  }

  // Takes over all rows of the other. Returns false, with both as they were, if the other has rows
  // of a table that this has not.
  bool take_over(Measurements& other) {
    for (size_t table = 0; table < other.tables(); ++table)
      if (other.rows(table).rows() > 0 && !find(other, table)) return false;
    for (size_t table = 0; table < other.tables(); ++table) {
      if (other.rows(table).rows() == 0) continue;
      find(other, table)->append(other.rows(table));
      other.rows(table).clear();
    }
    return true;
  }
  void clear() {
    for (RowBuffer& rows : buffers_) rows.clear();
  }

 private:
  // The rows of the same table as the other's, null if there is none.
  RowBuffer* find(const Measurements& other, size_t table) {
    for (size_t mine = 0; mine < names_.size(); ++mine)
      if (names_[mine] == other.names_[table])
        return buffers_[mine].is_like(other.buffers_[table]) ? &buffers_[mine] : nullptr;
    return nullptr;
  }

  std::vector<std::string> names_;
  std::vector<RowBuffer> buffers_;
};

}  // namespace agora
