// The rows of several tables, gathered until they are taken out together: once per sample interval.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "row_buffer.hpp"

namespace agora {

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
