#include "traces/trace_steps.h"

namespace rrfp {

int iteration_of(const TraceRecord& record) {
  return std::visit([](const auto& held) { return held.iteration; }, record);
}

void TraceStep::clear() {
  tasks.clear();
  messages.clear();
  spans.clear();
  notices.clear();
  credits.clear();
}

void TraceStep::add(const TraceRecord& record) {
  if (const auto* task = std::get_if<TraceTask>(&record)) {
    tasks.push_back(*task);
  } else if (const auto* message = std::get_if<TraceMessage>(&record)) {
    messages.push_back(*message);
  } else if (const auto* span = std::get_if<TraceSpan>(&record)) {
    spans.push_back(*span);
  } else if (const auto* notice = std::get_if<TraceNotice>(&record)) {
    notices.push_back(*notice);
  } else {
    credits.push_back(std::get<TraceCredit>(record));
  }
}

Result<TraceStepReader> TraceStepReader::open(const std::string& path, ReadProgress progress) {
  Result<NativeTraceReader> reader = NativeTraceReader::open(path, std::move(progress));
  if (!reader.ok()) return reader.error();
  return TraceStepReader(path, *std::move(reader));
}

Result<bool> TraceStepReader::next(TraceStep* step) {
  step->clear();
  if (!has_ahead_) {
    const Result<bool> more = reader_.next(&ahead_);
    if (!more.ok()) return more.error();
    if (!*more) return false;
    has_ahead_ = true;
  }
  step->iteration = iteration_of(ahead_);
  if (!seen_.insert(step->iteration).second) {
    return Error{path_ + ": the records of iteration " + std::to_string(step->iteration) +
                 " do not stand together"};
  }
  while (has_ahead_ && iteration_of(ahead_) == step->iteration) {
    step->add(ahead_);
    const Result<bool> more = reader_.next(&ahead_);
    if (!more.ok()) return more.error();
    has_ahead_ = *more;
  }
  return true;
}

}  // namespace rrfp
