#include "view.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>

#include "cell.hpp"
#include "transaction.hpp"

namespace agora {

namespace {

[[noreturn]] void refuse(const std::string& what) { throw std::invalid_argument(what); }

std::vector<int64_t> weights_of(const std::vector<int64_t>& score) {
  std::vector<int64_t> weight(score.size());
  std::transform(score.begin(), score.end(), weight.begin(),
                 [](int64_t s) { return std::max<int64_t>(s, 1); });
  return weight;
}

bool covers(const int64_t* limit, const int64_t* request, size_t dimensions) {
  for (size_t r = 0; r < dimensions; ++r)
    if (limit[r] < request[r]) return false;
  return true;
}

// The rows of limit [M, R] that no other row covers: sorted descending, a row can only be covered
// by an earlier one.
std::vector<int64_t> largest_machines(const std::vector<int64_t>& limit, size_t dimensions) {
  const size_t machines = limit.size() / dimensions;
  std::vector<const int64_t*> row(machines);
  for (size_t m = 0; m < machines; ++m) row[m] = limit.data() + m * dimensions;
  const auto before = [dimensions](const int64_t* a, const int64_t* b) {
    return std::lexicographical_compare(b, b + dimensions, a, a + dimensions);
  };
  const auto same = [dimensions](const int64_t* a, const int64_t* b) {
    return std::equal(a, a + dimensions, b);
  };
  if (std::all_of(row.begin(), row.end(), [&](const int64_t* m) { return same(m, row.front()); }))
    row.resize(std::min<size_t>(machines, 1));
  std::sort(row.begin(), row.end(), before);
  std::vector<int64_t> largest;
  for (const int64_t* candidate : row) {
    bool covered = false;
    for (size_t k = 0; k < largest.size() && !covered; k += dimensions)
      covered = covers(largest.data() + k, candidate, dimensions);
    if (!covered) largest.insert(largest.end(), candidate, candidate + dimensions);
  }
  return largest;
}

}  // namespace

StaticCellState::StaticCellState(size_t dimensions, std::vector<int64_t> limits,
                                 const std::vector<int64_t>& score, std::vector<int64_t> offsets)
    : index(weights_of(score), std::move(offsets)),
      limit(std::move(limits)),
      dimensions_(dimensions),
      scale_(dimensions, 0) {
  if (dimensions < 1 || dimensions > kMaxDimensions) refuse("dimensions: expected 1 to 8");
  if (limit.size() != score.size() * dimensions)
    refuse("limit: expected one row per score and a column per dimension");
  for (size_t i = 0; i < limit.size(); ++i) {
    if (limit[i] < 0 || limit[i] > kMaxAmount)
      refuse("limit of machine " + std::to_string(i / dimensions) + ": expected 0 to 2^50");
    int64_t& most = scale_[i % dimensions];
    most = std::max(most, limit[i]);
  }
  const std::vector<int64_t> most = scale_;
  for (int64_t& scale : scale_) scale = scale > 0 ? (int64_t{1} << 60) / scale : 0;
  most_room_ = normalised(most.data());
  scored_ = std::adjacent_find(index.weight.begin(), index.weight.end(), std::not_equal_to<>()) !=
            index.weight.end();
  same_limits_ = std::equal(limit.begin() + static_cast<std::ptrdiff_t>(dimensions), limit.end(),
                            limit.begin());
  largest_ = largest_machines(limit, dimensions);
  if (dimensions == 1 && most[0] <= std::numeric_limits<int8_t>::max()) {
    limit_bytes_.resize(limit.size());
    std::transform(limit.begin(), limit.end(), limit_bytes_.begin(),
                   [](int64_t l) { return static_cast<int8_t>(l); });
  }
}

bool StaticCellState::fits_some_machine(const int64_t* request) const {
  for (size_t k = 0; k < largest_.size(); k += dimensions_)
    if (covers(largest_.data() + k, request, dimensions_)) return true;
  return false;
}

namespace {

constexpr size_t kPrefetchRows = 12;
constexpr int64_t kMaxLaidOver = int64_t{1} << 60;
constexpr int64_t kMaxUsed = int64_t{1} << 61;
static_assert(-TakenAmounts::kHighestNarrow >= FreeAmounts::kLowest, "limit - used is inside");

std::string delta_of(int64_t partition) {
  return "delta of partition " + std::to_string(partition);
}

}  // namespace

ClusterView::ClusterView(std::shared_ptr<const StaticCellState> static_state, bool with_seqnum)
    : static_state_(std::move(static_state)),
      dimensions_(static_state_->dimensions()),
      free_(static_state_->machines(), dimensions_,
            !with_seqnum && static_state_->limit_bytes() != nullptr),
      seqnum_(with_seqnum ? static_state_->machines() : 0),
      closed_(seqnum_.size()),
      closing_(dimensions_, kClosed),
      synced_us_(static_state_->partitions(), kNeverSynced),
      versions_(static_state_->partitions()),
      in_flight_(static_state_->partitions()),
      expiring_(static_state_->partitions()),
      shifted_(static_state_->partitions()),
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
void ClusterView::log(std::span<const int32_t> rows) {
  for (const std::shared_ptr<RowLog>& log : logs_) {
    if (log->all) continue;
    log->rows.insert(log->rows.end(), rows.begin(), rows.end());
    if (log->rows.size() <= static_state_->machines()) continue;
    log->rows.clear();
    log->all = true;
  }
}

void ClusterView::log_all() {
  for (const std::shared_ptr<RowLog>& log : logs_) log->all = true;
}

// --- what is laid over the synced state ---

void ClusterView::change(int32_t row, const int64_t* amount, int64_t sign) {
  log(row);
  free_.add(row, amount, sign);
}

void ClusterView::close(int32_t row) {
  if (closed_[static_cast<size_t>(row)]++ == 0) change(row, closing_.data(), -1);
}

void ClusterView::reopen(int32_t row) {
  if (--closed_[static_cast<size_t>(row)] == 0) change(row, closing_.data(), +1);
}

// Calls visit(row, amount) for everything that lies over a partition, and takes that amount.
template <typename Visit>
void ClusterView::for_each_overlay(size_t partition, const Visit& visit) const {
  for (const auto& [ticket, claim] : in_flight_[partition])
    visit(ticket->machine[claim], ticket->request.data() + claim * dimensions_);
  const Expiring& expiring = expiring_[partition];
  for (size_t i = 0; i < expiring.row.size(); ++i)
    visit(expiring.row[i], expiring.amount.data() + i * dimensions_);
}

// Lays it over (+1), or takes it away (-1). On rows that are down, either does nothing.
void ClusterView::lay_over(size_t partition, int64_t sign) {
  for_each_overlay(partition,
                   [&](int32_t row, const int64_t* amount) { free_.add(row, amount, -sign); });
}

int64_t ClusterView::sum(const int64_t* amount) const {
  int64_t sum = 0;
  for (size_t r = 0; r < dimensions_; ++r) sum += std::abs(amount[r]);
  return sum;
}

// Forgets what ends with the version. What is free does not change: the caller has taken away all
// that lay over the partition, or is about to write it anew.
void ClusterView::expire(size_t partition, int64_t version) {
  Expiring& expiring = expiring_[partition];
  size_t kept = 0;
  for (size_t i = 0; i < expiring.row.size(); ++i) {
    const int64_t* amount = expiring.amount.data() + i * dimensions_;
    if (expiring.version[i] <= version) {
      laid_over_ -= sum(amount);
      log(expiring.row[i]);
      if (expiring.closed[i]) reopen(expiring.row[i]);
      expired_.push_back(expiring.row[i]);
      continue;
    }
    expiring.version[kept] = expiring.version[i];
    expiring.row[kept] = expiring.row[i];
    expiring.closed[kept] = expiring.closed[i];
    std::copy_n(amount, dimensions_, expiring.amount.data() + kept * dimensions_);
    ++kept;
  }
  expiring.version.resize(kept);
  expiring.row.resize(kept);
  expiring.closed.resize(kept);
  expiring.amount.resize(kept * dimensions_);
}

// --- synchronisation ---

template <typename Row>
void ClusterView::check_rows(const Delta& delta) const {
  const Row* row = static_cast<const Row*>(delta.row);
  const std::vector<int64_t>& offsets = static_state_->index.offsets;
  const size_t p = static_cast<size_t>(delta.partition);
  for (size_t i = 1; i < delta.count; ++i)
    if (row[i] <= row[i - 1]) refuse("delta: rows must ascend");
  if (delta.count > 0 && row[delta.count - 1] >= static_cast<uint64_t>(offsets[p + 1] - offsets[p]))
    refuse("delta: row " + std::to_string(row[delta.count - 1]) + " is not in partition " +
           std::to_string(delta.partition));
}

template <typename Used>
void ClusterView::check_used(const Delta& delta) const {
  const Used* used = static_cast<const Used*>(delta.used);
  Used lowest = 0, highest = 0;
  for (size_t i = 0; i < delta.count * dimensions_; ++i) {
    lowest = std::min(lowest, used[i]);
    highest = std::max(highest, used[i]);
  }
  if (lowest < 0 || static_cast<int64_t>(highest) > kMaxUsed)
    refuse("delta: used must lie in [0, 2^61]");
}

void ClusterView::check_follows(int64_t partition, int64_t from_version, int64_t to_version,
                                int64_t at_us, size_t rows) const {
  if (partition < 0 || static_cast<size_t>(partition) >= static_state_->partitions())
    refuse("delta: there is no partition " + std::to_string(partition));
  const size_t p = static_cast<size_t>(partition);
  if (from_version < 0 || from_version > versions_[p])
    refuse(delta_of(partition) + " starts at version " + std::to_string(from_version) +
           ", the view holds " + std::to_string(versions_[p]));
  if (to_version < versions_[p] || to_version < from_version)
    refuse(delta_of(partition) + " ends at version " + std::to_string(to_version) +
           ", the view holds " + std::to_string(versions_[p]));
  if (at_us < 0 || at_us < synced_us_[p])
    refuse(delta_of(partition) + " is of an earlier time than the view");
  const std::vector<int64_t>& offsets = static_state_->index.offsets;
  if ((from_version == 0 || synced_us_[p] == kNeverSynced) &&
      static_cast<int64_t>(rows) != offsets[p + 1] - offsets[p])
    refuse(delta_of(partition) + " must hold all rows: it is a snapshot");
}

void ClusterView::apply(const PartitionDelta& delta) {
  if (delta.snapshot != nullptr && free_.is_narrow()) {
    check_follows(delta.partition, delta.from_version, delta.to_version, delta.at_us, delta.size());
    const auto p = static_cast<size_t>(delta.partition);
    const std::vector<int64_t>& offsets = static_state_->index.offsets;
    if (static_cast<int64_t>(delta.snapshot->used.size()) != offsets[p + 1] - offsets[p])
      refuse(delta_of(delta.partition) + " is of another cell");
    apply_snapshot(p, delta);
    return finish_apply(p, delta.to_version, delta.at_us);
  }
  delta.complete();
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
  check_follows(delta.partition, delta.from_version, delta.to_version, delta.at_us, delta.count);
  if (!seqnum_.empty() && delta.seqnum == nullptr)
    refuse(delta_of(delta.partition) + " lacks the sequence numbers");

  const auto with_row = [&](auto row_type, auto used_type) {
    using Row = decltype(row_type);
    using Used = decltype(used_type);
    check_rows<Row>(delta);
    check_used<Used>(delta);
    apply_rows<Row, Used>(delta);
  };
  const auto with_used = [&](auto used_type) {
    if (delta.row_bytes == 2) {
      with_row(uint16_t{}, used_type);
    } else if (delta.row_bytes == 4) {
      with_row(uint32_t{}, used_type);
    } else {
      refuse(delta_of(delta.partition) + ": rows must be uint16 or uint32");
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
      refuse(delta_of(delta.partition) + ": used must be of 1, 2, 4 or 8 bytes");
  }
  finish_apply(static_cast<size_t>(delta.partition), delta.to_version, delta.at_us);
}

void ClusterView::finish_apply(size_t partition, int64_t version, int64_t at_us) {
  if (free_.is_narrow())
    index_.replace(partition, [&](size_t word) { return free_.rows_with_room(word); });
  for (const int32_t row : expired_) reindex(row);
  expired_.clear();
  versions_[partition] = version;
  synced_us_[partition] = at_us;
}

void ClusterView::apply_snapshot(size_t partition, const PartitionDelta& delta) {
  const auto first = static_cast<size_t>(static_state_->index.offsets[partition]);
  expire(partition, delta.to_version);
  free_.show_narrow(first, static_state_->limit_bytes() + first, delta.snapshot->used,
                    delta.snapshot->down);
  lay_over(partition, +1);
  if (logs_.empty()) return;
  for (size_t word = 0; word < delta.changed.size(); ++word)
    for (uint64_t rows = delta.changed[word]; rows != 0; rows &= rows - 1)
      log(static_cast<int32_t>(first + word * 64) + std::countr_zero(rows));
}

template <typename Row, typename Used>
void ClusterView::apply_rows(const Delta& delta) {
  const Row* row = static_cast<const Row*>(delta.row);
  const Used* used = static_cast<const Used*>(delta.used);
  const size_t n = dimensions_, partition = static_cast<size_t>(delta.partition);
  // machines of one size: their limits lie in one place
  const size_t stride = static_state_->same_limits() ? 0 : n;
  const auto first = static_cast<size_t>(static_state_->index.offsets[partition]);
  lay_over(partition, -1);
  expire(partition, delta.to_version);
  std::array<int64_t, kMaxDimensions> room;
  for (size_t i = 0; i < delta.count; ++i) {
    const size_t m = first + row[i];
    const auto machine = static_cast<int32_t>(m);
    const int64_t closing = closed_.empty() || closed_[m] == 0 ? 0 : kClosed;
    for (size_t r = 0; r < n; ++r)
      room[r] =
          static_state_->limit[m * stride + r] - static_cast<int64_t>(used[i * n + r]) - closing;
    delta.up[i] ? free_.set(machine, room.data()) : free_.set_down(machine);
    log(machine);
    if (delta.seqnum != nullptr && !seqnum_.empty()) seqnum_[m] = delta.seqnum[i];
  }
  lay_over(partition, +1);
  if (free_.is_narrow()) return;
  for (size_t i = 0; i < delta.count; ++i) reindex(static_cast<int32_t>(first + row[i]));
}

void ClusterView::shift(std::span<const int32_t> machine, const int64_t* amount, int64_t sign,
                        int64_t at_us) {
  for (size_t i = 0; i < machine.size(); ++i) {
    if (i + kPrefetchRows < machine.size()) free_.prefetch(machine[i + kPrefetchRows]);
    free_.add(machine[i], amount + i * dimensions_, sign);
    shifted_[partition_of(machine[i])] = 1;
  }
  log(machine);
  if (!free_.is_narrow())
    for (const int32_t row : machine) reindex(row);
  for (size_t p = 0; p < shifted_.size(); ++p)
    if (std::exchange(shifted_[p], 0)) finish_apply(p, versions_[p], at_us);
}

// --- own claims and releases ---

void ClusterView::check(std::span<const int32_t> machine, const int64_t* request) const {
  int64_t laid_over = laid_over_;
  for (size_t i = 0; i < machine.size(); ++i) {
    if (machine[i] < 0 || static_cast<size_t>(machine[i]) >= static_state_->machines())
      refuse("machine[" + std::to_string(i) + "]: there is no machine " +
             std::to_string(machine[i]));
    for (size_t r = 0; r < dimensions_; ++r) {
      const int64_t amount = request[i * dimensions_ + r];
      if (amount < 0 || amount > kMaxAmount)
        refuse("request[" + std::to_string(i) + "]: expected 0 to 2^50");
      if ((laid_over += amount) > kMaxLaidOver)
        refuse("request[" + std::to_string(i) + "]: more is in flight than 2^60");
    }
  }
}

int64_t ClusterView::claim(std::span<const int32_t> machine, const int64_t* request) {
  check(machine, request);
  Ticket& ticket = tickets_.try_emplace(next_ticket_).first->second;
  ticket.machine.assign(machine.begin(), machine.end());
  ticket.request.assign(request, request + machine.size() * dimensions_);
  for (size_t i = 0; i < machine.size(); ++i) {
    laid_over_ += sum(request + i * dimensions_);
    const size_t partition = partition_of(machine[i]);
    std::vector<InFlight>& in_flight = in_flight_[partition];
    if (in_flight.empty() || in_flight.back().ticket != &ticket)
      ticket.partitions.push_back(partition);
    in_flight.push_back({&ticket, i});
    change(machine[i], request + i * dimensions_, -1);
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

void ClusterView::forget_in_flight(const Ticket& ticket) {
  for (const size_t partition : ticket.partitions)
    std::erase_if(in_flight_[partition],
                  [&](const InFlight& claim) { return claim.ticket == &ticket; });
}

void ClusterView::keep_until(int32_t row, const int64_t* amount, int64_t sign, int64_t version,
                             bool closed) {
  Expiring& expiring = expiring_[partition_of(row)];
  expiring.version.push_back(version);
  expiring.row.push_back(row);
  expiring.closed.push_back(closed);
  for (size_t r = 0; r < dimensions_; ++r) expiring.amount.push_back(sign * amount[r]);
  laid_over_ += sum(amount);
}

void ClusterView::settle(int64_t ticket, std::span<const int8_t> reason,
                         std::span<const int64_t> version) {
  const auto at = find(ticket);
  const Ticket& claims = at->second;
  if (reason.size() != claims.machine.size() || version.size() != claims.machine.size())
    refuse("ticket " + std::to_string(ticket) + " holds " + std::to_string(claims.machine.size()) +
           " claims, not " + std::to_string(reason.size()));
  for (const int8_t r : reason)
    if (r < 0 || r > static_cast<int8_t>(Reason::Held))
      refuse("reason " + std::to_string(r) + " is unknown");
  forget_in_flight(claims);
  for (size_t i = 0; i < claims.machine.size(); ++i) {
    const int32_t row = claims.machine[i];
    const int64_t* request = claims.request.data() + i * dimensions_;
    const bool lost_to_nobody = reason[i] == static_cast<int8_t>(Reason::Gang) ||
                                reason[i] == static_cast<int8_t>(Reason::Duplicate);
    const bool shown = shows(partition_of(row), version[i]);
    const bool unknown = !shown && reason[i] == static_cast<int8_t>(Reason::Stale);
    laid_over_ -= sum(request);
    if (lost_to_nobody || shown) {
      change(row, request, +1);
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
  forget_in_flight(claims);
  for (size_t i = 0; i < claims.machine.size(); ++i) {
    const int64_t* request = claims.request.data() + i * dimensions_;
    laid_over_ -= sum(request);
    change(claims.machine[i], request, +1);
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
    change(machine[i], request + i * dimensions_, +1);
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
  for (Expiring& expiring : expiring_) {
    for (size_t i = 0; i < expiring.row.size(); ++i) {
      laid_over_ -= sum(expiring.amount.data() + i * dimensions_);
      if (expiring.closed[i]) reopen(expiring.row[i]);
    }
    expiring = Expiring{};
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

bool Trial::take(int32_t row, const int64_t* request) {
  steps_.push_back({request, row, Change::Took});
  view_.free_.add(row, request, -1);
  if (view_.free_.has_room(row)) return true;
  view_.index_.erase(row);
  steps_.back().change = Change::TookLast;
  return false;
}

void Trial::exclude(int32_t row) {
  steps_.push_back({nullptr, row, Change::Excluded});
  view_.index_.erase(row);
}

void Trial::readmit(int32_t row) {
  steps_.push_back({nullptr, row, Change::Readmitted});
  view_.index_.insert(row);
}

void Trial::rollback(size_t mark) {
  while (steps_.size() > mark) {
    const Step& step = steps_.back();
    switch (step.change) {
      case Change::TookLast:
        view_.index_.insert(step.row);
        [[fallthrough]];
      case Change::Took:
        view_.free_.add(step.row, step.request, +1);
        break;
      case Change::Excluded:
        view_.index_.insert(step.row);
        break;
      case Change::Readmitted:
        view_.index_.erase(step.row);
        break;
    }
    steps_.pop_back();
  }
}

}  // namespace agora
