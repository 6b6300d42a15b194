#include "traces/sqlite_file.h"

#include <sqlite3.h>

#include <fstream>
#include <utility>

namespace rrfp {

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
  constexpr std::string_view kMagic = "SQLite format 3";
  char magic[16] = {};
  std::ifstream file(path, std::ios::binary);
  if (!file) return Error{path + ": cannot open"};
  file.read(magic, sizeof magic);
  if (std::string_view(magic, sizeof magic - 1) != kMagic) {
    return Error{path + ": is no SQLite file; make one with `nsys export --type sqlite`" +
                 (magic[0] == '\x1f' ? ", or unpack this one" : "")};
  }
  sqlite3* opened = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &opened, SQLITE_OPEN_READONLY, nullptr);
  SqliteFile sqlite(path, opened);
  if (code != SQLITE_OK) return Error{path + ": cannot open: " + sqlite3_errstr(code)};
  return sqlite;
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
    return Error{path_ + ": " + sqlite3_errmsg(file_.get()) + ", in: " + text};
  }
  return SqliteRows(path_, file_.get(), statement);
}

}  // namespace rrfp
