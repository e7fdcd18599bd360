#include "event.hpp"

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
  put_optional(t.holds);
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

using msgpack::Head;
using msgpack::Kind;
using msgpack::Reader;

void EventDecoder::lacks(const char* event, const char* field) {
  throw std::invalid_argument(std::string(event) + ": lacks " + field);
}

void EventDecoder::refuse_column(const char* field, char letter, bool table) {
  const std::string type = letter ? " " + name_of(letter) : " of integers ";
  const std::string shape = table ? "[n, width]" : letter ? "[n]" : "[n] or [n, width]";
  throw std::invalid_argument(std::string(field) + ": expected an array" + type + shape);
}

void EventDecoder::refuse_plain(const char* field) {
  throw std::invalid_argument(std::string(field) + ": expected no array");
}

void EventDecoder::take_over(const PackedColumns& columns) {
  if (!columns.at_end()) throw std::invalid_argument("more columns than there should be");
  values_left_ = columns.values_left();
}

void EventDecoder::end_of(const Reader& reader) {
  if (!reader.at_end()) throw std::invalid_argument("msgpack: more than there should be");
}

void EventDecoder::get_plain(int64_t& value, Reader& reader, const char* field) {
  value = reader.integer(field);
}

void EventDecoder::get_plain(bool& value, Reader& reader, const char* field) {
  value = reader.expect(Kind::Bool, field).integer != 0;
}

void EventDecoder::get_plain(TransactionPtr& value, Reader& reader, const char* field) {
  Reader inside = part(reader, Transaction::kPart, field);
  value = transaction(inside);
}

void EventDecoder::get_plain(CommitResultPtr& value, Reader& reader, const char* field) {
  Reader inside = part(reader, CommitResult::kPart, field);
  value = fields<CommitResult>(inside);
}

void EventDecoder::get_plain(std::vector<PartitionDeltaPtr>& value, Reader& reader,
                             const char* field) {
  for (size_t left = reader.array(field); left > 0; --left) {
    Reader inside = part(reader, PartitionDelta::kPart, field);
    value.push_back(fields<PartitionDelta>(inside));
  }
}

AnyColumn EventDecoder::column_of(PackedColumns& columns, char letter, bool table,
                                  const char* field) {
  const PackedColumn packed = columns.next();
  if (packed.shape.letter != letter || (packed.shape.width > 0) != table)
    refuse_column(field, letter, table);
  return unpacked(packed);
}

Reader EventDecoder::part(Reader& reader, int number, const char* what) {
  const Head head = reader.expect(Kind::Extension, what);
  Reader inside(head.bytes);
  if (head.integer != kEventCode || inside.expect(Kind::String, what).bytes != kPartKind ||
      inside.integer(what) != number)
    Reader::refuse(what);
  return inside;
}

std::shared_ptr<Transaction> EventDecoder::transaction(Reader& reader) {
  try {
    auto made = std::make_shared<Transaction>();
    Transaction& t = *made;
    if (reader.array("a transaction") != 6) Reader::refuse("six parts");
    t.scheduler = reader.integer("a scheduler");
    t.sequence = reader.integer("a number");
    const int64_t mode = reader.integer("a commit mode");
    const int64_t check = reader.integer("a conflict check");
    const int64_t present = reader.integer("which columns there are");
    if (mode < 0 || mode > static_cast<int64_t>(CommitMode::AllOrNothing))
      Reader::refuse("a commit mode");
    if (check < 0 || check > static_cast<int64_t>(ConflictCheck::SequenceNumber))
      Reader::refuse("a conflict check");
    t.commit_mode = static_cast<CommitMode>(mode);
    t.conflict_check = static_cast<ConflictCheck>(check);
    PackedColumns columns = packed_columns(reader);
    int64_t left = present;
    const auto next = [&](auto& column, const char* name) {
      if (columns.at_end()) lacks("Transaction", name);
      get_column(column, columns, name);
    };
    const auto next_optional = [&](auto& column, const char* name) {
      if (left & 1) next(column, name);
      left >>= 1;
    };
    next(t.task, "task");
    next(t.machine, "machine");
    next(t.request, "request");
    next(t.synced_us, "synced_us");
    next_optional(t.gang, "gang");
    next_optional(t.seqnum, "seqnum");
    next_optional(t.evict, "evict");
    next_optional(t.holds, "holds");
    if (left) Reader::refuse("which columns there are");
    take_over(columns);
    end_of(reader);
    return made;
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument("encoded transaction: malformed (" + std::string(error.what()) +
                                ")");
  }
}

}  // namespace agora
