// The index against sorted sets, its draws against their distribution, sparse amounts against dense
// ones, trials that leave no trace, and sequence numbers against a cell's.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>
#include <set>
#include <vector>

#include "shared_state/native/cell.hpp"
#include "shared_state/native/sparse_amounts.hpp"
#include "shared_state/native/trial.hpp"
#include "shared_state/native/view.hpp"
#include "shared_state/native/weighted_index.hpp"

using namespace agora;

namespace {

void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "FAILED: %s\n", what);
  std::exit(1);
}

std::vector<int64_t> weights(size_t rows, Stream& stream) {
  std::vector<int64_t> weight(rows);
  for (int64_t& w : weight)
    w = int64_t{1} << stream.below(40),
    w += static_cast<int64_t>(stream.below(static_cast<uint64_t>(w)));
  return weight;
}

// The index's observable state: sums, order of rows in the lists (through draws) and the bitmap.
std::vector<int64_t> fingerprint(const WeightedIndex& index, const IndexLayout& layout) {
  std::vector<int64_t> print{index.count()};
  for (size_t p = 0; p < layout.partitions(); ++p) {
    print.push_back(index.count(p));
    print.push_back(index.weight(p));
    Stream stream(p);
    for (int i = 0; i < 20 && index.count(p) > 0; ++i) {
      print.push_back(index.draw_uniform(p, stream));
      print.push_back(index.draw_weighted(p, stream));
    }
  }
  const int64_t end = static_cast<int64_t>(layout.rows());
  for (int64_t row = index.next_open(0, end); row != WeightedIndex::kNone;
       row = index.next_open(row + 1, end))
    print.push_back(row);
  return print;
}

void index_agrees_with_sets() {
  Stream stream(1);
  const IndexLayout layout(weights(300, stream), {0, 1, 64, 64, 130, 200, 201, 202, 203, 204, 300});
  WeightedIndex index(layout);
  std::vector<std::set<int32_t>> open(layout.partitions());
  for (int step = 0; step < 20000; ++step) {
    const int32_t row = static_cast<int32_t>(stream.below(300));
    std::set<int32_t>& set = open[static_cast<size_t>(layout.partition[static_cast<size_t>(row)])];
    require(index.contains(row) == set.contains(row), "contains");
    if (set.erase(row)) {
      index.erase(row);
    } else {
      set.insert(row);
      index.insert(row);
    }
    int64_t total = 0;
    for (size_t p = 0; p < open.size(); ++p) {
      int64_t weight = 0;
      for (const int32_t r : open[p]) weight += layout.weight[static_cast<size_t>(r)];
      require(index.count(p) == static_cast<int64_t>(open[p].size()) && index.weight(p) == weight,
              "sums");
      const int64_t from = static_cast<int64_t>(stream.below(301)),
                    to = static_cast<int64_t>(stream.below(301));
      const auto next =
          open[p].lower_bound(static_cast<int32_t>(std::max(from, layout.offsets[p])));
      const int64_t last = std::min(to, layout.offsets[p + 1]);
      const int32_t expected =
          next == open[p].end() || *next >= last ? WeightedIndex::kNone : *next;
      require(index.next_open(std::max(from, layout.offsets[p]), last) == expected, "next_open");
      total += index.count(p);
      if (open[p].empty()) continue;
      require(open[p].contains(index.draw_uniform(p, stream)) &&
                  open[p].contains(index.draw_weighted(p, stream)),
              "drawn in partition");
    }
    require(index.count() == total, "total");
    if (total > 0)
      require(
          index.contains(index.draw_uniform(stream)) && index.contains(index.draw_weighted(stream)),
          "drawn anywhere");
  }
  index.clear();
  require(
      index.count() == 0 && index.next_open(0, 300) == WeightedIndex::kNone && !index.contains(5),
      "clear");
}

// Pearson's statistic of draws against expected shares stays below mean + 5 standard deviations
// (seeds are fixed).
template <typename Draw, typename Share>
void distributed(size_t rows, Draw draw, Share share, const char* what) {
  constexpr int kDraws = 400000;
  std::vector<double> seen(rows);
  for (int i = 0; i < kDraws; ++i) ++seen[static_cast<size_t>(draw())];
  double statistic = 0, cells = -1, rare_seen = 0, rare = 0;
  for (size_t i = 0; i < rows; ++i) {
    const double expected = share(i) * kDraws;
    if (expected < 10) {
      rare += expected;
      rare_seen += seen[i];
      continue;
    }
    statistic += (seen[i] - expected) * (seen[i] - expected) / expected;
    ++cells;
  }
  require(statistic < cells + 5 * std::sqrt(2 * cells) &&
              std::abs(rare_seen - rare) < 5 * std::sqrt(rare + 1),
          what);
}

void draws_are_proportional() {
  Stream stream(2);
  std::vector<int64_t> weight(90);
  for (size_t i = 0; i < 90; ++i)
    weight[i] =
        i % 3 == 0 ? int64_t{1} << (i / 3 * 2) : static_cast<int64_t>(((i * 37) % 50 + 1) << 50);
  const IndexLayout layout(weight, {0, 10, 40, 90});
  WeightedIndex index(layout);
  double total = 0;
  for (int32_t row = 0; row < 90; ++row)
    if (row % 7 != 0)
      index.insert(row), total += static_cast<double>(weight[static_cast<size_t>(row)]);
  const auto open = [](size_t i) { return i % 7 != 0; };
  const auto weighted = [&](double sum) {
    return [&, sum](size_t i) { return open(i) ? static_cast<double>(weight[i]) / sum : 0.0; };
  };
  distributed(
      90, [&] { return index.draw_weighted(stream); }, weighted(total), "weighted over everything");
  distributed(
      90, [&] { return index.draw_uniform(stream); },
      [&](size_t i) { return open(i) ? 1.0 / 77 : 0.0; }, "uniform over everything");
  const double inside = static_cast<double>(index.weight(1));
  distributed(
      90, [&] { return index.draw_weighted(1, stream); },
      [&](size_t i) { return i >= 10 && i < 40 ? weighted(inside)(i) : 0.0; },
      "weighted in a partition");
  distributed(
      90, [&] { return index.draw_uniform(1, stream); },
      [&](size_t i) { return open(i) && i >= 10 && i < 40 ? 1.0 / 26 : 0.0; },
      "uniform in a partition");
}

void trials_leave_no_trace() {
  Stream stream(3);
  constexpr size_t kRows = 120;
  std::vector<int64_t> limit(kRows * 2);
  for (int64_t& l : limit) l = static_cast<int64_t>(stream.below(4));
  const auto static_state = std::make_shared<const StaticCellState>(
      2, limit, weights(kRows, stream), std::vector<int64_t>{0, 50, 120});
  ClusterView view(static_state, false);
  const std::vector<int8_t> used(140);
  std::vector<uint16_t> row(70);
  for (size_t i = 0; i < row.size(); ++i) row[i] = static_cast<uint16_t>(i);
  const auto up = std::make_unique<bool[]>(70);
  std::fill_n(up.get(), 70, true);
  for (int32_t p = 0; p < 2; ++p)
    view.apply(
        {p, 0, 1, 1, p == 0 ? 50UL : 70UL, row.data(), 2, used.data(), 1, up.get(), nullptr});
  const std::vector<int64_t> one{1, 1};
  for (int round = 0; round < 200; ++round) {
    const auto before = fingerprint(view.index(), static_state->index);
    const std::vector<int64_t> free(view.all_free().begin(), view.all_free().end());
    {
      Trial trial(view);
      std::vector<int32_t> excluded;
      size_t mark = 0;
      std::vector<int64_t> at_mark;
      for (int step = 0; step < 60 && view.index().count() > 0; ++step) {
        if (step == 30)
          mark = trial.mark(), at_mark = fingerprint(view.index(), static_state->index);
        const int32_t drawn = view.index().draw_uniform(stream);
        if (view.fits(drawn, one.data()) && stream.below(2) == 0) {
          trial.take(drawn, one.data());
        } else if (!excluded.empty() && stream.below(3) == 0) {
          trial.readmit(excluded.back());
          excluded.pop_back();
        } else {
          trial.exclude(drawn);
          excluded.push_back(drawn);
        }
      }
      if (!at_mark.empty()) {
        trial.rollback(mark);
        require(fingerprint(view.index(), static_state->index) == at_mark, "rollback to a mark");
      }
    }
    require(fingerprint(view.index(), static_state->index) == before, "the index after a trial");
    require(std::equal(free.begin(), free.end(), view.all_free().begin()), "free after a trial");
    const int32_t target = static_cast<int32_t>(stream.below(kRows));
    const int64_t ticket = view.claim(std::span(&target, 1), one.data());
    if (round % 2) view.withdraw(ticket);
  }
}

// Of one scheduler that is alone, several of whose transactions are under way and who syncs now and
// then: the cell never finds a claim stale or too large, however late the answers come, as long as
// the scheduler only claims what its view shows open.
void own_claims_are_never_stale() {
  Stream stream(4);
  constexpr size_t kRows = 20, kMost = 6;
  const std::vector<int64_t> limit(kRows, 9), offsets{0, 7, 20}, score(kRows, 1);
  Cell cell(kRows, 1, limit, offsets);
  ClusterView view(std::make_shared<const StaticCellState>(1, limit, score, offsets), true);
  struct UnderWay {
    int64_t ticket;
    std::vector<int8_t> reason;
    std::vector<int64_t> version;
  };
  std::deque<UnderWay> under_way;
  std::vector<int64_t> running;
  int64_t now_us = 0, task = 0, accepted = 0;
  const auto sync = [&](size_t p) {
    const int64_t from = view.versions()[p];
    const DeltaScan scan = cell.scan(p, from);
    std::vector<uint16_t> row(scan.count + 1);
    std::vector<int64_t> used(scan.count + 1);
    std::vector<uint32_t> seqnum(scan.count + 1);
    const auto up = std::make_unique<bool[]>(scan.count + 1);
    cell.write_rows(scan, row.data());
    cell.write_used(scan, used.data());
    cell.write_state(scan, up.get(), seqnum.data());
    view.apply({static_cast<int32_t>(p), from, cell.versions()[p], now_us, scan.count, row.data(),
                2, used.data(), 8, up.get(), seqnum.data()});
  };
  const auto hear = [&] {
    view.settle(under_way.front().ticket, under_way.front().reason, under_way.front().version);
    under_way.pop_front();
  };
  for (size_t p = 0; p < 2; ++p) sync(p);
  for (int step = 0; step < 20000; ++step) {
    ++now_us;
    const uint64_t what = stream.below(10);
    if (what == 0) {
      // answers come in order, before that of a later sync
      while (!under_way.empty()) hear();
      sync(stream.below(2));
    } else if (what < 5 && !under_way.empty()) {
      hear();
    } else if (what < 7 && !running.empty()) {
      const size_t at = stream.below(running.size());
      std::swap(running[at], running.back());
      int64_t t, allocation, request, version;
      int32_t machine, owner;
      require(cell.release(std::span(&running.back(), 1), nullptr,
                           {&t, &machine, &allocation, &owner, &request, &version}) == 1,
              "released");
      running.pop_back();
    } else if (view.index().count() > 0) {
      std::vector<int32_t> machine;
      std::vector<uint32_t> seqnum;
      for (size_t wanted = 1 + stream.below(kMost); machine.size() < wanted;) {
        const int32_t row = view.index().draw_uniform(stream);
        const auto taken = std::count(machine.begin(), machine.end(), row);
        if (view.free(row)[0] <= taken) break;
        machine.push_back(row);
        seqnum.push_back(view.seqnum()[static_cast<size_t>(row)]);
      }
      const size_t k = machine.size();
      std::vector<int64_t> tasks(k), request(k, 1), synced_us(k), allocation(k), age_us(k);
      for (int64_t& t : tasks) t = task++;
      UnderWay sent{view.claim(machine, request.data()), std::vector<int8_t>(k),
                    std::vector<int64_t>(k)};
      std::vector<int32_t> rival(k);
      cell.commit({0,
                   false,
                   now_us,
                   k,
                   tasks.data(),
                   machine.data(),
                   request.data(),
                   synced_us.data(),
                   nullptr,
                   seqnum.data(),
                   {}},
                  {sent.reason.data(), allocation.data(), rival.data(), age_us.data(),
                   sent.version.data(), nullptr});
      for (const int8_t reason : sent.reason)
        require(reason == 0, "an own claim is neither stale nor too large");
      running.insert(running.end(), allocation.begin(), allocation.end());
      accepted += static_cast<int64_t>(k);
      under_way.push_back(std::move(sent));
    }
  }
  require(accepted > 5000, "there was something to claim");
}

// Few of many rows have an amount at a time, then thousands, then few again: the table grows, and
// rows leave it out of the middle of a chain of probes.
void sparse_amounts_agree_with_dense() {
  constexpr size_t kRows = 20'000, kDimensions = 2;
  Stream stream(7);
  SparseAmounts sparse(kRows, kDimensions);
  std::vector<int64_t> dense(kRows * kDimensions);
  int64_t present = 0, most = 0;
  const auto agrees = [&](size_t row) {
    const int64_t* expected = dense.data() + row * kDimensions;
    const int64_t* found = sparse.find(static_cast<int32_t>(row));
    const bool none = expected[0] == 0 && expected[1] == 0;
    require((found == nullptr) == none && sparse.has(static_cast<int32_t>(row)) == !none,
            "a row has an amount unless it is zero");
    if (!none)
      require(std::equal(found, found + kDimensions, expected), "the amounts are the same");
  };
  for (int step = 0; step < 200'000; ++step) {
    const bool filling = step / 50'000 % 2 == 0;
    size_t row = stream.below(kRows);
    // emptying is quick among rows that have an amount
    for (int i = 0; i < 20 && !filling && !sparse.has(static_cast<int32_t>(row)); ++i)
      row = stream.below(kRows);
    int64_t* now = dense.data() + row * kDimensions;
    int64_t amount[kDimensions];
    for (size_t r = 0; r < kDimensions; ++r)
      amount[r] = filling ? static_cast<int64_t>(stream.below(3)) : -now[r];
    const int64_t sign = stream.below(2) == 0 ? 1 : -1;
    for (size_t r = 0; r < kDimensions; ++r) {
      now[r] += amount[r];
      amount[r] *= sign;
    }
    present += sparse.add(static_cast<int32_t>(row), amount, sign);
    most = std::max(most, present);
    agrees(row);
  }
  int64_t counted = 0;
  for (size_t row = 0; row < kRows; ++row) {
    agrees(row);
    counted += sparse.has(static_cast<int32_t>(row));
  }
  require(counted == present, "the changes of the number of rows add up to it");
  require(most > 10'000 && present < most / 2, "the table has grown, and rows have left it");
}

}  // namespace

int main() {
  sparse_amounts_agree_with_dense();
  index_agrees_with_sets();
  draws_are_proportional();
  trials_leave_no_trace();
  own_claims_are_never_stale();
  return 0;
}
