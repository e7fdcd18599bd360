// An event is a message or a timer that a participant handles. It is immutable, and is about a
// batch of tasks, never a single one. It is identified by its protocol ("core" for events that
// every protocol shares) and its number there; both are part of the log's format.
//
// A native event is a struct that lists its fields, from which its encoding (below) and its
// Python class (bound_participant.hpp) are made:
//
//   struct LockRequest final : EventOf<LockRequest> {
//     static constexpr EventType kType{"locking", 1, Priority::Decide};
//     static constexpr const char* kName = "LockRequest";
//     int64_t agent; SharedColumn<int32_t> partition;
//     static constexpr auto fields() { return std::tuple{Field{"agent", &LockRequest::agent}, ...};
//     }
//   };
//
// Native code holds an event of a Python class as a native event with the Python object in it
// (bound_participant.hpp).
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

#include "msgpack.hpp"
#include "shared_state/native/fields.hpp"
#include "shared_state/native/pack.hpp"
#include "shared_state/native/transaction.hpp"

namespace agora {

// Order of delivery at one instant of virtual time; ties go by the order of sending. ParSync's
// simulation (section 4.3) frees slots first, then synchronises, commits and decides. A decision
// that starts at an instant comes last, so that it sees all that.
enum class Priority : int8_t { Free = 0, Sync = 1, Commit = 2, Decide = 3, Start = 4 };

struct EventType {
  std::string_view kind;  // the protocol
  int number;
  Priority priority;

  // A number for `switch`: equal for equal types, also if two libraries define them.
  constexpr uint64_t key() const { return key_of(kind, number); }
  static constexpr uint64_t key_of(std::string_view kind, int number) {
    uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
    for (const char letter : kind)
      hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3;
    return hash << 16 ^ static_cast<uint64_t>(number);
  }
};

class EventEncoder;

class Event {
 public:
  virtual ~Event() = default;

  Priority priority() const { return priority_; }
  // The protocol that it belongs to.
  virtual std::string_view kind() const = 0;
  // EventType::key() of a native event; 0 of one whose class is Python's.
  uint64_t key() const { return key_; }

  // Appends the whole event, as messages between processes carry it. If it throws, bytes may have
  // been appended to `out`.
  virtual void encode(EventEncoder& encoder, std::string& out) const = 0;
  // Appends what an event log holds of it.
  virtual void encode_for_log(EventEncoder& encoder, std::string& out) const {
    encode(encoder, out);
  }

 protected:
  constexpr Event(uint64_t key, Priority priority) : key_(key), priority_(priority) {}
  Event(const Event&) = default;
  Event& operator=(const Event&) = default;

 private:
  uint64_t key_;
  Priority priority_;
};

using EventPtr = std::shared_ptr<const Event>;

// The addresses of participants (parsync/core/addresses.py): agents have 0, 1, ..., and all other
// participants have negative addresses.

constexpr int64_t kMaster = -1;
constexpr int64_t kWorkers = -2;
constexpr int64_t kArrivals = -4;

// Encodes and decodes native events without calling Python, both from the event's list of fields.
//
// An event is a msgpack extension: kind, number, then (where, plain fields, packed columns). Bit i
// of `where` is set if field i is a column (shared_state/native/pack.hpp). Parts of events have the
// same form, with the kind "cell". python_codec.hpp writes events of Python classes in the same
// form.

constexpr int8_t kEventCode = 1;                // of the msgpack extension
constexpr std::string_view kPartKind = "cell";  // the kind of what is no event but part of one

// Appends the packed form of a column.
void pack_shared_column(const AnyColumn& column, std::string& bytes);

class EventEncoder {
 public:
  EventEncoder() = default;
  virtual ~EventEncoder() = default;
  EventEncoder(const EventEncoder&) = delete;
  EventEncoder& operator=(const EventEncoder&) = delete;

  // Appends `of`, an event or a part of one, with this kind and number.
  template <class T>
  void put_fields(std::string_view kind, int number, const T& of, std::string& out) {
    Level level(*this);
    uint64_t where = 0;
    size_t field = 0, plain = 0;
    for_each_field(of, [&](const char*, const auto& value) {
      const bool is_column = put_field(value, level->plain, level->columns);
      where |= static_cast<uint64_t>(is_column) << field++;
      plain += !is_column;
    });
    std::string& body = level->body;
    msgpack::put_string(body, kind);
    msgpack::put_integer(body, number);
    msgpack::put_array_head(body, 3);
    msgpack::put_unsigned(body, where);
    msgpack::put_array_head(body, plain);
    body += level->plain;
    msgpack::put_bytes(body, level->columns);
    msgpack::put_extension_head(out, body.size(), kEventCode);
    out += body;
  }

  // Appends an event whose class is another language's. Throws std::logic_error unless the encoder
  // is one of that language.
  virtual void put_foreign(const void* event, std::string& out);

  // Appends a CommitResult or a PartitionDelta.
  template <class T>
  void put_part(const T& part, std::string& out) {
    put_fields(kPartKind, T::kPart, part, out);
  }

  // Appends a transaction: scheduler, sequence, commit mode, conflict check, which optional columns
  // there are, packed columns.
  void put_transaction(const Transaction& transaction, std::string& out);

 private:
  struct Buffers {
    std::string plain, columns, body;
  };
  // The buffers of an event, or of a part within one.
  class Level {
   public:
    explicit Level(EventEncoder& encoder) : encoder_(encoder) {
      if (encoder_.depth_ == encoder_.buffers_.size())
        encoder_.buffers_.push_back(std::make_unique<Buffers>());
      buffers_ = encoder_.buffers_[encoder_.depth_++].get();
      for (std::string* buffer : {&buffers_->plain, &buffers_->columns, &buffers_->body})
        buffer->clear();
    }
    ~Level() { --encoder_.depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;
    Buffers* operator->() const { return buffers_; }

   private:
    EventEncoder& encoder_;
    Buffers* buffers_;
  };

  // Each appends to one of the two, and returns whether that was the columns.
  bool put_field(int64_t value, std::string& plain, std::string&) {
    msgpack::put_integer(plain, value);
    return false;
  }
  bool put_field(bool value, std::string& plain, std::string&) {
    msgpack::put_bool(plain, value);
    return false;
  }
  bool put_field(const AnyColumn& value, std::string&, std::string& columns) {
    pack_shared_column(value, columns);
    return true;
  }
  template <class T>
  bool put_field(const std::optional<T>& value, std::string& plain, std::string& columns) {
    if (value) return put_field(*value, plain, columns);
    msgpack::put_nil(plain);
    return false;
  }
  bool put_field(const TransactionPtr& value, std::string& plain, std::string&) {
    put_transaction(*value, plain);
    return false;
  }
  bool put_field(const CommitResultPtr& value, std::string& plain, std::string&) {
    put_part(*value, plain);
    return false;
  }
  bool put_field(const std::vector<PartitionDeltaPtr>& value, std::string& plain, std::string&) {
    msgpack::put_array_head(plain, value.size());
    for (const PartitionDeltaPtr& delta : value) put_part(*delta, plain);
    return false;
  }

  std::vector<std::unique_ptr<Buffers>> buffers_;
  size_t depth_ = 0;
};

// The base of native events: what follows from an event's type and fields.
template <class T>
class EventOf : public Event {
 public:
  EventOf() : Event(T::kType.key(), T::kType.priority) {}

  std::string_view kind() const override { return T::kType.kind; }
  void encode(EventEncoder& encoder, std::string& out) const override {
    encoder.put_fields(T::kType.kind, T::kType.number, static_cast<const T&>(*this), out);
  }
};

// The inverse of EventEncoder. The bytes may be anybody's: what is no such event is a
// std::invalid_argument.
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
