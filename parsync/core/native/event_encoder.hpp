// Encodes native events without calling Python.
//
// An event is a msgpack extension: kind, number, then (where, plain fields, packed columns). Bit i
// of `where` is set if field i is a column (shared_state/native/pack.hpp). Parts of events have the
// same form, with the kind "cell". event_decoder.hpp decodes it; encoder.hpp writes events of
// Python classes in the same form.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "event.hpp"
#include "msgpack.hpp"
#include "shared_state/native/field.hpp"
#include "shared_state/native/pack.hpp"
#include "shared_state/native/transaction.hpp"

namespace agora {

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

}  // namespace agora
