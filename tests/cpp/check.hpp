// What the plain C++ tests share: checks that end the test, and random numbers that are the same on
// every machine.
#pragma once
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#define CHECK(condition)                                                   \
  do {                                                                     \
    if (!(condition)) {                                                    \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
      std::exit(EXIT_FAILURE);                                             \
    }                                                                      \
  } while (false)

// Checks that the call throws an Error.
template <class Error, class Call>
void check_throws(Call call) {
  bool thrown = false;
  try {
    call();
  } catch (const Error&) {
    thrown = true;
  }
  CHECK(thrown);
}

// Checks that the call refuses its arguments.
template <class Call>
void check_refused(Call call) {
  check_throws<std::invalid_argument>(call);
}

// How many random cases a test tries: so many on push, four times as many in `make test-long`.
inline uint64_t tries(uint64_t on_push) {
  return std::getenv("AGORA_TEST_LONG") != nullptr ? 4 * on_push : on_push;
}

// Marsaglia's xorshift of 64 bits.
class Draws {
 public:
  explicit Draws(uint64_t seed) : state_(seed) {}
  uint64_t operator()(uint64_t bound) {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return state_ % bound;
  }

 private:
  uint64_t state_;
};
