// What a model runs on: the accelerator, by its data sheet, and how much of it
// a job gets.
//
// Thread safety: values and constants.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "scheduler_core/result.h"

namespace rrfp {

/// Joined by NVLink, in the machines that these accelerators are sold in.
inline constexpr int kGpusOfNode = 8;

/// One accelerator. Links are counted in one direction.
struct Gpu {
  std::string_view name;  ///< as the command line knows it
  std::string_view title;
  double flops = 0;  ///< dense bf16, per second
  double memory_bytes = 0;
  double memory_bytes_per_second = 0;
  double peer_bytes_per_second = 0;     ///< to the others of its node (NVLink)
  double network_bytes_per_second = 0;  ///< its share of the node's network
  std::string_view source;
};

/// Accelerators that are known by name.
std::span<const Gpu> named_gpus();

/// The error lists the names, nearest first.
Result<Gpu> find_gpu(std::string_view name);

/// One tensor-parallel group.
struct Machine {
  Gpu gpu;
  double efficiency = 0.5;  ///< of the peak, while a task runs
  int tp = 1;
  bool flash_attention = true;  ///< else the attention matrix is kept
};

}  // namespace rrfp
