#include "traces/torch_csv.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "scheduler_core/nearest.h"
#include "traces/torch_csv_check.h"

namespace rrfp {

namespace {

constexpr std::array<std::string_view, 11> kOps = {"F",       "I",       "B",           "W",
                                                   "UNSHARD", "RESHARD", "REDUCE_GRAD", "SEND_F",
                                                   "RECV_F",  "SEND_B",  "RECV_B"};
constexpr std::string_view kOverlap = "OVERLAP_F_B";
constexpr std::size_t kMostRows = 65536;

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r";
  const std::size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_op_letter(char c) { return (c >= 'A' && c <= 'Z') || c == '_'; }

// Takes the longest front of `text` whose characters satisfy `belongs`.
template <typename Belongs>
std::string_view take_while(std::string_view& text, Belongs belongs) {
  const auto end = std::find_if_not(text.begin(), text.end(), belongs);
  const std::string_view front = text.substr(0, static_cast<std::size_t>(end - text.begin()));
  text.remove_prefix(front.size());
  return front;
}

// `digits` has digits only. The largest int is left out, so that one more fits.
bool to_number(std::string_view digits, int& value) {
  const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return status == std::errc() && value < 2147483647;
}

constexpr std::string_view kExpected =
    "expected <stage><op><microbatch> such as 3F0, with op F, I, B, W, SEND_F, RECV_F, SEND_B or "
    "RECV_B, or <stage>UNSHARD, <stage>RESHARD or <stage>REDUCE_GRAD, or "
    "(3F0;4B1)OVERLAP_F_B";

// The error is what is wrong, without the place.
Result<TorchAction> parse_action(std::string_view text) {
  TorchAction action;
  const std::string_view stage = take_while(text, is_digit);
  const std::string_view op = take_while(text, is_op_letter);
  const std::string_view microbatch = take_while(text, is_digit);
  if (stage.empty() || op.empty() || !text.empty()) return Error{std::string(kExpected)};
  const auto known = std::find(kOps.begin(), kOps.end(), op);
  if (known == kOps.end()) {
    return Error{"op " + in_quotes(op) + " is not known; did you mean " +
                 in_quotes(nearest(op, kOps)) + "? " + std::string(kExpected)};
  }
  action.op = static_cast<TorchOp>(known - kOps.begin());
  if (!to_number(stage, action.stage) ||
      (!microbatch.empty() && !to_number(microbatch, action.microbatch))) {
    return Error{"a number is too large; at most 2147483646"};
  }
  if (microbatch.empty() && (is_compute(action.op) || is_message(action.op))) {
    return Error{std::string(op) + " needs a microbatch, such as " + std::string(stage) +
                 std::string(op) + "0"};
  }
  return action;
}

class Reader {
 public:
  Reader(const std::string& file, BMeans b_means) : file_(file), b_means_(b_means) {}

  Result<void> line(std::string_view line) {
    TorchRow row;
    for (bool more = true; more; ++row.columns) {
      const std::size_t comma = line.find(',');
      more = comma != std::string_view::npos;
      if (Result<void> read = cell(row, trimmed(line.substr(0, comma))); !read) return read;
      if (more) line.remove_prefix(comma + 1);
    }
    torch_.rows.push_back(std::move(row));
    return {};
  }

  std::size_t rows() const { return torch_.rows.size(); }
  TorchSchedule finish() && { return std::move(torch_); }

 private:
  Error wrong(const TorchRow& row, std::string_view cell, const std::string& what) const {
    return Error{torch_place(file_, torch_.rows.size(), row.columns) + ": cell " + in_quotes(cell) +
                 ": " + what};
  }

  Result<void> cell(TorchRow& row, std::string_view cell) {
    if (cell.empty()) return {};
    if (cell.front() != '(') return add(row, cell, cell, false);
    const std::size_t close = cell.rfind(')');
    if (close == std::string_view::npos || trimmed(cell.substr(close + 1)) != kOverlap) {
      return wrong(row, cell, std::string(kExpected));
    }
    std::string_view inside = cell.substr(1, close - 1);
    for (bool more = true; more;) {
      const std::size_t semicolon = inside.find(';');
      more = semicolon != std::string_view::npos;
      if (Result<void> read = add(row, cell, trimmed(inside.substr(0, semicolon)), true); !read) {
        return read;
      }
      if (more) inside.remove_prefix(semicolon + 1);
    }
    return {};
  }

  Result<void> add(TorchRow& row, std::string_view cell, std::string_view text, bool overlapped) {
    Result<TorchAction> action = parse_action(text);
    if (!action) return wrong(row, cell, action.error().message);
    if (overlapped && !is_compute(action->op)) {
      return wrong(row, cell, "only F, I, B and W overlap, not " + std::string(name(action->op)));
    }
    if (b_means_ == BMeans::kInput) {
      if (action->op == TorchOp::kInputGradient) {
        return wrong(row, cell,
                     "I stands in a file that is read with B as the input gradient (b-means "
                     "input); read it with b-means full, or write B");
      }
      if (action->op == TorchOp::kBackward) action->op = TorchOp::kInputGradient;
    }
    action->overlapped = overlapped;
    action->column = row.columns;
    row.actions.push_back(*action);
    return {};
  }

  const std::string& file_;
  BMeans b_means_;
  TorchSchedule torch_;
};

Kind to_kind(TorchOp op) {
  constexpr std::array<Kind, 4> kKinds = {Kind::kForward, Kind::kInputGradient, Kind::kBackward,
                                          Kind::kWeightGradient};
  return kKinds[static_cast<std::size_t>(op)];
}

TorchOp to_op(Kind kind) {
  constexpr std::array<TorchOp, 4> kKindOps = {TorchOp::kForward, TorchOp::kBackward,
                                               TorchOp::kInputGradient, TorchOp::kWeightGradient};
  return kKindOps[static_cast<std::size_t>(kind)];
}

std::string written(const TorchAction& action, BMeans b_means) {
  TorchAction copy = action;
  if (b_means == BMeans::kInput && copy.op == TorchOp::kInputGradient) copy.op = TorchOp::kBackward;
  return to_string(copy);
}

std::string to_line(const TorchRow& row, BMeans b_means) {
  std::string line;
  int column = 0;
  for (std::size_t i = 0; i < row.actions.size(); ++i) {
    const TorchAction& action = row.actions[i];
    for (; column < action.column; ++column) line += ',';
    if (!action.overlapped) {
      line += written(action, b_means);
      continue;
    }
    line += '(' + written(action, b_means);
    while (i + 1 < row.actions.size() && row.actions[i + 1].column == action.column) {
      line += ';' + written(row.actions[++i], b_means);
    }
    line += ")" + std::string(kOverlap);
  }
  for (; column + 1 < row.columns; ++column) line += ',';
  // A row without anything would be taken for the end of the file.
  return line.empty() ? "," : line;
}

}  // namespace

std::string_view name(TorchOp op) { return kOps[static_cast<std::size_t>(op)]; }

std::string to_string(const TorchAction& action) {
  std::string text = std::to_string(action.stage) + std::string(name(action.op));
  if (action.microbatch >= 0) text += std::to_string(action.microbatch);
  return text;
}

Result<BMeans> parse_b_means(std::string_view word) {
  if (word == "full") return BMeans::kFull;
  if (word == "input") return BMeans::kInput;
  return Error{"b-means is " + in_quotes(word) +
               "; allowed are \"full\" (as torch writes it) and \"input\" (as the zero-bubble "
               "papers write it)"};
}

Result<TorchSchedule> parse_torch_csv(std::string_view text, const std::string& file,
                                      const TorchCsvOptions& options) {
  if (text.size() > options.limit_bytes) {
    return Error{file + ": " + std::to_string(text.size()) + " bytes; the limit is " +
                 std::to_string(options.limit_bytes)};
  }
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  const std::size_t last = text.find_last_not_of(" \t\r\n");
  if (last == std::string_view::npos) return Error{file + ": there is no action in the file"};
  // What follows the last line that has anything on it is dropped.
  text = text.substr(0, std::min(text.find('\n', last), text.size()));
  Reader reader(file, options.b_means);
  for (bool more = true; more;) {
    const std::size_t end = text.find('\n');
    more = end != std::string_view::npos;
    if (reader.rows() == kMostRows) {
      return Error{file + ": more than " + std::to_string(kMostRows) + " rows; a row is a rank"};
    }
    if (Result<void> read = reader.line(text.substr(0, end)); !read) return read.error();
    if (more) text.remove_prefix(end + 1);
  }
  TorchSchedule torch = std::move(reader).finish();
  if (Result<void> valid = check_torch_schedule(torch, file, options.b_means); !valid) {
    return valid.error();
  }
  return torch;
}

Result<TorchSchedule> read_torch_csv(const std::string& path, const TorchCsvOptions& options) {
  const Result<std::string> text = read_text_file(path, options.limit_bytes);
  if (!text) return text.error();
  return parse_torch_csv(*text, path, options);
}

TorchOp message_op(bool sends, Kind tensor) {
  if (tensor == Kind::kForward) return sends ? TorchOp::kSendForward : TorchOp::kRecvForward;
  return sends ? TorchOp::kSendBackward : TorchOp::kRecvBackward;
}

OrderedMessage to_message(const TorchAction& action, int position) {
  const bool forward = action.op == TorchOp::kSendForward || action.op == TorchOp::kRecvForward;
  return {position, sends(action.op), forward ? Kind::kForward : Kind::kBackward, action.stage,
          action.microbatch};
}

Result<TorchAction> parse_torch_action(std::string_view text) { return parse_action(text); }

TorchPlan to_plan(const TorchSchedule& torch) {
  TorchPlan plan;
  plan.program.ranks = static_cast<int>(torch.rows.size());
  std::vector<int> ranks;  // by stage
  for (std::size_t rank = 0; rank < torch.rows.size(); ++rank) {
    std::vector<Task>& order = plan.schedule.ranks.emplace_back();
    std::vector<OrderedMessage>& messages = plan.messages.emplace_back();
    for (const TorchAction& action : torch.rows[rank].actions) {
      if (is_message(action.op)) {
        messages.push_back(to_message(action, static_cast<int>(order.size())));
      }
      if (!is_compute(action.op)) continue;
      order.push_back({action.stage, to_kind(action.op), action.microbatch});
      const auto stage = static_cast<std::size_t>(action.stage);
      if (stage >= ranks.size()) ranks.resize(stage + 1);
      ranks[stage] = static_cast<int>(rank);
      plan.program.microbatches = std::max(plan.program.microbatches, action.microbatch + 1);
      if (action.op == TorchOp::kInputGradient) plan.program.split_backward = true;
    }
  }
  const auto silent = [](const std::vector<OrderedMessage>& messages) { return messages.empty(); };
  if (std::all_of(plan.messages.begin(), plan.messages.end(), silent)) plan.messages.clear();
  for (std::size_t stage = 0; stage < ranks.size(); ++stage) {
    StageSpec spec;
    spec.rank = ranks[stage];
    if (stage > 0) spec.predecessors = {static_cast<int>(stage) - 1};
    plan.program.stages.push_back(std::move(spec));
  }
  return plan;
}

TorchSchedule to_torch(const Schedule& schedule) {
  TorchSchedule torch;
  for (const std::vector<Task>& order : schedule.ranks) {
    TorchRow& row = torch.rows.emplace_back();
    row.actions.reserve(order.size());
    for (const Task& task : order) {
      row.actions.push_back({task.stage, to_op(task.kind), false, task.microbatch, row.columns++});
    }
  }
  return torch;
}

Result<std::string> to_torch_csv(const TorchSchedule& torch, BMeans b_means) {
  std::string text;
  for (std::size_t row = 0; row < torch.rows.size(); ++row) {
    for (const TorchAction& action : torch.rows[row].actions) {
      if (b_means == BMeans::kFull || action.op != TorchOp::kBackward) continue;
      return Error{"rank " + std::to_string(row) + ": " + to_string(action) +
                   " is a whole backward; with b-means input it would be read as the input "
                   "gradient alone"};
    }
    text += to_line(torch.rows[row], b_means) + "\n";
  }
  return text;
}

}  // namespace rrfp
