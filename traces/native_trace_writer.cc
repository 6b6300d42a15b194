#include "traces/native_trace_writer.h"

#include <charconv>
#include <utility>

#include "scheduler_core/check.h"
#include "traces/case_file.h"
#include "traces/json_writer.h"
#include "traces/native_trace_columns.h"
#include "traces/streamed_file.h"

namespace rrfp {

namespace {

void append(std::string& out, std::int64_t number) {
  char digits[24];
  const auto [end, error] = std::to_chars(digits, digits + sizeof digits, number);
  out += ',';
  out.append(digits, end);
}

void append(std::string& out, std::string_view text) {
  out += ',';
  out += to_text(JsonValue(text), JsonLayout::kCompact);
}

void append(std::string& out, Kind kind) {
  out += ",\"";
  out += letter(kind);
  out += '"';
}

JsonValue header_to_json(const TraceHeader& header) {
  JsonValue out{JsonObject{}};
  out.add("schema", JsonValue(kTraceSchema));
  out.add("name", JsonValue(header.name));
  out.add("unit", JsonValue("ns"));
  out.add("origin", JsonValue(header.origin));
  out.add("replicas", JsonValue(header.replicas));
  out.add("lanes", JsonValue(header.lanes));
  if (header.checkpoints) out.add("checkpoints", JsonValue(true));
  out.add("pipeline", pipeline_to_json(header.program));
  JsonArray clocks;
  for (const ProcessClock& clock : header.clocks) {
    JsonValue entry{JsonObject{}};
    entry.add("process", JsonValue(clock.process));
    entry.add("offset_ns", JsonValue(clock.offset_ns));
    entry.add("drift_ppb", JsonValue(clock.drift_ppb));
    entry.add("error_ns", JsonValue(clock.error_ns));
    clocks.push_back(std::move(entry));
  }
  if (!clocks.empty()) out.add("clocks", JsonValue(std::move(clocks)));
  JsonValue versions{JsonObject{}};
  for (const auto& [program, version] : header.versions) {
    if (versions.find(program) == nullptr) versions.add(program, JsonValue(version));
  }
  if (!header.versions.empty()) out.add("versions", std::move(versions));
  JsonValue columns{JsonObject{}};
  for (const TraceRecordType& type : kTraceRecordTypes) {
    JsonArray names;
    for (const TraceColumn& column : type.columns) names.push_back(JsonValue(column.name));
    columns.add(type.word, JsonValue(std::move(names)));
  }
  out.add("columns", std::move(columns));
  return out;
}

}  // namespace

struct NativeTraceWriter::State {
  StreamedFile file;
  std::string buffer;  ///< the record at hand
  std::int64_t records = 0;
  bool checkpoints = false;
  bool ended = false;  ///< the end record is the last one

  void write_end() {
    file.append("[\"end\"," + std::to_string(records) + "]\n");
    ended = true;
  }
  void end_record() {
    buffer += "]\n";
    ended = false;
    ++records;
    file.append(buffer);
    buffer.clear();
  }
};

Result<NativeTraceWriter> NativeTraceWriter::create(const std::string& path,
                                                    const TraceHeader& header) {
  Result<StreamedFile> file = StreamedFile::create(path);
  if (!file.ok()) return file.error();
  auto state = std::make_unique<State>(State{*std::move(file), {}, 0, header.checkpoints, false});
  state->file.append(to_text(header_to_json(header), JsonLayout::kCompact) + "\n");
  return NativeTraceWriter(std::move(state));
}

void NativeTraceWriter::add(const TraceTask& task) {
  std::string& out = state_->buffer;
  out += "[\"task\"";
  append(out, task.iteration);
  append(out, task.replica);
  append(out, task.rank);
  append(out, task.lane);
  append(out, task.task.stage);
  append(out, task.task.microbatch);
  append(out, task.task.kind);
  append(out, task.ready_ns);
  append(out, task.decided_ns);
  append(out, task.start_ns);
  append(out, task.end_ns);
  state_->end_record();
}

void NativeTraceWriter::add(const TraceMessage& message) {
  std::string& out = state_->buffer;
  out += "[\"message\"";
  append(out, message.iteration);
  append(out, message.replica);
  append(out, message.lane);
  append(out, message.kind);
  append(out, message.from_stage);
  append(out, message.to_stage);
  append(out, message.microbatch);
  append(out, message.bytes);
  append(out, message.sequence);
  for (const MessageTimes& times : {message.send, message.receive}) {
    append(out, times.post_ns);
    append(out, times.match_ns);
    append(out, times.done_ns);
  }
  state_->end_record();
}

void NativeTraceWriter::add(const TraceSpan& span) {
  std::string& out = state_->buffer;
  out += "[\"span\"";
  append(out, span.iteration);
  append(out, span.replica);
  append(out, span.rank);
  append(out, span.lane);
  append(out, std::string_view(span.name));
  append(out, std::string_view(span.group));
  append(out, span.start_ns);
  append(out, span.end_ns);
  state_->end_record();
}

void NativeTraceWriter::add(const TraceRecord& record) {
  std::visit([this](const auto& held) { add(held); }, record);
}

void NativeTraceWriter::add(const TraceNotice& notice) {
  std::string& out = state_->buffer;
  out += "[\"notice\"";
  append(out, notice.iteration);
  append(out, notice.replica);
  append(out, notice.kind);
  append(out, notice.from_stage);
  append(out, notice.to_stage);
  append(out, notice.microbatch);
  append(out, notice.sent_ns);
  append(out, notice.seen_ns);
  append(out, notice.eta_ns);
  state_->end_record();
}

void NativeTraceWriter::add(const TraceCredit& credit) {
  std::string& out = state_->buffer;
  out += "[\"credit\"";
  append(out, credit.iteration);
  append(out, credit.replica);
  append(out, credit.lane);
  append(out, credit.from_stage);
  append(out, credit.to_stage);
  append(out, credit.microbatch);
  append(out, credit.sent_ns);
  append(out, credit.seen_ns);
  state_->end_record();
}

Result<void> NativeTraceWriter::checkpoint() {
  RRFP_CHECK(state_->checkpoints);
  if (!state_->ended) state_->write_end();
  return state_->file.keep();
}

Result<void> NativeTraceWriter::finish() {
  if (!state_->ended) state_->write_end();
  return state_->file.finish();
}

NativeTraceWriter::NativeTraceWriter(std::unique_ptr<State> state) : state_(std::move(state)) {}
NativeTraceWriter::NativeTraceWriter(NativeTraceWriter&&) noexcept = default;
NativeTraceWriter& NativeTraceWriter::operator=(NativeTraceWriter&&) noexcept = default;
NativeTraceWriter::~NativeTraceWriter() = default;

}  // namespace rrfp
