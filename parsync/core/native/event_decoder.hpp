// Decodes native events without calling Python: the inverse of event_encoder.hpp, from the same
// list of fields. The bytes may be anybody's: what is no such event is a std::invalid_argument.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

#include "event.hpp"
#include "msgpack_reader.hpp"
#include "shared_state/native/shared_column.hpp"
#include "shared_state/native/transaction.hpp"
#include "shared_state/native/pack.hpp"

namespace agora {

class EventDecoder {
 public:
  // most_values: of all columns together that this decoder makes.
  explicit EventDecoder(size_t most_values = PackedColumns::kMostValues)
      : values_left_(most_values) {}

  // An event or a part of one, of what follows its kind and number.
  template <class T>
  std::shared_ptr<T> fields(msgpack::Reader& reader) {
    auto of = std::make_shared<T>();
    if (reader.array("the fields of an event") != 3) msgpack::Reader::refuse("three parts");
    const auto where = static_cast<uint64_t>(reader.integer("which fields are columns"));
    if (kFieldCount<T> < 64 && where >> (kFieldCount<T> % 64))
      throw std::invalid_argument(std::string(T::kName) + ": columns of fields that it lacks");
    const size_t plain = reader.array("the plain fields of an event");
    size_t taken = 0;
    each_field(
        *of,
        [&](const char* name, auto& value, bool is_column) {
          if (is_column) return;
          if (taken++ == plain) lacks(T::kName, name);
          get_plain(value, reader, name);
        },
        where);
    if (taken != plain) throw std::invalid_argument(std::string(T::kName) + ": too many fields");
    PackedColumns columns = packed_columns(reader);
    each_field(
        *of,
        [&](const char* name, auto& value, bool is_column) {
          if (!is_column) return;
          if (columns.at_end()) lacks(T::kName, name);
          get_column(value, columns, name);
        },
        where);
    take_over(columns);
    end_of(reader);
    return of;
  }

  // Scheduler, sequence, commit mode, conflict check, which optional columns there are, packed
  // columns: what follows the kind and number of a transaction.
  std::shared_ptr<Transaction> transaction(msgpack::Reader& reader);

  PackedColumns packed_columns(msgpack::Reader& reader) const {
    return PackedColumns(reader.bytes("packed columns"), values_left_);
  }
  // Ends the reading of columns. Throws if there are more.
  void take_over(const PackedColumns& columns);
  // Throws if there is more.
  static void end_of(const msgpack::Reader& reader);

 private:
  template <class T, class Visit>
  static void each_field(T& of, Visit&& visit, uint64_t where) {
    size_t at = 0;
    std::apply(
        [&](const auto&... field) {
          (visit(field.name, of.*field.member, (where >> at++ & 1) != 0), ...);
        },
        T::fields());
  }

  [[noreturn]] static void lacks(const char* event, const char* field);
  [[noreturn]] static void refuse_column(const char* field, char letter, bool table);
  [[noreturn]] static void refuse_plain(const char* field);

  void get_plain(int64_t& value, msgpack::Reader& reader, const char* field);
  void get_plain(bool& value, msgpack::Reader& reader, const char* field);
  void get_plain(TransactionPtr& value, msgpack::Reader& reader, const char* field);
  void get_plain(CommitResultPtr& value, msgpack::Reader& reader, const char* field);
  void get_plain(std::vector<PartitionDeltaPtr>& value, msgpack::Reader& reader, const char* field);
  void get_plain(AnyColumn&, msgpack::Reader&, const char* field) {
    refuse_column(field, 0, false);
  }
  template <class T>
  void get_plain(SharedColumn<T>&, msgpack::Reader&, const char* field) {
    refuse_column(field, letter_of<T>(), false);
  }
  template <class T>
  void get_plain(SharedTable<T>&, msgpack::Reader&, const char* field) {
    refuse_column(field, letter_of<T>(), true);
  }
  template <class T>
  void get_plain(std::optional<T>& value, msgpack::Reader& reader, const char* field) {
    static_assert(std::derived_from<T, AnyColumn>, "only columns may be left out");
    if (!value) value.emplace();
    if (reader.next().kind != msgpack::Kind::Nil) get_plain(*value, reader, field);
    value.reset();
  }

  void get_column(AnyColumn& value, PackedColumns& columns, const char*) {
    value = unpacked(columns.next());
  }
  template <class T>
  void get_column(SharedColumn<T>& value, PackedColumns& columns, const char* field) {
    value = SharedColumn<T>(column_of(columns, letter_of<T>(), false, field));
  }
  template <class T>
  void get_column(SharedTable<T>& value, PackedColumns& columns, const char* field) {
    value = SharedTable<T>(column_of(columns, letter_of<T>(), true, field));
  }
  template <class T>
  void get_column(std::optional<T>& value, PackedColumns& columns, const char* field) {
    get_column(value.emplace(), columns, field);
  }
  template <class T>
  void get_column(T&, PackedColumns&, const char* field) {
    refuse_plain(field);
  }
  static AnyColumn column_of(PackedColumns& columns, char letter, bool table, const char* field);

  // The inside of a part of an event.
  static msgpack::Reader part(msgpack::Reader& reader, int number, const char* what);

  size_t values_left_;
};

// Decodes an event of one type, of what follows its kind and number.
using DecodeEvent = std::shared_ptr<Event> (*)(EventDecoder&, msgpack::Reader&);

template <class T>
std::shared_ptr<Event> decode_event(EventDecoder& decoder, msgpack::Reader& reader) {
  return decoder.fields<T>(reader);
}

}  // namespace agora
