// Table folds against plain loops over the rows, on random batches of many lengths; a block with a
// bad row changes nothing.
#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "check.hpp"
#include "parsync/metrics/native/table_fold.hpp"

using agora::TableFold;
using Value = TableFold::Value;
using Rows = TableFold::Rows;
using Binary = TableFold::Binary;

static Draws draw(20250);

namespace {

constexpr int64_t kAgents = 5, kMost = std::numeric_limits<int64_t>::max();

class Series : public agora::GrowingCounts {
 public:
  size_t rows() const override { return kAgents; }
  size_t buckets() const override { return buckets_; }
  void grow(size_t buckets) override {
    std::vector<int64_t> grown(2 * kAgents * buckets);
    for (size_t row = 0; row < 2 * kAgents; ++row)
      for (size_t bucket = 0; bucket < buckets_; ++bucket)
        grown[row * buckets + bucket] = counts_[row * buckets_ + bucket];
    counts_ = grown;
    buckets_ = buckets;
  }
  int64_t* counts(size_t name) override { return counts_.data() + name * kAgents * buckets_; }

 private:
  size_t buckets_ = 2;
  std::vector<int64_t> counts_ = std::vector<int64_t>(2 * kAgents * 2);
};

// A batch of a table of four columns of different widths.
struct Batch {
  std::vector<int32_t> agent;
  std::vector<int64_t> at_us, weight;
  std::vector<int8_t> first;

  explicit Batch(size_t rows) {
    int32_t now = 0;
    for (size_t i = 0; i < rows; ++i) {
      if (draw(4) == 0) now = static_cast<int32_t>(draw(kAgents));
      agent.push_back(now);
      at_us.push_back(static_cast<int64_t>(draw(6000)) - 500);
      weight.push_back(static_cast<int64_t>(draw(1 << 20)) - 1000);
      first.push_back(draw(8) != 0);
    }
  }
  std::array<agora::RowColumn, 4> columns() const {
    const auto of = [](const auto& column) {
      constexpr auto bytes = sizeof(column[0]);
      return agora::RowColumn{reinterpret_cast<const char*>(column.data()), bytes, bytes, true};
    };
    return {of(agent), of(at_us), of(weight), of(first)};
  }
};

int64_t slot_of(int64_t at_us) {
  return at_us >= 1000 && at_us < 2000 ? 0 : at_us >= 2500 && at_us < 4000 ? 1 : at_us <= 0 ? 3 : 2;
}

// One fold of everything, and the same by plain loops.
struct Case {
  const std::array<int64_t, 4> edges{1000, 2000, 2500, 4000};
  const std::array<int64_t, 4> ids{1, 3, 4, 9};
  const std::array<int64_t, 5> group{2, 0, 1, 1, 0};
  agora::Windows windows{edges};
  TableFold fold{4};
  Series series;
  std::vector<int64_t> sums = std::vector<int64_t>(kAgents * 4), rows = {0};
  std::vector<int64_t> histogram = std::vector<int64_t>(3 * agora::kBuckets);
  std::vector<int64_t> largest = std::vector<int64_t>(kAgents, -1);
  std::vector<int64_t> smallest = std::vector<int64_t>(kAgents, kMost);
  std::vector<int64_t> earliest = std::vector<int64_t>(kAgents, kMost);
  std::vector<double> squares = std::vector<double>(kAgents);
  std::vector<int16_t> last = std::vector<int16_t>(kAgents), beside = last;
  std::vector<int64_t> places = std::vector<int64_t>(4), handed;

  Case() {
    const Value agent = fold.column(0), at_us = fold.column(1), weight = fold.column(2);
    CHECK(agent == fold.column(0));
    const Value first = fold.binary(Binary::kEqual, fold.column(3), fold.constant(1));
    const Rows firsts = fold.where(Rows::kAll, first);
    const Value slot = fold.slot(at_us, windows);
    fold.add(firsts, fold.place(firsts, {agent, slot}, {kAgents, 4}, {"agent", "slot"}),
             sums.data(), weight);
    fold.count_rows(firsts, rows.data());
    const Value of_group = fold.gather(Rows::kAll, group, agent, "agent");
    fold.add(Rows::kAll,
             fold.place(Rows::kAll, {of_group, fold.histogram_bucket(weight)},
                        {3, size_t{agora::kBuckets}}, {"group", "bucket"}),
             histogram.data(), fold.constant(1));
    const Value bucket = fold.divide(fold.clamp(at_us, 0, kMost), 250);
    const Value in_series = fold.place_in(firsts, series, agent, bucket);
    fold.add_in(firsts, in_series, series, 1, weight);
    // what grows later must not move the places found before
    const Value later = fold.binary(Binary::kAdd, bucket, fold.constant(7));
    fold.add_in(Rows::kAll, fold.place_in(Rows::kAll, series, agent, later), series, 0,
                fold.binary(Binary::kMultiply, weight, fold.constant(3)));
    const Value place = fold.place(Rows::kAll, {agent}, {kAgents}, {"agent"});
    fold.add_squares(Rows::kAll, place, squares.data(), weight);
    fold.largest(Rows::kAll, place, largest.data(), weight);
    fold.smallest(firsts, place, smallest.data(), weight);
    fold.store(firsts, place, {last.data(), 2}, slot);
    fold.earliest(Rows::kAll, place, earliest.data(), at_us, {{{beside.data(), 2}, slot}});
    const Value id = fold.place_of(agent, ids);
    const Rows known = fold.where(Rows::kAll, fold.binary(Binary::kLess, fold.constant(-1), id));
    fold.add(known, fold.place(known, {id}, {4}, {"id"}), places.data(), fold.constant(2));
    const Rows late = fold.where(firsts, fold.binary(Binary::kLess, fold.constant(5400), at_us));
    fold.call(late,
              [this](const std::vector<std::vector<int64_t>>& columns) {
                CHECK(!columns[0].empty());
                handed.insert(handed.end(), columns[0].begin(), columns[0].end());
              },
              {weight});
  }
};

void check_random_batches() {
  Case found;
  Case expected;  // of which only the arrays are used
  std::vector<std::vector<int64_t>> in_series(2, std::vector<int64_t>(kAgents * 40));
  constexpr size_t kBlock = TableFold::kBlock;
  for (const size_t length : {size_t{0}, size_t{1}, kBlock - 1, kBlock, kBlock + 1, 5 * kBlock}) {
    const Batch batch(length);
    found.fold.fold(batch.columns(), length);
    for (size_t i = 0; i < length; ++i) {
      const auto agent = static_cast<size_t>(batch.agent[i]);
      const int64_t at_us = batch.at_us[i], weight = batch.weight[i], slot = slot_of(at_us);
      const auto bucket = static_cast<size_t>(std::max<int64_t>(at_us, 0) / 250);
      if (batch.first[i]) {
        expected.sums[agent * 4 + static_cast<size_t>(slot)] += weight;
        ++expected.rows[0];
        in_series[1][agent * 40 + bucket] += weight;
        expected.smallest[agent] = std::min(expected.smallest[agent], weight);
        expected.last[agent] = static_cast<int16_t>(slot);
        if (at_us > 5400) expected.handed.push_back(weight);
      }
      in_series[0][agent * 40 + bucket + 7] += 3 * weight;
      ++expected.histogram[static_cast<size_t>(expected.group[agent] * agora::kBuckets +
                                               agora::bucket_of(weight))];
      expected.squares[agent] += static_cast<double>(weight) * static_cast<double>(weight);
      expected.largest[agent] = std::max(expected.largest[agent], weight);
      if (at_us <= expected.earliest[agent]) {
        expected.earliest[agent] = at_us;
        expected.beside[agent] = static_cast<int16_t>(slot);
      }
      for (size_t place = 0; place < 4; ++place)
        if (expected.ids[place] == batch.agent[i]) expected.places[place] += 2;
    }
  }
  CHECK(found.sums == expected.sums && found.rows == expected.rows);
  CHECK(found.histogram == expected.histogram && found.squares == expected.squares);
  CHECK(found.largest == expected.largest && found.smallest == expected.smallest);
  CHECK(found.last == expected.last && found.places == expected.places);
  CHECK(found.earliest == expected.earliest && found.beside == expected.beside);
  CHECK(!found.handed.empty() && found.handed == expected.handed);
  for (size_t name = 0; name < 2; ++name)
    for (size_t agent = 0; agent < kAgents; ++agent)
      for (size_t bucket = 0; bucket < found.series.buckets(); ++bucket)
        CHECK(found.series.counts(name)[agent * found.series.buckets() + bucket] ==
              in_series[name][agent * 40 + bucket]);
}

template <class Error>
void expect(Batch& batch, const char* text) {
  Case of;
  const std::vector<int64_t> before = of.sums;
  try {
    of.fold.fold(batch.columns(), batch.agent.size());
  } catch (const Error& error) {
    CHECK(std::string(error.what()).find(text) != std::string::npos);
    CHECK(of.sums == before && of.rows[0] == 0 && of.handed.empty());
    return;
  }
  CHECK(false);
}

void check_bad_rows() {
  for (const int32_t agent : {-1, 5, std::numeric_limits<int32_t>::min()}) {
    Batch batch(100);
    batch.agent[57] = agent;
    batch.first[57] = 1;
    expect<std::out_of_range>(batch, "agent: expected 0 to 4, got");
  }
  for (const int64_t weight : {kMost, std::numeric_limits<int64_t>::min()}) {
    Batch batch(100);
    batch.weight[99] = weight;
    expect<std::overflow_error>(batch, "beyond 64 bits");
  }
}

// A row that is not selected may have any index.
void check_rows_left_out() {
  Batch batch(100);
  TableFold fold(4);
  std::vector<int64_t> sums(kAgents);
  const Rows inside =
      fold.where(Rows::kAll, fold.binary(Binary::kLess, fold.column(0), fold.constant(kAgents)));
  fold.add(inside, fold.place(inside, {fold.column(0)}, {kAgents}, {"agent"}), sums.data(),
           fold.constant(1));
  batch.agent[3] = 700;
  fold.fold(batch.columns(), 100);
  int64_t total = 0;
  for (const int64_t sum : sums) total += sum;
  CHECK(total == 99);
}

// Columns of every other row, unsigned, and not aligned.
void check_strides() {
  const std::vector<uint8_t> bytes{0, 200, 7, 201, 0, 255, 9};
  TableFold fold(1);
  std::vector<int64_t> sums(1);
  const Value value = fold.column(0);
  fold.add(Rows::kAll, fold.place(Rows::kAll, {fold.constant(0)}, {1}, {"0"}), sums.data(), value);
  const agora::RowColumn column{reinterpret_cast<const char*>(bytes.data()) + 1, 2, 1, false};
  fold.fold({&column, 1}, 3);
  CHECK(sums[0] == 200 + 201 + 255);

  std::vector<char> memory(1 + 3 * sizeof(int64_t));
  const std::array<int64_t, 3> numbers{5, -7, int64_t{1} << 40};
  std::memcpy(memory.data() + 1, numbers.data(), sizeof numbers);
  const agora::RowColumn unaligned{memory.data() + 1, 8, 8, true};
  fold.fold({&unaligned, 1}, 3);
  CHECK(sums[0] == 656 + 5 - 7 + (int64_t{1} << 40));
}

void check_division() {
  TableFold fold(1);
  std::vector<int64_t> kept(1, -kMost);
  fold.largest(Rows::kAll, fold.place(Rows::kAll, {fold.constant(0)}, {1}, {"0"}), kept.data(),
               fold.divide(fold.column(0), 250));
  for (const int64_t number : {std::numeric_limits<int64_t>::min(), int64_t{-251}, int64_t{-250},
                               int64_t{-1}, int64_t{0}, int64_t{249}, int64_t{250}, kMost}) {
    kept[0] = -kMost;
    const agora::RowColumn column{reinterpret_cast<const char*>(&number), 8, 8, true};
    fold.fold({&column, 1}, 1);
    CHECK(kept[0] == number / 250 - (number % 250 < 0));
  }
}

}  // namespace

int main() {
  check_random_batches();
  check_bad_rows();
  check_rows_left_out();
  check_strides();
  check_division();
}
