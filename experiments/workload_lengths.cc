#include "experiments/workload_lengths.h"

#include <array>
#include <cmath>
#include <map>
#include <vector>

#include "experiments/display_units.h"
#include "traces/json_writer.h"

namespace rrfp {

namespace {

/// A factor constant + linear * L + quadratic * Q: with u the unit and x what
/// is drawn for each sequence, L is the sum of x / u and Q that of (x / u)^2.
struct Factor {
  double constant = 0;
  double linear = 0;
  double quadratic = 0;
};

// At most four decimals, without zeros at the end.
std::string short_number(double value) {
  std::string digits = fixed(value, 4);
  digits.erase(digits.find_last_not_of('0') + 1);
  if (digits.ends_with('.')) digits.pop_back();
  return digits;
}

std::string to_text(const Factor& factor) {
  return "\"constant\": " + short_number(factor.constant) +
         ", \"linear\": " + short_number(factor.linear) +
         ", \"quadratic\": " + short_number(factor.quadratic);
}

// Tokens of sequence i are x_i of at most S, and u = b S for b sequences: linear work is as the sum
// of x / (b S) = L, attention as the sum of x^2 / (b S^2) = b Q.
Factor of_tokens(const Growth& language, double images_ns, double sequences) {
  const double all = language.sum() + images_ns;
  return {images_ns / all, language.linear / all, language.quadratic / all * sequences};
}

// Sequence i has x_i of at most N images, u = b N. Its tokens are a share `text` of the longest
// sequence and (1 - text) x / N, whose square is taken for attention.
Factor of_images(const Growth& language, double images_ns, double sequences, double text) {
  const double all = language.sum() + images_ns;
  const double image = 1 - text;
  Factor factor;
  factor.constant = (language.linear * text + language.quadratic * text * text) / all;
  factor.linear =
      (images_ns + language.linear * image + language.quadratic * 2 * text * image) / all;
  factor.quadratic = language.quadratic * image * image * sequences / all;
  return factor;
}

Growth without(const Growth& all, const Growth& part) {
  // What is left of rounding is no work.
  const auto rest = [](double whole, double taken) {
    return whole - taken < 1e-9 * whole ? 0 : whole - taken;
  };
  return {rest(all.linear, part.linear), rest(all.quadratic, part.quadratic)};
}

// The share of a sequence's tokens that are no image's.
double text_share(const WorkloadJob& job) {
  return 1 - static_cast<double>(job.batch.images) * static_cast<double>(job.image_tokens) /
                 static_cast<double>(job.batch.tokens);
}

// None of three images, then each number of them 3/4 as likely as the one before.
std::string burst_text(int most) {
  constexpr double kNone = 0.3;
  constexpr double kRatio = 0.75;
  std::string text = "{\"mixture\": [[" + short_number(kNone) + ", 0]";
  double sum = 0;
  for (int images = 0; images < most; ++images) sum += std::pow(kRatio, images);
  for (int images = 1; images <= most; ++images) {
    text += ", [" + short_number((1 - kNone) * std::pow(kRatio, images - 1) / sum) + ", " +
            std::to_string(images) + "]";
  }
  return text + "]}";
}

std::string drawn_text(const WorkloadJob& job) {
  const std::string samples = ", \"samples\": " + std::to_string(job.batch.sequences);
  const std::int64_t unit =
      job.batch.sequences *
      (job.lengths.kind == LengthKind::kImages ? std::int64_t{job.batch.images} : job.batch.tokens);
  const std::string in_units = ", \"unit\": " + std::to_string(unit);
  switch (job.lengths.kind) {
    case LengthKind::kImages:
      return "\"length\": " + burst_text(job.batch.images) + in_units + samples +
             ", \"from_preset\": \"image-counts\", \"modelled\": true";
    case LengthKind::kFile: {
      const auto in_json = [](const std::string& word) {
        return to_text(JsonValue(word), JsonLayout::kCompact);
      };
      std::string text = "\"file\": " + in_json(job.lengths.file);
      if (!job.lengths.column.empty()) text += ", \"column\": " + in_json(job.lengths.column);
      return text + in_units + ", \"pack\": true";
    }
    default:
      return "\"length\": {\"beta\": {\"a\": 0.257, \"b\": 1.067, \"scale\": " +
             std::to_string(job.batch.tokens) + "}}" + in_units + samples;
  }
}

}  // namespace

std::string lengths_text(const WorkloadJob& job, const std::string& indent) {
  struct Part {
    const char* kind;
    Growth LayerWork::*work;
  };
  std::string costs;
  for (const Part& part :
       std::array{Part{"F", &LayerWork::forward}, Part{"I", &LayerWork::input_gradient},
                  Part{"W", &LayerWork::weight_gradient}}) {
    // Stages of one kind have one factor; std::map keeps the lines in an order of their own.
    std::map<std::string, std::string> stages_of;
    for (std::size_t i = 0; i < job.workload.stages.size(); ++i) {
      const WorkloadStage& stage = job.workload.stages[i];
      const Growth& images = stage.encoder_ns.*part.work;
      const Growth language = without(stage.time_ns.*part.work, images);
      if (language.sum() + images.sum() <= 0) continue;
      const double sequences = job.batch.sequences;
      const Factor factor = job.lengths.kind == LengthKind::kImages
                                ? of_images(language, images.sum(), sequences, text_share(job))
                                : of_tokens(language, images.sum(), sequences);
      std::string& stages = stages_of[to_text(factor)];
      stages += (stages.empty() ? "" : ", ") + std::to_string(i);
    }
    for (const auto& [factor, stages] : stages_of) {
      costs += (costs.empty() ? "" : ",\n") + indent + "    {\"tasks\": [\"" + part.kind +
               "\"], \"stages\": [" + stages + "], " + factor + "}";
    }
  }
  // A message is as large as the tokens that it is of. Those of images are but a part of them.
  const bool messages = job.lengths.kind != LengthKind::kImages;
  return indent + "{\"model\": \"lengths\", " + drawn_text(job) +
         (messages ? ", \"messages\": true" : "") + ",\n" + indent + "  \"costs\": [\n" + costs +
         "\n" + indent + "  ]}";
}

}  // namespace rrfp
