// Starts `rrfp` as a user does, alone, under mpirun or as a job over TCP, for the
// tests of the executor's commands.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "tests/executor/tcp_for_tests.h"
#include "traces/text_file.h"

namespace rrfp {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

struct EndedProgram {
  int status = 0;    // 128 + number where a signal ended it
  std::string text;  // of both outputs

  bool has(const std::string& part) const { return text.find(part) != std::string::npos; }
  int count(const std::string& part) const {
    int found = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
      ++found;
    }
    return found;
  }
};

/// That of `rrfp validate` which wrote `text`: 1 where the machine was too busy for
/// figures, and then it says so.
inline int status_of_validation(const std::string& text) {
  const bool few = text.find("too few iterations") != std::string::npos ||
                   text.find("\"too_few_iterations\": true") != std::string::npos;
  return few ? 1 : 0;
}

/// In a folder of this process's own.
inline std::string path_for(const std::string& name) {
  const std::string folder = testing::TempDir() + "rrfp_program_" + std::to_string(getpid()) + "/";
  std::filesystem::create_directories(folder);
  return folder + name;
}

inline std::string write_text(const std::string& name, const std::string& text) {
  std::string path = path_for(name);
  FILE* file = std::fopen(path.c_str(), "w");
  std::fputs(text.c_str(), file);
  std::fclose(file);
  return path;
}

/// A signal to send: so long after `path` is there. 0: none.
struct Interruption {
  int signal = 0;
  std::string path;
  int after_ms = 0;
};

inline EndedProgram start(const std::vector<std::string>& arguments,
                          const Interruption& interruption = {},
                          const std::string& output_name = "output.txt") {
  const std::string output = path_for(output_name);
  std::vector<char*> raw;
  for (const std::string& argument : arguments) raw.push_back(const_cast<char*>(argument.c_str()));
  raw.push_back(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    const int file = open(output.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0600);
    dup2(file, STDOUT_FILENO);
    dup2(file, STDERR_FILENO);
    execvp(raw[0], raw.data());
    _exit(127);
  }
  if (interruption.signal != 0) {
    for (int looks = 0; looks < 3000 && !std::filesystem::exists(interruption.path); ++looks) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(interruption.after_ms));
    kill(child, interruption.signal);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EndedProgram program;
  program.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  program.text = read_text_file(output).value();
  return program;
}

inline EndedProgram rrfp(std::vector<std::string> arguments,
                         const Interruption& interruption = {}) {
  arguments.insert(arguments.begin(), RRFP_PROGRAM);
  return start(arguments, interruption);
}

/// Under mpirun, each process with its own arguments.
inline EndedProgram mpirun_each(const std::vector<std::vector<std::string>>& arguments) {
  std::vector<std::string> all = {"mpirun", "--oversubscribe"};
  if (geteuid() == 0) all.emplace_back("--allow-run-as-root");
  for (const std::vector<std::string>& of_process : arguments) {
    if (&of_process != &arguments.front()) all.emplace_back(":");
    all.insert(all.end(), {"-n", "1", RRFP_PROGRAM});
    all.insert(all.end(), of_process.begin(), of_process.end());
  }
  return start(all);
}

inline EndedProgram mpirun(int processes, const std::vector<std::string>& arguments) {
  std::vector<std::string> all = {"mpirun", "--oversubscribe", "-n", std::to_string(processes)};
  if (geteuid() == 0) all.insert(all.begin() + 1, "--allow-run-as-root");
  all.push_back(RRFP_PROGRAM);
  all.insert(all.end(), arguments.begin(), arguments.end());
  return start(all);
}

/// Processes of a job that meet over TCP, without a launcher that ends some
/// when another fails.
struct EndedJob {
  std::vector<int> statuses;       // by process, as in EndedProgram
  std::vector<std::string> texts;  // by process
  std::string text;                // of all

  bool has(const std::string& part) const { return text.find(part) != std::string::npos; }
};

/// One process for each list of arguments, at a port that nobody else uses;
/// waits for all. `interruption`: of the last one.
inline EndedJob over_tcp_each(const std::vector<std::vector<std::string>>& arguments,
                              const Interruption& interruption = {}) {
  const std::string port = std::to_string(free_port());
  std::vector<std::thread> threads;
  std::vector<EndedProgram> ended(arguments.size());
  for (std::size_t process = 0; process < arguments.size(); ++process) {
    const std::string number = std::to_string(process);
    std::vector<std::string> all = {"env",
                                    "RANK=" + number,
                                    "LOCAL_RANK=" + number,
                                    "WORLD_SIZE=" + std::to_string(arguments.size()),
                                    "MASTER_ADDR=localhost",
                                    "MASTER_PORT=" + port,
                                    RRFP_PROGRAM};
    all.insert(all.end(), arguments[process].begin(), arguments[process].end());
    const bool last = process + 1 == arguments.size();
    threads.emplace_back([&ended, process, all, of = last ? interruption : Interruption()] {
      ended[process] = start(all, of, "output_" + std::to_string(process) + ".txt");
    });
  }
  for (std::thread& thread : threads) thread.join();
  EndedJob job;
  for (const EndedProgram& program : ended) {
    job.statuses.push_back(program.status);
    job.texts.push_back(program.text);
    job.text += program.text;
  }
  return job;
}

/// `processes` of them, all with the same arguments.
inline EndedJob over_tcp(int processes, const std::vector<std::string>& arguments) {
  return over_tcp_each({static_cast<std::size_t>(processes), arguments});
}

/// Why MPI cannot be tested here; empty where it can.
inline std::string no_mpi() {
  if (kSanitized) return "Open MPI is not built with this sanitizer";
  const std::string module =
      std::filesystem::path(RRFP_PROGRAM).parent_path().string() + "/librrfp_mpi.so";
  if (!std::filesystem::exists(module)) return "built without MPI: no " + module;
  return start({"mpirun", "--version"}).status == 0 ? "" : "there is no mpirun here";
}

}  // namespace rrfp
