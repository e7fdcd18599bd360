#include "view.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "cell.hpp"
#include "transaction.hpp"

namespace agora {

namespace {

constexpr int64_t kMaxOverlay = int64_t{1} << 60;
constexpr int64_t kMaxUsed = int64_t{1} << 61;
constexpr size_t kAhead = 16;  // rows: so early the memory of a row is asked for

[[noreturn]] void refuse(const std::string& what) { throw std::invalid_argument(what); }

}  // namespace

ClusterView::ClusterView(std::shared_ptr<const StaticCellState> static_state, bool with_seqnum)
    : static_state_(std::move(static_state)),
      dimensions_(static_state_->dimensions()),
      free_(static_state_->machines(), dimensions_,
            !with_seqnum && dimensions_ == 1 &&
                static_state_->largest_limit() <= FreeAmounts::kHighest),
      overlay_(static_state_->machines(), dimensions_),
      seqnum_(with_seqnum ? static_state_->machines() : 0),
      closed_(seqnum_.size()),
      closing_(dimensions_, kClosed),
      synced_us_(static_state_->partitions(), kNeverSynced),
      versions_(static_state_->partitions()),
      expiring_(static_state_->partitions()),
      overlaid_(static_state_->partitions()),
      index_(static_state_->index) {}

void ClusterView::reindex(int32_t row) {
  const bool open = free_.has_room(row);
  if (open == index_.contains(row)) return;
  if (open) {
    index_.insert(row);
  } else {
    index_.erase(row);
  }
}

// --- logs of changed rows ---

std::shared_ptr<RowLog> ClusterView::log_rows() {
  std::erase_if(logs_, [](const auto& log) { return log.use_count() == 1; });
  return logs_.emplace_back(std::make_shared<RowLog>());
}

bool ClusterView::writes(const std::shared_ptr<RowLog>& log) const {
  return std::find(logs_.begin(), logs_.end(), log) != logs_.end();
}

// A log longer than the rows is not worth reading.
void ClusterView::log(int32_t row) {
  for (const std::shared_ptr<RowLog>& log : logs_) {
    if (log->all) continue;
    log->rows.push_back(row);
    if (log->rows.size() <= static_state_->machines()) continue;
    log->rows.clear();
    log->all = true;
  }
}

void ClusterView::log_all() {
  for (const std::shared_ptr<RowLog>& log : logs_) log->all = true;
}

// --- what is laid over the synced state ---

void ClusterView::overlay(int32_t row, const int64_t* amount, int64_t sign) {
  log(row);
  overlaid_[partition_of(row)] += overlay_.add(row, amount, sign);
  free_.add(row, amount, -sign);
}

void ClusterView::close(int32_t row) {
  if (closed_[static_cast<size_t>(row)]++ == 0) overlay(row, closing_.data(), +1);
}

void ClusterView::reopen(int32_t row) {
  if (--closed_[static_cast<size_t>(row)] == 0) overlay(row, closing_.data(), -1);
}

// --- synchronisation ---

template <typename Row>
void ClusterView::check_rows(const Delta& delta) const {
  const Row* row = static_cast<const Row*>(delta.row);
  const std::vector<int64_t>& offsets = static_state_->index.offsets;
  const size_t p = static_cast<size_t>(delta.partition);
  // Negative if some step is not above 0. Without branches, several rows are looked at together.
  using Step = std::conditional_t<sizeof(Row) == 2, int32_t, int64_t>;
  Step steps = 0;
  for (size_t i = 1; i < delta.count; ++i)
    steps |= static_cast<Step>(row[i]) - static_cast<Step>(row[i - 1]) - 1;
  if (steps < 0) refuse("delta: rows must ascend");
  if (delta.count > 0 && row[delta.count - 1] >= static_cast<uint64_t>(offsets[p + 1] - offsets[p]))
    refuse("delta: row " + std::to_string(row[delta.count - 1]) + " is not in partition " +
           std::to_string(delta.partition));
}

// Returns the highest.
template <typename Used>
int64_t ClusterView::check_used(const Delta& delta) const {
  const Used* used = static_cast<const Used*>(delta.used);
  const size_t size = delta.count * dimensions_;
  Used lowest = 0, highest = 0;
  for (size_t i = 0; i < size; ++i) {
    lowest = std::min(lowest, used[i]);
    highest = std::max(highest, used[i]);
  }
  if (lowest < 0 || static_cast<int64_t>(highest) > kMaxUsed)
    refuse("delta: used must lie in [0, 2^61]");
  return highest;
}

// Calls visit(row) for the rows of `bits(word)`, 64 to a word, that lie in [first, end), ascending.
template <typename Bits, typename Visit>
void for_each_row(size_t first, size_t end, const Bits& bits, const Visit& visit) {
  for (size_t word = first / 64; word * 64 < end; ++word) {
    uint64_t rows = bits(word);
    if (word * 64 < first) rows &= ~uint64_t{0} << (first % 64);
    if ((word + 1) * 64 > end) rows &= (uint64_t{1} << (end % 64)) - 1;
    for (; rows != 0; rows &= rows - 1)
      visit(static_cast<int32_t>(word * 64) + std::countr_zero(rows));
  }
}

// Shows what the rows of a delta have free. Leaves in toggled_, ascending, those that are to open
// or to close. No branch is hard to predict: half of the changed rows do, in no order; few are
// overlaid.

// inside: so are all amounts that the view shows (free_amounts.hpp), and limit - used of these
// rows.
template <typename Row, typename Used>
void ClusterView::apply_narrow(const Delta& delta, bool inside) {
  const size_t partition = static_cast<size_t>(delta.partition);
  if (inside) {
    apply_bytes<Row, Used>(delta);
    if (overlaid_[partition] > 0) overlay_again<Row, Used>(delta);
  } else {
    for (size_t i = 0; i < delta.count; ++i) show_narrow<Row, Used>(delta, i);
  }
  find_toggled<Row>(delta);
}

// limit - used, which is inside; first of all rows, several at a time, then each to its place.
template <typename Row, typename Used>
void ClusterView::apply_bytes(const Delta& delta) {
  const Row* row = static_cast<const Row*>(delta.row);
  const Used* used = static_cast<const Used*>(delta.used);
  const size_t first =
      static_cast<size_t>(static_state_->index.offsets[static_cast<size_t>(delta.partition)]);
  const int64_t* limit = static_state_->limit.data();
  room_.resize(delta.count);
  int8_t* room = room_.data();
  if (static_state_->same_limits() && delta.count > 0) {
    const auto of_all = static_cast<int8_t>(limit[0]);
    for (size_t i = 0; i < delta.count; ++i)
      room[i] = static_cast<int8_t>(of_all - static_cast<int8_t>(used[i]));
  } else {
    for (size_t i = 0; i < delta.count; ++i)
      room[i] = static_cast<int8_t>(limit[first + row[i]] - static_cast<int64_t>(used[i]));
  }
  for (size_t i = 0; i < delta.count; ++i) room[i] = delta.up[i] ? room[i] : FreeAmounts::kDown;
  int8_t* free = free_.narrow() + first;
  for (size_t i = 0; i < delta.count; ++i) free[row[i]] = room[i];
}

// Lays over the rows of a delta what is laid over them.
template <typename Row, typename Used>
void ClusterView::overlay_again(const Delta& delta) {
  const Row* row = static_cast<const Row*>(delta.row);
  const size_t partition = static_cast<size_t>(delta.partition);
  const size_t first = static_cast<size_t>(static_state_->index.offsets[partition]),
               end = static_cast<size_t>(static_state_->index.offsets[partition + 1]);
  const auto overlaid = [&](size_t word) { return overlay_.rows(word); };
  for_each_row(first, end, overlaid, [&](int32_t machine) {
    const auto wanted = static_cast<Row>(static_cast<size_t>(machine) - first);
    const Row* at = std::lower_bound(row, row + delta.count, wanted);
    if (at != row + delta.count && *at == wanted)
      show_narrow<Row, Used>(delta, static_cast<size_t>(at - row));
  });
}

// The i-th row of a delta, whatever it shows.
template <typename Row, typename Used>
void ClusterView::show_narrow(const Delta& delta, size_t i) {
  const size_t m =
      static_cast<size_t>(static_state_->index.offsets[static_cast<size_t>(delta.partition)]) +
      static_cast<const Row*>(delta.row)[i];
  const int32_t machine = static_cast<int32_t>(m);
  if (!delta.up[i]) return free_.set_narrow_down(machine);
  const int64_t used = static_cast<const Used*>(delta.used)[i];
  const int64_t* overlaid = overlay_.find(machine);
  free_.set_narrow(machine, static_state_->limit[m] - used - (overlaid != nullptr ? *overlaid : 0));
}

// Of a narrow view: by the bitmap of the rows that have room, against that of the open ones. They
// differ in the delta's rows and in dirty_ alone.
template <typename Row>
void ClusterView::find_toggled(const Delta& delta) {
  const size_t partition = static_cast<size_t>(delta.partition);
  const size_t first = static_cast<size_t>(static_state_->index.offsets[partition]),
               end = static_cast<size_t>(static_state_->index.offsets[partition + 1]);
  toggled_.resize(end - first);
  size_t toggled = 0;
  const auto differ = [&](size_t word) {
    return free_.rows_with_room(word) ^ index_.open_rows(word);
  };
  for_each_row(first, end, differ, [&](int32_t machine) { toggled_[toggled++] = machine; });
  toggled_.resize(toggled);
  const Row* row = static_cast<const Row*>(delta.row);
  for (const int32_t dirty : dirty_) {
    if (std::binary_search(row, row + delta.count, static_cast<size_t>(dirty) - first)) continue;
    const auto at = std::lower_bound(toggled_.begin(), toggled_.end(), dirty);
    if (at != toggled_.end() && *at == dirty) toggled_.erase(at);
  }
}

template <size_t R, bool kOverlaid, typename Row, typename Used>
void ClusterView::apply_wide(const Delta& delta) {
  const size_t n = R ? R : dimensions_;
  const Row* row = static_cast<const Row*>(delta.row);
  const Used* used = static_cast<const Used*>(delta.used);
  const int64_t* limit = static_state_->limit.data();
  // machines of one size: their limits lie in one place
  const size_t stride = static_state_->same_limits() ? 0 : n;
  const size_t first =
      static_cast<size_t>(static_state_->index.offsets[static_cast<size_t>(delta.partition)]);
  int64_t* free = free_.wide();
  uint8_t* is_up = free_.up();
  toggled_.resize(delta.count);
  size_t toggled = 0;
  for (size_t i = 0; i < delta.count; ++i) {
    const size_t m = first + row[i];
    if (i + kAhead < delta.count) __builtin_prefetch(&free[(first + row[i + kAhead]) * n], 1);
    const bool up = delta.up[i];
    const int64_t kept = -static_cast<int64_t>(up);  // all bits where up
    is_up[m] = up;
    const int64_t* overlaid = kOverlaid ? overlay_.find(static_cast<int32_t>(m)) : nullptr;
    for (size_t r = 0; r < n; ++r) {
      int64_t room = limit[m * stride + r] - static_cast<int64_t>(used[i * n + r]);
      if (kOverlaid && overlaid != nullptr) room -= overlaid[r];
      free[m * n + r] = (room & kept) | ~kept;
    }
    toggled_[toggled] = static_cast<int32_t>(m);
    // where down, nothing has room
    toggled += FreeAmounts::has_room(free + m * n, n) != index_.contains(static_cast<int32_t>(m));
  }
  toggled_.resize(toggled);
}

template <typename Row, typename Used>
void ClusterView::apply_rows(const Delta& delta, int64_t highest_used) {
  const Row* row = static_cast<const Row*>(delta.row);
  const size_t partition = static_cast<size_t>(delta.partition);
  const bool overlaid = overlaid_[partition] > 0;
  if (free_.is_narrow()) {
    const bool inside = !free_.has_outside() && highest_used <= FreeAmounts::kHighestUsed;
    apply_narrow<Row, Used>(delta, inside);
  } else if (dimensions_ == 1) {
    overlaid ? apply_wide<1, true, Row, Used>(delta) : apply_wide<1, false, Row, Used>(delta);
  } else {
    overlaid ? apply_wide<0, true, Row, Used>(delta) : apply_wide<0, false, Row, Used>(delta);
  }
  index_.toggle_unsummed(toggled_, partition);
  const size_t first = static_cast<size_t>(static_state_->index.offsets[partition]);
  if (!logs_.empty())
    for (size_t i = 0; i < delta.count; ++i) log(static_cast<int32_t>(first + row[i]));
  if (!seqnum_.empty())
    for (size_t i = 0; i < delta.count; ++i) seqnum_[first + row[i]] = delta.seqnum[i];
}

void ClusterView::apply(const PartitionDelta& delta) {
  const size_t count = delta.up.size();
  const AnyColumn &row = delta.row, &used = delta.used;
  if (delta.partition < 0 || delta.partition > INT32_MAX)
    refuse("delta: there is no partition " + std::to_string(delta.partition));
  if (std::strchr("BHIQ", row.letter()) == nullptr || row.is_table() || row.rows() != count)
    refuse("delta: row must be unsigned integers, one per entry of up");
  if (std::strchr("bhiq", used.letter()) == nullptr || used.rows() != count ||
      used.width() != dimensions_)
    refuse("delta: used must be signed integers, a row per entry of up and a column per dimension");
  if (delta.seqnum && delta.seqnum->size() != count)
    refuse("delta: seqnum must have one entry per row");
  apply(Delta{static_cast<int32_t>(delta.partition), delta.from_version, delta.to_version,
              delta.at_us, count, row.values(), bytes_of(row.letter()), used.values(),
              bytes_of(used.letter()), delta.up.data(),
              delta.seqnum ? delta.seqnum->data() : nullptr});
}

void ClusterView::apply(const Delta& delta) {
  if (delta.partition < 0 || static_cast<size_t>(delta.partition) >= static_state_->partitions())
    refuse("delta: there is no partition " + std::to_string(delta.partition));
  const size_t p = static_cast<size_t>(delta.partition);
  const std::string name = "delta of partition " + std::to_string(delta.partition);
  if (delta.from_version < 0 || delta.from_version > versions_[p])
    refuse(name + " starts at version " + std::to_string(delta.from_version) + ", the view holds " +
           std::to_string(versions_[p]));
  if (delta.to_version < versions_[p] || delta.to_version < delta.from_version)
    refuse(name + " ends at version " + std::to_string(delta.to_version) + ", the view holds " +
           std::to_string(versions_[p]));
  if (delta.at_us < 0 || delta.at_us < synced_us_[p])
    refuse(name + " is of an earlier time than the view");
  const std::vector<int64_t>& offsets = static_state_->index.offsets;
  if ((delta.from_version == 0 || synced_us_[p] == kNeverSynced) &&
      static_cast<int64_t>(delta.count) != offsets[p + 1] - offsets[p])
    refuse(name + " must hold all rows: it is a snapshot");
  if (!seqnum_.empty() && delta.seqnum == nullptr) refuse(name + " lacks the sequence numbers");

  const auto with_row = [&](auto row_type, auto used_type) {
    using Row = decltype(row_type);
    using Used = decltype(used_type);
    check_rows<Row>(delta);
    const int64_t highest_used = check_used<Used>(delta);
    expire_overlays(p, delta.to_version);
    apply_rows<Row, Used>(delta, highest_used);
  };
  const auto with_used = [&](auto used_type) {
    if (delta.row_bytes == 2) {
      with_row(uint16_t{}, used_type);
    } else if (delta.row_bytes == 4) {
      with_row(uint32_t{}, used_type);
    } else {
      refuse(name + ": rows must be uint16 or uint32");
    }
  };
  switch (delta.used_bytes) {
    case 1:
      with_used(int8_t{});
      break;
    case 2:
      with_used(int16_t{});
      break;
    case 4:
      with_used(int32_t{});
      break;
    case 8:
      with_used(int64_t{});
      break;
    default:
      refuse(name + ": used must be of 1, 2, 4 or 8 bytes");
  }
  index_.resum(p);
  for (const int32_t row : dirty_) reindex(row);
  dirty_.clear();
  versions_[p] = delta.to_version;
  synced_us_[p] = delta.at_us;
}

// Leaves the rows to reindex in dirty_: most of them are in the delta, too, and would be indexed
// twice.
void ClusterView::expire_overlays(size_t partition, int64_t version) {
  ExpiringOverlay& expiring = expiring_[partition];
  dirty_.reserve(expiring.row.size());
  size_t kept = 0;
  for (size_t i = 0; i < expiring.row.size(); ++i) {
    if (expiring.version[i] <= version) {
      overlay(expiring.row[i], expiring.amount.data() + i * dimensions_, -1);
      if (expiring.closed[i]) reopen(expiring.row[i]);
      dirty_.push_back(expiring.row[i]);
      continue;
    }
    expiring.version[kept] = expiring.version[i];
    expiring.row[kept] = expiring.row[i];
    expiring.closed[kept] = expiring.closed[i];
    std::copy_n(expiring.amount.data() + i * dimensions_, dimensions_,
                expiring.amount.data() + kept * dimensions_);
    ++kept;
  }
  expiring.version.resize(kept);
  expiring.row.resize(kept);
  expiring.closed.resize(kept);
  expiring.amount.resize(kept * dimensions_);
}

// --- own claims and releases ---

void ClusterView::check(std::span<const int32_t> machine, const int64_t* request) const {
  int64_t sum = 0;
  for (size_t i = 0; i < machine.size(); ++i) {
    if (machine[i] < 0 || static_cast<size_t>(machine[i]) >= static_state_->machines())
      refuse("machine[" + std::to_string(i) + "]: there is no machine " +
             std::to_string(machine[i]));
    const int64_t* overlay = overlay_.find(machine[i]);
    for (size_t r = 0; r < dimensions_; ++r) {
      const int64_t amount = request[i * dimensions_ + r];
      const int64_t overlaid = overlay != nullptr ? overlay[r] : 0;
      if (amount < 0 || amount > kMaxAmount)
        refuse("request[" + std::to_string(i) + "]: expected 0 to 2^50");
      if ((sum += amount) > kMaxOverlay || overlaid > kMaxOverlay || overlaid < -kMaxOverlay)
        refuse("request[" + std::to_string(i) + "]: more is in flight than 2^60");
    }
  }
}

int64_t ClusterView::claim(std::span<const int32_t> machine, const int64_t* request) {
  check(machine, request);
  const auto at = tickets_.try_emplace(next_ticket_).first;
  at->second.machine.assign(machine.begin(), machine.end());
  at->second.request.assign(request, request + machine.size() * dimensions_);
  for (size_t i = 0; i < machine.size(); ++i) {
    overlay(machine[i], request + i * dimensions_, +1);
    if (!closed_.empty()) close(machine[i]);
    reindex(machine[i]);
  }
  return next_ticket_++;
}

std::map<int64_t, ClusterView::Ticket>::iterator ClusterView::find(int64_t ticket) {
  const auto at = tickets_.find(ticket);
  if (at == tickets_.end()) refuse("ticket " + std::to_string(ticket) + " is not in flight");
  return at;
}

void ClusterView::keep_until(int32_t row, const int64_t* amount, int64_t sign, int64_t version,
                             bool closed) {
  ExpiringOverlay& expiring = expiring_[partition_of(row)];
  expiring.version.push_back(version);
  expiring.row.push_back(row);
  expiring.closed.push_back(closed);
  for (size_t r = 0; r < dimensions_; ++r) expiring.amount.push_back(sign * amount[r]);
}

void ClusterView::settle(int64_t ticket, std::span<const int8_t> reason,
                         std::span<const int64_t> version) {
  const auto at = find(ticket);
  const Ticket& claims = at->second;
  if (reason.size() != claims.machine.size() || version.size() != claims.machine.size())
    refuse("ticket " + std::to_string(ticket) + " holds " + std::to_string(claims.machine.size()) +
           " claims, not " + std::to_string(reason.size()));
  for (const int8_t r : reason)
    if (r < 0 || r > static_cast<int8_t>(Reason::Duplicate))
      refuse("reason " + std::to_string(r) + " is unknown");
  for (size_t i = 0; i < claims.machine.size(); ++i) {
    const int32_t row = claims.machine[i];
    const int64_t* request = claims.request.data() + i * dimensions_;
    const bool lost_to_nobody = reason[i] == static_cast<int8_t>(Reason::Gang) ||
                                reason[i] == static_cast<int8_t>(Reason::Duplicate);
    const bool shown = shows(partition_of(row), version[i]);
    const bool unknown = !shown && reason[i] == static_cast<int8_t>(Reason::Stale);
    if (lost_to_nobody || shown) {
      overlay(row, request, -1);
      reindex(row);
    } else {
      keep_until(row, request, +1, version[i], unknown && !closed_.empty());
    }
    if (closed_.empty() || unknown) continue;
    // Accepted: the number was the one seen, and has moved by this claim.
    if (!shown && reason[i] == static_cast<int8_t>(Reason::Accepted))
      ++seqnum_[static_cast<size_t>(row)];
    reopen(row);
    reindex(row);
  }
  tickets_.erase(at);
}

void ClusterView::withdraw(int64_t ticket) {
  const auto at = find(ticket);
  const Ticket& claims = at->second;
  for (size_t i = 0; i < claims.machine.size(); ++i) {
    overlay(claims.machine[i], claims.request.data() + i * dimensions_, -1);
    if (!closed_.empty()) reopen(claims.machine[i]);
    reindex(claims.machine[i]);
  }
  tickets_.erase(at);
}

void ClusterView::released(std::span<const int32_t> machine, const int64_t* request,
                           std::span<const int64_t> version) {
  if (version.size() != machine.size()) refuse("released: expected one version per machine");
  check(machine, request);
  for (size_t i = 0; i < machine.size(); ++i) {
    if (shows(partition_of(machine[i]), version[i])) continue;
    overlay(machine[i], request + i * dimensions_, -1);
    keep_until(machine[i], request + i * dimensions_, -1, version[i], false);
    reindex(machine[i]);
  }
}

int64_t ClusterView::first_oversubscribed(std::span<const int32_t> machine, const int64_t* request,
                                          std::span<const int32_t> freed, const int64_t* amount) {
  for (size_t i = 0; i < freed.size(); ++i) free_.add(freed[i], amount + i * dimensions_, +1);
  size_t fitting = 0;
  for (; fitting < machine.size(); ++fitting) {
    const int32_t row = machine[fitting];
    const int64_t* asked = request + fitting * dimensions_;
    if (row < 0 || static_cast<size_t>(row) >= static_state_->machines() || !is_up(row) ||
        !fits(row, asked))
      break;
    free_.add(row, asked, -1);
  }
  for (size_t i = 0; i < fitting; ++i) free_.add(machine[i], request + i * dimensions_, +1);
  for (size_t i = 0; i < freed.size(); ++i) free_.add(freed[i], amount + i * dimensions_, -1);
  return fitting < machine.size() ? static_cast<int64_t>(fitting) : -1;
}

// Endings name versions that the next snapshot holds in any case.
void ClusterView::drop_expiring() {
  for (ExpiringOverlay& expiring : expiring_) {
    for (size_t i = 0; i < expiring.row.size(); ++i) {
      overlay(expiring.row[i], expiring.amount.data() + i * dimensions_, -1);
      if (expiring.closed[i]) reopen(expiring.row[i]);
    }
    expiring = ExpiringOverlay{};
  }
}

void ClusterView::reset() {
  log_all();
  drop_expiring();
  free_.set_all_down();
  std::fill(seqnum_.begin(), seqnum_.end(), 0U);
  std::fill(synced_us_.begin(), synced_us_.end(), kNeverSynced);
  std::fill(versions_.begin(), versions_.end(), 0);
  index_.clear();
}

}  // namespace agora
