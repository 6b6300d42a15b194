#include "executor/training_data.h"

#include "scheduler_core/random.h"

namespace rrfp {

namespace {

enum class Draw : std::uint64_t { kLength = 0x7da0, kPlace };

std::uint64_t draw_below(std::uint64_t bound, const DataSpec& spec, Draw purpose, int step,
                         int replica, int microbatch, int root) {
  DrawKey key;
  key.seed = spec.seed;
  key.iteration = static_cast<std::uint64_t>(step);
  key.purpose = static_cast<std::uint64_t>(purpose) + 16 * static_cast<std::uint64_t>(root);
  key.index = static_cast<std::uint64_t>(replica) << 32 | static_cast<std::uint64_t>(microbatch);
  return RandomStream(key).below(bound);
}

}  // namespace

Result<TrainingData> TrainingData::create(std::string text, const DataSpec& spec, int roots) {
  if (spec.shortest < 1 || spec.longest < spec.shortest) {
    return Error{"sequence lengths run from " + std::to_string(spec.shortest) + " to " +
                 std::to_string(spec.longest) +
                 "; the first must be at least 1 and at most the "
                 "second"};
  }
  const std::size_t least =
      static_cast<std::size_t>(spec.longest) * static_cast<std::size_t>(roots) + 1;
  if (text.size() < least) {
    return Error{"the text has " + std::to_string(text.size()) + " bytes; " +
                 std::to_string(roots) + " sequences of up to " + std::to_string(spec.longest) +
                 " need at least " + std::to_string(least)};
  }
  return TrainingData(std::move(text), spec, roots);
}

std::vector<int> TrainingData::lengths(int step, int replica, int microbatch) const {
  std::vector<int> lengths;
  const auto choices = static_cast<std::uint64_t>(spec_.longest - spec_.shortest + 1);
  for (int root = 0; root < roots_; ++root) {
    lengths.push_back(spec_.shortest +
                      static_cast<int>(draw_below(choices, spec_, Draw::kLength, step, replica,
                                                  microbatch, root)));
  }
  return lengths;
}

Sample TrainingData::sample(int step, int replica, int microbatch) const {
  Sample sample;
  sample.lengths = lengths(step, replica, microbatch);
  std::size_t before = 0;
  for (int root = 1; root < roots_; ++root) {
    before += static_cast<std::size_t>(sample.lengths[static_cast<std::size_t>(root)]);
  }
  const auto length = static_cast<std::size_t>(sample.lengths[0]);
  const std::size_t places = text_.size() - before - length;
  std::size_t at = before + draw_below(places, spec_, Draw::kPlace, step, replica, microbatch, 0);
  const auto cut = [this](std::size_t from, std::size_t count) {
    const auto begin = text_.begin() + static_cast<std::ptrdiff_t>(from);
    return std::vector<std::uint8_t>(begin, begin + static_cast<std::ptrdiff_t>(count));
  };
  sample.tokens.push_back(cut(at, length));
  sample.targets = cut(at + 1, length);
  for (int root = 1; root < roots_; ++root) {
    const auto count = static_cast<std::size_t>(sample.lengths[static_cast<std::size_t>(root)]);
    at -= count;
    sample.tokens.push_back(cut(at, count));
  }
  return sample;
}

std::vector<Sample> TrainingData::samples(int step, int replica, int microbatches,
                                          std::span<const int> arrangement) const {
  std::vector<Sample> samples;
  for (int m = 0; m < microbatches; ++m) {
    const int given = arrangement.empty() ? m : arrangement[static_cast<std::size_t>(m)];
    samples.push_back(sample(step, replica, given));
  }
  return samples;
}

std::int64_t TrainingData::targets_of_step(int step, int replicas, int microbatches) const {
  std::int64_t targets = 0;
  for (int replica = 0; replica < replicas; ++replica) {
    for (int m = 0; m < microbatches; ++m) targets += lengths(step, replica, m)[0];
  }
  return targets;
}

}  // namespace rrfp
