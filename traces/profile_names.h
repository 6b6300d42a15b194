// What the names in a profile mean: the one place for these rules.
//
//   PP:<action>                   torch.distributed.pipelining (torch_csv.h)
//   forward_step, backward_step   Megatron-LM; microbatches count in order
//   Forward N, Backward N         torch's one-stage schedules, N the microbatch
//   ProfilerStep#N                iteration N
//   nccl:send A->B, nccl:recv A<-B  torch's process groups
//   nccl:<collective>, Optimizer.step#...  spans
// The user's own patterns come before these.
//
// Thread safety: one object, one thread.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>

#include "scheduler_core/result.h"
#include "traces/profile.h"
#include "traces/torch_csv.h"

namespace rrfp {

/// Regular expressions of RE2 (in UTF-8), found anywhere in a name; empty: none.
/// RE2 takes time linear in the name, whatever the pattern. Of a task the first group, where there
/// is one, is the microbatch, the second the stage; of a step the first is the iteration.
struct ProfilePatterns {
  std::string forward;
  std::string backward;
  std::string input_gradient;
  std::string weight_gradient;
  std::string step;
};

class ProfileNames {
 public:
  /// The error names the option and the pattern that RE2 does not take, and says
  /// why.
  static Result<ProfileNames> create(const ProfilePatterns& patterns,
                                     BMeans b_means = BMeans::kFull);

  ProfileNames(ProfileNames&&) noexcept;
  ProfileNames& operator=(ProfileNames&&) noexcept;
  ~ProfileNames();

  /// Valid until the next call.
  const ProfileAction& classify(std::string_view name);

 private:
  struct State;
  explicit ProfileNames(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// A kernel of NCCL or RCCL, whatever its operation (which is not always in
/// the name).
bool is_communication_kernel(std::string_view name);

/// Without what torch appends to the names of its NVTX ranges
/// (", seq = 5, op_id = 7").
std::string_view without_nvtx_suffix(std::string_view name);

/// The number after the word "rank" in a file's name ("rank3", "rank_3",
/// "rank-03"); nothing where there is none or there are several.
std::optional<int> rank_in_name(std::string_view file_name);

}  // namespace rrfp
