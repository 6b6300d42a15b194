#include "executor/training_report.h"

#include <cstring>

namespace rrfp {

namespace {

// Comes before the name and the numbers of each entry.
struct Head {
  std::int64_t name = 0;  // its length
  std::int64_t rows = 0;
  std::int64_t columns = 0;
};

void append(std::vector<std::byte>& to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  const std::size_t at = to.size();
  to.resize(at + bytes);
  std::memcpy(to.data() + at, from, bytes);
}

bool take(const std::vector<std::byte>& from, std::size_t& at, void* to, std::size_t bytes) {
  if (from.size() - at < bytes) return false;
  if (bytes > 0) std::memcpy(to, from.data() + at, bytes);
  at += bytes;
  return true;
}

}  // namespace

std::vector<std::byte> to_report(const std::vector<NamedMatrix>& entries) {
  std::vector<std::byte> report;
  for (const auto& [name, matrix] : entries) {
    const Head head{static_cast<std::int64_t>(name.size()), matrix.rows(), matrix.cols()};
    append(report, &head, sizeof(head));
    append(report, name.data(), name.size());
    append(report, matrix.data(), static_cast<std::size_t>(bytes_of(matrix)));
  }
  return report;
}

Result<std::vector<NamedMatrix>> from_report(const std::vector<std::byte>& report) {
  std::vector<NamedMatrix> entries;
  std::size_t at = 0;
  const auto left = [&] { return static_cast<std::int64_t>(report.size() - at); };
  while (at < report.size()) {
    Head head;
    if (!take(report, at, &head, sizeof(head)) || head.name < 0 || head.name > left() ||
        head.rows < 0 || head.columns < 0 || head.rows > left() || head.columns > left() ||
        bytes_of(head.rows, head.columns) > left() - head.name) {
      return Error{"the report of a device is cut short"};
    }
    NamedMatrix entry{std::string(static_cast<std::size_t>(head.name), ' '),
                      Matrix(head.rows, head.columns)};
    take(report, at, entry.first.data(), entry.first.size());
    take(report, at, entry.second.data(), static_cast<std::size_t>(bytes_of(entry.second)));
    entries.push_back(std::move(entry));
  }
  return entries;
}

}  // namespace rrfp
