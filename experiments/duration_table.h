// Durations of the tasks of a job in a dense table: what a fit is made from, and
// what worlds drawn from it are held against.
//
// Thread safety: a value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "scheduler_core/task.h"

namespace rrfp {

/// The tasks of one kind and stage.
struct DurationColumn {
  Kind kind = Kind::kForward;
  int stage = 0;
  int rank = 0;
};

struct DurationTable {
  std::vector<DurationColumn> columns;
  int iterations = 0;
  int replicas = 0;
  int microbatches = 0;
  std::vector<std::int64_t> ns;  ///< [column][iteration][replica][microbatch]

  std::size_t rows() const {
    return static_cast<std::size_t>(iterations) * static_cast<std::size_t>(replicas) *
           static_cast<std::size_t>(microbatches);
  }
  /// Of one iteration, replica and microbatch, within a column.
  std::size_t row(int iteration, int replica, int microbatch) const {
    return (static_cast<std::size_t>(iteration) * static_cast<std::size_t>(replicas) +
            static_cast<std::size_t>(replica)) *
               static_cast<std::size_t>(microbatches) +
           static_cast<std::size_t>(microbatch);
  }
  std::int64_t at(std::size_t column, std::size_t row) const { return ns[column * rows() + row]; }
  std::int64_t& at(std::size_t column, std::size_t row) { return ns[column * rows() + row]; }
};

}  // namespace rrfp
