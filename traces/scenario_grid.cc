#include <utility>

#include "traces/json_cursor.h"
#include "traces/scenario_file.h"

namespace rrfp {

namespace {

constexpr std::size_t kMostPoints = 100'000;

// The first token of a JSON pointer, unescaped; takes it off.
std::string take_token(std::string_view& pointer) {
  pointer.remove_prefix(1);
  const std::size_t end = std::min(pointer.find('/'), pointer.size());
  std::string token;
  for (std::size_t i = 0; i < end; ++i) {
    if (pointer[i] == '~' && i + 1 < end && (pointer[i + 1] == '0' || pointer[i + 1] == '1')) {
      token += pointer[++i] == '0' ? '~' : '/';
    } else {
      token += pointer[i];
    }
  }
  pointer.remove_prefix(end);
  return token;
}

// An index as RFC 6901 writes it; -1 where it is none.
std::ptrdiff_t parse_index(const std::string& token) {
  if (token.empty() || token.size() > 9 || (token.size() > 1 && token[0] == '0')) return -1;
  std::ptrdiff_t index = 0;
  for (const char c : token) {
    if (c < '0' || c > '9') return -1;
    index = index * 10 + (c - '0');
  }
  return index;
}

// Puts `value` where `pointer` leads, as a new member where the object before
// it has none of that name. False where it leads nowhere.
bool put(JsonValue& root, std::string_view pointer, JsonValue value) {
  JsonValue* at = &root;
  if (!pointer.starts_with('/')) return false;
  while (!pointer.empty()) {
    const std::string token = take_token(pointer);
    if (JsonArray* items = at->array()) {
      const std::ptrdiff_t index = parse_index(token);
      if (index < 0 || index >= std::ssize(*items)) return false;
      at = &(*items)[static_cast<std::size_t>(index)];
    } else if (at->object() == nullptr) {
      return false;
    } else if (JsonValue* member = at->find(token)) {
      at = member;
    } else {
      if (!pointer.empty()) return false;
      at->add(token, JsonValue());
      at = at->find(token);
    }
  }
  *at = std::move(value);
  return true;
}

// `root` without its grid.
JsonValue without_grid(const JsonValue& root) {
  JsonObject members;
  for (const JsonMember& member : *root.object()) {
    if (member.key != "grid") members.push_back(member);
  }
  return JsonValue(std::move(members));
}

}  // namespace

Result<std::vector<GridAxis>> read_grid(const JsonDocument& document) {
  JsonErrors errors(document.file);
  const JsonCursor in(errors, document.root);
  std::vector<GridAxis> axes;
  const auto grid = in.find("grid");
  if (!grid) return axes;
  if (grid->value().object() == nullptr) {
    grid->expected("an object such as {\"/network/latency_us\": [10, 100]}");
    return errors.status().error();
  }
  JsonValue scratch = without_grid(document.root);
  std::size_t points = 1;
  for (const JsonMember& member : *grid->value().object()) {
    const JsonCursor list = grid->at(member.key);
    GridAxis axis{member.key, {}};
    for (const JsonCursor& item : list.items()) axis.values.push_back(item.value());
    if (errors.ok() && axis.values.empty()) list.expected("at least one value");
    if (!errors.ok()) break;
    if (!put(scratch, axis.pointer, axis.values[0])) {
      const std::string found = JsonValue(axis.pointer).describe();
      grid->fail(axis.pointer.starts_with('/')
                     ? found +
                           " leads to nothing in the file: give it a value there, which those of "
                           "the grid replace"
                     : found + " is no JSON pointer; expected one such as \"/network/latency_us\"");
    }
    points *= axis.values.size();
    if (points > kMostPoints) {
      grid->fail("more than " + std::to_string(kMostPoints) + " points");
    }
    if (!errors.ok()) break;
    axes.push_back(std::move(axis));
  }
  if (!errors.ok()) return errors.status().error();
  return axes;
}

std::size_t points_of(const std::vector<GridAxis>& axes) {
  std::size_t count = 1;
  for (const GridAxis& axis : axes) count *= axis.values.size();
  return count;
}

Result<GridPoint> grid_point(const JsonDocument& document, const std::vector<GridAxis>& axes,
                             std::size_t number) {
  JsonDocument changed{document.file, without_grid(document.root)};
  std::vector<JsonValue> values(axes.size());
  std::string where;
  for (std::size_t i = axes.size(); i-- > 0;) {
    const GridAxis& axis = axes[i];
    values[i] = axis.values[number % axis.values.size()];
    number /= axis.values.size();
    where = axis.pointer + " = " + values[i].describe() + (where.empty() ? "" : ", ") + where;
  }
  for (std::size_t i = 0; i < values.size(); ++i) put(changed.root, axes[i].pointer, values[i]);
  Result<Scenario> scenario = read_scenario(changed);
  if (!scenario.ok()) {
    return Error{scenario.error().message + (where.empty() ? "" : " (with " + where + ")")};
  }
  return GridPoint{std::move(values), *std::move(scenario)};
}

Result<std::vector<GridPoint>> expand_grid(const JsonDocument& document) {
  if (document.root.object() == nullptr) return read_scenario(document).error();
  const Result<std::vector<GridAxis>> axes = read_grid(document);
  if (!axes.ok()) return axes.error();
  std::vector<GridPoint> points;
  for (std::size_t number = 0; number < points_of(*axes); ++number) {
    Result<GridPoint> point = grid_point(document, *axes, number);
    if (!point.ok()) return point.error();
    points.push_back(*std::move(point));
  }
  return points;
}

}  // namespace rrfp
