#include "traces/distribution_file.h"

#include <array>
#include <string>
#include <utility>

#include "traces/quantity.h"

namespace rrfp {

namespace {

constexpr std::size_t kMostQuantiles = 100'000;
constexpr std::size_t kMostParts = 1'000;
constexpr double kMostSigma = 10;
constexpr double kMostRatio = 1e18;  // of the ends of a log_uniform: from 1 ns to the longest time
constexpr double kLeastShape = 0.1;  // of a beta distribution: its quantiles are still doubles
constexpr double kMostShape = 1e4;

constexpr std::array<std::string_view, 9> kKeys = {"value",  "uniform",   "log_uniform",
                                                   "normal", "lognormal", "exponential",
                                                   "beta",   "quantiles", "mixture"};

std::string listed_keys() {
  std::string text;
  for (const std::string_view key : kKeys) {
    text += (text.empty() ? "\"" : ", \"") + std::string(key) + "\"";
  }
  return text;
}

// Reads the numbers of one distribution, each up to `most`, in units of `scale`.
struct DistributionReader {
  double most;
  double scale;

  double number(const JsonCursor& in) const { return read_fraction(in, most) * scale; }
  std::optional<double> bound(const JsonCursor& in, std::string_view key) const {
    const auto member = in.find(key);
    if (!member) return std::nullopt;
    return number(*member);
  }

  std::pair<double, double> ends(const JsonCursor& in) const {
    const std::vector<JsonCursor> items = in.items(2, "end of the range");
    if (!in.ok()) return {scale, scale};
    const std::pair<double, double> both = {number(items[0]), number(items[1])};
    if (in.ok() && both.first > both.second) in.expected("the lower end first");
    return both;
  }

  Distribution log_uniform(const JsonCursor& in) const {
    const auto [low, high] = ends(in);
    if (in.ok() && low <= 0) in.expected("a range that begins above 0");
    if (in.ok() && high > low * kMostRatio) {
      in.expected("a range that ends at most 1e18 times where it begins");
    }
    return LogUniform{low, high};
  }

  Distribution normal(const JsonCursor& in) const {
    in.only_keys({"mean", "sd", "min", "max"});
    Normal out{number(in.at("mean")), number(in.at("sd")), bound(in, "min"), bound(in, "max")};
    if (in.ok() && out.least && out.most && *out.least > *out.most) {
      in.at("min").expected("at most \"max\"");
    }
    return out;
  }

  Distribution lognormal(const JsonCursor& in) const {
    in.only_keys({"cv", "sigma", "mean"});
    Lognormal out;
    const auto cv = in.find("cv");
    const auto sigma = in.find("sigma");
    if (cv && sigma) in.fail("found \"cv\" and \"sigma\"; give one of them");
    if (!cv && !sigma) {
      in.fail(
          "one of the keys \"cv\" (standard deviation over mean) and \"sigma\" (standard "
          "deviation of the logarithm) is needed");
    }
    if (cv) out = Lognormal::of_cv(read_fraction(*cv, 100));
    if (sigma) out.sigma = read_fraction(*sigma, kMostSigma);
    const auto mean = in.find("mean");
    out.mean = mean ? number(*mean) : scale;
    return out;
  }

  Distribution beta(const JsonCursor& in) const {
    in.only_keys({"a", "b", "scale"});
    Beta out;
    for (const auto& [key, shape] : {std::pair{"a", &out.a}, std::pair{"b", &out.b}}) {
      *shape = read_fraction(in.at(key), kMostShape, kLeastShape);
    }
    const auto scaled_by = in.find("scale");
    out.scale = scaled_by ? number(*scaled_by) : scale;
    return out;
  }

  Distribution quantiles(const JsonCursor& in) const {
    Quantiles out;
    for (const JsonCursor& item : in.items()) {
      out.values.push_back(number(item));
      const std::size_t count = out.values.size();
      if (in.ok() && count > 1 && out.values[count - 2] > out.values[count - 1]) {
        item.expected("values in ascending order");
      }
    }
    if (in.ok() && (out.values.size() < 2 || out.values.size() > kMostQuantiles)) {
      in.expected("2 to " + std::to_string(kMostQuantiles) + " values");
    }
    return out;
  }

  Distribution mixture(const JsonCursor& in) const {
    Mixture out;
    double sum = 0;
    for (const JsonCursor& item : in.items()) {
      const std::vector<JsonCursor> pair = item.items(2, "weight and distribution");
      if (!in.ok()) return out;
      out.parts.push_back({read_fraction(pair[0], 1e9), read_distribution(pair[1], most, scale)});
      sum += out.parts.back().weight;
    }
    if (in.ok() && (out.parts.size() > kMostParts || sum <= 0)) {
      in.expected("1 to " + std::to_string(kMostParts) +
                  " pairs [weight, distribution], one with a weight above 0");
    }
    return out;
  }

  Distribution read(std::string_view key, const JsonCursor& in) const {
    if (key == "value") return FixedValue{number(in)};
    if (key == "uniform") {
      const auto [low, high] = ends(in);
      return Uniform{low, high};
    }
    if (key == "log_uniform") return log_uniform(in);
    if (key == "normal") return normal(in);
    if (key == "lognormal") return lognormal(in);
    if (key == "exponential") {
      in.only_keys({"mean"});
      return Exponential{number(in.at("mean"))};
    }
    if (key == "beta") return beta(in);
    if (key == "quantiles") return quantiles(in);
    return mixture(in);
  }
};

JsonValue pair_to_json(double first, double second) {
  return JsonValue(JsonArray{json_fraction(first), json_fraction(second)});
}

struct DistributionWriter {
  JsonValue& out;

  void operator()(const FixedValue& d) const { out.add("value", json_fraction(d.value)); }
  void operator()(const Uniform& d) const { out.add("uniform", pair_to_json(d.low, d.high)); }
  void operator()(const LogUniform& d) const {
    out.add("log_uniform", pair_to_json(d.low, d.high));
  }
  void operator()(const Normal& d) const {
    JsonValue inner{JsonObject()};
    inner.add("mean", json_fraction(d.mean));
    inner.add("sd", json_fraction(d.sd));
    if (d.least) inner.add("min", json_fraction(*d.least));
    if (d.most) inner.add("max", json_fraction(*d.most));
    out.add("normal", std::move(inner));
  }
  void operator()(const Lognormal& d) const {
    JsonValue inner{JsonObject()};
    inner.add("sigma", json_fraction(d.sigma));
    inner.add("mean", json_fraction(d.mean));
    out.add("lognormal", std::move(inner));
  }
  void operator()(const Exponential& d) const {
    JsonValue inner{JsonObject()};
    inner.add("mean", json_fraction(d.mean));
    out.add("exponential", std::move(inner));
  }
  void operator()(const Beta& d) const {
    JsonValue inner{JsonObject()};
    inner.add("a", json_fraction(d.a));
    inner.add("b", json_fraction(d.b));
    inner.add("scale", json_fraction(d.scale));
    out.add("beta", std::move(inner));
  }
  void operator()(const Quantiles& d) const {
    JsonArray values;
    for (const double value : d.values) values.push_back(json_fraction(value));
    out.add("quantiles", JsonValue(std::move(values)));
  }
  void operator()(const Mixture& d) const {
    JsonArray parts;
    for (const MixturePart& part : d.parts) {
      parts.emplace_back(
          JsonArray{json_fraction(part.weight), distribution_to_json(part.distribution)});
    }
    out.add("mixture", JsonValue(std::move(parts)));
  }
};

}  // namespace

std::span<const std::string_view> distribution_keys() { return kKeys; }

bool has_distribution_member(const JsonCursor& in) {
  for (const std::string_view key : kKeys) {
    if (in.find(key)) return true;
  }
  return false;
}

Distribution read_distribution_member(const JsonCursor& in, double most, double scale) {
  std::optional<Distribution> found;
  for (const std::string_view key : kKeys) {
    const auto member = in.find(key);
    if (!member) continue;
    if (found) member->fail("found a second distribution; give one of " + listed_keys());
    found = DistributionReader{most, scale}.read(key, *member);
  }
  if (!found) in.fail("a distribution is needed: one of the keys " + listed_keys());
  return found.value_or(FixedValue{scale});
}

Distribution read_distribution(const JsonCursor& in, double most, double scale) {
  if (in.value().integer() != nullptr || in.value().decimal() != nullptr) {
    return FixedValue{read_fraction(in, most) * scale};
  }
  if (in.ok() && in.value().object() == nullptr) {
    in.expected("a number, or a distribution such as {\"uniform\": [1, 2]}");
  }
  in.only_keys(kKeys);
  return read_distribution_member(in, most, scale);
}

JsonValue distribution_to_json(const Distribution& distribution) {
  JsonValue out{JsonObject()};
  std::visit(DistributionWriter{out}, distribution);
  return out;
}

}  // namespace rrfp
