#include "traces/sqlite_file.h"

#include <sqlite3.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

namespace rrfp {

namespace {

constexpr std::size_t kHeaderBytes = 100;
constexpr std::string_view kMagic = "SQLite format 3";

std::uint64_t big_endian(std::string_view bytes) {
  std::uint64_t value = 0;
  for (const char byte : bytes) value = value << 8 | static_cast<unsigned char>(byte);
  return value;
}

/// How long the header says that the file is; 0 where it does not
/// (https://www.sqlite.org/fileformat2.html, 1.3).
std::uint64_t stated_bytes(std::string_view header) {
  const std::uint64_t field = big_endian(header.substr(16, 2));
  const std::uint64_t page_bytes = field == 1 ? 65536 : field;
  const bool possible = page_bytes >= 512 && (page_bytes & (page_bytes - 1)) == 0;
  const bool counted = header.substr(24, 4) == header.substr(92, 4);
  return possible && counted ? page_bytes * big_endian(header.substr(28, 4)) : 0;
}

}  // namespace

void SqliteRows::Finalize::operator()(sqlite3_stmt* statement) const {
  sqlite3_finalize(statement);
}

SqliteRows::SqliteRows(std::string path, sqlite3* file, sqlite3_stmt* statement)
    : path_(std::move(path)), file_(file), statement_(statement) {}

Result<bool> SqliteRows::next() {
  const int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  return Error{path_ + ": " + sqlite3_errmsg(file_)};
}

bool SqliteRows::is_null(int column) const {
  return sqlite3_column_type(statement_.get(), column) == SQLITE_NULL;
}

std::int64_t SqliteRows::integer(int column) const {
  return sqlite3_column_int64(statement_.get(), column);
}

std::string_view SqliteRows::text(int column) const {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_.get(), column));
  if (text == nullptr) return {};
  return {text, static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column))};
}

void SqliteFile::Close::operator()(sqlite3* file) const { sqlite3_close_v2(file); }

SqliteFile::SqliteFile(std::string path, sqlite3* file) : path_(std::move(path)), file_(file) {}

Result<SqliteFile> SqliteFile::open(const std::string& path) {
  char head[kHeaderBytes] = {};
  std::ifstream file(path, std::ios::binary);
  if (!file) return Error{path + ": cannot open"};
  file.read(head, sizeof head);
  const std::string_view header(head, sizeof head);
  if (!header.starts_with(kMagic)) {
    return Error{path + ": is no SQLite file; make one with `nsys export --type sqlite`" +
                 (head[0] == '\x1f' ? ", or unpack this one" : "")};
  }
  std::error_code unknown;
  const std::uintmax_t bytes = std::filesystem::file_size(path, unknown);
  if (!unknown && (bytes < kHeaderBytes || bytes < stated_bytes(header))) {
    return Error{path + ": was cut: it ends at byte " + std::to_string(bytes) + " of " +
                 std::to_string(std::max<std::uint64_t>(kHeaderBytes, stated_bytes(header))) +
                 "; copy or export it again"};
  }
  sqlite3* opened = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &opened, SQLITE_OPEN_READONLY, nullptr);
  SqliteFile sqlite(path, opened);
  if (code != SQLITE_OK) return Error{path + ": cannot open: " + sqlite3_errstr(code)};
  return sqlite;
}

Result<bool> SqliteFile::has(std::string_view table) const {
  Result<SqliteRows> rows = query("PRAGMA table_info(" + std::string(table) + ")");
  if (!rows.ok()) return rows.error();
  return rows->next();
}

Result<bool> SqliteFile::has(std::string_view table, std::string_view column) const {
  Result<SqliteRows> rows = query("PRAGMA table_info(" + std::string(table) + ")");
  if (!rows.ok()) return rows.error();
  while (true) {
    const Result<bool> more = rows->next();
    if (!more.ok()) return more.error();
    if (!*more) return false;
    if (rows->text(1) == column) return true;
  }
}

Result<SqliteRows> SqliteFile::query(const std::string& text) const {
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v2(file_.get(), text.c_str(), static_cast<int>(text.size()) + 1,
                                      &statement, nullptr);
  if (code != SQLITE_OK) {
    const std::string why = path_ + ": " + sqlite3_errmsg(file_.get());
    // No statement can be right on a damaged file.
    const bool damaged = code == SQLITE_CORRUPT || code == SQLITE_NOTADB;
    return Error{damaged ? why + "; export it again" : why + ", in: " + text};
  }
  return SqliteRows(path_, file_.get(), statement);
}

}  // namespace rrfp
