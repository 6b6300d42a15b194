// Goal: torch's schedule files are read for what they say and written as torch
// reads them; whatever is wrong is named by row, column and cell.
#include "traces/torch_csv.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <sstream>
#include <string_view>

#include "scheduler_core/random.h"
#include "tests/core/orders.h"

namespace rrfp {
namespace {

using testing::linear;
using testing::make;

constexpr const char* kOneForwardOneBackward =
    "0F0,0F1,0B0,0F2,0B1,0F3,0B2,0B3\n"
    "1F0,1B0,1F1,1B1,1F2,1B2,1F3,1B3\n";
constexpr const char* kZeroBubble =
    "0F0,0F1,0F2,0I0,0W0,0F3,0I1,0W1,0I2,0W2,0I3,0W3\n"
    "1F0,1I0,1F1,1I1,1F2,1I2,1W0,1F3,1I3,1W1,1W2,1W3\n";
constexpr const char* kWithMessages =
    "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
    "1RECV_F0,1F0,1RECV_F1,1B0,1SEND_B0,1F1,1B1,1SEND_B1\n";

TorchSchedule read(std::string_view text, const TorchCsvOptions& options = {}) {
  Result<TorchSchedule> torch = parse_torch_csv(text, "x.csv", options);
  EXPECT_TRUE(torch.ok()) << torch.error().message;
  return torch.ok() ? *torch : TorchSchedule{};
}

std::string error_of(std::string_view text, const TorchCsvOptions& options = {}) {
  const Result<TorchSchedule> torch = parse_torch_csv(text, "x.csv", options);
  return torch.ok() ? "" : torch.error().message;
}

std::string rewritten(std::string_view text) { return to_torch_csv(read(text)).value(); }

TEST(TorchCsv, PublishedExamplesAreTheNamedSchedules) {
  const TorchPlan plain = to_plan(read(kOneForwardOneBackward));
  EXPECT_EQ(plain.schedule, *make("1f1b", linear(2, 4)));
  EXPECT_EQ(plain.program.ranks, 2);
  EXPECT_EQ(plain.program.microbatches, 4);
  EXPECT_FALSE(plain.program.split_backward);
  const TorchPlan split = to_plan(read(kZeroBubble));
  EXPECT_EQ(split.schedule, *make("zb-h2", linear(2, 4, true)));
  EXPECT_TRUE(split.program.split_backward);
  EXPECT_EQ(to_plan(read(kWithMessages)).schedule, *make("1f1b", linear(2, 2)));
}

TEST(TorchCsv, RoundTrips) {
  for (const char* text : {kOneForwardOneBackward, kZeroBubble, kWithMessages}) {
    EXPECT_EQ(rewritten(text), text);
  }
  // Idle slots at either end, a rank without tasks, an overlapped pair, the
  // actions that name no microbatch.
  const char* const mixed =
      ",0UNSHARD,0F0,,(0F1;0B0)OVERLAP_F_B,0B1,0REDUCE_GRAD,0RESHARD,\n"
      ",\n"
      ",,1F0,1B0,1F1,1B1,,,\n";
  EXPECT_EQ(rewritten(mixed), mixed);
}

// A last rank without tasks is not taken for the end of the file.
TEST(TorchCsv, IdleRanksRoundTrip) {
  Schedule schedule = *make("1f1b", linear(1, 2));
  schedule.ranks.emplace_back();
  const std::string text = to_torch_csv(to_torch(schedule)).value();
  EXPECT_EQ(text, "0F0,0B0,0F1,0B1\n,\n");
  EXPECT_EQ(to_plan(read(text)).schedule, schedule);
  schedule.ranks.insert(schedule.ranks.begin(), 1, {});
  EXPECT_EQ(to_plan(read(to_torch_csv(to_torch(schedule)).value())).schedule, schedule);
}

TEST(TorchCsv, LinesAndBlanksAsTorchWritesThem) {
  const TorchSchedule plain = read(kWithMessages);
  std::string crlf;
  for (const char* c = kWithMessages; *c != '\0'; ++c) {
    crlf += *c == '\n' ? "\r\n" : std::string(1, *c);
  }
  EXPECT_EQ(read(crlf), plain);
  std::string no_newline = kWithMessages;
  no_newline.pop_back();
  EXPECT_EQ(read(no_newline), plain);
  EXPECT_EQ(read(std::string(kWithMessages) + "\n  \r\n\n"), plain);
  EXPECT_EQ(read("\xef\xbb\xbf" + std::string(kWithMessages)), plain);
  EXPECT_EQ(to_plan(read(" 0F0 ,\t0B0\t,, \n")).schedule, *make("1f1b", linear(1, 1)));
}

TEST(TorchCsv, ActionsKeepTheirPlaces) {
  const TorchSchedule torch = read(",0F0,,(0F1; 0B0) OVERLAP_F_B,0B1,,\n");
  ASSERT_EQ(torch.rows.size(), 1u);
  EXPECT_EQ(torch.rows[0].columns, 7);
  const std::vector<TorchAction> expected = {{0, TorchOp::kForward, false, 0, 1},
                                             {0, TorchOp::kForward, true, 1, 3},
                                             {0, TorchOp::kBackward, true, 0, 3},
                                             {0, TorchOp::kBackward, false, 1, 4}};
  EXPECT_EQ(torch.rows[0].actions, expected);
  EXPECT_EQ(testing::text(to_plan(torch).schedule.ranks[0]), "0F0 0F1 0B0 0B1");
}

TEST(TorchCsv, PlacementIsInferred) {
  const TorchPlan plan = to_plan(read("1F0,1B0\n0F0,3F0,3B0,0B0\n2F0,2B0\n"));
  std::vector<int> ranks;
  for (const StageSpec& stage : plan.program.stages) ranks.push_back(stage.rank);
  EXPECT_EQ(ranks, (std::vector<int>{1, 0, 2, 1}));
  EXPECT_EQ(plan.program.stages[3].predecessors, (std::vector<int>{2}));
  EXPECT_TRUE(Program::create(plan.program).ok());
}

TEST(TorchCsv, BMayMeanTheInputGradient) {
  constexpr const char* kPaper = "0F0,0F1,0B0,0W0,0B1,0W1\n";
  TorchCsvOptions options;
  EXPECT_NE(error_of(kPaper), "");
  options.b_means = BMeans::kInput;
  const TorchSchedule torch = read(kPaper, options);
  EXPECT_EQ(testing::text(to_plan(torch).schedule.ranks[0]), "0F0 0F1 0I0 0W0 0I1 0W1");
  EXPECT_EQ(to_torch_csv(torch, BMeans::kInput).value(), kPaper);
  EXPECT_EQ(to_torch_csv(torch).value(), "0F0,0F1,0I0,0W0,0I1,0W1\n");
  EXPECT_NE(error_of("0F0,0I0,0W0\n", options).find("column 2: cell \"0I0\""), std::string::npos);
  EXPECT_NE(error_of("0F0,0B0\n", options).find("0B0 has no W; a backward is one B and one W"),
            std::string::npos);
  const Result<std::string> ambiguous = to_torch_csv(read(kOneForwardOneBackward), BMeans::kInput);
  ASSERT_FALSE(ambiguous.ok());
  EXPECT_NE(ambiguous.error().message.find("rank 0: 0B0"), std::string::npos);
  EXPECT_EQ(*parse_b_means("full"), BMeans::kFull);
  EXPECT_EQ(*parse_b_means("input"), BMeans::kInput);
  EXPECT_FALSE(parse_b_means("Full").ok());
}

// A backward may be whole for one microbatch and split for another.
TEST(TorchCsv, WholeAndSplitBackwardsMix) {
  const TorchPlan plan = to_plan(read("0F0,0F1,0B0,0I1,0W1\n"));
  EXPECT_TRUE(plan.program.split_backward);
  const Result<Program> fitted = fit_program(Program::create(plan.program).value(), plan.schedule);
  ASSERT_TRUE(fitted.ok()) << fitted.error().message;
  EXPECT_TRUE(fitted->fused(0, 0));
  EXPECT_FALSE(fitted->fused(0, 1));
}

TEST(TorchCsv, ACellMatchesInFull) {
  const auto at = [](const std::string& cell) { return error_of("0F0,0B0\n1F0," + cell + "\n"); };
  for (const std::string cell : {"1B0x",
                                 "1B0 1",
                                 "B0",
                                 "1",
                                 "1b0",
                                 "-1B0",
                                 "1B-1",
                                 "1B+0",
                                 "1 B0",
                                 "1B 0",
                                 "\"1B0\"",
                                 "1B0;",
                                 "(1B0",
                                 "(1B0)",
                                 "(1B0)OVERLAP",
                                 "()OVERLAP_F_B",
                                 "(1B0;)OVERLAP_F_B",
                                 "(1B0,)OVERLAP_F_B",
                                 "((1B0))OVERLAP_F_B",
                                 "(1B0)OVERLAP_F_Bx",
                                 "1OVERLAP_F_B0",
                                 "1SEND0",
                                 "1B1.0",
                                 "1F0\x01"}) {
    const std::string message = at(cell);
    EXPECT_EQ(message.rfind("x.csv: row 2 (rank 1), column 2: cell \"", 0), 0u) << message;
  }
  EXPECT_NE(at("1SENDF0").find("did you mean \"SEND_F\""), std::string::npos) << at("1SENDF0");
  EXPECT_NE(at("1B").find("B needs a microbatch, such as 1B0"), std::string::npos);
  EXPECT_NE(at("1SEND_B").find("SEND_B needs a microbatch"), std::string::npos);
  EXPECT_NE(at("(1B0;1SEND_B0)OVERLAP_F_B").find("only F, I, B and W overlap"), std::string::npos);
  EXPECT_NE(at("1B99999999999999999999").find("too large"), std::string::npos);
  EXPECT_NE(at("1B2147483647").find("too large"), std::string::npos);
}

TEST(TorchCsv, ErrorsNameThePlace) {
  EXPECT_EQ(error_of("0F0,0B0\n1F0,1B0,0F1\n"),
            "x.csv: row 2 (rank 1), column 3: 0F1 is on a second row: stage 0 stands on row 1 "
            "(rank 0); a stage stands on one row only");
  EXPECT_EQ(error_of("0F0,0B0\n2F0,2B0\n"),
            "x.csv: row 2 (rank 1) has stage 2, but no row has stage 1; stages are numbered from 0 "
            "without a gap");
  EXPECT_EQ(error_of("0F0,0F1,0B0,0B1\n1F1,1B1\n"),
            "x.csv: row 2 (rank 1): 1F0 is missing; every stage runs each microbatch, 0 to 1");
  EXPECT_EQ(error_of("0F0,0F1,0B0,0B1\n1F0,1B0\n"),
            "x.csv: row 2 (rank 1): 1F1 is missing; every stage runs each microbatch, 0 to 1");
  EXPECT_EQ(error_of("0B0\n"),
            "x.csv: row 1 (rank 0): 0F0 is missing; every stage runs each microbatch, 0 to 0");
  EXPECT_EQ(error_of("0F0,0B0,,0F0\n"),
            "x.csv: row 1 (rank 0), column 4: 0F0 is there twice, the first time in column 1");
  EXPECT_EQ(error_of("0F0,0F1,0B1,0B0,0B1\n"),
            "x.csv: row 1 (rank 0), column 5: 0B1 is there twice, the first time in column 3");
  EXPECT_EQ(error_of("0B0,0F0\n"),
            "x.csv: row 1 (rank 0), column 1: 0B0 stands before 0F0 (column 2), which it needs");
  EXPECT_EQ(error_of("0F0,0W0,0I0\n"),
            "x.csv: row 1 (rank 0), column 2: 0W0 stands before 0I0 (column 3), which it needs");
  EXPECT_EQ(error_of("(0B0;0F0)OVERLAP_F_B\n"),
            "x.csv: row 1 (rank 0), column 1: 0B0 stands before 0F0 (column 1), which it needs");
  EXPECT_NE(error_of("0F0\n").find("0F0 has no backward; it needs one B, or one I and one W"),
            std::string::npos);
  EXPECT_NE(error_of("0F0,0I0\n").find("0I0 has no W"), std::string::npos);
  EXPECT_NE(error_of("0F0,0W0\n").find("0W0 has no input gradient"), std::string::npos);
  EXPECT_NE(error_of("0F0,0B0,0W0\n").find("0B0 stands beside 0W0"), std::string::npos);
  EXPECT_NE(error_of("0F0,0I0,0W0,0B0\n").find("0B0 stands beside 0I0"), std::string::npos);
  EXPECT_NE(error_of("0F0,0B0,0SEND_F1\n").find("0SEND_F1 names no microbatch"), std::string::npos);
  EXPECT_NE(error_of("0F0,0SEND_F0,0B0,0SEND_F0\n").find("twice, the first time in column 2"),
            std::string::npos);
  EXPECT_NE(error_of("0F0,0B0\n1RECV_F0\n").find("row 2 (rank 1): 1F0 is missing"),
            std::string::npos);
  EXPECT_NE(error_of("0F0,0B0\n0SEND_F0\n").find("second row"), std::string::npos);
  EXPECT_EQ(error_of(""), "x.csv: there is no action in the file");
  EXPECT_EQ(error_of(" \r\n\n"), "x.csv: there is no action in the file");
  EXPECT_EQ(error_of(",,,\n"), "x.csv: no cell has an F, I, B or W");
  EXPECT_EQ(error_of("0UNSHARD\n"), "x.csv: no cell has an F, I, B or W");
}

// Torch unshards a stage as often as it likes.
TEST(TorchCsv, ShardingMayRepeat) {
  EXPECT_EQ(error_of("0UNSHARD,0F0,0RESHARD,0UNSHARD,0B0,0RESHARD,0REDUCE_GRAD\n"), "");
}

TEST(TorchCsv, HugeNumbersCostNothing) {
  EXPECT_NE(error_of("0F2147483646,0B2147483646\n").find("0F0 is missing"), std::string::npos);
  EXPECT_NE(error_of("2147483646F0\n").find("no row has stage 0"), std::string::npos);
  EXPECT_NE(error_of("0F0,0B0,0SEND_F2147483646\n").find("names no microbatch"), std::string::npos);
}

TEST(TorchCsv, LimitsAreNamed) {
  TorchCsvOptions options;
  options.limit_bytes = 10;
  EXPECT_EQ(error_of("0F0,0B0,0F1,0B1\n", options), "x.csv: 16 bytes; the limit is 10");
  std::string rows;
  for (int i = 0; i < 70000; ++i) rows += "\n";
  EXPECT_NE(error_of("0F0,0B0" + rows + "1F0,1B0\n").find("more than 65536 rows"),
            std::string::npos);
}

TEST(TorchCsv, FilesOnDisk) {
  const std::string path = ::testing::TempDir() + std::to_string(getpid()) + "_torch_csv_test.csv";
  std::ofstream(path) << kZeroBubble;
  const Result<TorchSchedule> torch = read_torch_csv(path);
  ASSERT_TRUE(torch.ok()) << torch.error().message;
  EXPECT_EQ(*torch, read(kZeroBubble));
  std::remove(path.c_str());
  EXPECT_FALSE(read_torch_csv(path).ok());
}

// Every schedule that can be made survives the file.
TEST(TorchCsv, NamedSchedulesRoundTrip) {
  int tried = 0;
  const std::vector<Program> programs = {linear(3, 7), linear(4, 6, true), testing::looped(2, 3, 4),
                                         testing::looped(4, 2, 8, true), testing::v_shaped(3, 8)};
  for (const Program& program : programs) {
    for (const ScheduleEntry& entry : schedule_table()) {
      const Result<Schedule> schedule = make(std::string(entry.name), program);
      if (!schedule.ok() || entry.name == "bf" || entry.name == "bfw" || entry.name == "random") {
        continue;  // not this shape, or no order that a rank could run
      }
      const TorchSchedule torch = to_torch(*schedule);
      const TorchPlan plan = to_plan(read(to_torch_csv(torch).value()));
      EXPECT_EQ(plan.schedule, *schedule) << entry.name;
      EXPECT_EQ(plan.program.split_backward, program.split_backward());
      for (int stage = 0; stage < program.stages(); ++stage) {
        EXPECT_EQ(plan.program.stages[static_cast<std::size_t>(stage)].rank,
                  program.rank_of(stage));
      }
      ++tried;
    }
  }
  EXPECT_GT(tried, 20);
}

// Mutations of good files: never a crash; what is accepted keeps the
// invariants and survives being written and read again.
TEST(TorchCsv, MutatedFilesAreRefusedOrSound) {
  const std::vector<std::string> seeds = {
      kOneForwardOneBackward, kZeroBubble, kWithMessages,
      "0F0,,(0F1;0B0)OVERLAP_F_B,0B1\n1F0,1B0,1F1,1B1,1UNSHARD\n"};
  using std::string_view_literals::operator""sv;
  constexpr std::string_view kBytes = "0123456789FIBW(),;\n\r _SENDRCV\"\x00\xff"sv;
  int accepted = 0;
  int refused = 0;
  for (std::uint64_t seed = 0; seed < 20000; ++seed) {
    RandomStream draw({seed, 0, 3, 0});
    std::string text = seeds[draw.below(seeds.size())];
    for (std::uint64_t edits = 1 + draw.below(3); edits > 0; --edits) {
      const std::size_t place = draw.below(text.size());
      const char byte = kBytes[draw.below(kBytes.size())];
      switch (draw.below(4)) {
        case 0:
          text[place] = byte;
          break;
        case 1:
          text.insert(place, 1, byte);
          break;
        case 2:
          text.erase(place, 1 + draw.below(4));
          break;
        default:
          std::swap(text[place], text[draw.below(text.size())]);
      }
      if (text.empty()) text = ",";
    }
    const Result<TorchSchedule> torch = parse_torch_csv(text, "x.csv");
    if (!torch.ok()) {
      ++refused;
      for (const char c : torch.error().message) {
        ASSERT_TRUE(c >= ' ' && c <= '~') << "seed " << seed;
      }
      continue;
    }
    ++accepted;
    const TorchPlan plan = to_plan(*torch);
    const Result<Program> program = Program::create(plan.program);
    ASSERT_TRUE(program.ok()) << "seed " << seed << ": " << program.error().message;
    const Result<Program> fitted = fit_program(*program, plan.schedule);
    ASSERT_TRUE(fitted.ok()) << "seed " << seed << ": " << fitted.error().message;
    const Result<TorchSchedule> again = parse_torch_csv(to_torch_csv(*torch).value(), "x.csv");
    ASSERT_TRUE(again.ok()) << "seed " << seed << ": " << again.error().message;
    ASSERT_EQ(to_plan(*again).schedule, plan.schedule) << "seed " << seed;
  }
  EXPECT_GT(accepted, 200);
  EXPECT_GT(refused, 5000);
}

// The cells that measured zero-bubble runs used, where they are at hand.
TEST(TorchCsv, CellsOfRealRuns) {
  std::ifstream file(RRFP_SHARED_DIR "/launch_queue/golden.json");
  if (!file) GTEST_SKIP() << "no " RRFP_SHARED_DIR "/launch_queue/golden.json";
  std::stringstream content;
  content << file.rdbuf();
  const std::string json = content.str();
  const std::size_t begin = json.find("\"zb_order\"");
  ASSERT_NE(begin, std::string::npos);
  // Rows are arrays of strings; turn each into a line.
  for (const char* ranks : {"\"4\"", "\"8\""}) {
    std::size_t at = json.find(ranks, begin);
    ASSERT_NE(at, std::string::npos);
    at = json.find('[', at) + 1;
    std::string text;
    int depth = 1;
    for (; depth > 0; ++at) {
      const char c = json[at];
      if (c == '[') ++depth;
      if (c == ']' && --depth == 1) text += '\n';
      if (depth == 2 && c != '[' && c != '"' && c != ' ' && c != '\n') text += c;
    }
    const TorchSchedule torch = read(text);
    EXPECT_EQ(torch.rows.size(), static_cast<std::size_t>(ranks[1] - '0'));
    const TorchPlan plan = to_plan(torch);
    EXPECT_TRUE(testing::runs_in_order(Program::create(plan.program).value(), plan.schedule));
    EXPECT_EQ(to_torch_csv(torch).value(), text);
  }
}

}  // namespace
}  // namespace rrfp
