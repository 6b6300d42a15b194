#include "executor/model_cut.h"

#include <algorithm>
#include <string>

namespace rrfp {

namespace {

// The decoder is root 0 to whoever counts roots, but the last of a stream.
bool stands_before(int a, int b) { return a == 0 ? false : b == 0 || a < b; }

}  // namespace

Result<std::vector<StageCut>> cut_model(const ModelSpec& spec, const Program& program) {
  if (Result<void> checked = check(spec); !checked.ok()) return checked.error();
  const int stages = program.stages();
  std::vector<StageCut> cuts(static_cast<std::size_t>(stages));
  std::vector<int> root_stages;
  for (int stage = 0; stage < stages; ++stage) {
    if (program.predecessors(stage).empty()) root_stages.push_back(stage);
  }
  std::rotate(root_stages.begin(), root_stages.end() - 1, root_stages.end());
  for (int stage = 0; stage < stages; ++stage) {
    StageCut& cut = cuts[static_cast<std::size_t>(stage)];
    cut.stage = stage;
    cut.first_block = stage * spec.blocks / stages;
    cut.blocks = (stage + 1) * spec.blocks / stages - cut.first_block;
    const auto root = std::find(root_stages.begin(), root_stages.end(), stage);
    if (root != root_stages.end()) {
      cut.root = static_cast<int>(root - root_stages.begin());
      cut.roots = {cut.root};
    }
    for (const int from : program.predecessors(stage)) {
      cut.brought.push_back(cuts[static_cast<std::size_t>(from)].roots);
      for (const int of : cut.brought.back()) {
        if (std::find(cut.roots.begin(), cut.roots.end(), of) == cut.roots.end()) {
          cut.roots.push_back(of);
        }
      }
    }
    std::sort(cut.roots.begin(), cut.roots.end(), stands_before);
    cut.causal = cut.roots.back() == 0;
    cut.last = program.successors(stage).empty();
    if (cut.last && stage + 1 < stages) {
      return Error{"stage " + std::to_string(stage) +
                   " has no successor; a model that is trained has one last stage, " +
                   std::to_string(stages - 1) + ", and all others lead to it"};
    }
  }
  if (program.backward_of(stages - 1) == Backward::kNone) {
    return Error{"stage " + std::to_string(stages - 1) +
                 " has backward \"none\": nothing of this program is trained"};
  }
  return cuts;
}

int rows_of(std::span<const int> roots, std::span<const int> lengths) {
  int rows = 0;
  for (const int root : roots) rows += lengths[static_cast<std::size_t>(root)];
  return rows;
}

Result<Matrix> join(const StageCut& cut, std::span<const int> lengths,
                    std::span<const Matrix> activations) {
  RRFP_CHECK(activations.size() == cut.brought.size() && !activations.empty());
  const Eigen::Index width = activations.front().cols();
  Matrix stream = Matrix::Zero(rows_of(cut.roots, lengths), width);
  for (std::size_t i = 0; i < activations.size(); ++i) {
    const Matrix& part = activations[i];
    if (part.rows() != rows_of(cut.brought[i], lengths) || part.cols() != width) {
      return Error{"stage " + std::to_string(cut.stage) + ": the activation of its predecessor " +
                   std::to_string(i) + " has " + std::to_string(part.rows()) + " rows, not " +
                   std::to_string(rows_of(cut.brought[i], lengths))};
    }
    Eigen::Index from = 0;
    for (const int root : cut.brought[i]) {
      const auto rows = static_cast<Eigen::Index>(lengths[static_cast<std::size_t>(root)]);
      const auto at = std::find(cut.roots.begin(), cut.roots.end(), root);
      const std::span<const int> before(cut.roots.begin(), at);
      stream.middleRows(rows_of(before, lengths), rows) += part.middleRows(from, rows);
      from += rows;
    }
  }
  return stream;
}

Matrix gradient_for(const StageCut& cut, std::span<const int> lengths, const Matrix& gradient,
                    std::size_t predecessor) {
  const std::vector<int>& brought = cut.brought[predecessor];
  Matrix part(rows_of(brought, lengths), gradient.cols());
  Eigen::Index to = 0;
  for (const int root : brought) {
    const auto rows = static_cast<Eigen::Index>(lengths[static_cast<std::size_t>(root)]);
    const auto at = std::find(cut.roots.begin(), cut.roots.end(), root);
    const std::span<const int> before(cut.roots.begin(), at);
    part.middleRows(to, rows) = gradient.middleRows(rows_of(before, lengths), rows);
    to += rows;
  }
  return part;
}

}  // namespace rrfp
