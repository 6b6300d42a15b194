#include "experiments/input_file.h"

#include <algorithm>

#include "executor/agreement.h"
#include "traces/text_file.h"

namespace rrfp {

namespace {

constexpr std::size_t kMib = std::size_t{1} << 20;

// What the document's schema says that it is.
Result<FileKind> kind_by_schema(const JsonDocument& document, std::span<const FileKind> taken) {
  if (document.root.object() == nullptr) {
    return Error{document.file + ": found " + document.root.describe() + "; expected an object"};
  }
  std::string allowed;
  for (const FileKind kind : taken) {
    allowed += (allowed.empty() ? "\"" : " or \"") + std::string(schema_of(kind)) + "\"";
  }
  const JsonValue* member = document.root.find("schema");
  if (member == nullptr) {
    return Error{document.file + ": the key \"schema\" is missing; expected " + allowed};
  }
  const std::string* text = member->string();
  const auto kind = std::find_if(taken.begin(), taken.end(), [text](FileKind one) {
    return text != nullptr && *text == schema_of(one);
  });
  if (kind == taken.end()) {
    return Error{document.file + ": /schema: found " + member->describe() + "; expected " +
                 allowed};
  }
  return *kind;
}

// Of what is no JSON at all, such as a picture or prose, no place within it is worth naming.
Error not_json(const Error& error, std::string_view text, const std::string& file,
               std::span<const FileKind> taken) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == text.npos) return Error{file + ": is empty; expected " + described(taken)};
  if (std::string_view("{[/").find(text[begin]) != std::string_view::npos) return error;
  const auto line = 1 + std::count(text.begin(), text.begin() + std::ptrdiff_t(begin), '\n');
  return Error{file + ": line " + std::to_string(line) +
               " begins with neither \"{\" nor a comment; expected " + described(taken)};
}

Result<InputFile> parse_input(std::string_view text, const std::string& file,
                              std::size_t limit_bytes, std::span<const FileKind> taken) {
  JsonOptions strict;
  strict.limit_bytes = limit_bytes;
  Result<JsonDocument> document = parse_json(text, file, strict);
  if (!document.ok()) {
    JsonOptions lenient = strict;
    lenient.comments = true;
    Result<JsonDocument> commented = parse_json(text, file, lenient);
    if (!commented.ok()) return not_json(commented.error(), text, file, taken);
    const Result<FileKind> kind = kind_by_schema(*commented, taken);
    if (!kind.ok()) return kind.error();
    if (*kind == FileKind::kCase) {
      return Error{document.error().message + "; a case takes no comments, a scenario does"};
    }
    return InputFile{std::move(commented).value(), *kind, {}};
  }
  const Result<FileKind> kind = kind_by_schema(*document, taken);
  if (!kind.ok()) return kind.error();
  return InputFile{std::move(document).value(), *kind, {}};
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
                             std::span<const FileKind> taken) {
  const Result<std::string> text = read_input_text(path, limit_bytes);
  if (!text.ok()) return explain_kind(text.error(), path, taken);
  const bool is_pipe = path == "-";
  Result<InputFile> input =
      parse_input(*text, is_pipe ? "standard input" : path, limit_bytes, taken);
  if (input.ok()) {
    input->content = describe_content(*text);
    return input;
  }
  return is_pipe ? explain_kind(input.error(), "standard input", kind_of_text(*text), taken)
                 : explain_kind(input.error(), path, taken);
}

Result<OpenedTrace> open_input_trace(const std::string& path, const ReadProgress& progress) {
  Result<OpenedTrace> opened = open_trace(path, progress);
  if (!opened.ok()) return explain_kind(opened.error(), path, kTraceKinds);
  return opened;
}

}  // namespace rrfp
