// The implied cost of a machine's next slot (Krishnan and Ott 1986; Kelly 1988).
//
// A machine with C slots is a loss system to which the tasks that want it come as a Poisson stream
// of nu Erlang. If b slots are busy and one more is taken, the expected number of tasks that are
// turned away more, from now on, is E(nu, C) / E(nu, b), where E is Erlang's loss formula. Each of
// them pays `gain` more elsewhere, so this ratio times the gain is what the slot is worth to
// others.
//
// E(n) / E(n - 1) = nu / (n + nu E(n - 1)), E(0) = 1. The ratio sought is the product of these from
// b + 1 to C: all factors are at most 1, so it never falls as b grows, in fixed point either.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace agora {

constexpr int64_t kMaxLevels = 256;

// price[b], b = 0 .. price.size() - 1: rounded to the nearest integer; `gain` where b >= slots.
// load: nu in units of 2^-32 Erlang, 0 to 2^62; slots: 0 to kMaxLevels; gain: 0 to 2^32.
void implied_cost(int64_t load, int64_t slots, int64_t gain, std::span<int64_t> price);

// The prices of M machines, [M, levels], held while they move by little.
struct ImpliedPrices {
  std::span<int64_t> price;  // [M, levels]
  size_t levels;
  std::span<int64_t> load;  // [M], what each row was computed for last; -1: never
  std::span<int64_t> gain;  // [M]
};

struct PriceChanges {
  int64_t computed;  // rows
  int64_t changed;   // rows
};

// Computes the rows whose load or gain moved by more than 1/256, and changes those where some price
// moved by more than 1/64 of the gain. load, slots, gain: [M].
PriceChanges update_implied_prices(const ImpliedPrices& prices, std::span<const int64_t> load,
                                   std::span<const int64_t> slots, std::span<const int64_t> gain);

}  // namespace agora
