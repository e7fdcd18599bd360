// Table folds: a block with a bad row changes nothing, and columns of any layout. (Against the sums
// in numpy: tests/properties/test_native_fold.py.)
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

// Sums by agent of tripled weights, and a call with the rows that it takes.
struct Case {
  TableFold fold{4};
  std::vector<int64_t> sums = std::vector<int64_t>(kAgents), rows = {0}, handed;

  Case() {
    const Value agent = fold.column(0), weight = fold.column(2);
    CHECK(agent == fold.column(0));
    const Value first = fold.binary(Binary::kEqual, fold.column(3), fold.constant(1));
    const Rows firsts = fold.where(Rows::kAll, first);
    fold.add(firsts, fold.place(firsts, {agent}, {kAgents}, {"agent"}), sums.data(),
             fold.binary(Binary::kMultiply, weight, fold.constant(3)));
    fold.count_rows(firsts, rows.data());
    fold.call(firsts,
              [this](const std::vector<std::vector<int64_t>>& columns) {
                handed.insert(handed.end(), columns[0].begin(), columns[0].end());
              },
              {weight});
  }
};

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
    batch.first[99] = 1;
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
  check_bad_rows();
  check_rows_left_out();
  check_strides();
  check_division();
}
