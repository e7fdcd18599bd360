#include "table_fold.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <stdexcept>

namespace agora {

namespace {

template <class T>
void widen(const char* from, ptrdiff_t stride, size_t count, int64_t* out) {
  const auto read = [&](ptrdiff_t step) {
    for (size_t i = 0; i < count; ++i) {
      T value;
      std::memcpy(&value, from + static_cast<ptrdiff_t>(i) * step, sizeof value);
      out[i] = static_cast<int64_t>(value);
    }
  };
  if (stride == sizeof(T))
    read(sizeof(T));  // a constant, so that compilers can do several at once
  else
    read(stride);
}

// Calls a function with the numbers of an array, in the type that they have.
template <class F>
void with_width(const IntegerArray& array, F&& body) {
  switch (array.bytes) {
    case 1:
      return body(static_cast<int8_t*>(array.data));
    case 2:
      return body(static_cast<int16_t*>(array.data));
    case 4:
      return body(static_cast<int32_t*>(array.data));
    default:
      return body(static_cast<int64_t*>(array.data));
  }
}

constexpr auto wrapping_sum = [](int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
};

[[noreturn]] void refuse(const std::string& name, int64_t got, int64_t length) {
  throw std::out_of_range(name + ": expected 0 to " + std::to_string(length - 1) + ", got " +
                          std::to_string(got));
}

int64_t rounded_down(int64_t value, int64_t divisor) {
  return value / divisor - (value % divisor < 0);
}

}  // namespace

// --- declarations

TableFold::TableFold(size_t columns) : columns_(columns), selections_(1) {}

bool TableFold::Step::same(const Step& other) const {
  return op == other.op && binary == other.binary && of == other.of && numbers == other.numbers &&
         table == other.table && windows == other.windows && counts == other.counts;
}

bool TableFold::is_within(Rows rows, Rows others) const {
  for (; rows != others; rows = chosen_from_[static_cast<size_t>(rows)])
    if (rows == Rows::kAll) return false;
  return true;
}

uint32_t TableFold::step(Step wanted) {
  for (const Step& known : steps_)
    if (known.same(wanted) &&
        (known.op == Op::kWhere ? known.rows == wanted.rows : is_within(wanted.rows, known.rows)))
      return known.result;
  if (wanted.op == Op::kWhere) {
    wanted.result = static_cast<uint32_t>(selections_.size());
    selections_.emplace_back();
    selections_.back().row.reserve(kBlock);
    chosen_from_.push_back(wanted.rows);
  } else {
    wanted.result = static_cast<uint32_t>(at_.size());
    const int64_t filler = wanted.op == Op::kConstant ? wanted.numbers[0] : 0;
    values_.resize(values_.size() + kBlock, filler);
    at_.push_back(nullptr);
    for (uint32_t value = 0; value < at_.size(); ++value) at_[value] = own(value);
  }
  steps_.push_back(std::move(wanted));
  return steps_.back().result;
}

TableFold::Value TableFold::column(size_t number) {
  if (number >= columns_) throw std::invalid_argument("fold: the table has no such column");
  return value_step({.op = Op::kColumn, .numbers = {static_cast<int64_t>(number)}});
}

TableFold::Value TableFold::constant(int64_t number) {
  return value_step({.op = Op::kConstant, .numbers = {number}});
}

TableFold::Value TableFold::binary(Binary what, Value left, Value right) {
  return value_step({.op = Op::kBinary, .binary = what, .of = {left, right}});
}

TableFold::Value TableFold::choose(Value mask, Value yes, Value no) {
  return value_step({.op = Op::kChoose, .of = {mask, yes, no}});
}

TableFold::Value TableFold::divide(Value value, int64_t divisor) {
  if (divisor < 1) throw std::invalid_argument("fold: expected a divisor above 0");
  return value_step({.op = Op::kDivide, .of = {value}, .numbers = {divisor}});
}

TableFold::Value TableFold::clamp(Value value, int64_t lowest, int64_t highest) {
  if (lowest > highest) throw std::invalid_argument("fold: expected a lowest below the highest");
  return value_step({.op = Op::kClamp, .of = {value}, .numbers = {lowest, highest}});
}

TableFold::Value TableFold::slot(Value at_us, const Windows& windows) {
  return value_step({.op = Op::kSlot, .of = {at_us}, .windows = &windows});
}

TableFold::Value TableFold::histogram_bucket(Value value) {
  return value_step({.op = Op::kHistogramBucket, .of = {value}});
}

TableFold::Value TableFold::place_of(Value id, std::span<const int64_t> ids) {
  return value_step({.op = Op::kPlaceOf,
                     .of = {id},
                     .numbers = {static_cast<int64_t>(ids.size())},
                     .table = ids.data()});
}

TableFold::Value TableFold::gather(Rows rows, std::span<const int64_t> table, Value index,
                                   const std::string& name) {
  return value_step({.op = Op::kGather,
                     .rows = rows,
                     .of = {index},
                     .numbers = {static_cast<int64_t>(table.size())},
                     .table = table.data(),
                     .names = {name}});
}

TableFold::Rows TableFold::where(Rows within, Value mask) {
  return Rows{step({.op = Op::kWhere, .rows = within, .of = {mask}})};
}

TableFold::Value TableFold::place(Rows rows, const std::vector<Value>& indices,
                                  const std::vector<size_t>& shape,
                                  const std::vector<std::string>& names) {
  if (indices.empty() || indices.size() != shape.size() || names.size() != shape.size())
    throw std::invalid_argument("fold: expected an index for each dimension");
  Value place = indices[0];
  step({.op = Op::kCheck,
        .rows = rows,
        .of = {place},
        .numbers = {static_cast<int64_t>(shape[0])},
        .names = {names[0]}});
  for (size_t dimension = 1; dimension < shape.size(); ++dimension)
    place = value_step({.op = Op::kPlace,
                        .rows = rows,
                        .of = {indices[dimension], place},
                        .numbers = {static_cast<int64_t>(shape[dimension])},
                        .names = {names[dimension]}});
  return place;
}

TableFold::Value TableFold::place_in(Rows rows, GrowingCounts& counts, Value row, Value bucket) {
  return value_step({.op = Op::kPlaceIn, .rows = rows, .of = {row, bucket}, .counts = &counts});
}

void TableFold::add(Rows rows, Value place, int64_t* sums, Value weight) {
  sinks_.push_back(
      {.sink = Sink::kAdd, .rows = rows, .place = place, .value = weight, .sums = sums});
}

void TableFold::count_rows(Rows rows, int64_t* count) {
  sinks_.push_back({.sink = Sink::kCountRows, .rows = rows, .sums = count});
}

void TableFold::add_in(Rows rows, Value place, GrowingCounts& counts, size_t name, Value weight) {
  sinks_.push_back({.sink = Sink::kAddIn,
                    .rows = rows,
                    .place = place,
                    .value = weight,
                    .counts = &counts,
                    .name = name});
}

void TableFold::add_squares(Rows rows, Value place, double* sums, Value value) {
  sinks_.push_back(
      {.sink = Sink::kAddSquares, .rows = rows, .place = place, .value = value, .squares = sums});
}

void TableFold::largest(Rows rows, Value place, int64_t* kept, Value value) {
  sinks_.push_back(
      {.sink = Sink::kLargest, .rows = rows, .place = place, .value = value, .sums = kept});
}

void TableFold::smallest(Rows rows, Value place, int64_t* kept, Value value) {
  sinks_.push_back(
      {.sink = Sink::kSmallest, .rows = rows, .place = place, .value = value, .sums = kept});
}

void TableFold::store(Rows rows, Value place, IntegerArray kept, Value value) {
  sinks_.push_back({.sink = Sink::kStore, .rows = rows, .place = place, .stored = {{kept, value}}});
}

void TableFold::earliest(Rows rows, Value place, int64_t* kept, Value key,
                         std::vector<std::pair<IntegerArray, Value>> beside) {
  sinks_.push_back({.sink = Sink::kEarliest,
                    .rows = rows,
                    .place = place,
                    .value = key,
                    .sums = kept,
                    .stored = std::move(beside)});
}

void TableFold::call(Rows rows, Listener listener, std::vector<Value> values) {
  sinks_.push_back({.sink = Sink::kCall,
                    .rows = rows,
                    .listener = std::move(listener),
                    .values = std::move(values)});
}

bool TableFold::reads(size_t column) const {
  return std::ranges::any_of(steps_, [&](const Step& step) {
    return step.op == Op::kColumn && step.numbers[0] == static_cast<int64_t>(column);
  });
}

// --- running

void TableFold::fold(std::span<const RowColumn> columns, size_t rows) {
  if (columns.size() != columns_) throw std::invalid_argument("fold: expected every column");
  for (size_t first = 0; first < rows; first += kBlock) {
    rows_ = std::min(kBlock, rows - first);
    grew_ = false;
    for (const Step& step : steps_) run(step, columns, first);
    if (grew_)  // places in what grew later are others now
      for (const Step& step : steps_)
        if (step.op == Op::kPlaceIn) run_place_in(step);
    for (SinkStep& sink : sinks_) run(sink);
  }
}

template <class F>
void TableFold::each(Rows rows, F&& body) const {
  const Selection& selection = of(rows);
  if (selection.all) {
    for (size_t i = 0; i < rows_; ++i) body(i);
  } else {
    for (const size_t i : selection.row) body(i);
  }
}

void TableFold::run(const Step& step, std::span<const RowColumn> columns, size_t first) {
  if (step.op == Op::kCheck) return check(step, at(step.of[0]));
  if (step.op == Op::kWhere) {
    const int64_t* mask = at(step.of[0]);
    Selection& chosen = selections_[step.result];
    chosen.row.clear();
    each(step.rows, [&](size_t i) {
      if (mask[i] != 0) chosen.row.push_back(static_cast<uint16_t>(i));
    });
    chosen.all = chosen.row.size() == rows_;
    return;
  }
  int64_t* out = own(step.result);
  switch (step.op) {
    case Op::kColumn:
      return read_column(step, columns[static_cast<size_t>(step.numbers[0])], first);
    case Op::kConstant:
      return;  // there since it was declared
    case Op::kBinary:
      return run_binary(step);
    case Op::kChoose: {
      const int64_t *mask = at(step.of[0]), *yes = at(step.of[1]), *no = at(step.of[2]);
      for (size_t i = 0; i < rows_; ++i) out[i] = mask[i] != 0 ? yes[i] : no[i];
      return;
    }
    case Op::kDivide: {
      // rows that follow each other are mostly of one quotient: a division takes 20 cycles
      const int64_t *value = at(step.of[0]), divisor = step.numbers[0];
      int64_t quotient = 0, begin = 0;  // never below 0
      for (size_t i = 0; i < rows_; ++i) {
        if (value[i] < 0) {
          out[i] = rounded_down(value[i], divisor);
          continue;
        }
        if (value[i] < begin || value[i] - begin >= divisor) {
          quotient = value[i] / divisor;
          begin = quotient * divisor;
        }
        out[i] = quotient;
      }
      return;
    }
    case Op::kClamp: {
      const int64_t* value = at(step.of[0]);
      for (size_t i = 0; i < rows_; ++i)
        out[i] = std::clamp(value[i], step.numbers[0], step.numbers[1]);
      return;
    }
    case Op::kSlot:
      return step.windows->slots_of(at(step.of[0]), rows_, out);
    case Op::kHistogramBucket: {
      const int64_t* value = at(step.of[0]);
      for (size_t i = 0; i < rows_; ++i) out[i] = bucket_of(value[i]);
      return;
    }
    case Op::kPlaceOf: {
      const int64_t* id = at(step.of[0]);
      const std::span<const int64_t> ids(step.table, static_cast<size_t>(step.numbers[0]));
      // ids from 0 on without a gap are their own places
      const auto length = static_cast<int64_t>(ids.size());
      const bool dense = ids.empty() || (ids.front() == 0 && ids.back() == length - 1);
      for (size_t i = 0; i < rows_; ++i) {
        if (dense) {
          out[i] = id[i] >= 0 && id[i] < length ? id[i] : -1;
          continue;
        }
        const auto found = std::ranges::lower_bound(ids, id[i]);
        out[i] = found != ids.end() && *found == id[i] ? found - ids.begin() : -1;
      }
      return;
    }
    case Op::kGather: {
      const int64_t *index = at(step.of[0]), length = step.numbers[0];
      if (!of(step.rows).all) std::fill_n(out, rows_, 0);
      return each(step.rows, [&](size_t i) {
        if (index[i] < 0 || index[i] >= length) refuse(step.names[0], index[i], length);
        out[i] = step.table[index[i]];
      });
    }
    case Op::kPlace:
      return run_place(step);
    case Op::kPlaceIn:
      return run_place_in(step);
    case Op::kCheck:
    case Op::kWhere:
      break;
  }
}

void TableFold::run_binary(const Step& step) {
  const int64_t *left = at(step.of[0]), *right = at(step.of[1]);
  int64_t* out = own(step.result);
  // `overflowed`: the sign of a number says whether an operation went beyond 64 bits. So compilers
  // can do several at once.
  const auto checked = [&](auto&& operation) {
    int64_t overflowed = 0;
    for (size_t i = 0; i < rows_; ++i) overflowed |= operation(left[i], right[i], out[i]);
    if (overflowed < 0) throw std::overflow_error("numbers beyond 64 bits");
  };
  switch (step.binary) {
    case Binary::kAdd:
      return checked([](int64_t a, int64_t b, int64_t& sum) {
        sum = wrapping_sum(a, b);
        return (a ^ sum) & (b ^ sum);
      });
    case Binary::kSubtract:
      return checked([](int64_t a, int64_t b, int64_t& difference) {
        difference = static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
        return (a ^ b) & (a ^ difference);
      });
    case Binary::kMultiply:
      return checked([](int64_t a, int64_t b, int64_t& product) {
        return __builtin_mul_overflow(a, b, &product) ? int64_t{-1} : 0;
      });
    case Binary::kEqual:
      for (size_t i = 0; i < rows_; ++i) out[i] = left[i] == right[i];
      return;
    case Binary::kLess:
      for (size_t i = 0; i < rows_; ++i) out[i] = left[i] < right[i];
      return;
    case Binary::kAnd:
      for (size_t i = 0; i < rows_; ++i) out[i] = left[i] & right[i];
      return;
    case Binary::kOr:
      for (size_t i = 0; i < rows_; ++i) out[i] = left[i] | right[i];
      return;
  }
}

void TableFold::check(const Step& step, const int64_t* index) {
  const int64_t length = step.numbers[0];
  int64_t outside = 0;  // negative if an index is: below 0, or not below the length
  each(step.rows, [&](size_t i) {
    outside |= index[i] | static_cast<int64_t>(static_cast<uint64_t>(length - 1) -
                                               static_cast<uint64_t>(index[i]));
  });
  if (outside >= 0) return;
  each(step.rows, [&](size_t i) {
    if (index[i] < 0 || index[i] >= length) refuse(step.names[0], index[i], length);
  });
}

void TableFold::run_place(const Step& step) {
  const int64_t *index = at(step.of[0]), *before = at(step.of[1]), length = step.numbers[0];
  int64_t* out = own(step.result);
  check(step, index);
  each(step.rows, [&](size_t i) { out[i] = before[i] * length + index[i]; });
}

void TableFold::read_column(const Step& step, const RowColumn& column, size_t first) {
  const char* from = column.data + static_cast<ptrdiff_t>(first) * column.stride;
  const bool is_there = column.bytes == 8 && column.is_signed && column.stride == 8 &&
                        reinterpret_cast<uintptr_t>(from) % alignof(int64_t) == 0;
  int64_t* out = own(step.result);
  at_[step.result] = is_there ? reinterpret_cast<const int64_t*>(from) : out;
  if (is_there) return;
  const auto widened = [&]<class T>(T) { widen<T>(from, column.stride, rows_, out); };
  switch (column.bytes) {
    case 1:
      return column.is_signed ? widened(int8_t{}) : widened(uint8_t{});
    case 2:
      return column.is_signed ? widened(int16_t{}) : widened(uint16_t{});
    case 4:
      return column.is_signed ? widened(int32_t{}) : widened(uint32_t{});
    default:
      return column.is_signed ? widened(int64_t{}) : widened(uint64_t{});
  }
}

void TableFold::run_place_in(const Step& step) {
  const int64_t *row = at(step.of[0]), *bucket = at(step.of[1]);
  int64_t* out = own(step.result);
  const auto rows = static_cast<int64_t>(step.counts->rows());
  int64_t last = -1;
  each(step.rows, [&](size_t i) {
    if (row[i] < 0 || row[i] >= rows) refuse("row of a time series", row[i], rows);
    if (bucket[i] < 0) throw std::out_of_range("bucket of a time series: below 0");
    last = std::max(last, bucket[i]);
  });
  if (last >= static_cast<int64_t>(step.counts->buckets())) {
    step.counts->grow(static_cast<size_t>(last) + 1);
    grew_ = true;
  }
  const auto buckets = static_cast<int64_t>(step.counts->buckets());
  each(step.rows, [&](size_t i) { out[i] = row[i] * buckets + bucket[i]; });
}

// Rows that follow each other are often of one place: what becomes of it is worked out in a
// register, as each further read would wait for the write before it.
template <class F>
void TableFold::run_in_register(Rows rows, const int64_t* place, int64_t* kept,
                                const int64_t* value, F&& combine) {
  int64_t now = -1, result = 0;
  each(rows, [&](size_t i) {
    if (place[i] != now) {
      if (now >= 0) kept[now] = result;
      now = place[i];
      result = kept[now];
    }
    result = combine(result, value[i]);
  });
  if (now >= 0) kept[now] = result;
}

void TableFold::run(SinkStep& sink) {
  if (sink.sink == Sink::kCountRows) {
    const Selection& counted = of(sink.rows);
    *sink.sums += static_cast<int64_t>(counted.all ? rows_ : counted.row.size());
    return;
  }
  if (sink.sink == Sink::kCall) return hand_over(sink);
  const int64_t *place = at(sink.place), *value = at(sink.value);
  switch (sink.sink) {
    case Sink::kCountRows:
    case Sink::kCall:
      return;
    case Sink::kAdd:
      return run_in_register(sink.rows, place, sink.sums, value, wrapping_sum);
    case Sink::kAddIn:
      return run_in_register(sink.rows, place, sink.counts->counts(sink.name), value, wrapping_sum);
    case Sink::kAddSquares:
      return each(sink.rows, [&](size_t i) {
        const auto number = static_cast<double>(value[i]);
        sink.squares[place[i]] += number * number;
      });
    case Sink::kLargest:
      return run_in_register(sink.rows, place, sink.sums, value,
                             [](int64_t kept, int64_t one) { return std::max(kept, one); });
    case Sink::kSmallest:
      return run_in_register(sink.rows, place, sink.sums, value,
                             [](int64_t kept, int64_t one) { return std::min(kept, one); });
    case Sink::kStore: {
      const auto& [kept, stored] = sink.stored[0];
      const int64_t* values = at(stored);
      return with_width(kept, [&]<class T>(T* numbers) {
        each(sink.rows, [&](size_t i) { numbers[place[i]] = static_cast<T>(values[i]); });
      });
    }
    case Sink::kEarliest:
      return each(sink.rows, [&](size_t i) {
        if (value[i] > sink.sums[place[i]]) return;
        sink.sums[place[i]] = value[i];
        for (const auto& [kept, stored] : sink.stored)
          with_width(kept, [&]<class T>(T* numbers) {
            numbers[place[i]] = static_cast<T>(at(stored)[i]);
          });
      });
  }
}

void TableFold::hand_over(const SinkStep& sink) const {
  const Selection& selected = of(sink.rows);
  if (selected.all ? rows_ == 0 : selected.row.empty()) return;
  std::vector<std::vector<int64_t>> columns;
  for (const Value value : sink.values) {
    std::vector<int64_t>& column = columns.emplace_back();
    each(sink.rows, [&](size_t i) { column.push_back(at(value)[i]); });
  }
  sink.listener(columns);
}

}  // namespace agora
