#include "experiments/text_table.h"

#include <algorithm>

#include "scheduler_core/check.h"

namespace rrfp {

namespace {

// Characters, not bytes: continuation bytes of UTF-8 take no column.
std::size_t columns(const std::string& cell) {
  return static_cast<std::size_t>(std::count_if(cell.begin(), cell.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U;
  }));
}

}  // namespace

TextTable::TextTable(std::vector<std::string> header) : left_(header.size(), false) {
  left_.front() = true;
  rows_.push_back(std::move(header));
}

void TextTable::align_left(std::size_t column) { left_[column] = true; }

void TextTable::add(std::vector<std::string> cells) {
  RRFP_CHECK(cells.size() == left_.size());
  rows_.push_back(std::move(cells));
}

void TextTable::add_rule() { rows_.emplace_back(); }

std::string TextTable::text() const {
  std::vector<std::size_t> width(left_.size(), 0);
  for (const std::vector<std::string>& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) width[i] = std::max(width[i], columns(row[i]));
  }
  std::size_t total = 2 * (width.size() - 1);
  for (const std::size_t one : width) total += one;
  std::string text;
  for (const std::vector<std::string>& row : rows_) {
    std::string line = row.empty() ? std::string(total, '-') : "";
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string padding(width[i] - columns(row[i]), ' ');
      line += i == 0 ? "" : "  ";
      line += left_[i] ? row[i] + padding : padding + row[i];
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace rrfp
