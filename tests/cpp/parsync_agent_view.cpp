// An agent's view against a plain model of ages, freshness and use, on random replies: in order, of
// other epochs, late, and broken.
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "check.hpp"
#include "parsync/protocols/native/agent_view.hpp"
#include "record_tables.hpp"

static Draws draw(17);

namespace {

constexpr size_t kRows = 4, kPartitions = 5;

// A snapshot of one partition, of two resources.
agora::PartitionDelta snapshot(int32_t partition, int64_t version, int64_t at_us) {
  auto [row, rows] = agora::SharedColumn<uint16_t>::make(kRows);
  auto [used, amounts] = agora::SharedTable<int8_t>::make(kRows, 2);
  auto [up, is_up] = agora::SharedColumn<bool>::make(kRows);
  for (size_t i = 0; i < kRows; ++i) {
    rows[i] = static_cast<uint16_t>(i);
    is_up[i] = draw(4) != 0;
    for (size_t r = 0; r < 2; ++r) amounts[2 * i + r] = static_cast<int8_t>(draw(10));
  }
  return {partition, 0, version, at_us, row, used, up, std::nullopt, nullptr, {}};
}

agora::SyncReply reply_of(int64_t epoch, const std::vector<agora::PartitionDelta>& deltas) {
  agora::SyncReply reply;
  reply.epoch = epoch;
  for (const agora::PartitionDelta& delta : deltas)
    reply.deltas.push_back(std::make_shared<const agora::PartitionDelta>(delta));
  return reply;
}

struct World {
  std::vector<int64_t> offsets{0, 0}, none{}, zero{0}, limit;
  std::vector<int32_t> none32{};
  agora::Measurements records{kAgentTables};
  agora::AgentLog log;
  agora::ClusterView cell;

  World()
      : limit(2 * kRows * kPartitions),
        log(9, {none, none, none32},
            {offsets, none32, none, offsets, none32, none, zero, zero, none32}, records),
        cell(state(), false) {}

  std::shared_ptr<agora::StaticCellState> state() {
    for (int64_t& one : limit) one = static_cast<int64_t>(draw(3)) * 4;
    std::vector<int64_t> partitions(kPartitions + 1);
    for (size_t p = 0; p <= kPartitions; ++p) partitions[p] = static_cast<int64_t>(p * kRows);
    return std::make_shared<agora::StaticCellState>(
        2, limit, std::vector<int64_t>(kRows * kPartitions, 0), partitions);
  }
};

int64_t column(const agora::RowBuffer& rows, size_t number, size_t row) {
  const size_t size = rows.bytes_of(number);
  int64_t value = 0;
  std::memcpy(&value, rows.data(number) + row * size, size);
  return value;
}

void check_run() {
  World world;
  std::vector<int32_t> visible;
  for (int32_t p = 0; p < static_cast<int32_t>(kPartitions); ++p)
    if (p == 2 || draw(3) != 0) visible.push_back(p);
  const auto first_turn = static_cast<int64_t>(draw(kPartitions));
  agora::AgentView view(world.cell, visible, first_turn);
  view.start(1000);
  CHECK(!view.is_synced() && view.staleness_us(1500) == 500);
  CHECK(std::ranges::is_sorted(view.order()) && view.order().size() == kPartitions);

  std::vector<int64_t> synced(kPartitions, -1), known(kPartitions, 1000), rows_changed(kPartitions),
      expected_rows(kPartitions), permille(kPartitions, 0);
  int64_t now_us = 1000, epoch = 0, held_epoch = -1;
  for (int64_t step = 0; step < 60; ++step) {
    now_us += static_cast<int64_t>(draw(3));  // some come at the same instant
    if (draw(15) == 0) ++epoch;
    if (draw(10) == 0) {
      view.forget();
      CHECK(!view.is_synced());
      held_epoch = -1;
      for (size_t p = 0; p < kPartitions; ++p) known[p] = std::max(known[p], synced[p]);
      std::ranges::fill(synced, -1);
      std::ranges::fill(permille, 0);
      CHECK(view.used_permille() == permille);
    }
    std::vector<agora::PartitionDelta> deltas;
    std::vector<int32_t> asked = visible;
    if (draw(2)) asked = {visible[draw(visible.size())]};
    for (const int32_t p : asked) {
      deltas.push_back(snapshot(p, step + 1, now_us));
      // one meant for a view that was reset meanwhile
      if (draw(10) == 0)
        deltas.back().from_version = INT64_MAX, deltas.back().to_version = INT64_MAX;
    }
    view.changed = false;
    const bool applied =
        view.on_reply(now_us, reply_of(epoch, deltas), step, world.log, rows_changed);
    CHECK(applied == (held_epoch < 0 || epoch == held_epoch));
    held_epoch = epoch;
    const agora::RowBuffer& syncs = world.records.rows("syncs");
    if (!applied) {
      CHECK(syncs.rows() == 0 && !view.changed);
      for (size_t p = 0; p < kPartitions; ++p) known[p] = std::max(known[p], synced[p]);
      std::ranges::fill(synced, -1);
      std::ranges::fill(permille, 0);
      CHECK(view.staleness_us(now_us) >= 0 && view.used_permille() == permille);
      continue;
    }
    int64_t latest = -1;
    size_t row = 0;
    for (size_t i = 0; i < deltas.size(); ++i) {
      if (deltas[i].from_version == INT64_MAX) continue;
      const auto p = static_cast<size_t>(deltas[i].partition);
      const int64_t held_us = synced[p] < 0 ? known[p] : synced[p];
      CHECK(column(syncs, 1, row) == deltas[i].partition && column(syncs, 2, row) == now_us);
      CHECK(column(syncs, 3, row) == now_us - held_us && column(syncs, 4, row) == kRows);
      ++row;
      latest = deltas[i].partition;
      synced[p] = now_us;
      expected_rows[p] += kRows;
      int64_t used = 0, total = 0;
      for (size_t m = 0; m < kRows; ++m) {
        if (!deltas[i].up[m]) continue;
        const int64_t limit = world.limit[2 * (p * kRows + m)];
        total += limit;
        used += std::min<int64_t>(deltas[i].used.as<int8_t>()[2 * m], limit);
      }
      permille[p] = used * 1000 / std::max<int64_t>(total, 1);
    }
    CHECK(syncs.rows() == row && view.changed == (row > 0) && rows_changed == expected_rows);
    world.records.clear();
    CHECK(view.used_permille() == permille);
    if (latest >= 0) {
      if (deltas.size() == visible.size())
        latest = visible[static_cast<size_t>(first_turn + step) % visible.size()];
      std::vector<int32_t> order(kPartitions);
      std::iota(order.begin(), order.end(), 0);
      std::ranges::sort(order, [&](int32_t a, int32_t b) {
        const auto turn = [&](int32_t p) {
          return (latest - p + static_cast<int64_t>(kPartitions)) % int64_t{kPartitions};
        };
        const int64_t one = synced[static_cast<size_t>(a)], other = synced[static_cast<size_t>(b)];
        return one != other ? one > other : turn(a) < turn(b);
      });
      CHECK(std::ranges::equal(view.order(), order));
    }
    int64_t sum = 0;
    for (const int32_t p : visible)
      sum += std::max(synced[static_cast<size_t>(p)], known[static_cast<size_t>(p)]);
    CHECK(view.staleness_us(now_us) == now_us - sum / static_cast<int64_t>(visible.size()));
  }

  const agora::SyncReply nothing = reply_of(epoch, {});
  auto broken = snapshot(visible[0], 100, now_us);
  const auto refuses = [&] {
    check_refused(
        [&] { view.on_reply(now_us, reply_of(epoch, {broken}), 0, world.log, rows_changed); });
  };
  for (const int64_t partition : {int64_t{kPartitions}, int64_t{-1}, int64_t{1} << 40}) {
    broken = snapshot(visible[0], 100, now_us);
    broken.partition = partition;
    refuses();
  }
  broken = snapshot(visible[0], 100, now_us);
  broken.row = agora::SharedColumn<int16_t>::make(kRows).first;
  refuses();
  broken = snapshot(visible[0], 100, now_us);
  broken.used = agora::SharedTable<int8_t>::make(kRows, 1).first;
  refuses();
  broken = snapshot(visible[0], 100, now_us);
  broken.up = broken.up.slice(0, 2);
  refuses();
  broken = snapshot(visible[0], 100, now_us);
  broken.seqnum = agora::SharedColumn<uint32_t>::filled(1, 0);
  refuses();
  CHECK(world.records.rows("syncs").rows() == 0);
  check_refused([&] { view.on_reply(now_us, nothing, 0, world.log, {}); });
}

}  // namespace

int main() {
  for (int run = 0; run < 200; ++run) check_run();
  World world;
  check_refused([&] { agora::AgentView(world.cell, {}, 0); });
  check_refused([&] { agora::AgentView(world.cell, {kPartitions}, 0); });
  check_refused([&] { agora::AgentView(world.cell, {0}, -1); });
  std::vector<int32_t> order;
  check_refused([&] { agora::freshness_order(std::vector<int64_t>{1, 2}, 2, order); });
  check_refused([&] { agora::average_staleness_us({}, 2); });
  CHECK(agora::average_staleness_us(std::vector<int64_t>{-1, 0}, 10) == 11);
  return EXIT_SUCCESS;
}
