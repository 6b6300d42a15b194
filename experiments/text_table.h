// A table of text for people: columns aligned, the first to the left, the
// others to the right.
//
// Thread safety: as a container.
#pragma once

#include <string>
#include <vector>

namespace rrfp {

class TextTable {
 public:
  explicit TextTable(std::vector<std::string> header);

  /// Columns from here on that hold words stand to the left.
  void align_left(std::size_t column);
  /// REQUIRES: as many cells as the header has.
  void add(std::vector<std::string> cells);
  /// A line across the table.
  void add_rule();

  /// Every line ends in "\n" and has no space before it.
  std::string text() const;

 private:
  std::vector<std::vector<std::string>> rows_;  // an empty row: a rule
  std::vector<bool> left_;
};

}  // namespace rrfp
