#include "traces/straggler_csv.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include "traces/line_source.h"

namespace rrfp {

namespace {

enum class Role : std::uint8_t { kTask, kSend, kReceive, kSpan };
enum class Scope : std::uint8_t { kOwn, kRank, kStage, kReplica, kWorld };

struct OpType {
  std::string_view name;
  Role role = Role::kSpan;
  Kind kind = Kind::kForward;  ///< of a task or message
  Scope scope = Scope::kOwn;   ///< who a span waits for
};

constexpr OpType kOpTypes[] = {
    {"backward-compute", Role::kTask, Kind::kBackward},
    {"backward-recv", Role::kReceive, Kind::kBackward},
    {"backward-send", Role::kSend, Kind::kBackward},
    {"embedding-grads-all-reduce", Role::kSpan, Kind::kForward, Scope::kReplica},
    {"forward-compute", Role::kTask, Kind::kForward},
    {"forward-recv", Role::kReceive, Kind::kForward},
    {"forward-send", Role::kSend, Kind::kForward},
    {"gc", Role::kSpan},
    {"grads-reduce-scatter", Role::kSpan, Kind::kForward, Scope::kStage},
    {"layernorm-grads-all-reduce", Role::kSpan, Kind::kForward, Scope::kRank},
    {"optimizer", Role::kSpan},
    {"optimizer-clip-main-grad", Role::kSpan, Kind::kForward, Scope::kWorld},
    {"params-all-gather", Role::kSpan, Kind::kForward, Scope::kStage}};
constexpr int kOpTypeCount = static_cast<int>(std::size(kOpTypes));

constexpr std::array<std::string_view, 9> kColumns = {
    "dp_rank", "stage", "step", "optype", "start_ts", "duration", "seq_id", "mb_id", "mc"};

constexpr int kMostIndex = 1 << 20;
constexpr double kMostSeconds = 1e8;

struct Row {
  int step = 0;
  int replica = 0;
  int stage = 0;
  int type = 0;  ///< index into kOpTypes
  int sequence = 0;
  int microbatch = 0;
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::int64_t line = 0;

  const OpType& op() const { return kOpTypes[type]; }
};

std::vector<std::string_view> split(std::string_view line) {
  std::vector<std::string_view> cells;
  while (true) {
    const std::size_t comma = line.find(',');
    cells.push_back(line.substr(0, comma));
    if (comma == std::string_view::npos) return cells;
    line.remove_prefix(comma + 1);
  }
}

template <typename T>
std::optional<T> number(std::string_view cell) {
  T value{};
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (error != std::errc() || end != cell.data() + cell.size()) return std::nullopt;
  return value;
}

/// Reads the rows of one file; a row that cannot be is dropped.
class RowReader {
 public:
  RowReader(LineSource lines, StragglerReport* report)
      : lines_(std::move(lines)), report_(report) {}

  Result<std::vector<Row>> read() {
    std::vector<Row> rows;
    std::string_view line;
    Result<bool> more = lines_.next(&line);
    if (!more.ok()) return more.error();
    if (!*more) return Error{lines_.path() + ": is empty; expected a header line"};
    if (Result<void> header = read_header(line); !header.ok()) return header.error();
    while ((more = lines_.next(&line)).ok() && *more) {
      if (line.empty()) continue;
      ++report_->rows;
      Result<std::optional<Row>> row = read_row(line);
      if (!row.ok()) return row.error();
      if (row->has_value()) rows.push_back(**row);
    }
    if (!more.ok()) return more.error();
    return rows;
  }

  void drop(const std::string& reason, std::int64_t line) {
    report_->dropped.add(reason, "line " + std::to_string(line));
  }

 private:
  Result<void> read_header(std::string_view line) {
    const std::vector<std::string_view> names = split(line);
    width_ = names.size();
    for (std::size_t i = 0; i < kColumns.size(); ++i) {
      const auto found = std::find(names.begin(), names.end(), kColumns[i]);
      if (found == names.end()) {
        return lines_.error("column \"" + std::string(kColumns[i]) + "\" is missing");
      }
      place_[i] = static_cast<std::size_t>(found - names.begin());
    }
    return {};
  }

  Result<std::optional<Row>> read_row(std::string_view line) {
    const std::vector<std::string_view> cells = split(line);
    if (cells.size() != width_) {
      return lines_.error("has " + std::to_string(cells.size()) + " cells; the header has " +
                          std::to_string(width_));
    }
    std::array<int, kColumns.size()> whole{};
    std::array<double, kColumns.size()> seconds{};
    for (std::size_t i = 0; i < kColumns.size(); ++i) {
      if (i == 3) continue;
      const std::string_view cell = cells[place_[i]];
      const bool time = i == 4 || i == 5;
      const std::optional<int> integer = time ? std::optional<int>(0) : number<int>(cell);
      const std::optional<double> real = time ? number<double>(cell) : std::optional<double>(0);
      if (!integer || !real || !std::isfinite(*real)) {
        return lines_.error(std::string(kColumns[i]) + " is \"" + std::string(cell) +
                            "\"; expected a number");
      }
      whole[i] = *integer;
      seconds[i] = *real;
    }
    return to_row(cells[place_[3]], whole, seconds);
  }

  std::optional<Row> to_row(std::string_view optype, std::span<const int> whole,
                            std::span<const double> seconds) {
    const std::int64_t line = lines_.line_number();
    const auto* type = std::find_if(std::begin(kOpTypes), std::end(kOpTypes),
                                    [&](const OpType& known) { return known.name == optype; });
    if (type == std::end(kOpTypes)) {
      drop("optype \"" + std::string(optype.substr(0, 64)) + "\" is not known", line);
      return std::nullopt;
    }
    Row row{.step = whole[2], .replica = whole[0], .stage = whole[1]};
    row.type = static_cast<int>(type - kOpTypes);
    row.sequence = whole[6];
    row.microbatch = whole[7];
    row.line = line;
    ++report_->types[row.type].rows;
    const bool counted = type->role != Role::kSpan;
    const char* reason = nullptr;
    if (row.step < 0 || row.replica < 0 || row.replica >= kMostIndex || row.stage < 0 ||
        row.stage >= kMostIndex) {
      reason = "step, dp_rank or stage is negative or too large";
    } else if (counted && (row.sequence < 0 || row.sequence >= kMostIndex)) {
      reason = "seq_id is negative or too large";
    } else if (type->role == Role::kTask && (row.microbatch < 0 || row.microbatch >= kMostIndex)) {
      reason = "mb_id is negative or too large";
    } else if (whole[8] > 0) {
      reason = "model chunk above 0: several stages per rank are not told apart";
    } else if (seconds[5] < 0) {
      reason = "duration is negative";
    } else if (std::abs(seconds[4]) > kMostSeconds || seconds[5] > kMostSeconds) {
      reason = "start_ts or duration is above 1e8 seconds";
    }
    if (reason != nullptr) {
      drop(reason, line);
      return std::nullopt;
    }
    row.start_ns = std::llround(seconds[4] * 1e9);
    row.end_ns = std::llround((seconds[4] + seconds[5]) * 1e9);
    return row;
  }

  LineSource lines_;
  StragglerReport* report_;
  std::size_t width_ = 0;
  std::array<std::size_t, kColumns.size()> place_{};
};

/// Builds the records of one step from its rows.
class StepBuilder {
 public:
  StepBuilder(std::span<const Row> rows, int stages, StragglerReport* report)
      : rows_(rows), stages_(stages), report_(report) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const Row& row = rows[i];
      if (row.op().role == Role::kSpan) continue;
      // A repeated row loses to the first of its kind.
      kept_.push_back(index_.emplace(key(row, row.type, row.stage), i).second);
      if (!kept_.back()) drop(row, "stands twice in its step");
    }
  }

  void append_to(std::vector<TraceRecord>* records) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const Row& row = rows_[i];
      if (row.op().role == Role::kSpan) {
        records->push_back(span_of(row));
        ++report_->types[row.type].used;
        continue;
      }
      if (!kept_[kept++]) continue;
      if (row.op().role == Role::kTask) {
        append_task(row, records);
      } else {
        append_message(row, records);
      }
    }
  }

 private:
  using Key = std::tuple<int, int, int, int>;  ///< replica, stage, type, sequence

  static Key key(const Row& row, int type, int stage) {
    return {row.replica, stage, type, row.sequence};
  }
  static int type_of(Role role, Kind kind) {
    for (int type = 0; type < kOpTypeCount; ++type) {
      if (kOpTypes[type].role == role && kOpTypes[type].kind == kind) return type;
    }
    return 0;
  }
  const Row* find(const Row& like, Role role, Kind kind, int stage) const {
    const auto found = index_.find(key(like, type_of(role, kind), stage));
    return found == index_.end() ? nullptr : &rows_[found->second];
  }
  void drop(const Row& row, const std::string& reason) {
    report_->dropped.add(std::string(row.op().name) + " " + reason,
                         "line " + std::to_string(row.line));
  }

  void append_task(const Row& row, std::vector<TraceRecord>* records) {
    TraceTask task;
    task.iteration = row.step;
    task.replica = row.replica;
    task.rank = row.stage;
    task.task = {row.stage, row.op().kind, row.microbatch};
    task.start_ns = task.decided_ns = row.start_ns;
    task.end_ns = row.end_ns;
    std::int64_t ready_ns = row.start_ns;
    const Row* input = find(row, Role::kReceive, row.op().kind, row.stage);
    const Row* forward = row.op().kind == Kind::kBackward
                             ? find(row, Role::kTask, Kind::kForward, row.stage)
                             : nullptr;
    if (input != nullptr || forward != nullptr) {
      ready_ns =
          std::max(input == nullptr ? 0 : input->end_ns, forward == nullptr ? 0 : forward->end_ns);
    }
    // Clocks and float32 seconds disagree by microseconds.
    task.ready_ns = std::min(ready_ns, row.start_ns);
    StragglerReport::Type& type = report_->types[row.type];
    ++type.used;
    const std::int64_t free_ns = free_ns_[{row.replica, row.stage}];
    type.launch_delay_ns += row.start_ns - std::min(std::max(task.ready_ns, free_ns), row.start_ns);
    records->push_back(task);
    free_ns_[{row.replica, row.stage}] = row.end_ns;
  }

  void append_message(const Row& row, std::vector<TraceRecord>* records) {
    const bool sends = row.op().role == Role::kSend;
    const Kind kind = row.op().kind;
    const int forward = kind == Kind::kForward ? 1 : -1;
    const int other_stage = row.stage + (sends ? forward : -forward);
    const Row* other = other_stage < 0 || other_stage >= stages_
                           ? nullptr
                           : find(row, sends ? Role::kReceive : Role::kSend, kind, other_stage);
    if (other == nullptr) {
      drop(row, sends ? "has no receive in the next stage" : "has no send in the stage before");
      return;
    }
    ++report_->types[row.type].used;
    if (row.end_ns < std::max(row.start_ns, other->start_ns)) ++report_->early_ends;
    if (!sends) return;  // its send made the record
    TraceMessage message;
    message.iteration = row.step;
    message.replica = row.replica;
    message.kind = kind;
    message.from_stage = row.stage;
    message.to_stage = other_stage;
    message.sequence = row.sequence;
    const Row* producer = find(row, Role::kTask, kind, row.stage);
    message.microbatch = producer == nullptr ? row.sequence : producer->microbatch;
    const std::int64_t match_ns = std::max(row.start_ns, other->start_ns);
    message.send = {row.start_ns, match_ns, row.end_ns};
    message.receive = {other->start_ns, match_ns, other->end_ns};
    records->push_back(message);
  }

  static TraceSpan span_of(const Row& row) {
    TraceSpan span;
    span.iteration = row.step;
    span.replica = row.replica;
    span.rank = row.stage;
    span.name = row.op().name;
    span.start_ns = row.start_ns;
    span.end_ns = row.end_ns;
    switch (row.op().scope) {
      case Scope::kOwn:
        break;
      case Scope::kRank:
        span.group =
            "replica " + std::to_string(row.replica) + " stage " + std::to_string(row.stage);
        break;
      case Scope::kStage:
        span.group = "stage " + std::to_string(row.stage);
        break;
      case Scope::kReplica:
        span.group = "replica " + std::to_string(row.replica);
        break;
      case Scope::kWorld:
        span.group = "world";
        break;
    }
    return span;
  }

  std::span<const Row> rows_;
  int stages_;
  StragglerReport* report_;
  std::map<Key, std::size_t> index_;
  std::vector<bool> kept_;  ///< of the rows that are no spans, in order
  std::map<std::pair<int, int>, std::int64_t> free_ns_;
};

}  // namespace

Result<StragglerImport> import_straggler_csv(const std::string& path, ReadProgress progress) {
  StragglerReport report;
  for (const OpType& type : kOpTypes) report.types.push_back({std::string(type.name), 0, 0, 0});
  Result<LineSource> lines = LineSource::open(path, std::move(progress));
  if (!lines.ok()) return lines.error();
  Result<std::vector<Row>> read = RowReader(*std::move(lines), &report).read();
  if (!read.ok()) return read.error();
  std::vector<Row>& rows = *read;
  if (rows.empty()) return Error{path + ": holds no usable row"};
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    return std::tie(a.step, a.replica, a.stage, a.start_ns) <
           std::tie(b.step, b.replica, b.stage, b.start_ns);
  });

  ProgramSpec spec;
  int replicas = 1;
  for (const Row& row : rows) {
    spec.ranks = std::max(spec.ranks, row.stage + 1);
    replicas = std::max(replicas, row.replica + 1);
    const bool task = row.op().role == Role::kTask;
    spec.microbatches = std::max({spec.microbatches, 1, task ? row.microbatch + 1 : 1});
  }
  for (int stage = 0; stage < spec.ranks; ++stage) {
    StageSpec one;
    one.rank = stage;
    if (stage > 0) one.predecessors = {stage - 1};
    spec.stages.push_back(std::move(one));
  }
  Result<Program> program = Program::create(std::move(spec));
  if (!program.ok()) return Error{path + ": " + program.error().message};

  StragglerImport imported{TraceHeader(*std::move(program)), {}, {}};
  imported.header.replicas = replicas;
  for (std::size_t first = 0; first < rows.size();) {
    std::size_t last = first;
    while (last < rows.size() && rows[last].step == rows[first].step) ++last;
    StepBuilder(std::span(rows).subspan(first, last - first), imported.header.program.stages(),
                &report)
        .append_to(&imported.records);
    first = last;
  }
  imported.report = std::move(report);
  return imported;
}

}  // namespace rrfp
