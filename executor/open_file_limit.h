// How many files, of which a connection is one, this process may have open.
//
// Thread safety: the limit is the process's.
#pragma once

#include "scheduler_core/result.h"

namespace rrfp {

/// Raises the limit where `connections` need it, as far as the system lets. The
/// error says how far that is, and what is needed.
Result<void> allow_connections(int connections);

}  // namespace rrfp
