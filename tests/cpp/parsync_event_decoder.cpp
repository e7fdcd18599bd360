// Events out of bytes that anybody may have written: what was encoded comes back, and any other
// bytes are refused with a std::invalid_argument.
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "fuzz.hpp"
#include "parsync/core/native/event.hpp"
#include "parsync/core/native/events.hpp"

using namespace agora;

namespace {

// Of a mutated input: a few bytes may claim any number of values.
constexpr size_t kMostValues = 1 << 16;

template <class T>
SharedColumn<T> column(const std::vector<T>& values) {
  return SharedColumn<T>(std::span<const T>(values));
}

SharedTable<int64_t> table(size_t rows, size_t width) {
  auto [made, values] = SharedTable<int64_t>::make(rows, width);
  for (size_t i = 0; i < rows * width; ++i) values[i] = static_cast<int64_t>(i * i) - 7;
  return made;
}

TransactionPtr transaction(bool with_optional) {
  auto made = std::make_shared<Transaction>();
  made->scheduler = 4;
  made->sequence = -9;
  made->task = column<int64_t>({3, -1, int64_t{1} << 62});
  made->machine = column<int32_t>({0, 5, 7});
  made->request = table(3, 2);
  made->synced_us = column<int64_t>({1000, 1000, 1255});
  if (with_optional) {
    made->commit_mode = CommitMode::AllOrNothing;
    made->conflict_check = ConflictCheck::SequenceNumber;
    made->gang = column<int64_t>({1, 1, 2});
    made->seqnum = column<uint32_t>({1, 2, UINT32_MAX});
    made->evict = column<int64_t>({});
  }
  return made;
}

CommitResultPtr result() {
  auto made = std::make_shared<CommitResult>();
  made->sequence = 9;
  made->reason = column<int8_t>({0, 2, 1});
  made->allocation = column<int64_t>({70000, -1, 70001});
  made->rival = column<int32_t>({-1, 3, -1});
  made->age_us = made->version = column<int64_t>({1, 2, 3});
  return made;
}

PartitionDeltaPtr delta(bool with_seqnum) {
  auto made = std::make_shared<PartitionDelta>();
  made->partition = 2;
  made->to_version = 17;
  made->at_us = 1234;
  made->row = column<uint16_t>({0, 9});
  made->used = column<int8_t>({1, -3});
  made->up = SharedColumn<bool>::filled(2, true);
  if (with_seqnum) made->seqnum = column<uint32_t>({5, 6});
  return made;
}

// An event's type, what decodes it, and one of them encoded.
struct Known {
  EventType type;
  DecodeEvent decode;
  std::string bytes;
};

template <class T>
Known known(const T& event) {
  EventEncoder encoder;
  std::string bytes;
  event.encode(encoder, bytes);
  return {T::kType, &decode_event<T>, bytes};
}

template <class T>
T with(const std::function<void(T&)>& fill) {
  T made;
  fill(made);
  return made;
}

const std::vector<Known>& events() {
  static const std::vector<Known> all = {
      known(with<Started>([](auto& e) { e.epoch = INT64_MIN; })),
      known(with<TasksSubmitted>([](auto& e) { e.task = column<int64_t>({1, 2, 300}); })),
      known(with<SyncRequest>([](auto& e) {
        e.partition = column<int32_t>({0, 5});
        e.version = column<int64_t>({9, 12});
        e.with_seqnum = true;
      })),
      known(with<SyncReply>([](auto& e) { e.deltas = {delta(false), delta(true)}; })),
      known(with<CommitRequest>([](auto& e) { e.transaction = transaction(false); })),
      known(with<CommitReply>([](auto& e) { e.result = result(); })),
      known(with<TasksEnded>([](auto& e) { e.request = table(2, 3); })),
      known(with<MachinesChanged>([](auto& e) { e.up = SharedColumn<bool>::filled(2, true); })),
      known(HeartbeatDue{}),
      known(with<ClaimsSettled>([](auto& e) {
        e.transaction = transaction(true);
        e.result = result();
      })),
      known(with<QuotaGrant>([](auto& e) { e.amount = e.reclaim = table(3, 1); }))};
  return all;
}

std::string encoded(const Event& event) {
  EventEncoder encoder;
  std::string bytes;
  event.encode(encoder, bytes);
  return bytes;
}

// The event in the bytes; null if they are none that is known here.
std::shared_ptr<Event> decoded(std::string_view bytes) {
  msgpack::Reader reader(bytes);
  const msgpack::Head head = reader.expect(msgpack::Kind::Extension, "an event");
  EventDecoder::end_of(reader);
  msgpack::Reader inside(head.bytes);
  const std::string_view kind = inside.expect(msgpack::Kind::String, "a kind").bytes;
  const int64_t number = inside.integer("a number");
  EventDecoder decoder(kMostValues);
  for (const Known& one : events())
    if (one.type.kind == kind && one.type.number == number) return one.decode(decoder, inside);
  return nullptr;
}

// Every value in the bytes, to any depth: the reader itself.
void read_all(std::string_view bytes, int depth) {
  msgpack::Reader reader(bytes);
  while (!reader.at_end()) {
    const msgpack::Head head = reader.next();
    if (head.kind == msgpack::Kind::Extension && depth < 4) read_all(head.bytes, depth + 1);
  }
}

bool is_refused(std::string_view bytes) {
  try {
    decoded(bytes);
  } catch (const std::invalid_argument&) {
    return true;
  }
  return false;
}

void check_round_trips() {
  for (const Known& one : events()) {
    const std::shared_ptr<Event> back = decoded(one.bytes);
    CHECK(back && back->key() == one.type.key() && back->priority() == one.type.priority);
    CHECK(encoded(*back) == one.bytes);
    for (size_t cut = 0; cut < one.bytes.size(); ++cut)
      CHECK(is_refused(std::string_view(one.bytes).substr(0, cut)));
    CHECK(is_refused(one.bytes + '\0'));
  }
}

// A column of a field's type only.
void check_types() {
  std::string bytes =
      encoded(with<TasksSubmitted>([](auto& e) { e.task = column<int64_t>({1, 2, 3}); }));
  const size_t letter = bytes.find('q');
  CHECK(letter != std::string::npos);
  for (const char other : {'i', 'Q', '?', 'x', '\0'}) {
    bytes[letter] = other;
    CHECK(is_refused(bytes));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try {
    read_all(bytes, 0);
  } catch (const std::invalid_argument&) {
  }
  try {
    const std::shared_ptr<Event> made = decoded(bytes);
    // what is taken can be written, and read again
    if (made) CHECK(encoded(*decoded(encoded(*made))) == encoded(*made));
  } catch (const std::invalid_argument&) {
  }
  return 0;
}

int main(int argc, char** argv) {
  check_round_trips();
  check_types();
  fuzz::Seeds seeds;
  for (const Known& one : events()) seeds.inputs.push_back(one.bytes);
  seeds.words = {
      "\xa4"
      "core",
      "\xa4"
      "cell",
      "\xc0",
      "\xc4",
      "q",
      "\x93",
      "\xcf",
      "\xff\xff\xff\xff"};
  return fuzz::drive(argc, argv, seeds, tries(50'000));
}
