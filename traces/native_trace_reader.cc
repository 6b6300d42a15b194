#include "traces/native_trace_reader.h"

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "traces/case_file.h"
#include "traces/json_cursor.h"
#include "traces/json_reader.h"
#include "traces/line_source.h"
#include "traces/native_trace_columns.h"

namespace rrfp {

namespace {

constexpr std::int64_t kAbsent = std::numeric_limits<std::int64_t>::min();
/// Differences of two times stay within int64, and nanoseconds since 1970 fit.
constexpr std::int64_t kMostNs = std::int64_t{1} << 61;

using Layout = std::vector<TraceField>;  ///< by position

/// Receives one line's values by position: the values of a record in the
/// fields of its columns, whatever the order of the columns.
class RecordParser {
 public:
  // What nlohmann's SAX parser hands over.
  using number_integer_t = nlohmann::json::number_integer_t;
  using number_unsigned_t = nlohmann::json::number_unsigned_t;
  using number_float_t = nlohmann::json::number_float_t;
  using string_t = nlohmann::json::string_t;
  using binary_t = nlohmann::json::binary_t;

  std::array<Layout, kTraceRecordTypes.size()> layouts;

  int type = kNoType;  ///< index into kTraceRecordTypes, or one of:
  static constexpr int kNoType = -1;
  static constexpr int kEndType = -2;
  static constexpr int kUnknownType = -3;

  std::array<std::int64_t, kTraceFields> values{};
  std::string name;
  std::string group;
  std::int64_t end_count = kAbsent;
  std::string problem;  ///< empty where the line is well formed

  bool parse(std::string_view line) {
    type = kNoType;
    position_ = 0;
    open_ = false;
    values.fill(kAbsent);
    name.clear();
    group.clear();
    end_count = kAbsent;
    problem.clear();
    const bool parsed = nlohmann::json::sax_parse(line.begin(), line.end(), this);
    if (!parsed && problem.empty()) problem = "is not JSON";
    if (parsed && type == kNoType) return fail("expected an array that opens with its type");
    return problem.empty();
  }

  // The SAX interface. Positions count what follows the type.
  bool start_array(std::size_t) {
    if (open_) return fail("holds an array or object where a number or text is expected");
    return open_ = true;
  }
  bool end_array() {
    if (type >= 0 && position_ != static_cast<int>(layouts[type].size())) {
      return fail("has " + std::to_string(position_) + " values; the header names " +
                  std::to_string(layouts[type].size()) + " columns");
    }
    return true;
  }
  bool start_object(std::size_t) {
    return fail(open_ ? "holds an array or object where a number or text is expected"
                      : "expected an array that opens with its type");
  }
  bool end_object() { return true; }
  bool key(string_t&) { return true; }
  bool null() { return open_ && type != kNoType ? advance() : not_a_record(); }
  bool boolean(bool) { return fail("holds true or false; expected a number or text"); }
  bool number_integer(number_integer_t value) { return integer(value); }
  bool number_unsigned(number_unsigned_t value) {
    if (value > static_cast<number_unsigned_t>(std::numeric_limits<std::int64_t>::max())) {
      return fail("holds " + std::to_string(value) + ", more than an int64");
    }
    return integer(static_cast<std::int64_t>(value));
  }
  bool number_float(number_float_t, const string_t& text) {
    if (field() == TraceField::kUnknown && type >= 0) return advance();
    return fail("holds " + text + "; times and numbers are whole");
  }
  bool string(string_t& text) {
    if (!open_) return not_a_record();
    if (type == kNoType) {
      type = type_of(text);
      return true;
    }
    switch (field()) {
      case TraceField::kName:
        name.swap(text);
        return advance();
      case TraceField::kGroup:
        group.swap(text);
        return advance();
      case TraceField::kKind:
        if (text.size() == 1 && std::string_view("FBIW").find(text[0]) != std::string_view::npos) {
          values[static_cast<std::size_t>(TraceField::kKind)] = text[0];
          return advance();
        }
        return fail("has kind \"" + text + "\"; expected F, B, I or W");
      case TraceField::kUnknown:
        return advance();
      default:
        return fail("holds a text where a number is expected");
    }
  }
  bool binary(binary_t&) { return false; }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) {
    problem = "is not JSON at byte " + std::to_string(position);
    return false;
  }

 private:
  bool fail(std::string what) {
    problem = std::move(what);
    return false;
  }
  bool not_a_record() { return fail("expected an array that opens with its type"); }

  static int type_of(const std::string& word) {
    for (std::size_t i = 0; i < kTraceRecordTypes.size(); ++i) {
      if (kTraceRecordTypes[i].word == word) return static_cast<int>(i);
    }
    return word == "end" ? kEndType : kUnknownType;
  }
  TraceField field() const {
    const bool known = type >= 0 && position_ < static_cast<int>(layouts[type].size());
    return known ? layouts[type][position_] : TraceField::kUnknown;
  }
  bool advance() {
    ++position_;
    return true;
  }
  bool integer(std::int64_t value) {
    if (!open_ || type == kNoType) return not_a_record();
    if (type == kEndType) end_count = value;
    const TraceField target = field();
    if (target == TraceField::kName || target == TraceField::kGroup ||
        target == TraceField::kKind) {
      return fail("holds a number where a text is expected");
    }
    values[static_cast<std::size_t>(target)] = value;
    return advance();
  }

  bool open_ = false;
  int position_ = 0;
};

std::string_view column_name(TraceField field) {
  for (const TraceRecordType& type : kTraceRecordTypes) {
    for (const TraceColumn& column : type.columns) {
      if (column.field == field) return column.name;
    }
  }
  return "?";
}

Layout read_layout(const JsonCursor& columns, const TraceRecordType& type) {
  Layout layout;
  const std::optional<JsonCursor> list = columns.find(type.word);
  if (!list) return layout;
  std::vector<bool> seen(kTraceFields);
  for (const JsonCursor& item : list->items()) {
    const std::string name = item.string();
    TraceField field = TraceField::kUnknown;
    for (const TraceColumn& column : type.columns) {
      if (column.name == name) field = column.field;
    }
    if (field != TraceField::kUnknown && seen[static_cast<std::size_t>(field)]) {
      item.fail("column \"" + name + "\" stands twice");
    }
    seen[static_cast<std::size_t>(field)] = true;
    layout.push_back(field);
  }
  for (const TraceColumn& column : type.columns) {
    if (column.needed && !seen[static_cast<std::size_t>(column.field)]) {
      list->fail("column \"" + std::string(column.name) + "\" is missing");
    }
  }
  return layout;
}

}  // namespace

struct NativeTraceReader::State {
  State(LineSource opened, TraceHeader read) : lines(std::move(opened)), header(std::move(read)) {}

  LineSource lines;
  TraceHeader header;
  RecordParser parser;
  DroppedRecords dropped;
  std::int64_t records = 0;  ///< read, dropped ones included
  bool finished = false;
  // Where the header says "checkpoints": the records of one, in order.
  std::vector<TraceRecord> held;
  std::size_t next_held = 0;

  std::int64_t value(TraceField field) const {
    return parser.values[static_cast<std::size_t>(field)];
  }
  std::int64_t value_or(TraceField field, std::int64_t otherwise) const {
    return value(field) == kAbsent ? otherwise : value(field);
  }
  int small(TraceField field) const { return static_cast<int>(value_or(field, 0)); }

  void drop(const char* reason) {
    dropped.add(reason, "line " + std::to_string(lines.line_number()));
  }
  Result<void> check_needed() const;
  const char* check() const;
  const char* check_message(const TraceMessage& message) const;
  const char* check_edge(Kind kind, int from_stage, int to_stage) const;
  void build(TraceRecord* record) const;
  void build_task(TraceTask* task) const;
  void build_message(TraceMessage* message) const;
  void build_span(TraceSpan* span) const;
  void build_notice(TraceNotice* notice) const;
  void build_credit(TraceCredit* credit) const;
  Result<bool> take(TraceRecord* record);
  Result<bool> next(TraceRecord* record);
  Result<bool> next_of_checkpoints(TraceRecord* record);
  Result<void> hold_next_checkpoint();
  Result<void> leave_rest_out(const Error& why);
  Result<bool> finish();
};

namespace {

Kind kind_of(std::int64_t letter) {
  return letter == 'F'   ? Kind::kForward
         : letter == 'B' ? Kind::kBackward
         : letter == 'I' ? Kind::kInputGradient
                         : Kind::kWeightGradient;
}

}  // namespace

Result<void> NativeTraceReader::State::check_needed() const {
  for (const TraceColumn& column : kTraceRecordTypes[parser.type].columns) {
    const bool text = column.field == TraceField::kName || column.field == TraceField::kGroup;
    if (column.needed && !text && value(column.field) == kAbsent) {
      return lines.error(std::string(column.name) + " is null; it must be given");
    }
  }
  for (int i = 0; i < kTraceFields; ++i) {
    const std::int64_t number = parser.values[i];
    if (number != kAbsent && (number > kMostNs || number < -kMostNs)) {
      return lines.error(std::string(column_name(static_cast<TraceField>(i))) + " is " +
                         std::to_string(number) + "; at most 2^61 either way");
    }
  }
  return {};
}

/// Why the record cannot be, or null.
const char* NativeTraceReader::State::check() const {
  const auto within = [&](TraceField field, int count) {
    return value(field) == kAbsent || (value(field) >= 0 && value(field) < count);
  };
  const Program& program = header.program;
  if (!within(TraceField::kIteration, std::numeric_limits<int>::max())) {
    return "iteration is negative or too large";
  }
  if (!within(TraceField::kReplica, header.replicas)) return "replica is not in the header";
  if (!within(TraceField::kRank, program.ranks())) return "rank is not in the header";
  if (!within(TraceField::kLane, header.lanes)) return "lane is not in the header";
  for (const TraceField stage : {TraceField::kStage, TraceField::kFrom, TraceField::kTo}) {
    if (!within(stage, program.stages())) return "stage is not in the header";
  }
  if (parser.type == 0 && program.rank_of(small(TraceField::kStage)) != value(TraceField::kRank)) {
    return "task is on another rank than its stage";
  }
  if (!within(TraceField::kMicrobatch, program.microbatches())) {
    return "microbatch is not in the header";
  }
  if (value(TraceField::kStart) != kAbsent && value(TraceField::kEnd) < value(TraceField::kStart)) {
    return "end is before start";
  }
  return nullptr;
}

const char* NativeTraceReader::State::check_edge(Kind kind, int from_stage, int to_stage) const {
  if (kind != Kind::kForward && kind != Kind::kBackward) {
    return "message is neither F (activation) nor B (gradient)";
  }
  const bool activation = kind == Kind::kForward;
  const auto after = header.program.successors(activation ? from_stage : to_stage);
  if (!std::binary_search(after.begin(), after.end(), activation ? to_stage : from_stage)) {
    return "message goes along no edge of the stage graph";
  }
  return nullptr;
}

const char* NativeTraceReader::State::check_message(const TraceMessage& message) const {
  if (const char* reason = check_edge(message.kind, message.from_stage, message.to_stage)) {
    return reason;
  }
  if (message.send.done_ns < message.send.post_ns ||
      message.receive.done_ns < message.receive.post_ns) {
    return "message is done before it is posted";
  }
  return nullptr;
}

void NativeTraceReader::State::build_task(TraceTask* task) const {
  task->iteration = small(TraceField::kIteration);
  task->replica = small(TraceField::kReplica);
  task->rank = small(TraceField::kRank);
  task->lane = small(TraceField::kLane);
  task->task = {small(TraceField::kStage), kind_of(value(TraceField::kKind)),
                small(TraceField::kMicrobatch)};
  task->start_ns = value(TraceField::kStart);
  task->end_ns = value(TraceField::kEnd);
  task->ready_ns = value_or(TraceField::kReady, task->start_ns);
  task->decided_ns = value_or(TraceField::kDecided, task->start_ns);
}

void NativeTraceReader::State::build_message(TraceMessage* message) const {
  message->iteration = small(TraceField::kIteration);
  message->replica = small(TraceField::kReplica);
  message->lane = small(TraceField::kLane);
  message->kind = kind_of(value(TraceField::kKind));
  message->from_stage = small(TraceField::kFrom);
  message->to_stage = small(TraceField::kTo);
  message->microbatch = small(TraceField::kMicrobatch);
  message->bytes = value_or(TraceField::kBytes, 0);
  message->sequence = value_or(TraceField::kSequence, message->microbatch);
  message->send.post_ns = value(TraceField::kSendPost);
  message->send.done_ns = value(TraceField::kSendDone);
  message->receive.post_ns = value(TraceField::kReceivePost);
  message->receive.done_ns = value(TraceField::kReceiveDone);
  const std::int64_t met_ns = std::max(message->send.post_ns, message->receive.post_ns);
  message->send.match_ns = value_or(TraceField::kSendMatch, met_ns);
  message->receive.match_ns = value_or(TraceField::kReceiveMatch, met_ns);
}

void NativeTraceReader::State::build_span(TraceSpan* span) const {
  span->iteration = small(TraceField::kIteration);
  span->replica = small(TraceField::kReplica);
  span->rank = small(TraceField::kRank);
  span->lane = small(TraceField::kLane);
  span->name = parser.name;
  span->group = parser.group;
  span->start_ns = value(TraceField::kStart);
  span->end_ns = value(TraceField::kEnd);
}

void NativeTraceReader::State::build_notice(TraceNotice* notice) const {
  notice->iteration = small(TraceField::kIteration);
  notice->replica = small(TraceField::kReplica);
  notice->kind = kind_of(value(TraceField::kKind));
  notice->from_stage = small(TraceField::kFrom);
  notice->to_stage = small(TraceField::kTo);
  notice->microbatch = small(TraceField::kMicrobatch);
  notice->sent_ns = value(TraceField::kSent);
  notice->seen_ns = value(TraceField::kSeen);
  notice->eta_ns = value(TraceField::kEta);
}

void NativeTraceReader::State::build_credit(TraceCredit* credit) const {
  credit->iteration = small(TraceField::kIteration);
  credit->replica = small(TraceField::kReplica);
  credit->lane = small(TraceField::kLane);
  credit->from_stage = small(TraceField::kFrom);
  credit->to_stage = small(TraceField::kTo);
  credit->microbatch = small(TraceField::kMicrobatch);
  credit->sent_ns = value(TraceField::kSent);
  credit->seen_ns = value(TraceField::kSeen);
}

/// By the type of the line, an index into kTraceRecordTypes. Keeps a span that
/// `record` holds, so that its texts need no new memory.
void NativeTraceReader::State::build(TraceRecord* record) const {
  switch (parser.type) {
    case 0:
      return build_task(&record->emplace<TraceTask>());
    case 1:
      return build_message(&record->emplace<TraceMessage>());
    case 2: {
      TraceSpan* span = std::get_if<TraceSpan>(record);
      return build_span(span != nullptr ? span : &record->emplace<TraceSpan>());
    }
    case 3:
      return build_notice(&record->emplace<TraceNotice>());
    default:
      return build_credit(&record->emplace<TraceCredit>());
  }
}

Result<bool> NativeTraceReader::State::finish() {
  if (parser.end_count != records) {
    return lines.error(
        "the end record counts " +
        (parser.end_count == kAbsent ? std::string("nothing") : std::to_string(parser.end_count)) +
        " records; the file holds " + std::to_string(records));
  }
  if (header.checkpoints) return false;
  std::string_view rest;
  const Result<bool> more = lines.next(&rest);
  if (!more.ok()) return more.error();
  if (*more) return lines.error("stands behind the end record");
  finished = true;
  return false;
}

Result<NativeTraceReader> NativeTraceReader::open(const std::string& path, ReadProgress progress) {
  Result<LineSource> opened = LineSource::open(path, std::move(progress));
  if (!opened.ok()) return opened.error();
  LineSource& lines = *opened;
  std::string_view line;
  const Result<bool> first = lines.next(&line);
  if (!first.ok()) return first.error();
  if (!*first) return Error{path + ": is empty; expected a header of " + std::string(kTraceSchema)};
  const Result<JsonDocument> document = parse_json(line, path + ": line 1");
  if (!document.ok()) return document.error();

  JsonErrors errors(document->file);
  const JsonCursor root(errors, document->root);
  const std::string schema = root.at("schema").string();
  if (root.ok() && schema != kTraceSchema) {
    root.at("schema").expected("\"" + std::string(kTraceSchema) + "\"");
  }
  const JsonCursor pipeline = root.at("pipeline");
  ProgramSpec spec = read_pipeline(pipeline);
  if (!errors.ok()) return errors.status().error();
  Result<Program> program = Program::create(std::move(spec));
  if (!program.ok()) {
    pipeline.fail(program.error().message);
    return errors.status().error();
  }

  TraceHeader header(*std::move(program));
  header.name = root.string_or("name", "");
  header.origin = root.string_or("origin", "iteration");
  if (header.origin != "iteration" && header.origin != "trace") {
    root.at("origin").expected("\"iteration\" or \"trace\"");
  }
  header.replicas = static_cast<int>(root.integer_or("replicas", 1, {1, 1 << 20}));
  header.lanes = static_cast<int>(root.integer_or("lanes", 1, {1, 1 << 12}));
  header.checkpoints = root.boolean_or("checkpoints", false);
  if (const auto clocks = root.find("clocks")) {
    for (const JsonCursor& clock : clocks->items()) {
      header.clocks.push_back({clock.at("process").small_integer(0, 1 << 30),
                               clock.at("offset_ns").integer({-kMostNs, kMostNs}),
                               clock.at("drift_ppb").integer({-kMostNs, kMostNs}),
                               clock.at("error_ns").integer({0, kMostNs})});
    }
  }
  if (const auto versions = root.find("versions")) {
    if (const JsonObject* members = versions->value().object()) {
      for (const JsonMember& member : *members) {
        header.versions.emplace_back(member.key, versions->at(member.key).string());
      }
    } else {
      versions->expected("an object");
    }
  }
  auto state = std::make_unique<State>(*std::move(opened), std::move(header));
  const JsonCursor columns = root.at("columns");
  for (std::size_t i = 0; i < kTraceRecordTypes.size(); ++i) {
    state->parser.layouts[i] = read_layout(columns, kTraceRecordTypes[i]);
  }
  if (!errors.ok()) return errors.status().error();
  return NativeTraceReader(std::move(state));
}

/// The record of the line that has been parsed; false where it is dropped.
Result<bool> NativeTraceReader::State::take(TraceRecord* record) {
  ++records;
  if (parser.type == RecordParser::kUnknownType) {
    drop("record type is not known");
    return false;
  }
  if (const Result<void> checked = check_needed(); !checked.ok()) return checked.error();
  const char* reason = check();
  if (reason == nullptr) {
    build(record);
    if (const auto* message = std::get_if<TraceMessage>(record)) {
      reason = check_message(*message);
    } else if (const auto* notice = std::get_if<TraceNotice>(record)) {
      reason = check_edge(notice->kind, notice->from_stage, notice->to_stage);
    } else if (const auto* credit = std::get_if<TraceCredit>(record)) {
      reason = check_edge(Kind::kForward, credit->from_stage, credit->to_stage);
    }
  }
  if (reason != nullptr) drop(reason);
  return reason == nullptr;
}

Result<bool> NativeTraceReader::State::next(TraceRecord* record) {
  while (!finished) {
    std::string_view line;
    const Result<bool> more = lines.next(&line);
    if (!more.ok()) return more.error();
    if (!*more) return lines.error("the file ends here without its end record: it was cut");
    if (!parser.parse(line)) return lines.error(parser.problem);
    if (parser.type == RecordParser::kEndType) return finish();
    const Result<bool> taken = take(record);
    if (!taken.ok() || *taken) return taken;
  }
  return false;
}

/// What follows the last checkpoint is no part of the trace; `why` is an error
/// where more than its last line cannot be read.
Result<void> NativeTraceReader::State::leave_rest_out(const Error& why) {
  std::string_view line;
  const Result<bool> more = lines.next(&line);
  if (more.ok() && *more) return why;
  drop("the job was ended while this iteration was written");
  held.clear();
  finished = true;
  return {};
}

Result<void> NativeTraceReader::State::hold_next_checkpoint() {
  held.clear();
  next_held = 0;
  while (true) {
    std::string_view line;
    const Result<bool> more = lines.next(&line);
    if (!more.ok()) return leave_rest_out(more.error());
    if (!*more) {
      if (held.empty()) finished = true;
      return held.empty() ? Result<void>{} : leave_rest_out({});
    }
    if (!parser.parse(line)) return leave_rest_out(lines.error(parser.problem));
    if (parser.type == RecordParser::kEndType) {
      const Result<bool> counted = finish();
      return counted.ok() ? Result<void>{} : counted.error();
    }
    TraceRecord record;
    const Result<bool> taken = take(&record);
    if (!taken.ok()) return taken.error();
    if (*taken) held.push_back(std::move(record));
  }
}

Result<bool> NativeTraceReader::State::next_of_checkpoints(TraceRecord* record) {
  while (next_held == held.size()) {
    if (finished) return false;
    if (Result<void> read = hold_next_checkpoint(); !read.ok()) return read.error();
  }
  *record = std::move(held[next_held++]);
  return true;
}

Result<bool> NativeTraceReader::next(TraceRecord* record) {
  return state_->header.checkpoints ? state_->next_of_checkpoints(record) : state_->next(record);
}

NativeTraceReader::NativeTraceReader(std::unique_ptr<State> state) : state_(std::move(state)) {}
NativeTraceReader::NativeTraceReader(NativeTraceReader&&) noexcept = default;
NativeTraceReader& NativeTraceReader::operator=(NativeTraceReader&&) noexcept = default;
NativeTraceReader::~NativeTraceReader() = default;
const TraceHeader& NativeTraceReader::header() const { return state_->header; }
const DroppedRecords& NativeTraceReader::dropped() const { return state_->dropped; }

}  // namespace rrfp
