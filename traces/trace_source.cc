#include "traces/trace_source.h"

#include <utility>

namespace rrfp {

namespace {

class NativeSource final : public TraceSource {
 public:
  NativeSource(std::string path, ReadProgress progress, TraceStepReader reader)
      : path_(std::move(path)), progress_(std::move(progress)), reader_(std::move(reader)) {}

  const TraceHeader& header() const override { return reader_.header(); }
  const DroppedRecords& dropped() const override { return reader_.dropped(); }
  Result<bool> next(TraceStep* step) override { return reader_.next(step); }
  Result<void> rewind() override {
    Result<TraceStepReader> again = TraceStepReader::open(path_, progress_);
    if (!again.ok()) return again.error();
    reader_ = *std::move(again);
    return {};
  }

 private:
  std::string path_;
  ReadProgress progress_;
  TraceStepReader reader_;
};

class HeldSource final : public TraceSource {
 public:
  HeldSource(TraceHeader header, std::vector<TraceRecord> records, DroppedRecords dropped)
      : header_(std::move(header)), records_(std::move(records)), dropped_(std::move(dropped)) {}

  const TraceHeader& header() const override { return header_; }
  const DroppedRecords& dropped() const override { return dropped_; }
  Result<bool> next(TraceStep* step) override {
    step->clear();
    if (at_ == records_.size()) return false;
    step->iteration = iteration_of(records_[at_]);
    while (at_ < records_.size() && iteration_of(records_[at_]) == step->iteration) {
      step->add(records_[at_++]);
    }
    return true;
  }
  Result<void> rewind() override {
    at_ = 0;
    return {};
  }

 private:
  TraceHeader header_;
  std::vector<TraceRecord> records_;
  DroppedRecords dropped_;
  std::size_t at_ = 0;
};

}  // namespace

Result<TraceFormat> trace_format(const std::string& path) {
  Result<LineSource> lines = LineSource::open(path);
  if (!lines.ok()) return lines.error();
  std::string_view line;
  const Result<bool> first = lines->next(&line);
  if (!first.ok()) return first.error();
  if (line.starts_with("{")) return TraceFormat::kNative;
  if (line.find("optype") != line.npos) return TraceFormat::kStragglerCsv;
  return Error{path + ": line 1: " + (line.empty() ? "is empty" : "is neither") +
               "; expected the header of a native trace (rrfp.trace/1), or the columns of a "
               "straggler CSV (dp_rank,stage,rank,step,optype,...)"};
}

Result<OpenedTrace> open_trace(const std::string& path, const ReadProgress& progress) {
  const Result<TraceFormat> format = trace_format(path);
  if (!format.ok()) return format.error();
  OpenedTrace opened;
  opened.format = *format;
  if (*format == TraceFormat::kNative) {
    Result<TraceStepReader> reader = TraceStepReader::open(path, progress);
    if (!reader.ok()) return reader.error();
    opened.source = std::make_unique<NativeSource>(path, progress, *std::move(reader));
    return opened;
  }
  Result<StragglerImport> imported = import_straggler_csv(path, progress);
  if (!imported.ok()) return imported.error();
  opened.report = imported->report;
  opened.source = hold_trace(std::move(imported->header), std::move(imported->records),
                             std::move(imported->report.dropped));
  return opened;
}

std::unique_ptr<TraceSource> hold_trace(TraceHeader header, std::vector<TraceRecord> records,
                                        DroppedRecords dropped) {
  return std::make_unique<HeldSource>(std::move(header), std::move(records), std::move(dropped));
}

}  // namespace rrfp
