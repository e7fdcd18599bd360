// The preferred machines: the levels of a task's set.
#include <algorithm>

#include "placer.hpp"

namespace agora {

namespace {

// a level of at most so many rows is gathered per task: nothing is kept (under FreshestPreferred,
// where a level is searched in parts, the parts are)
constexpr size_t kGatherAtOnce = 128;
// uniform draws from a larger level before its open rows are gathered for the plan
constexpr int kTries = 8;

}  // namespace

int32_t Placer::prefer(int32_t set, const Pool& pool, Search search) {
  for (uint32_t level = catalog_.first_level(set); level < catalog_.end_level(set); ++level) {
    if (search == Search::ListedMachines && catalog_.level(level).racks) return kNone;
    const int32_t row = of_level(level, pool, false);
    if (row != kNone || open_in(pool) == 0) return row;
  }
  return kNone;
}

Placer::LevelRows Placer::rows_of(const Catalog::Level& level, const Pool& pool) const {
  LevelRows rows{{}, {}, 0};
  if (level.racks) {
    rows.racks = catalog_.rack_rows(level);
    for (const Catalog::RowRange& rack : rows.racks) {
      const int64_t first = std::max<int64_t>(rack.first, pool.first),
                    end = std::min<int64_t>(rack.end, pool.end);
      if (first < end) rows.count += static_cast<size_t>(end - first);
    }
    return rows;
  }
  rows.members = catalog_.members(level);
  if (pool.partition != everything_.partition) {
    const auto first = std::lower_bound(rows.members.begin(), rows.members.end(), pool.first);
    rows.members = {first, std::lower_bound(first, rows.members.end(), pool.end)};
  }
  rows.count = rows.members.size();
  return rows;
}

// A row of a level within a pool. Under FreshestPreferred it is in the freshest partition that has
// one with room. Within an epoch a partition without stays without.
int32_t Placer::of_level(uint32_t number, const Pool& pool, bool priced) {
  const auto within = [&](const Pool& part) {
    return priced ? cheapest_of_level(number, part) : prefer_level(number, part);
  };
  if (!freshest_preferred()) return within(pool);
  Cursor& cursor = cursors_[number];
  if (cursor.epoch != epoch_) cursor = {epoch_, 0};
  for (; cursor.at < input_.partition_order.size(); ++cursor.at) {
    const size_t p = static_cast<size_t>(input_.partition_order[cursor.at]);
    if (view_.index().count(p) == 0) continue;
    const int32_t row = within(this->pool(p));
    if (row == kNone) continue;
    searched_ = std::max(searched_, cursor.at + 1);
    return row;
  }
  searched_ = cursor.at;
  return kNone;
}

uint64_t Placer::key_of(uint32_t level, const Pool& pool) const {
  return static_cast<uint64_t>(level) * (everything_.partition + 1) + pool.partition;
}

int32_t Placer::prefer_level(uint32_t number, const Pool& pool) {
  const LevelRows rows = rows_of(catalog_.level(number), pool);
  if (rows.count == 0) return kNone;
  const bool spreading = input_.kind == PlacementKind::LoadSpreading;
  if (rows.count <= kGatherAtOnce && !spreading && !freshest_preferred()) {
    gather(rows, pool, scratch_);
    return draw_candidate(scratch_);
  }
  const uint64_t key = key_of(number, pool);
  auto kept = candidates_.find(key);
  if (kept == candidates_.end()) {
    // A draw that fits is uniform among those that fit; most often one does, and nothing need be
    // gathered.
    // Of load spreading one that no row can have more room than.
    for (int i = 0; i < kTries && !rows.members.empty(); ++i) {
      const int32_t row = rows.members[stream_.below(rows.count)];
      ++work_.looked_at;
      if (open(row) && fits(row) && (!spreading || has_most_room(row))) return row;
    }
    kept = candidates_.try_emplace(key).first;
  }
  Candidates& candidates = kept->second;
  if (candidates.epoch != epoch_) {
    gather(rows, pool, candidates.rows);
    if (spreading) rank(candidates.rows, false, candidates.ranked);
    candidates.epoch = epoch_;
  }
  return spreading ? emptiest_candidate(candidates.ranked, false) : draw_candidate(candidates.rows);
}

// The open ones.
void Placer::gather(const LevelRows& rows, const Pool& pool, std::vector<int32_t>& out) {
  work_.looked_at += static_cast<int64_t>(rows.members.size());
  out.resize(rows.members.size());
  size_t opened = 0;
  for (const int32_t row : rows.members) {  // open rows come in no order: no branch
    out[opened] = row;
    opened += open(row);
  }
  out.resize(opened);
  for (const Catalog::RowRange& range : rows.racks) {
    const int64_t end = std::min<int64_t>(range.end, pool.end);
    int32_t row = view_.index().next_open(std::max<int64_t>(range.first, pool.first), end);
    for (; row != kNone; row = view_.index().next_open(row + 1, end)) {
      out.push_back(row);
      ++work_.looked_at;
    }
  }
}

// Uniform among the candidates that fit. Those that do not leave the list.
int32_t Placer::draw_candidate(std::vector<int32_t>& rows) {
  while (!rows.empty()) {
    const size_t at = stream_.below(rows.size());
    const int32_t row = rows[at];
    ++work_.looked_at;
    if (open(row)) {
      if (fits(row)) return row;
      exclude(row);
    }
    rows[at] = rows.back();
    rows.pop_back();
  }
  return kNone;
}

void Placer::rank(const std::vector<int32_t>& rows, bool priced, RankedRows& out) {
  out.clear();
  for (const int32_t row : rows) out.add(ranked(row, priced));
  out.build(salt_of_ties());
  work_.ranked += static_cast<int64_t>(rows.size());
}

// Between the epochs of a plan rows only lose room: a row that has lost some is ranked again when
// it comes first.
int32_t Placer::emptiest_candidate(RankedRows& rows, bool priced) {
  while (!rows.empty()) {
    const RankedRow first = rows.first();
    ++work_.looked_at;
    const bool opened = open(first.row);
    const RankedRow now = opened ? ranked(first.row, priced) : first;
    const bool current = now.same_place(first);
    if (opened && current && fits(first.row)) return first.row;
    rows.pop();
    ++work_.ranked;
    if (opened && !current) {
      rows.push(now);
      ++work_.ranked;
    }
    if (opened && current) exclude(first.row);
  }
  return kNone;
}

}  // namespace agora
