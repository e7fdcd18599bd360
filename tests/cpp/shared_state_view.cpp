// The index against sorted sets, its draws against their distribution, narrow views against wide
// ones, trials that leave no trace, snapshots against lists of rows, and sequence numbers against a
// cell's.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "shared_state/native/cell.hpp"
#include "shared_state/native/transaction.hpp"
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

// The index (or a view's) keeps all that it can keep.
template <typename Index>
void keep_all(Index& index) {
  index.keep_classes();
  index.sum_weights();
  index.sum_scores();
}

// The index's observable state: sums, draws and the open rows. Requires: keep_all().
std::vector<int64_t> fingerprint(const WeightedIndex& index, const IndexLayout& layout) {
  std::vector<int64_t> print{index.count()};
  for (size_t p = 0; p < layout.partitions(); ++p) {
    print.push_back(index.count(p));
    print.push_back(index.weight(p));
    print.push_back(index.score(p));
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
  keep_all(index);
  std::vector<std::set<int32_t>> open(layout.partitions());
  for (int step = 0; step < 20000; ++step) {
    const int32_t row = static_cast<int32_t>(stream.below(300));
    std::set<int32_t>& set = open[layout.partition_of(row)];
    require(index.contains(row) == set.contains(row), "contains");
    if (set.erase(row)) {
      index.erase(row);
    } else {
      set.insert(row);
      index.insert(row);
    }
    int64_t total = 0;
    for (size_t p = 0; p < open.size(); ++p) {
      int64_t weight = 0, score = 0;
      for (const int32_t r : open[p]) {
        weight += layout.weight[static_cast<size_t>(r)];
        score += score_of(layout.weight[static_cast<size_t>(r)]);
      }
      require(index.count(p) == static_cast<int64_t>(open[p].size()) && index.weight(p) == weight &&
                  index.score(p) == score,
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
  keep_all(index);
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
                   {},
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

// Many rows of a partition that open and close at once leave what they leave one by one; what is
// kept from the middle on is what would have been kept from the start.
void index_replaces_many_rows() {
  Stream stream(8);
  constexpr size_t kRows = 80'000;
  for (const bool weighted : {false, true}) {
    for (const std::vector<int64_t>& offsets :
         {std::vector<int64_t>{0, 70'000, 80'000}, std::vector<int64_t>{0, 0, 40'001, 80'000},
          std::vector<int64_t>{0, 30, 50, 64, 64, 100, 130, 131, 79'999, 80'000}}) {
      const IndexLayout layout(weighted ? weights(kRows, stream) : std::vector<int64_t>(kRows, 3),
                               offsets);
      for (size_t p = 0; p < layout.partitions(); ++p) {
        if (offsets[p] == offsets[p + 1]) continue;
        require(layout.partition_of(static_cast<int32_t>(offsets[p])) == p &&
                    layout.partition_of(static_cast<int32_t>(offsets[p + 1] - 1)) == p,
                "the partition of a row");
      }
      WeightedIndex many(layout), single(layout);
      keep_all(single);
      for (int round = 0; round < 20; ++round) {
        if (round == 10) keep_all(many);
        const size_t p = static_cast<size_t>(round) % layout.partitions();
        std::vector<uint64_t> bits((kRows + 63) / 64);
        for (uint64_t& word : bits) word = stream.below(uint64_t{1} << 63) * 2 + stream.below(2);
        if (round % 5 == 4) std::fill(bits.begin(), bits.end(), 0);
        many.replace(p, [&](size_t word) { return bits[word]; });
        for (int64_t at = offsets[p]; at < offsets[p + 1]; ++at) {
          const auto row = static_cast<int32_t>(at);
          const bool open = bits[static_cast<size_t>(at) / 64] >> (at % 64) & 1;
          if (open != single.contains(row)) open ? single.insert(row) : single.erase(row);
          require(many.contains(row) == open, "open as it was said");
        }
        if (round >= 10)
          require(fingerprint(many, layout) == fingerprint(single, layout),
                  "rows replaced at once");
      }
    }
  }
}

// One history of syncs, claims, answers, releases and plans on several views.
class NarrowAgainstWide {
  // What all views answer alike.
  template <typename Ask>
  auto each(Ask ask) {
    const auto first = ask(*views_[0]);
    for (size_t v = 1; v < views_.size(); ++v) require(ask(*views_[v]) == first, "the same answer");
    return first;
  }

 public:
  NarrowAgainstWide(uint64_t seed, int64_t highest_limit, bool same, bool weighted)
      : stream_(seed), limit_(kRows) {
    const int64_t largest =
        static_cast<int64_t>(stream_.below(static_cast<uint64_t>(highest_limit)));
    for (int64_t& l : limit_)
      l = same ? largest + 1
               : static_cast<int64_t>(stream_.below(static_cast<uint64_t>(largest) + 2));
    const std::vector<int64_t> offsets{0, 1, 70, 128, 300, 333};
    const auto static_state = std::make_shared<const StaticCellState>(
        1, limit_, weighted ? weights(kRows, stream_) : std::vector<int64_t>(kRows, 1), offsets);
    for (size_t v = 0; v < 4; ++v) {
      views_.push_back(std::make_unique<ClusterView>(static_state, false));
      keep_all(*views_.back());
    }
    views_[1]->all_free();
    require(views_[0]->is_narrow() && !views_[1]->is_narrow(), "one is narrow, one is wide");
    used_.resize(kRows);
    up_.assign(kRows, 1);
    changed_.assign(kRows, 0);
    versions_.assign(offsets.size() - 1, 0);
    cell_offsets_ = offsets;
  }

  void run(int steps) {
    for (int step = 0; step < steps; ++step) {
      if (step == steps / 2) views_[2]->up();  // from here on it is wide, in the middle of it all
      switch (stream_.below(10)) {
        case 0:
        case 1:
          change_cell();
          break;
        case 2:
        case 3:
          sync(stream_.below(versions_.size()));
          break;
        case 4:
          claim();
          break;
        case 5:
          answer();
          break;
        case 6:
          release();
          break;
        case 7:
          plan();
          break;
        case 8:
          shift();
          break;
        default:
          oversubscribe();
          if (stream_.below(300) == 0)
            each([](ClusterView& view) {
              view.reset();
              return 0;
            });
      }
      compare();
    }
    require(views_[0]->is_narrow() && views_[3]->is_narrow(),
            "nothing but a reader of columns widens a view");
    require(snapshots_ > steps / 40, "some syncs are by snapshot");
  }

 private:
  static constexpr size_t kRows = 333;

  int32_t any_row() { return static_cast<int32_t>(stream_.below(kRows)); }
  size_t partition_of(int32_t row) const {
    return views_[0]->static_state().index.partition_of(row);
  }
  // Mostly small, now and then more than a byte holds, or much more.
  int64_t any_amount() {
    const uint64_t kind = stream_.below(60);
    return static_cast<int64_t>(kind == 0   ? stream_.below(uint64_t{1} << 50)
                                : kind == 1 ? 100 + stream_.below(200)
                                            : stream_.below(4));
  }

  void change_cell() {
    for (uint64_t k = stream_.below(40); k-- > 0;) {
      const int32_t row = any_row();
      const size_t m = static_cast<size_t>(row), p = partition_of(row);
      used_[m] = stream_.below(3) == 0 ? 0 : any_amount();
      up_[m] = stream_.below(20) != 0;
      changed_[m] = ++versions_[p];
    }
  }
  void sync(size_t p) {
    const int64_t from = stream_.below(20) == 0 ? 0 : views_[0]->versions()[p];
    const int64_t first = cell_offsets_[p];
    std::vector<uint16_t> row;
    std::vector<int64_t> used;
    const auto up = std::make_unique<bool[]>(kRows);
    for (int64_t m = first; m < cell_offsets_[p + 1]; ++m) {
      if (from > 0 && changed_[static_cast<size_t>(m)] <= from) continue;
      up[row.size()] = up_[static_cast<size_t>(m)];
      row.push_back(static_cast<uint16_t>(m - first));
      used.push_back(up[row.size() - 1] ? used_[static_cast<size_t>(m)] : 0);
    }
    const bool small = std::all_of(used.begin(), used.end(), [](int64_t u) { return u < 128; });
    const std::vector<int8_t> bytes(used.begin(), used.end());
    ++now_us_;
    const PartitionDelta snapshot = snapshot_of(p, from, row);
    each([&](ClusterView& view) {
      if (&view == views_[3].get() && snapshot.snapshot != nullptr) {
        view.apply(snapshot);
        return view.versions()[p];
      }
      view.apply({static_cast<int32_t>(p), from, std::max<int64_t>(versions_[p], 1), now_us_,
                  row.size(), row.data(), 2,
                  small ? static_cast<const void*>(bytes.data()) : used.data(), small ? 1UL : 8UL,
                  up.get(), nullptr});
      return view.versions()[p];
    });
    versions_[p] = std::max<int64_t>(versions_[p], 1);
  }
  // The delta as a narrow cell makes it; without a snapshot where no narrow cell is in that state.
  PartitionDelta snapshot_of(size_t p, int64_t from, const std::vector<uint16_t>& row) {
    const auto first = static_cast<size_t>(cell_offsets_[p]),
               end = static_cast<size_t>(cell_offsets_[p + 1]);
    PartitionSnapshot state;
    bool all_up = true;
    state.down.resize((end - first + 63) / 64);
    for (size_t m = first; m < end; ++m) {
      const int64_t used = up_[m] ? used_[m] : 0;
      if (used > 126) return {};
      state.used.push_back(static_cast<int8_t>(used));
      state.down[(m - first) / 64] |= uint64_t{up_[m] == 0} << ((m - first) % 64);
      all_up = all_up && up_[m] != 0;
    }
    if (all_up) state.down.clear();
    if (row.empty()) return {};
    ++snapshots_;
    std::vector<uint64_t> changed((end - first + 63) / 64);
    for (const uint16_t at : row) changed[at / 64] |= uint64_t{1} << (at % 64);
    PartitionDelta delta;
    delta.partition = static_cast<int64_t>(p);
    delta.from_version = from;
    delta.to_version = std::max<int64_t>(versions_[p], 1);
    delta.at_us = now_us_;
    delta.snapshot = std::make_shared<const PartitionSnapshot>(std::move(state));
    delta.changed = std::move(changed);
    delta.changed_rows = row.size();
    if (stream_.below(2) == 0) {
      delta.complete();
      require(std::equal(row.begin(), row.end(), delta.row.as<uint16_t>().begin()),
              "the rows of a snapshot's delta");
    }
    return delta;
  }
  void claim() {
    const size_t k = stream_.below(12);
    std::vector<int32_t> machine(k);
    std::vector<int64_t> request(k);
    for (size_t i = 0; i < k; ++i) machine[i] = any_row(), request[i] = any_amount();
    under_way_.push_back(
        {each([&](ClusterView& view) { return view.claim(machine, request.data()); }), machine});
  }
  void answer() {
    if (under_way_.empty()) return;
    const size_t at = stream_.below(under_way_.size());
    const auto [ticket, machine] = under_way_[at];
    under_way_.erase(under_way_.begin() + static_cast<std::ptrdiff_t>(at));
    if (stream_.below(4) == 0) {
      each([&](ClusterView& view) {
        view.withdraw(ticket);
        return view.claims_in_flight();
      });
      return;
    }
    std::vector<int8_t> reason;
    std::vector<int64_t> version;
    for (const int32_t row : machine) {
      reason.push_back(static_cast<int8_t>(stream_.below(7)));
      // of a row that changed then, or long before: it will not be in the delta
      version.push_back(versions_[partition_of(row)] + static_cast<int64_t>(stream_.below(2)));
      if (stream_.below(2) == 0)
        changed_[static_cast<size_t>(row)] = ++versions_[partition_of(row)];
    }
    each([&](ClusterView& view) {
      view.settle(ticket, reason, version);
      return view.claims_in_flight();
    });
  }
  void release() {
    const size_t k = stream_.below(5);
    std::vector<int32_t> machine(k);
    std::vector<int64_t> request(k), version(k);
    for (size_t i = 0; i < k; ++i) {
      machine[i] = any_row(), request[i] = any_amount();
      version[i] = versions_[partition_of(machine[i])] + static_cast<int64_t>(stream_.below(2));
    }
    each([&](ClusterView& view) {
      view.released(machine, request.data(), version);
      return view.index().count();
    });
  }
  // Room comes, or goes, without a sync. The next one shows these rows as the cell has them.
  void shift() {
    std::vector<int32_t> machine;
    std::vector<int64_t> amount;
    std::map<int32_t, int64_t> free;  // afterwards, by row
    const int64_t sign = stream_.below(2) ? +1 : -1;
    for (uint64_t k = stream_.below(20); k-- > 0;) {
      const int32_t row = any_row();
      if (!views_[0]->is_up(row)) continue;
      machine.push_back(row);
      amount.push_back(any_amount());
      free.try_emplace(row, views_[0]->free(row)[0]).first->second += sign * amount.back();
    }
    ++now_us_;
    each([&](ClusterView& view) {
      view.shift(machine, amount.data(), sign, now_us_);
      return view.index().count();
    });
    for (const auto& [row, left] : free) {
      require(views_[0]->free(row)[0] == left, "what a shift leaves free");
      const size_t p = partition_of(row);
      require(views_[0]->synced_us()[p] == now_us_, "a shift counts as a sync");
      changed_[static_cast<size_t>(row)] = ++versions_[p];
    }
  }
  // Plans, takes a part of the plan back on the way, and leaves no trace.
  void plan() {
    const uint64_t key = stream_.below(1'000'000);
    const int64_t one = 1 + static_cast<int64_t>(stream_.below(2));
    each([&](ClusterView& view) {
      const auto look = [&] {
        std::vector<int64_t> seen = fingerprint(view.index(), view.static_state().index);
        for (int32_t row = 0; row < static_cast<int32_t>(kRows); ++row)
          seen.push_back(view.free(row)[0]);
        return seen;
      };
      const std::vector<int64_t> before = look();
      std::vector<int64_t> found, at_mark;
      size_t mark = 0;
      {
        Stream draws(key);
        Trial trial(view);
        for (int i = 0; i < 30 && view.index().count() > 0; ++i) {
          if (i == 15) mark = trial.mark(), at_mark = look();
          const int32_t row =
              i % 2 ? view.index().draw_uniform(draws) : view.index().draw_weighted(draws);
          found.push_back(row);
          if (view.fits(row, &one)) {
            found.push_back(trial.take(row, &one));
          } else {
            trial.exclude(row);
            if (i % 3 == 0) trial.readmit(row);
          }
        }
        if (!at_mark.empty()) {
          trial.rollback(mark);
          require(look() == at_mark, "rollback to a mark");
        }
      }
      require(look() == before, "no trace of a trial");
      return found;
    });
  }
  void oversubscribe() {
    std::vector<int32_t> machine, freed;
    std::vector<int64_t> request, amount;
    for (uint64_t k = stream_.below(6); k-- > 0;)
      machine.push_back(any_row()), request.push_back(any_amount());
    if (stream_.below(10) == 0) machine.push_back(-1), request.push_back(1);
    for (uint64_t k = stream_.below(3); k-- > 0;)
      freed.push_back(machine.empty() || machine[0] < 0 ? any_row() : machine[0]),
          amount.push_back(any_amount());
    each([&](ClusterView& view) {
      return view.first_oversubscribed(machine, request.data(), freed, amount.data());
    });
  }
  void compare() {
    each([](ClusterView& view) {
      std::vector<int64_t> shown = fingerprint(view.index(), view.static_state().index);
      for (int32_t row = 0; row < static_cast<int32_t>(kRows); ++row) {
        const FreeAmount free = view.free(row);
        shown.push_back(free[0]);
        for (const int64_t asked : {0, 1, 2, 130}) shown.push_back(view.fits(row, &asked));
        shown.push_back(view.is_up(row));
        require(view.index().contains(row) == (free[0] > 0), "open as long as there is room");
      }
      return shown;
    });
  }

  Stream stream_;
  std::vector<int64_t> limit_, cell_offsets_;
  std::vector<std::unique_ptr<ClusterView>>
      views_;  // narrow, wide, first the one, then the other, and narrow with snapshots
  std::vector<int64_t> used_, changed_, versions_;
  std::vector<uint8_t> up_;
  std::vector<std::pair<int64_t, std::vector<int32_t>>> under_way_;
  int64_t now_us_ = 0;
  int snapshots_ = 0;
};

void narrow_views_show_what_wide_ones_do() {
  for (uint64_t seed = 0; seed < 12; ++seed)
    NarrowAgainstWide(seed,
                      seed % 3 == 0   ? 126
                      : seed % 3 == 1 ? 4
                                      : 1,
                      seed % 2 == 0, seed % 4 < 2)
        .run(1'000);
}

void views_are_narrow_where_limits_allow_it() {
  const std::vector<int64_t> offsets{0, 2}, score(2, 1);
  const auto narrow = [&](size_t dimensions, std::vector<int64_t> limit, bool with_seqnum) {
    const auto state = std::make_shared<const StaticCellState>(dimensions, limit, score, offsets);
    return ClusterView(state, with_seqnum).is_narrow();
  };
  require(narrow(1, {127, 0}, false), "a byte holds the limits");
  require(!narrow(1, {128, 0}, false), "a byte does not hold a limit");
  require(!narrow(1, {1, 1}, true), "closed rows are far below what a byte holds");
  require(!narrow(2, {1, 1, 1, 1}, false), "two resources");
}

}  // namespace

int main() {
  views_are_narrow_where_limits_allow_it();
  narrow_views_show_what_wide_ones_do();
  index_replaces_many_rows();
  index_agrees_with_sets();
  draws_are_proportional();
  own_claims_are_never_stale();
  return 0;
}
