#include "experiments/input_file.h"

#include <algorithm>

#include "traces/case_file.h"
#include "traces/text_file.h"

namespace rrfp {

namespace {

constexpr std::size_t kMib = std::size_t{1} << 20;

// Says whether the document may hold what its schema says, and which that is.
Result<std::string> schema_of(const JsonDocument& document,
                              std::span<const std::string_view> schemas) {
  if (document.root.object() == nullptr) {
    return Error{document.file + ": found " + document.root.describe() + "; expected an object"};
  }
  std::string allowed;
  for (const std::string_view schema : schemas) {
    allowed += (allowed.empty() ? "\"" : " or \"") + std::string(schema) + "\"";
  }
  const JsonValue* member = document.root.find("schema");
  if (member == nullptr) {
    return Error{document.file + ": the key \"schema\" is missing; expected " + allowed};
  }
  const std::string* text = member->string();
  if (text == nullptr || std::find(schemas.begin(), schemas.end(), *text) == schemas.end()) {
    return Error{document.file + ": /schema: found " + member->describe() + "; expected " +
                 allowed};
  }
  return *text;
}

}  // namespace

Result<std::size_t> file_limit(const Options& options) {
  const Result<std::int64_t> mib = options.integer_or(
      kFileLimitRow.name, static_cast<std::int64_t>(kDefaultFileLimitBytes / kMib), 1, 1 << 20);
  if (!mib.ok()) return mib.error();
  return static_cast<std::size_t>(*mib) * kMib;
}

Result<std::string> read_input_text(const std::string& path, std::size_t limit_bytes) {
  Result<std::string> text = read_text_file(path == "-" ? "/dev/stdin" : path, limit_bytes);
  if (text.ok() || text.error().message.find("raise the limit") == std::string::npos) return text;
  return Error{text.error().message + " with --max-file-mb"};
}

Result<InputFile> read_input(const std::string& path, std::size_t limit_bytes,
                             std::span<const std::string_view> schemas) {
  const Result<std::string> text = read_input_text(path, limit_bytes);
  if (!text.ok()) return text.error();
  const std::string file = path == "-" ? "standard input" : path;

  JsonOptions strict;
  strict.limit_bytes = limit_bytes;
  Result<JsonDocument> document = parse_json(*text, file, strict);
  if (!document.ok()) {
    JsonOptions lenient = strict;
    lenient.comments = true;
    Result<JsonDocument> commented = parse_json(*text, file, lenient);
    if (!commented.ok()) return commented.error();
    const Result<std::string> schema = schema_of(*commented, schemas);
    if (!schema.ok() || *schema == kCaseSchema) return document.error();
    return InputFile{std::move(commented).value(), *schema};
  }
  const Result<std::string> schema = schema_of(*document, schemas);
  if (!schema.ok()) return schema.error();
  return InputFile{std::move(document).value(), *schema};
}

}  // namespace rrfp
