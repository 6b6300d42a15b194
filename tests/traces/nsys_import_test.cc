// Goal: Nsight Systems exports give the same tasks and messages as PyTorch
// profiles do, whichever tables and columns are there; what cannot be used is
// dropped and counted, and a file that is none is one error.
#include <sqlite3.h>

#include <boost/iostreams/copy.hpp>
#include <boost/iostreams/filter/gzip.hpp>
#include <boost/iostreams/filtering_stream.hpp>
#include <limits>

#include "tests/traces/kineto_for_tests.h"

namespace rrfp {
namespace {

using Texts = std::vector<std::string>;

constexpr std::int64_t kProcess = std::int64_t{0x1000000} * 5;

class NsysTest : public KinetoTest {
 protected:
  /// A file made by these statements.
  std::string make(const std::string& name, const std::string& statements) const {
    const std::string path = (folder_ / name).string();
    std::filesystem::remove(path);
    sqlite3* file = nullptr;
    EXPECT_EQ(sqlite3_open(path.c_str(), &file), SQLITE_OK);
    char* message = nullptr;
    EXPECT_EQ(sqlite3_exec(file, statements.c_str(), nullptr, nullptr, &message), SQLITE_OK)
        << message;
    sqlite3_free(message);
    sqlite3_close(file);
    return path;
  }
  Result<ProfileImport> import(const ProfileImportOptions& options = {}) const {
    return import_nsys(folder_.string(), options);
  }
  std::string error() const {
    const Result<ProfileImport> imported = import();
    return imported.ok() ? "none" : imported.error().message;
  }
};

std::string tables(bool text_ids = true) {
  return std::string(
             "CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, "
             "text TEXT, globalTid INTEGER") +
         (text_ids ? ", textId INTEGER" : "") +
         ");"
         "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, globalTid INTEGER, "
         "correlationId INTEGER);"
         "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, globalPid INTEGER, "
         "correlationId INTEGER, shortName INTEGER, deviceId INTEGER);"
         "CREATE TABLE StringIds (id INTEGER, value TEXT);"
         "INSERT INTO StringIds VALUES (1, 'gemm'), (2, 'ncclDevKernel_SendRecv'), (3, 'PP:0B0');"
         "CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER);"
         "INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1700000000000000000);";
}

/// `text`: in quotes, or NULL with an id behind it.
std::string range(std::int64_t start, const std::string& end, const std::string& text,
                  int process = 0, int thread = 1, int type = 59) {
  return "INSERT INTO NVTX_EVENTS VALUES (" + std::to_string(start) + ", " + end + ", " +
         std::to_string(type) + ", '" + text + "', " +
         std::to_string(kProcess + process * 0x1000000 + thread) + ", NULL);";
}

std::string launched(int correlation, std::int64_t time, std::int64_t start, std::int64_t end,
                     int name = 1, int process = 0, int thread = 1) {
  const std::string pid = std::to_string(kProcess + process * 0x1000000);
  const std::string tid = std::to_string(kProcess + process * 0x1000000 + thread);
  const std::string id = std::to_string(correlation);
  return "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (" + std::to_string(time) + ", " +
         std::to_string(time + 1) + ", " + tid + ", " + id +
         ");INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (" + std::to_string(start) + ", " +
         std::to_string(end) + ", " + pid + ", " + id + ", " + std::to_string(name) + ", " +
         std::to_string(1 - process) + ");";
}

TEST_F(NsysTest, ProcessesAreRanksByGpuAndKernelsFollowLaunches) {
  // The process with GPU 0 is the second one; both use correlation 1.
  make("report.sqlite",
       tables() + range(10, "20", "PP:0F0, op_id = 17", 1) + launched(1, 11, 100, 150, 1, 1) +
           range(21, "30", "PP:0SEND_F0", 1, 1, 60) + launched(2, 22, 150, 180, 2, 1) +
           range(10, "20", "PP:1RECV_F0") + launched(1, 11, 90, 182, 2) +
           range(31, "40", "PP:1F0, seq = 5, op_id = 8") + launched(3, 32, 190, 200) +
           range(41, "50", "aten::mul, op_id = 9") + range(60, "NULL", "PP:1B0") +
           range(60, "-9223372036854775808", "PP:1B0") +
           launched(9, 35, 200, std::numeric_limits<std::int64_t>::max()) +
           range(70, "80", "PP:1F1", 0, 1, 34));
  const auto imported = import();
  ASSERT_TRUE(imported.ok()) << imported.error().message;
  EXPECT_EQ(task_texts(*imported), (Texts{"0F0 10-60", "1F0 100-110"}));
  const auto messages = all<TraceMessage>(*imported);
  ASSERT_EQ(messages.size(), 1U);
  EXPECT_EQ(messages[0].receive.match_ns, 60);
  EXPECT_EQ(messages[0].receive.done_ns, 90);
  EXPECT_EQ(dropped(*imported, "a range that never ended"), 1);
  EXPECT_EQ(dropped(*imported, "a range whose times cannot be"), 1);
  EXPECT_EQ(dropped(*imported, "a kernel whose times cannot be"), 1);
}

TEST_F(NsysTest, TextsStandInlineOrInStringIds) {
  make("report.sqlite", tables() + range(10, "20", "PP:0F0") + launched(1, 11, 100, 150) +
                            "INSERT INTO NVTX_EVENTS VALUES (30, 40, 59, NULL, " +
                            std::to_string(kProcess + 1) + ", 3);" + launched(2, 31, 200, 300));
  auto imported = import();
  ASSERT_TRUE(imported.ok()) << imported.error().message;
  EXPECT_EQ(task_texts(*imported), (Texts{"0F0 0-50", "0B0 100-200"}));

  std::string inline_only = tables(false) + range(10, "20", "PP:0F0");
  const std::size_t last = inline_only.rfind(", NULL);");
  inline_only.replace(last, 6, "");
  make("report.sqlite", inline_only);
  imported = import();
  ASSERT_TRUE(imported.ok()) << imported.error().message;
  EXPECT_EQ(task_texts(*imported), (Texts{"0F0 0-10"}));
}

TEST_F(NsysTest, FilesOfOneProcessHaveTheirRankInTheirName) {
  for (const int rank : {0, 1}) {
    make("report_rank" + std::to_string(rank) + ".sqlite",
         tables() + range(10 + rank, "20", "PP:" + std::to_string(rank) + "F0") +
             launched(1, 15, 100, 150));
  }
  const auto imported = import();
  ASSERT_TRUE(imported.ok()) << imported.error().message;
  EXPECT_EQ(imported->header.program.ranks(), 2);
  make("other.sqlite", tables() + range(10, "20", "PP:2F0"));
  EXPECT_NE(error().find("other.sqlite: the name says no \"rank<N>\""), std::string::npos)
      << error();
  make("other.sqlite", tables() + range(10, "20", "PP:2F0") + range(10, "20", "PP:3F0", 1));
  EXPECT_NE(error().find("expected as many in each file"), std::string::npos) << error();
}

TEST_F(NsysTest, ErrorsNameTheFile) {
  write("report.sqlite", "hello");
  EXPECT_NE(error().find("report.sqlite: is no SQLite file"), std::string::npos) << error();
  write("report.sqlite", std::string("SQLite format 3\0", 16) + std::string(600, 'x'));
  EXPECT_NE(error().find("report.sqlite: file is not a database"), std::string::npos) << error();
  make("report.sqlite", "CREATE TABLE StringIds (id INTEGER, value TEXT);");
  EXPECT_NE(error().find("report.sqlite: holds neither kernels"), std::string::npos) << error();
  make("report.sqlite", tables() + launched(1, 11, 100, 150));
  EXPECT_NE(error().find("no annotation of a task was found"), std::string::npos) << error();
}

TEST_F(NsysTest, KernelsAreNamedByWhicheverColumnIsThere) {
  const std::string statements = tables() + range(10, "20", "PP:0F0") + launched(1, 11, 100, 150) +
                                 launched(2, 12, 100, 900, 2);
  const auto renamed = [&](const std::string& column, const std::string& to) {
    std::string text = statements;
    text.replace(text.find(column), column.size(), to);
    return text;
  };
  for (const char* name : {"shortName", "demangledName", "mangledName"}) {
    make("report.sqlite", renamed("shortName", name));
    const auto imported = import();
    ASSERT_TRUE(imported.ok()) << imported.error().message;
    // The kernel of NCCL is no part of the task.
    EXPECT_EQ(task_texts(*imported), (Texts{"0F0 0-50"})) << name;
    for (const std::string& note : imported->report.notes) {
      EXPECT_EQ(note.find("has no column"), std::string::npos) << note;
    }
  }
}

TEST_F(NsysTest, ATableWithoutAColumnIsNoted) {
  const std::string statements =
      tables() + range(10, "20", "PP:0F0") + launched(1, 11, 100, 150) + launched(2, 12, 150, 180);
  std::string text = statements;
  const std::string column = "shortName INTEGER, deviceId";
  text.replace(text.find(column), column.size(), "shortName INTEGER, gpu");
  make("report.sqlite", text);
  const auto imported = import();
  ASSERT_TRUE(imported.ok()) << imported.error().message;
  EXPECT_EQ(task_texts(*imported), (Texts{"0F0 0-10"}));
  ASSERT_FALSE(imported->report.notes.empty());
  EXPECT_NE(imported->report.notes[0].find("report.sqlite: table CUPTI_ACTIVITY_KIND_KERNEL has no "
                                           "column deviceId"),
            std::string::npos)
      << imported->report.notes[0];
  // Where that leaves nothing, it is the reason.
  make("report.sqlite", text + "DELETE FROM NVTX_EVENTS;");
  EXPECT_NE(error().find("has no column deviceId"), std::string::npos) << error();
}

TEST_F(NsysTest, WhatAProcessWithoutAnythingElseDropsIsCounted) {
  const std::string lost = range(60, "NULL", "PP:1F0", 1) + range(70, "NULL", "PP:1B0", 1);
  make("report.sqlite", tables() + range(10, "20", "PP:0F0") + launched(1, 11, 100, 150) + lost);
  const auto imported = import();
  ASSERT_TRUE(imported.ok()) << imported.error().message;
  EXPECT_EQ(dropped(*imported, "a range that never ended"), 2);
  make("report.sqlite", tables() + lost);
  EXPECT_NE(error().find("dropped 2: a range that never ended (first: "), std::string::npos)
      << error();
}

TEST_F(NsysTest, AFileThatWasCutIsSaidToBe) {
  const std::string path =
      make("report.sqlite", tables() + range(10, "20", "PP:0F0") + launched(1, 11, 100, 150));
  const std::uintmax_t whole = std::filesystem::file_size(path);
  for (const std::uintmax_t bytes : {whole - 1, whole / 2, std::uintmax_t{101}}) {
    std::filesystem::resize_file(path, bytes);
    EXPECT_NE(error().find("report.sqlite: was cut: it ends at byte " + std::to_string(bytes) +
                           " of " + std::to_string(whole) + ";"),
              std::string::npos)
        << error();
  }
  std::filesystem::resize_file(path, 60);
  EXPECT_NE(error().find("was cut: it ends at byte 60 of "), std::string::npos) << error();
}

TEST_F(NsysTest, ARealReportOfTwoGpusIsRead) {
  const std::filesystem::path packed =
      std::filesystem::path(RRFP_SHARED_DIR) / "data" / "nsys" / "mfu_2gpu_after.sqlite.gz";
  if (!std::filesystem::exists(packed)) GTEST_SKIP() << packed << " is absent";
  std::ifstream in(packed, std::ios::binary);
  boost::iostreams::filtering_istream chain;
  chain.push(boost::iostreams::gzip_decompressor());
  chain.push(in);
  std::ofstream out(folder_ / "report.sqlite", std::ios::binary);
  boost::iostreams::copy(chain, out);
  out.close();
  ProfileImportOptions options;
  options.patterns.forward = "^aten::native_layer_norm$";
  options.layout.lanes = 2;
  const auto imported = import(options);
  ASSERT_TRUE(imported.ok()) << imported.error().message;
  ASSERT_EQ(imported->report.ranks.size(), 2U);
  // As counted with SQL: 1793 and 1794 kernels, 45 layer norms on each GPU.
  EXPECT_EQ(imported->report.ranks[0].recording.kernels, 1793);
  EXPECT_EQ(imported->report.ranks[1].recording.kernels, 1794);
  EXPECT_TRUE(imported->report.ranks[0].recording.on_device);
  const auto tasks = all<TraceTask>(*imported);
  EXPECT_EQ(tasks.size(), 90U);
  for (const TraceTask& task : tasks) {
    EXPECT_GE(task.end_ns - task.start_ns, 73'216);  // the shortest of these kernels
    EXPECT_LE(task.end_ns - task.start_ns, 78'528);  // the longest
  }
}

}  // namespace
}  // namespace rrfp
