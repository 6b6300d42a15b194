// What a torch schedule must satisfy beyond its grammar. Internal to the
// reader in torch_csv.cc.
//
// Thread safety: pure functions.
#pragma once

#include <cstddef>
#include <string>

#include "scheduler_core/result.h"
#include "traces/torch_csv.h"

namespace rrfp {

/// "file: row 2 (rank 1), column 5": both counted from 0 here, from 1 there.
std::string torch_place(const std::string& file, std::size_t row, int column);

/// The invariants of a TorchSchedule that was read (torch_csv.h). Takes time
/// n log n and memory n in the number of actions, whatever numbers they name.
/// `b_means` only chooses the words of the errors.
Result<void> check_torch_schedule(const TorchSchedule& torch, const std::string& file,
                                  BMeans b_means);

}  // namespace rrfp
