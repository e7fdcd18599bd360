// Adding up tables of measurements: histogram buckets, windows, and the fold of a table.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace agora {

// Integer histograms with logarithmic buckets; parsync/metrics/histogram.py has what is made of
// them.
//
// A value v >= 0 falls into a bucket of width 1 while v < 256, and above that into one of 128 equal
// buckets per power of two. (The layout is that of HdrHistogram by Gil Tene.) Only shifts are used,
// so equal values share a bucket on every machine.
constexpr int kSubBits = 7;
constexpr int64_t kLargestValue = int64_t{1} << 40;  // larger values share the last bucket

// The bucket of a value; negative values count as 0.
constexpr int64_t bucket_of(int64_t value) {
  const auto bounded = static_cast<uint64_t>(std::clamp<int64_t>(value, 0, kLargestValue));
  const int shift = std::max(static_cast<int>(std::bit_width(bounded)) - (kSubBits + 1), 0);
  return (int64_t{shift} << kSubBits) + static_cast<int64_t>(bounded >> shift);
}

constexpr int64_t kBuckets = bucket_of(kLargestValue) + 1;

// The windows in which the figures of a run count; parsync/metrics/run_frame.py has their meaning.
class Windows {
 public:
  // edges: begin and end of each window, ascending; a window does not hold its end.
  explicit Windows(std::span<const int64_t> edges) : edges_(edges.begin(), edges.end()) {
    if (edges_.size() % 2 != 0 || !std::ranges::is_sorted(edges_))
      throw std::invalid_argument("windows: expected a begin and an end of each, ascending");
  }

  int64_t outside() const { return static_cast<int64_t>(edges_.size() / 2); }
  int64_t start() const { return outside() + 1; }

  // The slot of each time: the number of the window that holds it; else start() up to time 0, and
  // outside() after it. Rows that follow each other are mostly within one stretch between two
  // edges.
  void slots_of(const int64_t* at_us, size_t count, int64_t* slot) const {
    Stretch now = stretch_of(count ? at_us[0] : 0);
    for (size_t i = 0; i < count; ++i) {
      if (at_us[i] < now.from_us || at_us[i] > now.last_us) now = stretch_of(at_us[i]);
      slot[i] = now.slot;
    }
  }

 private:
  struct Stretch {
    int64_t from_us, last_us;  // both within it
    int64_t slot;
  };

  Stretch stretch_of(int64_t at_us) const {
    constexpr auto kNever = std::numeric_limits<int64_t>::max();
    constexpr auto kAlways = std::numeric_limits<int64_t>::min();
    const auto next = std::ranges::upper_bound(edges_, at_us);
    const auto place = next - edges_.begin();
    Stretch found{place ? *(next - 1) : kAlways, next == edges_.end() ? kNever : *next - 1, 0};
    if (place % 2 == 1) {
      found.slot = place / 2;
    } else if (at_us <= 0) {
      found.slot = start();
      found.last_us = std::min<int64_t>(found.last_us, 0);
    } else {
      found.slot = outside();
      found.from_us = std::max<int64_t>(found.from_us, 1);
    }
    return found;
  }

  std::vector<int64_t> edges_;
};

// The values of one column of a batch, integers of `bytes` each; stride: bytes from one to the
// next.
struct RowColumn {
  const char* data;
  ptrdiff_t stride;
  uint8_t bytes;  // 1, 2, 4 or 8
  bool is_signed;
};

// A kept array of integers that rows are stored in.
struct IntegerArray {
  void* data;
  uint8_t bytes;  // 1, 2, 4 or 8
};

// Counts by row and time bucket, which grow with time. The fold does not own them.
class GrowingCounts {
 public:
  virtual ~GrowingCounts() = default;
  virtual size_t rows() const = 0;
  virtual size_t buckets() const = 0;
  // Makes room for this many buckets. Pointers from counts() are invalid afterwards.
  virtual void grow(size_t buckets) = 0;
  // The counts of one name: rows() * buckets() numbers, by row.
  virtual int64_t* counts(size_t name) = 0;
};

// Adds up the rows of one table of measurements in one pass, as its metrics declare it.
//
// A fold is a program, made once per run and table: steps that compute a value for every row, and
// sinks that change what is kept. It runs block by block, so that what a block needs stays in the
// cache:
//
//   rows of a batch --> block of up to kBlock rows
//                         1. steps, in the order of their declaration: columns widened to int64,
//                            arithmetic and masks, slots, buckets, which rows are selected, and
//                            places in the arrays that are kept
//                         2. sinks, in the same order: selected rows are added to, compared with,
//                            or stored in the arrays
//
// A step that is declared twice runs once. If it ran for some rows, it is not run again for rows
// chosen from them. Steps check everything that a row can get wrong (indices, overflow), so a block
// either counts as a whole or throws and changes nothing; blocks before it have counted. Sinks go
// through the rows in their order, so sums of floats do not depend on the block's length.
class TableFold {
 public:
  static constexpr size_t kBlock = 512;

  // What names a value, or a choice of rows, in declarations.
  enum class Value : uint32_t {};
  enum class Rows : uint32_t { kAll = 0 };
  enum class Binary : uint8_t { kAdd, kSubtract, kMultiply, kEqual, kLess, kAnd, kOr };

  // columns: of the table.
  explicit TableFold(size_t columns);

  // --- values, one int64 for each row of a block; masks are 0 or 1
  Value column(size_t number);
  Value constant(int64_t number);
  Value binary(Binary what, Value left, Value right);
  Value choose(Value mask, Value yes, Value no);
  // divisor > 0; rounds down.
  Value divide(Value value, int64_t divisor);
  // At least `lowest` and at most `highest`.
  Value clamp(Value value, int64_t lowest, int64_t highest);
  Value slot(Value at_us, const Windows& windows);
  Value histogram_bucket(Value value);
  // The place of each id among ascending, distinct ids; -1 if it is not among them. The ids must
  // outlive the fold.
  Value place_of(Value id, std::span<const int64_t> ids);
  // table[index] of these rows, 0 of others. The table must outlive the fold.
  Value gather(Rows rows, std::span<const int64_t> table, Value index, const std::string& name);

  // --- choices of rows, and places in arrays of row-major shape
  Rows where(Rows within, Value mask);
  // names: of the indices, for errors.
  Value place(Rows rows, const std::vector<Value>& indices, const std::vector<size_t>& shape,
              const std::vector<std::string>& names);
  // In growing counts, which make room first.
  Value place_in(Rows rows, GrowingCounts& counts, Value row, Value bucket);

  // --- sinks; arrays must outlive the fold
  void add(Rows rows, Value place, int64_t* sums, Value weight);
  void count_rows(Rows rows, int64_t* count);
  void add_in(Rows rows, Value place, GrowingCounts& counts, size_t name, Value weight);
  void add_squares(Rows rows, Value place, double* sums, Value value);
  void largest(Rows rows, Value place, int64_t* kept, Value value);
  void smallest(Rows rows, Value place, int64_t* kept, Value value);
  void store(Rows rows, Value place, IntegerArray kept, Value value);
  // Where `key` is at most the kept key: keeps it, and stores the values of `beside`.
  void earliest(Rows rows, Value place, int64_t* kept, Value key,
                std::vector<std::pair<IntegerArray, Value>> beside);
  // Hands the values of selected rows, one column after another, to a function if there are any.
  using Listener = std::function<void(const std::vector<std::vector<int64_t>>&)>;
  void call(Rows rows, Listener listener, std::vector<Value> values);

  // Whether rows change anything.
  bool has_sinks() const { return !sinks_.empty(); }
  // Whether a step reads this column.
  bool reads(size_t column) const;

  // columns: of the table, in its order, `rows` values each; those that nothing reads are not
  // looked at. Throws std::out_of_range for an index outside its array, and std::overflow_error.
  void fold(std::span<const RowColumn> columns, size_t rows);

 private:
  enum class Op : uint8_t {
    kColumn,
    kConstant,
    kBinary,
    kChoose,
    kDivide,
    kClamp,
    kSlot,
    kHistogramBucket,
    kPlaceOf,
    kGather,
    kWhere,
    kCheck,
    kPlace,
    kPlaceIn
  };
  struct Step {
    Op op;
    Binary binary = Binary::kAdd;
    Rows rows = Rows::kAll;             // that it is about
    std::vector<Value> of = {};         // its operands
    std::vector<int64_t> numbers = {};  // constants, or a length
    const int64_t* table = nullptr;     // numbers[0] entries
    const Windows* windows = nullptr;
    GrowingCounts* counts = nullptr;
    std::vector<std::string> names = {};
    uint32_t result = 0;  // a value, or a choice of rows

    bool same(const Step& other) const;
  };
  enum class Sink : uint8_t {
    kCountRows,
    kAdd,
    kAddIn,
    kAddSquares,
    kLargest,
    kSmallest,
    kStore,
    kEarliest,
    kCall
  };
  struct SinkStep {
    Sink sink;
    Rows rows;
    Value place{};
    Value value{};
    int64_t* sums = nullptr;
    double* squares = nullptr;
    GrowingCounts* counts = nullptr;
    size_t name = 0;
    std::vector<std::pair<IntegerArray, Value>> stored = {};
    Listener listener = {};
    std::vector<Value> values = {};
  };
  // Rows of a block: all of them, or those listed.
  struct Selection {
    bool all = true;
    std::vector<uint16_t> row;
  };

  uint32_t step(Step step);
  Value value_step(Step wanted) { return Value{step(std::move(wanted))}; }
  const int64_t* at(Value value) const { return at_[static_cast<size_t>(value)]; }
  int64_t* own(uint32_t value) { return values_.data() + size_t{value} * kBlock; }
  bool is_within(Rows rows, Rows others) const;
  const Selection& of(Rows rows) const { return selections_[static_cast<size_t>(rows)]; }
  template <class F>
  void each(Rows rows, F&& body) const;

  void run(const Step& step, std::span<const RowColumn> columns, size_t first);
  void read_column(const Step& step, const RowColumn& column, size_t first);
  void run_binary(const Step& step);
  void check(const Step& step, const int64_t* index);
  void run_place(const Step& step);
  void run_place_in(const Step& step);
  void run(SinkStep& sink);
  void hand_over(const SinkStep& sink) const;
  template <class F>
  void run_in_register(Rows rows, const int64_t* place, int64_t* kept, const int64_t* value,
                       F&& combine);

  size_t columns_;
  std::vector<Step> steps_;
  std::vector<SinkStep> sinks_;
  std::vector<int64_t> values_;                // of the block, kBlock for each value
  std::vector<const int64_t*> at_;             // where each value is: there, or in the batch
  std::vector<Rows> chosen_from_{Rows::kAll};  // by choice of rows
  std::vector<Selection> selections_;
  size_t rows_ = 0;    // of the block
  bool grew_ = false;  // some growing counts, within the block
};

}  // namespace agora
