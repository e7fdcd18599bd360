#include "event_encoder.hpp"

#include <limits>
#include <stdexcept>

namespace agora {

void pack_shared_column(const AnyColumn& column, std::string& bytes) {
  if (column.rows() > std::numeric_limits<uint32_t>::max() || column.width() > 255)
    throw std::invalid_argument(
        "cannot encode: expected arrays [n] or [n, w] of integers or bools");
  pack_column(
      column.values(),
      {column.letter(), static_cast<uint8_t>(column.width()), static_cast<uint32_t>(column.rows())},
      bytes);
}

void EventEncoder::put_foreign(const void*, std::string&) {
  throw std::logic_error("this encoder is for native events");
}

void EventEncoder::put_transaction(const Transaction& transaction, std::string& out) {
  const Transaction& t = transaction;
  Level level(*this);
  for (const AnyColumn* column :
       {static_cast<const AnyColumn*>(&t.task), static_cast<const AnyColumn*>(&t.machine),
        static_cast<const AnyColumn*>(&t.request), static_cast<const AnyColumn*>(&t.synced_us)})
    pack_shared_column(*column, level->columns);
  int64_t present = 0, bit = 1;
  const auto put_optional = [&](const auto& column) {
    if (column) {
      present |= bit;
      pack_shared_column(*column, level->columns);
    }
    bit <<= 1;
  };
  put_optional(t.gang);
  put_optional(t.seqnum);
  put_optional(t.evict);
  std::string& body = level->body;
  msgpack::put_string(body, kPartKind);
  msgpack::put_integer(body, Transaction::kPart);
  msgpack::put_array_head(body, 6);
  msgpack::put_integer(body, t.scheduler);
  msgpack::put_integer(body, t.sequence);
  msgpack::put_integer(body, static_cast<int64_t>(t.commit_mode));
  msgpack::put_integer(body, static_cast<int64_t>(t.conflict_check));
  msgpack::put_integer(body, present);
  msgpack::put_bytes(body, level->columns);
  msgpack::put_extension_head(out, body.size(), kEventCode);
  out += body;
}

}  // namespace agora
