// Goal: processes of MPI bring each other their parts, know which of them is waited for, and wait
// for none for ever. Each test starts this program again under mpirun; there the process does its
// part.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "executor/launcher.h"
#include "executor/module_loader.h"
#include "tests/executor/payloads_for_tests.h"
#include "tests/executor/program_for_tests.h"

namespace rrfp {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr const char* kPart = "RRFP_TEST_PART_OF_MPI";

void sleep_for_ms(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

// In one piece, for others write as well.
void say(const std::string& text) {
  const std::string line = text + "\n";
  EXPECT_EQ(write(STDERR_FILENO, line.data(), line.size()), static_cast<ssize_t>(line.size()));
}

MpiSettings settings_of_this() {
  const Launch launch = find_launch(environment).value();
  MpiSettings settings;
  settings.process = launch.process;
  settings.processes = launch.processes;
  settings.on_slow = [](const std::string& text) { say("slow: " + text); };
  settings.on_late = [](const std::string& text) {
    say("late: " + text);
    std::_Exit(7);
  };
  return settings;
}

// Starts `processes` of this test again. Returns none in those, for them to do their part.
std::optional<EndedProgram> under_mpirun(int processes) {
  if (std::getenv(kPart) != nullptr) return std::nullopt;
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  const auto* test = testing::UnitTest::GetInstance()->current_test_info();
  const std::string module =
      std::filesystem::path(RRFP_PROGRAM).parent_path().string() + "/librrfp_mpi.so";
  const std::string name = std::string(test->test_suite_name()) + "." + test->name();
  std::vector<std::string> all = {"env",
                                  std::string(kPart) + "=1",
                                  "RRFP_MPI_MODULE=" + module,
                                  "mpirun",
                                  "--oversubscribe",
                                  "-n",
                                  std::to_string(processes),
                                  self,
                                  "--gtest_color=no",
                                  "--gtest_filter=" + name};
  if (geteuid() == 0) all.insert(all.begin() + 4, "--allow-run-as-root");
  return start(all);
}

TEST(ProcessesOfMpi, EachGetsThePartsOfAll) {
  if (!no_mpi().empty()) GTEST_SKIP() << no_mpi();
  if (const std::optional<EndedProgram> ended = under_mpirun(3)) {
    EXPECT_EQ(ended->status, 0) << ended->text;
    EXPECT_EQ(ended->count("[  PASSED  ] 1 test."), 3) << ended->text;
    return;
  }
  const MpiSettings settings = settings_of_this();
  const std::unique_ptr<ProcessSession> session = open_mpi(settings).value();
  const auto everyone = session->lane_exchange(0, settings.process, 20 * kSecond);
  for (const std::size_t size : {std::size_t{0}, sizeof(int), std::size_t{1} << 20}) {
    Payload mine(size);
    if (size > 0) std::memcpy(mine.data(), &settings.process, sizeof(int));
    const std::vector<Payload> all = everyone->exchange(std::move(mine)).value();
    ASSERT_EQ(all.size(), 3U);
    for (int process = 0; process < 3; ++process) {
      const Payload& part = all[static_cast<std::size_t>(process)];
      EXPECT_EQ(part.size(), size);
      EXPECT_EQ(size == 0 ? process : value_of(part), process);
    }
  }
  // In the order of lanes, and of one's own group alone.
  const int group = settings.process == 2 ? 1 : 0;
  const auto few = session->lane_exchange(group, 1 - settings.process, 20 * kSecond);
  const std::vector<Payload> parts = few->exchange(payload_of(settings.process)).value();
  ASSERT_EQ(parts.size(), group == 0 ? 2U : 1U);
  EXPECT_EQ(value_of(parts.front()), group == 0 ? 1 : 2);
  session->finish();
}

TEST(ProcessesOfMpi, TheFirstOfThoseWhoWaitSaysForWhom) {
  if (!no_mpi().empty()) GTEST_SKIP() << no_mpi();
  if (const std::optional<EndedProgram> ended = under_mpirun(3)) {
    EXPECT_EQ(ended->status, 0) << ended->text;
    EXPECT_EQ(ended->count("waits for "), 1) << ended->text;
    EXPECT_TRUE(ended->has("0 waits for 1")) << ended->text;
    return;
  }
  const MpiSettings settings = settings_of_this();
  const std::unique_ptr<ProcessSession> session = open_mpi(settings).value();
  const auto everyone = session->lane_exchange(0, settings.process, 20 * kSecond);
  everyone->on_slow(kSecond / 2, [&](int lane) {
    say(std::to_string(settings.process) + " waits for " + std::to_string(lane));
  });
  if (settings.process == 1) sleep_for_ms(1'500);
  EXPECT_TRUE(everyone->exchange(Payload(1)).ok());
  session->finish();
}

TEST(ProcessesOfMpi, ALaneThatDoesNotComeIsAnError) {
  if (!no_mpi().empty()) GTEST_SKIP() << no_mpi();
  if (const std::optional<EndedProgram> ended = under_mpirun(2)) {
    EXPECT_EQ(ended->status, 5) << ended->text;
    EXPECT_TRUE(ended->has("lane 0 waited in vain for process 1 of its group")) << ended->text;
    return;
  }
  const MpiSettings settings = settings_of_this();
  const std::unique_ptr<ProcessSession> session = open_mpi(settings).value();
  const auto everyone = session->lane_exchange(0, settings.process, kSecond / 2);
  if (settings.process == 1) sleep_for_ms(20'000);
  const Result<std::vector<Payload>> all = everyone->exchange(Payload(1));
  ASSERT_FALSE(all.ok());
  say(all.error().message);
  EXPECT_FALSE(everyone->exchange(Payload(1)).ok());
  session->abort(5, "");
}

TEST(ProcessesOfMpi, PartsOfDifferentSizesAreAnError) {
  if (!no_mpi().empty()) GTEST_SKIP() << no_mpi();
  if (const std::optional<EndedProgram> ended = under_mpirun(2)) {
    EXPECT_EQ(ended->count("brought parts of different sizes"), 2) << ended->text;
    return;
  }
  const MpiSettings settings = settings_of_this();
  const std::unique_ptr<ProcessSession> session = open_mpi(settings).value();
  const auto everyone = session->lane_exchange(0, settings.process, 20 * kSecond);
  const Result<std::vector<Payload>> all =
      everyone->exchange(Payload(settings.process == 0 ? 8 : 16));
  ASSERT_FALSE(all.ok());
  say(all.error().message);
  sleep_for_ms(300);  // the other one says it too
  session->abort(5, "");
}

TEST(ProcessesOfMpi, WhoHasDoneItsPartDoesNotWaitForEver) {
  if (!no_mpi().empty()) GTEST_SKIP() << no_mpi();
  const std::int64_t begin_ns = MonotonicClock::read_ns();
  if (const std::optional<EndedProgram> ended = under_mpirun(2)) {
    EXPECT_EQ(ended->status, 7) << ended->text;
    EXPECT_TRUE(
        ended->has("late: MPI: process 0 of 2, as lane 0 waited in vain for process 1 of its "
                   "group, which has not done its part"))
        << ended->text;
    EXPECT_LT(MonotonicClock::read_ns() - begin_ns, 15 * kSecond);
    return;
  }
  MpiSettings settings = settings_of_this();
  settings.leave_patience_ns = kSecond;
  const std::unique_ptr<ProcessSession> session = open_mpi(settings).value();
  if (settings.process == 1) sleep_for_ms(20'000);
  session->finish();
}

TEST(ProcessesOfMpi, WhoWaitsInMpiInitDoesNotWaitForEver) {
  if (!no_mpi().empty()) GTEST_SKIP() << no_mpi();
  if (const std::optional<EndedProgram> ended = under_mpirun(2)) {
    EXPECT_EQ(ended->status, 7) << ended->text;
    EXPECT_TRUE(
        ended->has("late: MPI: process 0 of 2 waited 1 s in vain for the others to call "
                   "MPI_Init: each has to be started as part of this job"))
        << ended->text;
    return;
  }
  MpiSettings settings = settings_of_this();
  settings.patience_ns = kSecond;
  if (settings.process == 1) sleep_for_ms(20'000);
  const auto session = open_mpi(settings);
  say("was not ended");
}

}  // namespace
}  // namespace rrfp
