// Random numbers that are the same on any machine: counter-based streams and elementary functions
// of our own.
//
// A stream is a pure function of (key, position): Philox4x64-10 of Salmon et al., "Parallel Random
// Numbers: As Easy as 1, 2, 3" (SC 2011), with key words (key, 0); block b is the cipher of counter
// (b, 0, 0, 0). Keys come from (seed, name, sequence), so no two users share a stream.
//
// exp, log and the inverse normal distribution use only +, -, *, / and sqrt of IEEE doubles in a
// fixed order (build with -ffp-contract=off, never fast-math): no libm, whose last bit differs
// between versions, and no numpy, whose results differ with the vector width.
//   log, exp: the argument reductions and polynomials of FreeBSD's msun (e_log.c, e_exp.c), below 1
//   ulp:
//     "Copyright (C) 1993 by Sun Microsystems, Inc. All rights reserved. Permission to use, copy,
//     modify, and distribute this
//      software is freely granted, provided that this notice is preserved."
//   normal: Wichura, "Algorithm AS 241: The Percentage Points of the Normal Distribution", Applied
//   Statistics 37 (1988), relative error 1e-16.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string_view>

namespace agora {

__extension__ typedef unsigned __int128 Uint128;
__extension__ typedef __int128 Int128;

// A bijection of 64 bits (Stafford's variant 13 of the MurmurHash3 finaliser, as in SplitMix64).
constexpr uint64_t mix64(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

// A well-spread hash of one integer; different salts give unrelated hashes.
constexpr uint64_t hash64(int64_t value, uint64_t salt) {
  return mix64(mix64(static_cast<uint64_t>(value) + 0x9e3779b97f4a7c15ULL) ^
               mix64(salt ^ 0xd1b54a32d192ed03ULL));
}

// The key of the stream that `name` uses for its `sequence`-th purpose in a run with this seed.
constexpr uint64_t stream_key(uint64_t seed, std::string_view name, uint64_t sequence) {
  uint64_t h = mix64(seed + 0x9e3779b97f4a7c15ULL);
  for (const char c : name) h = mix64(h ^ (static_cast<unsigned char>(c) + 0x100ULL));
  h = mix64(h ^ (name.size() + 0x2545f4914f6cdd1dULL));
  return mix64(h + mix64(sequence ^ 0xd1b54a32d192ed03ULL));
}

using PhiloxBlock = std::array<uint64_t, 4>;

constexpr PhiloxBlock philox4x64(PhiloxBlock counter, uint64_t key0, uint64_t key1) {
  for (int round = 0; round < 10; ++round) {
    const Uint128 a = static_cast<Uint128>(0xD2E7470EE14C6C93ULL) * counter[0];
    const Uint128 b = static_cast<Uint128>(0xCA5A826395121157ULL) * counter[2];
    counter = {static_cast<uint64_t>(b >> 64) ^ counter[1] ^ key0, static_cast<uint64_t>(b),
               static_cast<uint64_t>(a >> 64) ^ counter[3] ^ key1, static_cast<uint64_t>(a)};
    key0 += 0x9E3779B97F4A7C15ULL;
    key1 += 0xBB67AE8584CAA73BULL;
  }
  return counter;
}

// Natural logarithm of a positive finite x (normal or subnormal).
inline double portable_log(double x) {
  int k = 0;
  if (x < std::numeric_limits<double>::min()) {
    x *= 0x1p54;
    k = -54;
  }
  // x = 2^k (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)).
  uint64_t bits = std::bit_cast<uint64_t>(x);
  uint32_t high = static_cast<uint32_t>(bits >> 32) + (0x3ff00000U - 0x3fe6a09eU);
  k += static_cast<int>(high >> 20) - 0x3ff;
  high = (high & 0x000fffffU) + 0x3fe6a09eU;
  const double f =
      std::bit_cast<double>(static_cast<uint64_t>(high) << 32 | (bits & 0xffffffffULL)) - 1.0;
  const double half_square = 0.5 * f * f;
  const double s = f / (2.0 + f);
  const double z = s * s;
  const double w = z * z;
  const double even = w * (3.999999999940941908e-01 +
                           w * (2.222219843214978396e-01 + w * 1.531383769920937332e-01));
  const double odd = z * (6.666666666666735130e-01 +
                          w * (2.857142874366239149e-01 +
                               w * (1.818357216161805012e-01 + w * 1.479819860511658591e-01)));
  const double remainder = even + odd;
  const double power = k;
  return s * (half_square + remainder) + power * 1.90821492927058770002e-10 - half_square + f +
         power * 6.93147180369123816490e-01;
}

// e^x; 0 below -708 (no subnormal results), infinity above 709.
inline double portable_exp(double x) {
  if (x < -708.0) return 0.0;
  if (x > 709.0) return std::numeric_limits<double>::infinity();
  // x = k ln 2 + r with |r| <= ln(2) / 2.
  const int k = static_cast<int>(1.44269504088896338700e+00 * x + (x < 0.0 ? -0.5 : 0.5));
  const double high = x - k * 6.93147180369123816490e-01;
  const double low = k * 1.90821492927058770002e-10;
  const double r = high - low;
  const double rr = r * r;
  const double c =
      r - rr * (1.66666666666666019037e-01 +
                rr * (-2.77777777770155933842e-03 +
                      rr * (6.61375632143793436117e-05 +
                            rr * (-1.65339022054652515390e-06 + rr * 4.13813679705723846039e-08))));
  const double y = 1.0 + (r * c / (2.0 - c) - low + high);
  return y * std::bit_cast<double>(static_cast<uint64_t>(k + 1023) << 52);
}

// The x with P(standard normal <= x) = p, for p in (0, 1).
inline double inverse_normal(double p) {
  const double q = p - 0.5;
  if (q >= -0.425 && q <= 0.425) {
    const double r = 0.180625 - q * q;
    const double numerator = (((((((2.5090809287301226727e+3 * r + 3.3430575583588128105e+4) * r +
                                   6.7265770927008700853e+4) *
                                      r +
                                  4.5921953931549871457e+4) *
                                     r +
                                 1.3731693765509461125e+4) *
                                    r +
                                1.9715909503065514427e+3) *
                                   r +
                               1.3314166789178437745e+2) *
                                  r +
                              3.3871328727963666080e+0) *
                             q;
    const double denominator = ((((((5.2264952788528545610e+3 * r + 2.8729085735721942674e+4) * r +
                                    3.9307895800092710610e+4) *
                                       r +
                                   2.1213794301586595867e+4) *
                                      r +
                                  5.3941960214247511077e+3) *
                                     r +
                                 6.8718700749205790830e+2) *
                                    r +
                                4.2313330701600911252e+1) *
                                   r +
                               1.0;
    return numerator / denominator;
  }
  double r = std::sqrt(-portable_log(q < 0.0 ? p : 1.0 - p));
  double x;
  if (r <= 5.0) {
    r -= 1.6;
    x = (((((((7.74545014278341407640e-4 * r + 2.27238449892691845833e-2) * r +
              2.41780725177450611770e-1) *
                 r +
             1.27045825245236838258e+0) *
                r +
            3.64784832476320460504e+0) *
               r +
           5.76949722146069140550e+0) *
              r +
          4.63033784615654529590e+0) *
             r +
         1.42343711074968357734e+0) /
        (((((((1.05075007164441684324e-9 * r + 5.47593808499534494600e-4) * r +
              1.51986665636164571966e-2) *
                 r +
             1.48103976427480074590e-1) *
                r +
            6.89767334985100004550e-1) *
               r +
           1.67638483018380384940e+0) *
              r +
          2.05319162663775882187e+0) *
             r +
         1.0);
  } else {
    r -= 5.0;
    x = (((((((2.01033439929228813265e-7 * r + 2.71155556874348757815e-5) * r +
              1.24266094738807843860e-3) *
                 r +
             2.65321895265761230930e-2) *
                r +
            2.96560571828504891230e-1) *
               r +
           1.78482653991729133580e+0) *
              r +
          5.46378491116411436990e+0) *
             r +
         6.65790464350110377720e+0) /
        (((((((2.04426310338993978564e-15 * r + 1.42151175831644588870e-7) * r +
              1.84631831751005468180e-5) *
                 r +
             7.86869131145613259100e-4) *
                r +
            1.48753612908506148525e-2) *
               r +
           1.36929880922735805310e-1) *
              r +
          5.99832206555887937690e-1) *
             r +
         1.0);
  }
  return q < 0.0 ? -x : x;
}

class Stream {
 public:
  explicit Stream(uint64_t key) : key_(key) {}

  uint64_t next() {
    if (used_ == block_.size()) {
      block_ = philox4x64({counter_++, 0, 0, 0}, key_, 0);
      used_ = 0;
    }
    return block_[used_++];
  }

  // Exactly uniform on [0, bound), bound >= 1: multiply-high with rejection (Lemire, "Fast Random
  // Integer Generation in an Interval", 2019).
  uint64_t below(uint64_t bound) {
    Uint128 product = static_cast<Uint128>(next()) * bound;
    if (static_cast<uint64_t>(product) < bound) {
      const uint64_t threshold = (0 - bound) % bound;
      while (static_cast<uint64_t>(product) < threshold)
        product = static_cast<Uint128>(next()) * bound;
    }
    return static_cast<uint64_t>(product >> 64);
  }

  // A multiple of 2^-53 in [0, 1).
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }

  // Mean 1, above 0.
  double exponential() { return -portable_log(open_uniform()); }

  double normal() { return inverse_normal(open_uniform()); }

 private:
  // An odd multiple of 2^-53: never 0 or 1, and symmetric about 1/2.
  double open_uniform() { return (static_cast<double>(next() >> 12) + 0.5) * 0x1p-52; }

  uint64_t key_;
  uint64_t counter_ = 0;
  PhiloxBlock block_{};
  size_t used_ = 4;
};

}  // namespace agora
