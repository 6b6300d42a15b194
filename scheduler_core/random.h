// Counter-based random numbers. A draw is a pure function of its key, so it
// does not depend on the order in which anything runs: every policy meets the
// same world, and one iteration can be drawn again alone.
#pragma once

#include <cstdint>

namespace rrfp {

/// What a number is drawn for. Two draws with equal keys are equal; keys that
/// differ anywhere give independent numbers.
struct DrawKey {
  std::uint64_t seed = 0;
  std::uint64_t iteration = 0;
  std::uint64_t purpose = 0;  ///< which quantity (one constant per model)
  std::uint64_t index = 0;    ///< which element (task, message, rank, ...)
};

/// The finalizer of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): a
/// bijection of 64 bits in which every input bit reaches every output bit.
constexpr std::uint64_t mix_bits(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

/// The draws of one seed, iteration and purpose, whatever the key's index is:
/// what all of them share is computed once.
class DrawSeries {
 public:
  explicit constexpr DrawSeries(const DrawKey& key) {
    std::uint64_t h = mix_bits(key.seed + kGolden);
    h = mix_bits(h ^ (key.purpose * kGolden + 0x632be59bd9b4e019ULL));
    shared_ = mix_bits(h ^ (key.iteration * kGolden + 0xd6e8feb86659fd93ULL));
  }

  /// 64 uniform bits for an element; `lane` numbers the draws made for it.
  constexpr std::uint64_t bits(std::uint64_t index, std::uint64_t lane = 0) const {
    const std::uint64_t h = mix_bits(shared_ ^ (index * kGolden + 0xa0761d6478bd642fULL));
    return mix_bits(h ^ (lane * kGolden + 0xe7037ed1a0b428dbULL));
  }

 private:
  static constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15ULL;

  std::uint64_t shared_ = 0;
};

/// 64 uniform bits for `key`; `lane` numbers the draws made for one key.
constexpr std::uint64_t random_bits(const DrawKey& key, std::uint64_t lane = 0) {
  return DrawSeries(key).bits(key.index, lane);
}

/// A stream of numbers for one key, for code that needs several in a row
/// (shuffles, resampling). Not for draws that other policies must meet too.
class RandomStream {
 public:
  explicit constexpr RandomStream(const DrawKey& key) : state_(random_bits(key)) {}

  constexpr std::uint64_t next() { return mix_bits(state_ += 0x9e3779b97f4a7c15ULL); }

  /// Uniform in [0, bound). REQUIRES: bound > 0. The bias is below bound/2^64.
  constexpr std::uint64_t below(std::uint64_t bound) {
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::uint64_t>((static_cast<Wide>(next()) * bound) >> 64);
  }

 private:
  std::uint64_t state_;
};

/// Uniform in (0, 1), never 0 or 1: 53 bits, centred in their cell.
constexpr double unit_of(std::uint64_t bits) {
  return (static_cast<double>(bits >> 11) + 0.5) * 0x1.0p-53;
}

constexpr double random_unit(const DrawKey& key, std::uint64_t lane = 0) {
  return unit_of(random_bits(key, lane));
}

}  // namespace rrfp
