// Goal: a native trace comes back as it was written, plain and compressed; a
// file that is cut, damaged or of another kind ends in one error that names
// the line; records that cannot be are dropped, counted and named; memory does
// not grow with the file.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "traces/line_source.h"
#include "traces/native_trace_reader.h"
#include "traces/native_trace_writer.h"

namespace rrfp {
namespace {

class NativeTraceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() /
              ("rrfp-trace-" + std::to_string(::getpid()) + "-" +
               ::testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string write(const std::string& content) const {
    std::ofstream(path("given"), std::ios::binary) << content;
    return path("given");
  }

  std::filesystem::path folder_;
};

TraceHeader two_ranks() {
  ProgramSpec spec;
  spec.ranks = 2;
  spec.microbatches = 3;
  spec.stages.resize(2);
  spec.stages[1].rank = 1;
  spec.stages[1].predecessors = {0};
  TraceHeader header(*Program::create(spec));
  header.name = "two \"ranks\"";
  header.replicas = 2;
  header.clocks = {{1, -5, 17, 3}};
  header.versions = {{"rrfp", "0.1.0"}};
  return header;
}

std::vector<TraceRecord> some_records() {
  TraceTask task{.iteration = 7, .replica = 1, .rank = 1, .task = {1, Kind::kBackward, 2}};
  task.ready_ns = -5;
  task.decided_ns = 10;
  task.start_ns = 12;
  task.end_ns = 1LL << 50;
  TraceMessage message;
  message.iteration = 7;
  message.kind = Kind::kBackward;
  message.from_stage = 1;
  message.bytes = 4096;
  message.sequence = 2;
  message.send = {1, 3, 9};
  message.receive = {3, 3, 8};
  TraceSpan span;
  span.iteration = 7;
  span.rank = 1;
  span.name = "a \\ \"name\"\n";
  span.group = "stage 1";
  span.end_ns = 4;
  const TraceNotice notice{7, 1, Kind::kBackward, 1, 0, 2, 10, 11, 40};
  const TraceCredit credit{7, 0, 0, 0, 1, 2, 20, 21};
  return {task, message, span, span, notice, task, credit};
}

std::string read_back(const std::string& path, std::vector<TraceRecord>* records) {
  Result<NativeTraceReader> reader = NativeTraceReader::open(path);
  if (!reader.ok()) return reader.error().message;
  TraceRecord record;
  while (true) {
    const Result<bool> more = reader->next(&record);
    if (!more.ok()) return more.error().message;
    if (!*more) return "";
    records->push_back(record);
  }
}

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST_F(NativeTraceTest, ComesBackAsWritten) {
  for (const char* name : {"t.jsonl", "t.jsonl.gz", "t.jsonl.zst"}) {
    Result<NativeTraceWriter> writer = NativeTraceWriter::create(path(name), two_ranks());
    ASSERT_TRUE(writer.ok()) << writer.error().message;
    for (const TraceRecord& record : some_records()) writer->add(record);
    ASSERT_TRUE(writer->finish().ok());
    std::vector<TraceRecord> records;
    EXPECT_EQ(read_back(path(name), &records), "");
    EXPECT_EQ(records, some_records()) << name;
    const Result<NativeTraceReader> reader = NativeTraceReader::open(path(name));
    EXPECT_EQ(reader->header().name, "two \"ranks\"");
    EXPECT_EQ(reader->header().replicas, 2);
    EXPECT_EQ(reader->header().program.microbatches(), 3);
    ASSERT_EQ(reader->header().clocks.size(), 1U);
    EXPECT_EQ(reader->header().clocks[0].offset_ns, -5);
    EXPECT_EQ(reader->header().versions[0].second, "0.1.0");
  }
  EXPECT_EQ(content_of(path("t.jsonl.gz")).substr(0, 2), "\x1f\x8b");
  EXPECT_EQ(content_of(path("t.jsonl.zst")).substr(1, 2), "\xb5\x2f");
}

TEST_F(NativeTraceTest, AnUnfinishedWriterLeavesNothing) {
  {
    Result<NativeTraceWriter> writer = NativeTraceWriter::create(path("t.jsonl"), two_ranks());
    ASSERT_TRUE(writer.ok());
    writer->add(some_records()[0]);
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
  EXPECT_FALSE(NativeTraceWriter::create(path("no/such/t.jsonl"), two_ranks()).ok());
}

/// Cut anywhere, plain or compressed, the file is an error that names a line.
TEST_F(NativeTraceTest, EveryCutIsTold) {
  for (const char* name : {"t.jsonl", "t.jsonl.gz", "t.jsonl.zst"}) {
    Result<NativeTraceWriter> writer = NativeTraceWriter::create(path(name), two_ranks());
    for (const TraceRecord& record : some_records()) writer->add(record);
    ASSERT_TRUE(writer->finish().ok());
    const std::string whole = content_of(path(name));
    // A plain file without its last end of line still holds everything.
    const std::size_t longest = whole.size() - (whole.back() == '\n' ? 2 : 1);
    for (std::size_t size = 0; size <= longest; size += longest - size > 40 ? 13 : 1) {
      std::vector<TraceRecord> records;
      const std::string error = read_back(write(whole.substr(0, size)), &records);
      ASSERT_NE(error, "") << name << " cut to " << size;
      ASSERT_EQ(error.find(path("given")), 0U) << error;
    }
  }
}

std::string header_line() {
  return R"({"schema":"rrfp.trace/1","replicas":2,"pipeline":{"ranks":2,"microbatches":3,)"
         R"("stages":[{"rank":0},{"rank":1}]},"columns":{"task":["note","kind","iteration",)"
         R"("replica","rank","stage","microbatch","start_ns","end_ns"]}})"
         "\n";
}

TEST_F(NativeTraceTest, ColumnsMayStandInAnyOrderAndBeUnknown) {
  std::vector<TraceRecord> records;
  EXPECT_EQ(read_back(write(header_line() + "[\"task\",\"why\",\"F\",4,1,1,1,2,10,20]\r\n" +
                            "[\"task\",1.5,\"F\",4,1,1,1,2,10,20]\n[\"end\",2]"),
                      &records),
            "");
  ASSERT_EQ(records.size(), 2U);
  const TraceTask& task = std::get<TraceTask>(records[0]);
  EXPECT_EQ(task.iteration, 4);
  EXPECT_EQ(task.task, (Task{1, Kind::kForward, 2}));
  EXPECT_EQ(task.ready_ns, 10);
  EXPECT_EQ(task.decided_ns, 10);
}

TEST_F(NativeTraceTest, MalformedLinesAreOneErrorThatNamesThem) {
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"[\"task\",0,\"F\",4,1,1,1,2,10]", "has 8 values; the header names 9 columns"},
      {"[\"task\",0,\"X\",4,1,1,1,2,10,20]", "kind \"X\""},
      {"[\"task\",0,\"F\",4,1,1,1,2,10.5,20]", "10.5; times and numbers are whole"},
      {"[\"task\",0,\"F\",4,1,1,1,2,null,20]", "start_ns is null"},
      {"[\"task\",0,\"F\",4,1,1,1,2,\"1\",20]", "a text where a number is expected"},
      {"[\"task\",0,5,4,1,1,1,2,1,20]", "a number where a text is expected"},
      {"[\"task\",0,\"F\",4,1,1,1,2,1,18446744073709551615]", "more than an int64"},
      {"[\"task\",0,\"F\",4,1,1,1,2,1,4611686018427387904]", "at most 2^61"},
      {"[\"task\",[0],\"F\",4,1,1,1,2,1,20]", "array or object"},
      {"[\"task\",0,\"F\",4,1,1,1,2,1,20", "is not JSON"},
      {"{\"task\":1}", "expected an array"},
      {"17", "expected an array"},
      {"[]", "expected an array"},
      {"", "is not JSON"},
      {"[\"end\",7]", "counts 7 records; the file holds 0"},
      {"[\"end\"]", "counts nothing"}};
  for (const auto& [line, what] : wrong) {
    std::vector<TraceRecord> records;
    const std::string error = read_back(write(header_line() + line + "\n[\"end\",1]\n"), &records);
    EXPECT_NE(error.find("given: line 2: "), std::string::npos) << line << ": " << error;
    EXPECT_NE(error.find(what), std::string::npos) << line << ": " << error;
  }
  std::vector<TraceRecord> records;
  EXPECT_NE(read_back(write(header_line() + "[\"end\",0]\n[\"end\",0]\n"), &records)
                .find("line 3: stands behind the end record"),
            std::string::npos);
}

TEST_F(NativeTraceTest, WrongHeadersAreErrors) {
  std::vector<TraceRecord> records;
  EXPECT_NE(read_back(write(""), &records).find("is empty"), std::string::npos);
  EXPECT_NE(read_back(write("{\"schema\":\"rrfp.case/1\"}\n"), &records).find("rrfp.trace/1"),
            std::string::npos);
  std::string without_start = header_line();
  without_start.replace(without_start.find("start_ns"), 8, "begin_ns");
  EXPECT_NE(read_back(write(without_start), &records).find("column \"start_ns\" is missing"),
            std::string::npos);
  EXPECT_NE(read_back(path("absent"), &records).find("cannot open"), std::string::npos);
}

TEST_F(NativeTraceTest, RecordsThatCannotBeAreDroppedAndCounted) {
  write(header_line() +
        "[\"task\",0,\"F\",4,1,1,1,3,10,20]\n"  // microbatch 3 of 3
        "[\"task\",0,\"F\",4,2,1,1,2,10,20]\n"  // replica 2 of 2
        "[\"task\",0,\"F\",4,1,0,1,2,10,20]\n"  // stage 1 stands on rank 1
        "[\"task\",0,\"F\",4,1,1,1,2,30,20]\n"  // ends before it starts
        "[\"mood\",\"good\"]\n"
        "[\"task\",0,\"F\",4,1,1,1,-1,10,20]\n"
        "[\"task\",0,\"F\",4,1,1,1,2,10,20]\n[\"end\",7]\n");
  Result<NativeTraceReader> reader = NativeTraceReader::open(path("given"));
  ASSERT_TRUE(reader.ok());
  TraceRecord record;
  const Result<bool> more = reader->next(&record);
  ASSERT_TRUE(more.ok()) << more.error().message;
  EXPECT_TRUE(*more);
  EXPECT_FALSE(*reader->next(&record));
  EXPECT_EQ(reader->dropped().total(), 6);
  ASSERT_EQ(reader->dropped().reasons.size(), 5U);
  EXPECT_EQ(reader->dropped().reasons[0].reason, "microbatch is not in the header");
  EXPECT_EQ(reader->dropped().reasons[0].count, 2);
  EXPECT_EQ(reader->dropped().reasons[0].first, "line 2");
}

TEST_F(NativeTraceTest, CheckpointsCanBeReadWhileTheTraceGrows) {
  TraceHeader header = two_ranks();
  header.checkpoints = true;
  for (const char* name : {"t.jsonl", "t.jsonl.gz", "t.jsonl.zst"}) {
    Result<NativeTraceWriter> writer = NativeTraceWriter::create(path(name), header);
    ASSERT_TRUE(writer.ok()) << writer.error().message;
    std::vector<TraceRecord> written;
    std::size_t size_before = 0;  // of two checkpoints
    for (int i = 0; i < 3; ++i) {
      for (const TraceRecord& record : some_records()) {
        writer->add(record);
        written.push_back(record);
      }
      ASSERT_TRUE(writer->checkpoint().ok());
      if (i == 1) size_before = std::filesystem::file_size(path(name));
      std::vector<TraceRecord> records;
      EXPECT_EQ(read_back(path(name), &records), "") << name << " " << i;
      EXPECT_EQ(records, written) << name << " " << i;
    }
    const std::string whole = content_of(path(name));
    ASSERT_TRUE(writer->finish().ok());

    // Torn anywhere behind the second checkpoint.
    written.resize(written.size() * 2 / 3);
    for (std::size_t size = size_before; size < whole.size(); ++size) {
      std::ofstream(path("torn"), std::ios::binary) << whole.substr(0, size);
      Result<NativeTraceReader> reader = NativeTraceReader::open(path("torn"));
      ASSERT_TRUE(reader.ok()) << name << " " << size << ": " << reader.error().message;
      std::vector<TraceRecord> records;
      TraceRecord record;
      Result<bool> more = reader->next(&record);
      for (; more.ok() && *more; more = reader->next(&record)) records.push_back(record);
      ASSERT_TRUE(more.ok()) << name << " " << size << ": " << more.error().message;
      // All but the end of the last line, or the checksum behind it, is as good
      // as all.
      if (size + 16 >= whole.size() && records.size() > written.size()) continue;
      EXPECT_EQ(records, written) << name << " " << size;
      // Of a compressed piece that is torn there may be nothing to be seen.
      const std::int64_t seen = size == size_before ? 0 : 1;
      const bool plain = name == std::string_view("t.jsonl");
      EXPECT_LE(reader->dropped().total(), seen) << name << " " << size;
      EXPECT_GE(reader->dropped().total(), plain ? seen : 0) << name << " " << size;
    }
  }
}

TEST_F(NativeTraceTest, DamageBeforeTheLastLineIsNoTornTail) {
  TraceHeader header = two_ranks();
  header.checkpoints = true;
  Result<NativeTraceWriter> writer = NativeTraceWriter::create(path("t.jsonl"), header);
  ASSERT_TRUE(writer.ok());
  for (const TraceRecord& record : some_records()) writer->add(record);
  ASSERT_TRUE(writer->finish().ok());
  std::string text = content_of(path("t.jsonl"));
  text.erase(text.find("[\"span\"") + 9, 1);
  std::vector<TraceRecord> records;
  EXPECT_NE(read_back(write(text), &records).find("line 4"), std::string::npos);
  EXPECT_TRUE(records.empty());
}

TEST_F(NativeTraceTest, OverlongLinesAreRefused) {
  std::vector<TraceRecord> records;
  const std::string error =
      read_back(write(header_line() + std::string(kMaxLineBytes + 1, ' ')), &records);
  EXPECT_NE(error.find("line 2: is longer than"), std::string::npos) << error;
}

/// ctest runs each test in its own process, so the peak is this test's.
TEST_F(NativeTraceTest, MemoryDoesNotGrowWithTheFile) {
  Result<NativeTraceWriter> writer = NativeTraceWriter::create(path("t.jsonl"), two_ranks());
  const std::vector<TraceRecord> some = some_records();
  for (int i = 0; i < 80000; ++i) {
    for (const TraceRecord& record : some) writer->add(record);
  }
  ASSERT_TRUE(writer->finish().ok());
  ASSERT_GT(std::filesystem::file_size(path("t.jsonl")), 16U << 20);
  const auto peak_kib = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
  };
  const long before_kib = peak_kib();
  Result<NativeTraceReader> reader = NativeTraceReader::open(path("t.jsonl"));
  TraceRecord record;
  int count = 0;
  while (*reader->next(&record)) ++count;
  EXPECT_EQ(count, 560000);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer keeps what was freed, so the process grows whatever the reader does";
#endif
  EXPECT_LT(peak_kib() - before_kib, 8 << 10);
}

}  // namespace
}  // namespace rrfp
