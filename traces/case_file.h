// Reads and writes case files (rrfp.case/1).
//
// Invariants
//  1. read_case(to_text(x)) equals x, and what a file leaves out is what the
//     format says holds in its absence.
//  2. A case that was read can be run without an overflow: every time that a
//     run or its expectations can reach is at most 2^62 ns, and so is every sum
//     of bytes.
//  3. Values given for what does not exist (the backward of a frozen stage,
//     the latency between stages of one rank) are kept: they take no part in a
//     run, but the arrangement of microbatches counts them.
//
// Thread safety: pure functions but for the files.
#pragma once

#include <string>

#include "scheduler_core/result.h"
#include "traces/case.h"
#include "traces/json_cursor.h"
#include "traces/json_reader.h"
#include "traces/json_writer.h"

namespace rrfp {

inline constexpr std::string_view kCaseSchema = "rrfp.case/1";

Result<Case> read_case_file(const std::string& path, const JsonOptions& options = {});

/// The case in a parsed document. The error names the file, the JSON pointer,
/// what was found and what is allowed.
Result<Case> read_case(const JsonDocument& document);

/// Everything that is not the default, in the order of the format.
JsonValue case_to_json(const Case& given);

/// The "pipeline" object of a case, which other files hold too.
ProgramSpec read_pipeline(const JsonCursor& in);
JsonValue pipeline_to_json(const Program& program);

Result<void> write_case_file(const std::string& path, const Case& given,
                             JsonLayout layout = JsonLayout::kReadable);

/// Says whether invariant 2 holds. The error names what is too large; it has
/// no file, for a case may come from elsewhere.
Result<void> check_magnitudes(const Case& given);

}  // namespace rrfp
