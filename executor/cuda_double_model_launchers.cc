// The launchers of the training model's double: each is the kernel of the same
// name as a loop. Sums go down rows and columns in order; a kernel's tree gives
// other last bits, but either gives the same each time.
#include <algorithm>
#include <cmath>

#include "executor/cuda_double_work.h"
#include "executor/cuda_model_launchers.h"

namespace rrfp {

namespace {

constexpr float kEpsilon = 1e-5F;              // added to the variance
constexpr float kSlope = 0.7978845608028654F;  // sqrt(2 / pi)
constexpr float kCubic = 0.044715F;

std::size_t of(int number) { return static_cast<std::size_t>(number); }

void normalize(std::size_t width, const float* input, const float* gain, const float* bias,
               float* normalized, float* inverse_deviation, float* output) {
  float sum = 0;
  for (std::size_t i = 0; i < width; ++i) sum += input[i];
  const float mean = sum / static_cast<float>(width);
  float squares = 0;
  for (std::size_t i = 0; i < width; ++i) squares += (input[i] - mean) * (input[i] - mean);
  const float inverse = 1 / std::sqrt(squares / static_cast<float>(width) + kEpsilon);
  *inverse_deviation = inverse;
  for (std::size_t i = 0; i < width; ++i) {
    normalized[i] = (input[i] - mean) * inverse;
    output[i] = normalized[i] * gain[i] + bias[i];
  }
}

void add_normalized_gradient(std::size_t width, const float* output_gradient, const float* gain,
                             const float* normalized, float inverse_deviation, float* gradient) {
  float sum = 0;
  float along = 0;
  for (std::size_t i = 0; i < width; ++i) {
    sum += output_gradient[i] * gain[i];
    along += output_gradient[i] * gain[i] * normalized[i];
  }
  const float mean = sum / static_cast<float>(width);
  const float mean_along = along / static_cast<float>(width);
  for (std::size_t i = 0; i < width; ++i) {
    gradient[i] +=
        (output_gradient[i] * gain[i] - mean - normalized[i] * mean_along) * inverse_deviation;
  }
}

void soften(std::size_t seen, std::size_t width, float* row) {
  const float most = *std::max_element(row, row + seen);
  float sum = 0;
  for (std::size_t i = 0; i < seen; ++i) sum += row[i] = std::exp(row[i] - most);
  for (std::size_t i = 0; i < seen; ++i) row[i] /= sum;
  std::fill(row + seen, row + width, 0.0F);
}

}  // namespace

cudaError_t launch_layer_norm(TensorShape shape, const float* input, const float* gain,
                              const float* bias, NormStash stash, float* output,
                              cudaStream_t stream) {
  const DoubleWork work{
      "a layer norm",
      {reads(input, shape.size()), reads(gain, of(shape.columns)), reads(bias, of(shape.columns)),
       writes(stash.normalized, shape.size()), writes(stash.inverse_deviation, of(shape.rows)),
       writes(output, shape.size())}};
  return enqueue(stream, work, [=, width = of(shape.columns)] {
    for (std::size_t row = 0; row < of(shape.rows); ++row) {
      const std::size_t from = row * width;
      normalize(width, input + from, gain, bias, stash.normalized + from,
                stash.inverse_deviation + row, output + from);
    }
  });
}

cudaError_t launch_layer_norm_gradient(TensorShape shape, const float* output_gradient,
                                       const float* gain, NormStash stash, float* gradient,
                                       cudaStream_t stream) {
  const DoubleWork work{
      "the gradient of a layer norm",
      {reads(output_gradient, shape.size()), reads(gain, of(shape.columns)),
       reads(stash.normalized, shape.size()), reads(stash.inverse_deviation, of(shape.rows)),
       writes(gradient, shape.size())}};
  return enqueue(stream, work, [=, width = of(shape.columns)] {
    for (std::size_t row = 0; row < of(shape.rows); ++row) {
      const std::size_t from = row * width;
      add_normalized_gradient(width, output_gradient + from, gain, stash.normalized + from,
                              stash.inverse_deviation[row], gradient + from);
    }
  });
}

cudaError_t launch_layer_norm_weight_gradient(TensorShape shape, const float* output_gradient,
                                              const float* normalized, float* gain_gradient,
                                              float* bias_gradient, cudaStream_t stream) {
  const DoubleWork work{
      "the weight gradient of a layer norm",
      {reads(output_gradient, shape.size()), reads(normalized, shape.size()),
       writes(gain_gradient, of(shape.columns)), writes(bias_gradient, of(shape.columns))}};
  return enqueue(stream, work, [=, width = of(shape.columns)] {
    std::fill(gain_gradient, gain_gradient + width, 0.0F);
    std::fill(bias_gradient, bias_gradient + width, 0.0F);
    for (std::size_t i = 0; i < shape.size(); ++i) {
      gain_gradient[i % width] += output_gradient[i] * normalized[i];
      bias_gradient[i % width] += output_gradient[i];
    }
  });
}

cudaError_t launch_softmax(int heads, int rows, bool causal, float* scores, cudaStream_t stream) {
  const std::size_t width = of(rows);
  const DoubleWork work{"a softmax", {writes(scores, of(heads) * width * width)}};
  return enqueue(stream, work, [=] {
    for (std::size_t row = 0; row < of(heads) * width; ++row) {
      soften(causal ? row % width + 1 : width, width, scores + row * width);
    }
  });
}

cudaError_t launch_softmax_gradient(int heads, int rows, float scale, const float* weights,
                                    float* gradient, cudaStream_t stream) {
  const std::size_t width = of(rows);
  const std::size_t count = of(heads) * width * width;
  const DoubleWork work{"the gradient of a softmax",
                        {reads(weights, count), writes(gradient, count)}};
  return enqueue(stream, work, [=] {
    for (std::size_t from = 0; from < count; from += width) {
      float along = 0;
      for (std::size_t i = from; i < from + width; ++i) along += gradient[i] * weights[i];
      for (std::size_t i = from; i < from + width; ++i) {
        gradient[i] = scale * weights[i] * (gradient[i] - along);
      }
    }
  });
}

cudaError_t launch_activation(TensorShape shape, const float* bias, float* hidden, float* active,
                              cudaStream_t stream) {
  const DoubleWork work{
      "an activation",
      {reads(bias, of(shape.columns)), writes(hidden, shape.size()), writes(active, shape.size())}};
  return enqueue(stream, work, [=] {
    for (std::size_t i = 0; i < shape.size(); ++i) {
      const float x = hidden[i] += bias[i % of(shape.columns)];
      active[i] = 0.5F * x * (1 + std::tanh(kSlope * (x + kCubic * x * x * x)));
    }
  });
}

cudaError_t launch_activation_gradient(std::size_t count, const float* hidden, float* gradient,
                                       cudaStream_t stream) {
  const DoubleWork work{"the gradient of an activation",
                        {reads(hidden, count), writes(gradient, count)}};
  return enqueue(stream, work, [=] {
    for (std::size_t i = 0; i < count; ++i) {
      const float x = hidden[i];
      const float t = std::tanh(kSlope * (x + kCubic * x * x * x));
      gradient[i] *= 0.5F * (1 + t) + 0.5F * x * (1 - t * t) * kSlope * (1 + 3 * kCubic * x * x);
    }
  });
}

cudaError_t launch_add_bias(TensorShape shape, const float* bias, float* to, cudaStream_t stream) {
  const DoubleWork work{"a bias", {reads(bias, of(shape.columns)), writes(to, shape.size())}};
  return enqueue(stream, work, [=] {
    for (std::size_t i = 0; i < shape.size(); ++i) to[i] += bias[i % of(shape.columns)];
  });
}

cudaError_t launch_add_with_bias(TensorShape shape, const float* part, const float* bias, float* to,
                                 cudaStream_t stream) {
  const DoubleWork work{
      "a sum with a bias",
      {reads(part, shape.size()), reads(bias, of(shape.columns)), writes(to, shape.size())}};
  return enqueue(stream, work, [=] {
    for (std::size_t i = 0; i < shape.size(); ++i) to[i] += part[i] + bias[i % of(shape.columns)];
  });
}

cudaError_t launch_add_rows(TensorShape shape, const float* of_rows, float* sum,
                            cudaStream_t stream) {
  const DoubleWork work{"a sum of rows",
                        {reads(of_rows, shape.size()), writes(sum, of(shape.columns))}};
  return enqueue(stream, work, [=] {
    for (std::size_t i = 0; i < shape.size(); ++i) sum[i % of(shape.columns)] += of_rows[i];
  });
}

cudaError_t launch_add(std::size_t count, const float* from, float* to, cudaStream_t stream) {
  return enqueue(stream, {"a sum", {reads(from, count), writes(to, count)}}, [=] {
    for (std::size_t i = 0; i < count; ++i) to[i] += from[i];
  });
}

cudaError_t launch_embedding(TensorShape shape, const std::uint8_t* tokens, const float* token_rows,
                             const float* position_rows, float* output, cudaStream_t stream) {
  // Which rows of the table are read is not known before the tokens are.
  const DoubleWork work{"an embedding",
                        {reads(tokens, of(shape.rows)), reads(token_rows, of(shape.columns)),
                         reads(position_rows, shape.size()), writes(output, shape.size())}};
  return enqueue(stream, work, [=, width = of(shape.columns)] {
    for (std::size_t i = 0; i < shape.size(); ++i) {
      output[i] = token_rows[tokens[i / width] * width + i % width] + position_rows[i];
    }
  });
}

cudaError_t launch_embedding_gradient(TensorShape shape, const std::uint8_t* tokens,
                                      const float* output_gradient, float* token_gradient,
                                      float* position_gradient, cudaStream_t stream) {
  const DoubleWork work{
      "the gradient of an embedding",
      {reads(tokens, of(shape.rows)), reads(output_gradient, shape.size()),
       writes(token_gradient, of(shape.columns)), writes(position_gradient, shape.size())}};
  return enqueue(stream, work, [=, width = of(shape.columns)] {
    for (std::size_t i = 0; i < shape.size(); ++i) {
      token_gradient[tokens[i / width] * width + i % width] += output_gradient[i];
      position_gradient[i] += output_gradient[i];
    }
  });
}

cudaError_t launch_cross_entropy(TensorShape shape, const std::uint8_t* targets, float* scores,
                                 float* losses, cudaStream_t stream) {
  const DoubleWork work{"a cross entropy",
                        {reads(targets, of(shape.rows)), writes(scores, shape.size()),
                         writes(losses, of(shape.rows))}};
  return enqueue(stream, work, [=, width = of(shape.columns)] {
    for (std::size_t row = 0; row < of(shape.rows); ++row) {
      float* const from = scores + row * width;
      const float most = *std::max_element(from, from + width);
      float sum = 0;
      for (std::size_t i = 0; i < width; ++i) sum += std::exp(from[i] - most);
      const float log_sum = most + std::log(sum);
      losses[row] = log_sum - from[targets[row]];
      for (std::size_t i = 0; i < width; ++i) from[i] = std::exp(from[i] - log_sum);
    }
  });
}

cudaError_t launch_sum_losses(int count, const float* losses, double* sum, cudaStream_t stream) {
  return enqueue(stream, {"a sum of losses", {reads(losses, of(count))}}, [=] {
    double total = 0;
    for (int i = 0; i < count; ++i) total += static_cast<double>(losses[i]);
    *sum = total;
  });
}

cudaError_t launch_cross_entropy_gradient(TensorShape shape, const std::uint8_t* targets,
                                          float scale, float* chances, cudaStream_t stream) {
  const DoubleWork work{"the gradient of a cross entropy",
                        {reads(targets, of(shape.rows)), writes(chances, shape.size())}};
  return enqueue(stream, work, [=, width = of(shape.columns)] {
    for (std::size_t row = 0; row < of(shape.rows); ++row) chances[row * width + targets[row]] -= 1;
    for (std::size_t i = 0; i < shape.size(); ++i) chances[i] *= scale;
  });
}

cudaError_t launch_momentum_step(std::size_t count, MomentumStep step, float* value,
                                 float* gradient, float* velocity, cudaStream_t stream) {
  const DoubleWork work{"a step of the optimizer",
                        {writes(value, count), writes(gradient, count), writes(velocity, count)}};
  return enqueue(stream, work, [=] {
    for (std::size_t i = 0; i < count; ++i) {
      velocity[i] = step.momentum * velocity[i] + gradient[i];
      value[i] -= step.learning_rate * velocity[i];
      gradient[i] = 0;
    }
  });
}

}  // namespace rrfp
