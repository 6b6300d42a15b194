// Goal: a process knows who started it and as which of how many, whichever
// launcher it was, and says what is wrong with an environment that contradicts
// itself.
#include "executor/launcher.h"

#include <gtest/gtest.h>

#include <map>

namespace rrfp {
namespace {

Result<Launch> launched_with(const std::map<std::string, std::string>& variables) {
  return find_launch([&](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  });
}

TEST(Launcher, FirstThatFitsInTheStatedOrder) {
  std::map<std::string, std::string> all = {{"RANK", "1"},
                                            {"WORLD_SIZE", "4"},
                                            {"LOCAL_RANK", "1"},
                                            {"MASTER_ADDR", "n0"},
                                            {"MASTER_PORT", "29500"}};
  Result<Launch> launch = launched_with(all);
  ASSERT_TRUE(launch.ok());
  EXPECT_EQ(launch->by, Launch::By::kTorchrun);
  EXPECT_EQ(launch->process, 1);
  EXPECT_EQ(launch->processes, 4);
  EXPECT_EQ(launch->local_process, 1);
  EXPECT_EQ(launch->address, "n0");
  EXPECT_EQ(launch->port, 29500);
  all.insert({{"SLURM_PROCID", "2"}, {"SLURM_NTASKS", "8"}, {"SLURM_LOCALID", "0"}});
  launch = launched_with(all);
  ASSERT_TRUE(launch.ok());
  EXPECT_EQ(launch->by, Launch::By::kSlurm);
  EXPECT_EQ(launch->process, 2);
  EXPECT_EQ(launch->processes, 8);
  all.insert({"PMIX_RANK", "3"});
  launch = launched_with(all);
  ASSERT_TRUE(launch.ok());
  EXPECT_EQ(launch->by, Launch::By::kPmix);
  EXPECT_EQ(launch->process, 3);
  EXPECT_EQ(launch->processes, 8) << "as Slurm says";
  all.insert({{"OMPI_COMM_WORLD_RANK", "5"}, {"OMPI_COMM_WORLD_SIZE", "6"}});
  launch = launched_with(all);
  ASSERT_TRUE(launch.ok());
  EXPECT_EQ(launch->by, Launch::By::kOpenMpi);
  EXPECT_EQ(launch->process, 5);
  EXPECT_EQ(launch->processes, 6);
}

TEST(Launcher, PmixAloneDoesNotSayHowMany) {
  const Result<Launch> launch = launched_with({{"PMIX_RANK", "3"}});
  ASSERT_TRUE(launch.ok());
  EXPECT_EQ(launch->by, Launch::By::kPmix);
  EXPECT_EQ(launch->process, 3);
  EXPECT_EQ(launch->processes, 0);
  EXPECT_EQ(launch->local_process, std::nullopt);
}

TEST(Launcher, NobodyMeansOneProcess) {
  const Result<Launch> launch = launched_with({});
  ASSERT_TRUE(launch.ok());
  EXPECT_EQ(launch->by, Launch::By::kNobody);
  EXPECT_EQ(launch->processes, 1);
}

TEST(Launcher, NamesTheVariableAtFault) {
  const auto message = [](const std::map<std::string, std::string>& variables) {
    const Result<Launch> launch = launched_with(variables);
    return launch.ok() ? std::string() : launch.error().message;
  };
  EXPECT_EQ(message({{"SLURM_PROCID", "0"}}), "environment: SLURM_NTASKS is missing");
  EXPECT_EQ(message({{"SLURM_PROCID", "x"}, {"SLURM_NTASKS", "2"}}),
            "environment: SLURM_PROCID is \"x\"; expected a number, 0 or more");
  EXPECT_EQ(message({{"OMPI_COMM_WORLD_RANK", "2"}, {"OMPI_COMM_WORLD_SIZE", "2"}}),
            "environment: OMPI_COMM_WORLD_RANK is 2; expected less than OMPI_COMM_WORLD_SIZE, 2");
  EXPECT_EQ(message({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_PORT", "1"}}),
            "environment: MASTER_ADDR is missing: the host of process 0");
}

Result<Launch> tcp_launched_with(const std::map<std::string, std::string>& variables) {
  return find_tcp_launch([&](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  });
}

TEST(Launcher, OverTcpAnyLauncherNumbersTheProcesses) {
  std::map<std::string, std::string> all = {{"SLURM_PROCID", "2"},
                                            {"SLURM_NTASKS", "8"},
                                            {"SLURM_LOCALID", "1"},
                                            {"MASTER_ADDR", "n0"},
                                            {"MASTER_PORT", "29500"}};
  Result<Launch> launch = tcp_launched_with(all);
  ASSERT_TRUE(launch.ok()) << launch.error().message;
  EXPECT_EQ(launch->process, 2);
  EXPECT_EQ(launch->processes, 8);
  EXPECT_EQ(launch->local_process, 1);
  EXPECT_EQ(launch->address, "n0");
  EXPECT_EQ(launch->port, 29500);
  // One PyTorch launcher for each node, started by srun.
  all.insert({{"RANK", "13"}, {"WORLD_SIZE", "64"}, {"LOCAL_RANK", "5"}});
  launch = tcp_launched_with(all);
  ASSERT_TRUE(launch.ok()) << launch.error().message;
  EXPECT_EQ(launch->process, 13);
  EXPECT_EQ(launch->processes, 64);
  EXPECT_EQ(launch->local_process, 5);
}

TEST(Launcher, WhereTorchrunListensThePortIsTheNext) {
  std::map<std::string, std::string> all = {{"RANK", "0"},
                                            {"WORLD_SIZE", "2"},
                                            {"MASTER_ADDR", "n0"},
                                            {"MASTER_PORT", "29500"},
                                            {"TORCHELASTIC_USE_AGENT_STORE", "False"}};
  const auto port = [&all] {
    const Result<Launch> launch = tcp_launched_with(all);
    return launch.ok() ? launch->port : -1;
  };
  EXPECT_EQ(port(), 29500);
  all["TORCHELASTIC_USE_AGENT_STORE"] = "True";
  EXPECT_EQ(port(), 29501);
  all["MASTER_PORT"] = "65535";
  EXPECT_EQ(port(), 65534);
  all["RRFP_MASTER_PORT"] = "29700";
  EXPECT_EQ(port(), 29700);
  all["RRFP_MASTER_PORT"] = "0";
  const Result<Launch> wrong = tcp_launched_with(all);
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.error().message, "environment: RRFP_MASTER_PORT is 0; expected 1 to 65535");
}

TEST(Launcher, OverTcpSoManyProcessesAreAllowed) {
  std::map<std::string, std::string> all = {
      {"RANK", "0"}, {"WORLD_SIZE", "16384"}, {"MASTER_ADDR", "n0"}, {"MASTER_PORT", "29500"}};
  EXPECT_TRUE(tcp_launched_with(all).ok());
  all["WORLD_SIZE"] = "2000000000";
  const Result<Launch> wrong = tcp_launched_with(all);
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.error().message,
            "environment: 2000000000 processes (WORLD_SIZE); expected at most 16384 over TCP");
}

TEST(Launcher, OverTcpWhatIsMissingIsNamed) {
  const auto message = [](const std::map<std::string, std::string>& variables) {
    const Result<Launch> launch = tcp_launched_with(variables);
    return launch.ok() ? std::string() : launch.error().message;
  };
  const std::string numbers =
      "environment: RANK and WORLD_SIZE are missing: which process this is, of how many";
  EXPECT_EQ(message({{"MASTER_ADDR", "n0"}, {"MASTER_PORT", "1"}}), numbers);
  EXPECT_EQ(message({{"PMIX_RANK", "0"}, {"MASTER_ADDR", "n0"}, {"MASTER_PORT", "1"}}), numbers);
  EXPECT_EQ(message({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "n0"}}),
            "environment: MASTER_PORT is missing");
  EXPECT_EQ(message({{"RANK", "2"}, {"WORLD_SIZE", "2"}}),
            "environment: RANK is 2; expected less than WORLD_SIZE, 2");
}

}  // namespace
}  // namespace rrfp
