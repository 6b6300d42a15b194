#include "scheduler_core/task.h"

#include <charconv>

namespace rrfp {

namespace {

// Reads digits from the front of `text`; false where there are none or too
// many.
bool take_number(std::string_view& text, int& value) {
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc() || text.front() == '-') return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

}  // namespace

char letter(Kind kind) {
  constexpr char kLetters[] = {'F', 'B', 'I', 'W'};
  return kLetters[static_cast<std::size_t>(kind)];
}

std::string to_string(const Task& task) {
  return std::to_string(task.stage) + letter(task.kind) + std::to_string(task.microbatch);
}

Result<Task> parse_task(std::string_view text) {
  const auto fail = [whole = std::string(text)] {
    return Error{"\"" + whole +
                 "\" is not a task; expected <stage><F|B|I|W><microbatch>, e.g. 3F0"};
  };
  Task task;
  if (text.empty() || !take_number(text, task.stage) || text.empty()) return fail();
  switch (text.front()) {
    case 'F':
      task.kind = Kind::kForward;
      break;
    case 'B':
      task.kind = Kind::kBackward;
      break;
    case 'I':
      task.kind = Kind::kInputGradient;
      break;
    case 'W':
      task.kind = Kind::kWeightGradient;
      break;
    default:
      return fail();
  }
  text.remove_prefix(1);
  if (text.empty() || !take_number(text, task.microbatch) || !text.empty()) return fail();
  return task;
}

}  // namespace rrfp
