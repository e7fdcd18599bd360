#include "agent_view.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>

#include "shared_state/native/random.hpp"

namespace agora {

AgentView::AgentView(ClusterView& cell, std::vector<int32_t> visible, int64_t first_turn)
    : cell_(cell),
      visible_(std::move(visible)),
      first_turn_(first_turn),
      order_(cell.static_state().partitions()),
      known_us_(order_.size()) {
  std::iota(order_.begin(), order_.end(), 0);
  if (visible_.empty() || first_turn < 0)
    throw std::invalid_argument("view: expected partitions, and a turn of 0 or more");
  for (const int32_t partition : visible_)
    if (partition < 0 || static_cast<size_t>(partition) >= order_.size())
      throw std::invalid_argument("view: there is no partition " + std::to_string(partition));
}

void AgentView::start(int64_t now_us) { std::fill(known_us_.begin(), known_us_.end(), now_us); }

void AgentView::forget() {
  for (size_t p = 0; p < known_us_.size(); ++p)
    known_us_[p] = std::max(known_us_[p], cell_.synced_us()[p]);
  cell_.reset();
  epoch_ = -1;
}

bool AgentView::on_reply(int64_t now_us, const SyncReply& reply, int64_t rounds, AgentLog& log,
                         std::span<int64_t> rows_changed) {
  if (rows_changed.size() != order_.size())
    throw std::invalid_argument("rows_changed: expected one count per partition");
  if (reply.epoch != epoch_) {
    // The master was restarted, or this view is new: other epochs' versions mean nothing.
    const bool resync = is_synced();
    if (resync) forget();
    epoch_ = reply.epoch;
    if (resync) return false;
  }
  int64_t latest = -1;
  for (const PartitionDeltaPtr& changes : reply.deltas) {
    const PartitionDelta& delta = *changes;
    if (delta.partition < 0 || static_cast<size_t>(delta.partition) >= order_.size())
      throw std::invalid_argument("delta: there is no partition " +
                                  std::to_string(delta.partition));
    const auto p = static_cast<size_t>(delta.partition);
    // one meant for a view that has since been reset: the full sync is on its way
    if (delta.from_version > cell_.versions()[p]) continue;
    const int64_t held_us = age_us(delta);
    cell_.apply(delta);
    const auto rows = static_cast<int64_t>(delta.size());
    log.sync(now_us, static_cast<int32_t>(delta.partition), held_us, rows);
    rows_changed[p] += rows;
    changed = changed || rows > 0;
    latest = delta.partition;
  }
  if (latest < 0) return true;
  if (reply.deltas.size() == visible_.size()) {  // everything is equally fresh
    const auto turns = static_cast<int64_t>(visible_.size());
    latest = visible_[static_cast<size_t>((first_turn_ + rounds) % turns)];
  }
  freshness_order(cell_.synced_us(), latest, order_);
  return true;
}

// The age of the state that a delta is about to refresh.
int64_t AgentView::age_us(const PartitionDelta& delta) const {
  const auto p = static_cast<size_t>(delta.partition);
  const int64_t held_us = cell_.synced_us()[p] < 0 ? known_us_[p] : cell_.synced_us()[p];
  return std::max<int64_t>(0, delta.at_us - held_us);
}

int64_t AgentView::staleness_us(int64_t now_us) const {
  std::vector<int64_t> known_us;
  known_us.reserve(visible_.size());
  for (const int32_t partition : visible_) {
    const auto p = static_cast<size_t>(partition);
    known_us.push_back(std::max(cell_.synced_us()[p], known_us_[p]));
  }
  return average_staleness_us(known_us, now_us);
}

std::vector<int64_t> AgentView::used_permille() const {
  const StaticCellState& cell = cell_.static_state();
  const std::vector<int64_t>& offsets = cell.index.offsets;
  const size_t dimensions = cell.dimensions();
  std::vector<int64_t> permille(order_.size());
  for (size_t p = 0; p < permille.size(); ++p) {
    Int128 total = 0, used = 0;
    for (auto m = static_cast<size_t>(offsets[p]); m < static_cast<size_t>(offsets[p + 1]); ++m) {
      if (!cell_.is_up(static_cast<int32_t>(m))) continue;
      const int64_t limit = cell.limit[m * dimensions];
      total += limit;
      used += limit - std::clamp<int64_t>(cell_.free(static_cast<int32_t>(m))[0], 0, limit);
    }
    permille[p] = static_cast<int64_t>(used * 1000 / std::max<Int128>(total, 1));
  }
  return permille;
}

void freshness_order(std::span<const int64_t> synced_us, int64_t latest,
                     std::vector<int32_t>& order) {
  const auto count = static_cast<int64_t>(synced_us.size());
  if (latest < 0 || latest >= std::max<int64_t>(count, 1))
    throw std::invalid_argument("latest: there is no such partition");
  order.resize(synced_us.size());
  for (int64_t i = 0; i < count; ++i)
    order[static_cast<size_t>(i)] = static_cast<int32_t>((latest - i + count) % count);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return synced_us[static_cast<size_t>(a)] > synced_us[static_cast<size_t>(b)];
  });
}

int64_t average_staleness_us(std::span<const int64_t> synced_us, int64_t now_us) {
  if (synced_us.empty()) throw std::invalid_argument("synced_us: expected at least one partition");
  Int128 sum = 0;
  for (const int64_t at_us : synced_us) sum += at_us;
  const auto count = static_cast<Int128>(synced_us.size());
  const Int128 floor = sum / count - (sum % count < 0);
  return static_cast<int64_t>(now_us - floor);
}

}  // namespace agora
