#include "traces/workload_layout.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <string>

#include "scheduler_core/nearest.h"

namespace rrfp {

namespace {

constexpr std::size_t kMostSymbols = 100'000;
constexpr std::size_t kMostDepth = 16;

bool is_repeated(LayerKind kind) {
  return kind == LayerKind::kVision || kind == LayerKind::kTransformer ||
         kind == LayerKind::kProfiled;
}

Error too_many_stages(int stages, std::size_t layers) {
  return Error{"found " + std::to_string(stages) + " stages for " + std::to_string(layers) +
               " layers; expected at most as many stages as layers"};
}

/// A letter of the layout with the place in the text that it comes from.
struct Symbol {
  char letter;
  std::size_t at;
};

/// Writes out repeats and groups.
class LayoutReader {
 public:
  explicit LayoutReader(std::string_view text) : text_(text) {}

  Result<std::vector<Symbol>> read() {
    std::vector<Symbol> all;
    if (Result<void> read = read_group(0, all); !read.ok()) return read.error();
    if (at_ < text_.size()) return fault(at_, "a \")\" without its \"(\"");
    return all;
  }

  Error fault(std::size_t at, const std::string& what) const {
    return Error{"layout " + in_quotes(text_) + ", character " + std::to_string(at + 1) + ": " +
                 what};
  }

 private:
  void skip_spaces() {
    while (at_ < text_.size() && (text_[at_] == ',' || text_[at_] == ' ')) ++at_;
  }

  // Items up to the end of the text or a ")".
  Result<void> read_group(std::size_t depth, std::vector<Symbol>& out) {
    for (skip_spaces(); at_ < text_.size() && text_[at_] != ')'; skip_spaces()) {
      std::vector<Symbol> item;
      const std::size_t start = at_;
      if (text_[at_] == '(') {
        if (depth == kMostDepth) return fault(at_, "too many parentheses within each other");
        ++at_;
        if (Result<void> read = read_group(depth + 1, item); !read.ok()) return read.error();
        if (at_ == text_.size()) return fault(start, "a \"(\" without its \")\"");
      } else if (std::string_view("EtmL|").find(text_[at_]) == std::string_view::npos) {
        return fault(at_, "found " + in_quotes(text_.substr(at_, 1)) +
                              "; expected E, t, m, L, |, or a group in parentheses");
      } else {
        item.push_back({text_[at_], at_});
      }
      ++at_;
      if (Result<void> repeated = repeat(item); !repeated.ok()) return repeated.error();
      if (out.size() + item.size() > kMostSymbols) return too_long(start);
      out.insert(out.end(), item.begin(), item.end());
    }
    return {};
  }

  // "*n" after an item, if there is one.
  Result<void> repeat(std::vector<Symbol>& item) {
    skip_spaces();
    if (at_ == text_.size() || text_[at_] != '*') return {};
    const std::size_t star = at_++;
    skip_spaces();
    std::size_t count = 0;
    const std::size_t start = at_;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
      count = 10 * count + static_cast<std::size_t>(text_[at_] - '0');
      if (count > kMostSymbols) return too_long(start);
    }
    if (at_ == start || count == 0) return fault(star, "\"*\" needs a number of at least 1");
    if (item.size() * count > kMostSymbols) return too_long(start);
    const std::vector<Symbol> once = item;
    for (std::size_t i = 1; i < count; ++i) item.insert(item.end(), once.begin(), once.end());
    return {};
  }

  Error too_long(std::size_t at) const {
    return fault(at, "more than " + std::to_string(kMostSymbols) + " layers");
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

// The letter that a layer has in a layout; a projector has none.
char letter_of(LayerKind kind) {
  if (kind == LayerKind::kEmbedding) return 'E';
  if (kind == LayerKind::kHead) return 'L';
  return kind == LayerKind::kProjector ? '\0' : 't';
}

// Where a stage that begins at `begin` has to end if it may cost `bound`. `before` are the costs
// before each layer, and of all.
std::size_t reach(std::span<const double> before, std::size_t begin, double bound) {
  const auto end =
      std::upper_bound(before.begin() + static_cast<std::ptrdiff_t>(begin), before.end(), bound,
                       [from = before[begin]](double most, double to) { return to - from > most; });
  return static_cast<std::size_t>(end - before.begin()) - 1;
}

bool suffices(std::span<const double> before, std::size_t stages, double bound) {
  std::size_t end = 0;
  for (std::size_t stage = 0; stage < stages && end + 1 < before.size(); ++stage) {
    end = reach(before, end, bound);
  }
  return end + 1 == before.size();
}

// What the costliest stage costs at least. Numbers that are not negative are in the order of their
// bits, so that halving the bits finds the smallest that suffices.
double least_bound(std::span<const double> before, std::size_t stages) {
  std::uint64_t low = 0;
  auto high = std::bit_cast<std::uint64_t>(before.back());
  while (low < high) {
    const std::uint64_t middle = low + (high - low) / 2;
    if (suffices(before, stages, std::bit_cast<double>(middle))) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return std::bit_cast<double>(high);
}

/// Of the cuts whose stages cost at most a bound, one with the smallest sum of
/// squares. Stage by stage, the best start of the last stage moves on with its
/// end (squares of sums are a Monge cost), so that the start for an end in the
/// middle halves the work for the others: O(stages n log n).
class SmallestSquares {
 public:
  /// REQUIRES: the bound suffices; `before` outlives this.
  SmallestSquares(std::span<const double> before, double bound) : before_(before), bound_(bound) {}

  StageEnds cut(std::size_t stages) {
    const std::size_t n = before_.size() - 1;
    starts_.assign(stages, std::vector<std::uint32_t>(n + 1, 0));
    best_.assign(n + 1, 0);
    std::size_t reached = 0;
    for (std::size_t stage = 0; stage < stages; ++stage) {
      next_.assign(n + 1, 0);
      last_start_ = reached;
      reached = reach(before_, reached, bound_);
      // Any end up to there can be had: a stage may always hold less, if not nothing.
      add_stage(starts_[stage], stage + 1, reached, stage, last_start_);
      best_.swap(next_);
    }
    StageEnds ends(stages);
    std::size_t end = n;
    for (std::size_t stage = stages; stage-- > 0;) {
      ends[stage] = end;
      end = starts_[stage][end];
    }
    return ends;
  }

 private:
  // The best starts of a stage for its ends in [first, last], which lie in [low, high].
  void add_stage(std::vector<std::uint32_t>& starts, std::size_t first, std::size_t last,
                 std::size_t low, std::size_t high) {
    if (first > last) return;
    const std::size_t end = first + (last - first) / 2;
    std::size_t best_start = low;
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t start = low; start <= std::min({high, end - 1, last_start_}); ++start) {
      const double cost = before_[end] - before_[start];
      if (cost > bound_) continue;
      if (const double sum = best_[start] + cost * cost; sum < least) {
        least = sum;
        best_start = start;
      }
    }
    next_[end] = least;
    starts[end] = static_cast<std::uint32_t>(best_start);
    add_stage(starts, first, end - 1, low, best_start);
    add_stage(starts, end + 1, last, best_start, high);
  }

  std::span<const double> before_;
  double bound_;
  std::size_t last_start_ = 0;
  std::vector<double> best_;  ///< by end: the smallest sum so far
  std::vector<double> next_;
  std::vector<std::vector<std::uint32_t>> starts_;  ///< by stage and end
};

}  // namespace

Result<StageEnds> even_layout(std::span<const LayerCost> layers, int stages) {
  const auto repeated = static_cast<std::size_t>(
      std::count_if(layers.begin(), layers.end(),
                    [](const LayerCost& layer) { return is_repeated(layer.kind); }));
  const auto count = static_cast<std::size_t>(stages);
  if (count > repeated) return too_many_stages(stages, repeated);
  StageEnds ends;
  std::size_t seen = 0;
  std::size_t wanted = repeated / count + (repeated % count > 0 ? 1 : 0);
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (!is_repeated(layers[i].kind)) continue;
    if (++seen < wanted || ends.size() + 1 == count) continue;
    ends.push_back(i + 1);
    wanted += repeated / count + (ends.size() < repeated % count ? 1 : 0);
  }
  ends.push_back(layers.size());
  return ends;
}

Result<StageEnds> balanced_layout(std::span<const double> costs, int stages) {
  const std::size_t n = costs.size();
  const auto count = static_cast<std::size_t>(stages);
  if (count > n) return too_many_stages(stages, n);
  std::vector<double> before(n + 1, 0);
  for (std::size_t i = 0; i < n; ++i) before[i + 1] = before[i] + costs[i];
  return SmallestSquares(before, least_bound(before, count)).cut(count);
}

Result<StageEnds> parse_layout(std::string_view text, std::span<const LayerCost> layers,
                               int stages) {
  LayoutReader reader(text);
  const Result<std::vector<Symbol>> symbols = reader.read();
  if (!symbols.ok()) return symbols.error();
  StageEnds ends;
  std::size_t next = 0;  // the layer that has to come
  const auto skip_unnamed = [&] {
    while (next < layers.size() && letter_of(layers[next].kind) == '\0') ++next;
  };
  for (const Symbol& symbol : *symbols) {
    if (symbol.letter == '|') {
      ends.push_back(next);
      continue;
    }
    if (symbol.letter == 'm') {
      return reader.fault(symbol.at, "the model has no layers for multi-token prediction (m)");
    }
    skip_unnamed();
    if (next == layers.size()) {
      return reader.fault(symbol.at, "nothing may come after L, which is the end of the model");
    }
    const char wanted = letter_of(layers[next].kind);
    if (symbol.letter != wanted) {
      return reader.fault(symbol.at, std::string("found ") + symbol.letter + "; expected " +
                                         wanted + " (" + layers[next].name + " of the model)");
    }
    ++next;
  }
  ends.push_back(next);
  if (next < layers.size()) {
    skip_unnamed();
    return reader.fault(text.size(),
                        std::string("the layout ends before the model does; expected ") +
                            letter_of(layers[next].kind) + " (" + layers[next].name + ")");
  }
  if (ends.size() != static_cast<std::size_t>(stages)) {
    return Error{"layout " + in_quotes(text) + " has " + std::to_string(ends.size()) +
                 " stages; expected " + std::to_string(stages)};
  }
  return ends;
}

}  // namespace rrfp
