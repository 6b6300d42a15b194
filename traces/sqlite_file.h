// A SQLite file that is only read. Names of tables and columns are constants of
// the callers, never from a file.
//
// Thread safety: one file, one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "scheduler_core/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace rrfp {

class SqliteFile;

/// The rows of one query.
class SqliteRows {
 public:
  /// False at the end. The error names the file and what SQLite said.
  Result<bool> next();

  // REQUIRES of all below: next() was true, and the column is one of the query.
  bool is_null(int column) const;
  std::int64_t integer(int column) const;
  /// Valid until the next call of next().
  std::string_view text(int column) const;

 private:
  friend class SqliteFile;
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  SqliteRows(std::string path, sqlite3* file, sqlite3_stmt* statement);

  std::string path_;
  sqlite3* file_;
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

class SqliteFile {
 public:
  /// The error names the path, and says so where the file is no SQLite or ends
  /// before its last page.
  static Result<SqliteFile> open(const std::string& path);

  Result<bool> has(std::string_view table) const;
  /// False where the table or the column is absent.
  Result<bool> has(std::string_view table, std::string_view column) const;
  Result<SqliteRows> query(const std::string& text) const;

 private:
  struct Close {
    void operator()(sqlite3* file) const;
  };
  SqliteFile(std::string path, sqlite3* file);

  std::string path_;
  std::unique_ptr<sqlite3, Close> file_;
};

}  // namespace rrfp
