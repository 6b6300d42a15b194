// Goal: `rrfp init --model` and `--layer-profile` write scenarios that run as
// they are, can be made again from what stands in them, and say what does not fit.
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/experiments/run_for_tests.h"

namespace rrfp {
namespace {

std::vector<std::string> init(const std::string& model, const std::vector<std::string>& more) {
  std::vector<std::string> arguments = {"init", "--model", model, "--microbatches", "8"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

// Words of a command line, with '...' around those that need it.
std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> words(1);
  bool quoted = false;
  for (const char letter : line) {
    if (letter == '\'') {
      quoted = !quoted;
    } else if (letter == ' ' && !quoted) {
      words.emplace_back();
    } else {
      words.back() += letter;
    }
  }
  return words;
}

/// The arguments after "// Made by: rrfp"; none where the file does not say.
std::vector<std::string> made_by(const std::string& text) {
  const std::string mark = "// Made by: rrfp ";
  const std::size_t begin = text.find(mark);
  if (begin == std::string::npos) return {};
  const std::size_t start = begin + mark.size();
  return words_of(text.substr(start, text.find('\n', start) - start));
}

TEST(WorkloadCommand, ScenariosOfModelsRunAsTheyAre) {
  const std::string folder = test_folder();
  const std::vector<std::vector<std::string>> jobs = {
      init("llama3-8b", {"--pp", "4", "--tp", "2", "--dp", "2", "--use-distributed-optimizer"}),
      init("llama3-70b", {"--pp", "8", "--tp", "8", "--layout", "Et*9|(t*10|)*6t*11L"}),
      init("gpt3-175b", {"--pp", "16", "--tp", "8", "--attention", "full", "--seq-length", "2048"}),
      init("mixtral-8x7b", {"--pp", "4", "--tp", "8", "--gradients", "bf16", "--gpu", "a100"}),
      init("qwen3-30b-a3b", {"--pp", "8", "--virtual-pipeline", "3", "--gpu", "h200"}),
      init("qwen2.5-vl-7b", {"--pp", "4", "--tp", "2", "--images", "2", "--frozen", "encoder"}),
      init("qwen2.5-vl-7b", {"--pp", "6", "--tp", "2", "--images", "4", "--encoder", "side-by-side",
                             "--encoder-ranks", "2"}),
      init("qwen2.5-vl-7b", {"--pp", "4", "--tp", "4", "--images", "2", "--frozen",
                             "encoder,language", "--layout", "balanced"}),
  };
  int number = 0;
  for (const std::vector<std::string>& job : jobs) {
    const std::string path = folder + "/" + std::to_string(number++) + ".json";
    std::vector<std::string> arguments = job;
    arguments.insert(arguments.end(), {"--out", path});
    const Ran made = run_rrfp(arguments);
    ASSERT_EQ(made.status, 0) << made.err;
    EXPECT_FALSE(has(made.err, "warning")) << number << made.err;
    EXPECT_TRUE(has(made.out, "activations that fit")) << made.out;
    const Ran swept = run_rrfp({"sweep", path, "--iterations", "1"});
    EXPECT_EQ(swept.status, 0) << number << swept.err << swept.out;
    EXPECT_TRUE(has(swept.out, "bfw ready+wait @gpu")) << swept.out;
    // What stands in the file makes it again.
    const std::string text = read_test_file(path);
    EXPECT_EQ(run_rrfp(made_by(text)).out, text) << number;
  }
}

TEST(WorkloadCommand, PoliciesKeepToTheMemoryThereIs) {
  const std::string small =
      run_rrfp(init("llama3-8b",
                    {"--pp", "4", "--gpu-gb", "60", "--use-distributed-optimizer", "--dp", "8"}))
          .out;
  EXPECT_TRUE(has(small, "\"budget_mb\": [")) << small;
  EXPECT_TRUE(has(small, "// zb-h2 does not fit: rank 3 would need")) << small;
  EXPECT_FALSE(has(small, "\"name\": \"zb-h2\"")) << small;
  EXPECT_TRUE(has(small, "\"name\": \"1f1b\"")) << small;
  EXPECT_TRUE(has(small, "zb-h2 ready+wait @gpu")) << small;
}

// Rank 0 has 20 layers of 855.7M parameters and the embedding of 1050.7M, at 18 bytes each.
TEST(WorkloadCommand, WhatDoesNotFitIsRefusedUnlessMemoryIsIgnored) {
  const std::string path = test_folder() + "/big.json";
  std::vector<std::string> job = init("llama3-70b", {"--pp", "4", "--out", path});
  const Ran refused = run_rrfp(job);
  EXPECT_EQ(refused.status, 2);
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_TRUE(has(refused.err, "rrfp init: the job does not fit GPUs of 80.0 GB\n  rank 0 is "))
      << refused.err;
  EXPECT_TRUE(has(refused.err, " GB over: 326.9 GB of weights, gradients and optimizer, and"))
      << refused.err;
  EXPECT_TRUE(has(refused.err, "more --pp or --tp, a shorter --seq-length, or more --gpu-gb"))
      << refused.err;
  EXPECT_TRUE(has(refused.err, "--ignore-memory")) << refused.err;
  job.emplace_back("--ignore-memory");
  const Ran made = run_rrfp(job);
  ASSERT_EQ(made.status, 0) << made.err;
  const std::string text = read_test_file(path);
  EXPECT_TRUE(has(text, "dp 1, memory ignored\",\n")) << text;
  EXPECT_TRUE(has(text, "// Memory ignored: the job does not fit")) << text;
  EXPECT_FALSE(has(text, "budget_mb"));
  EXPECT_TRUE(has(text, "zb-h2"));
  EXPECT_EQ(run_rrfp({"sweep", path, "--iterations", "1"}).status, 0);
  // Where all fits, memory is not ignored.
  const Ran fits = run_rrfp(init("llama3-8b", {"--pp", "4", "--ignore-memory"}));
  EXPECT_TRUE(has(fits.out, "\"budget_mb\": ")) << fits.out;
  EXPECT_FALSE(has(fits.out, "memory ignored")) << fits.out;
}

TEST(WorkloadCommand, WrongOptionsAreNamed) {
  const auto fault = [](const std::vector<std::string>& arguments) {
    const Ran ran = run_rrfp(arguments);
    EXPECT_EQ(ran.status, 2) << ran.out;
    return ran.err;
  };
  EXPECT_TRUE(has(fault(init("llama4", {"--pp", "4"})),
                  "rrfp init: --model: no model is called llama4; expected one of llama3-8b"));
  EXPECT_TRUE(has(fault(init("llama3-8b", {"--pp", "4", "--gpu", "h10"})),
                  "rrfp init: --gpu: no GPU is called h10; expected one of h100"));
  EXPECT_EQ(fault(init("llama3-8b", {})),
            "rrfp init: --pp is missing; expected a whole number from 1 to 4096\n");
  EXPECT_EQ(fault(init("llama3-8b", {"--pp", "4", "--forward-ms", "3"})),
            "rrfp init: --forward-ms does not go with --model, from which it follows\n");
  EXPECT_EQ(fault(init("llama3-8b", {"--pp", "4", "--images", "1"})),
            "rrfp init: llama3-8b takes no images; found 1 per sequence\n");
  EXPECT_EQ(fault(init("llama3-8b", {"--pp", "4", "--image-size", "448"})),
            "rrfp init: --image-size goes with --images\n");
  EXPECT_EQ(fault(init("llama3-8b", {"--pp", "4", "--tp", "3"})),
            "rrfp init: --tp: found 3; expected a divisor of 8, the key and value heads of "
            "llama3-8b\n");
  EXPECT_EQ(fault(init("gpt3-175b", {"--pp", "4", "--tp", "16"})),
            "rrfp init: --tp: found 16; expected at most 8, the GPUs of a node: a tensor-parallel "
            "group exchanges over NVLink\n");
  EXPECT_EQ(fault(init("llama3-8b", {"--pp", "4", "--efficiency", "1.5"})),
            "rrfp init: --efficiency: found 1.5; expected a share of the peak from 0.001 to 1\n");
  EXPECT_EQ(fault(init("llama3-8b", {"--pp", "2", "--layout", "Et*15|t*16"})),
            "rrfp init: layout \"Et*15|t*16\", character 11: the layout ends before the model "
            "does; expected t (layer 31)\n");
  EXPECT_EQ(fault(init("qwen2.5-vl-7b", {"--pp", "4", "--images", "1", "--image-size", "450"})),
            "rrfp init: --image-size: found 450; expected a multiple of 28, the pixels along one "
            "token\n");
  EXPECT_TRUE(
      has(fault(init("llama3-8b", {"--pp", "4", "--variability", "healthy-dedicated+slow-workr"})),
          "rrfp init: --variability: unknown \"slow-workr\"; did you mean \"slow-worker\"?"));
  EXPECT_TRUE(has(fault(init("qwen2.5-vl-7b", {"--pp", "4", "--frozen", "vision"})),
                  "rrfp init: --frozen: unknown \"vision\""));
  EXPECT_EQ(fault(init("llama3-8b", {"--pp", "3", "--virtual-pipeline", "2"})),
            "rrfp init: --microbatches: found 8; interleaved stages (--virtual-pipeline) need a "
            "multiple of --pp, 3\n");
  EXPECT_EQ(fault(init("llama3-8b", {"--pp", "4", "--lengths", "no-such-file"})),
            "rrfp init: --lengths: found \"no-such-file\", which is no file; expected longtail or "
            "a file of token lengths\n");
  EXPECT_EQ(fault({"init", "--pp", "4", "--microbatches", "8", "--tp", "2"}),
            "rrfp init: --tp goes with --model or --layer-profile\n");
  EXPECT_EQ(
      fault({"init", "--pp", "4", "--microbatches", "8", "--layer-profile", "x", "--tp", "2"}),
      "rrfp init: --tp goes with --model\n");
}

// Each made a scenario that the program then refused.
TEST(WorkloadCommand, WhatWouldNotRunIsNotWritten) {
  const std::string folder = test_folder();
  const std::string empty = write_test_file(folder + "/empty.csv", "");
  const std::string nan = write_test_file(folder + "/nan.csv", "5\nnan\n");
  const std::vector<std::string> images = {"--pp", "4", "--tp", "4", "--image-counts", "burst"};
  const auto with = [](std::vector<std::string> arguments, const std::vector<std::string>& more) {
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  };
  const std::vector<std::string> ignoring = {"--pp", "8", "--tp", "8", "--ignore-memory"};
  for (const std::vector<std::string>& job :
       {init("qwen2.5-vl-7b", with(images, {"--images", "0"})),
        init("qwen2.5-vl-7b", with(images, {"--images", "2000", "--image-size", "28"})),
        init("llama3-8b", with(ignoring, {"--micro-batch-size", "20000", "--lengths", "longtail"})),
        init("llama3-8b", with(ignoring, {"--seq-length", "16777216", "--micro-batch-size",  //
                                          "65536"})),
        init("llama3-8b", {"--pp", "1", "--ignore-memory", "--variability", "mm-encoder-burst"}),
        init("llama3-8b", {"--pp", "4", "--lengths", empty}),
        init("llama3-8b", {"--pp", "4", "--lengths", nan})}) {
    const std::string path = folder + "/job.json";
    const Ran ran = run_rrfp(with(job, {"--out", path}));
    EXPECT_EQ(ran.status, 2) << job[2] << " " << job.back() << ran.out;
    EXPECT_NE(ran.err, "");
    EXPECT_FALSE(std::filesystem::exists(path));
  }
  const std::string profile =
      write_test_file(folder + "/graph.txt",
                      "node1 -- A -- forward_compute_time=1e15, backward_compute_time=1e15, "
                      "activation_size=1, parameter_size=1\n");
  const Ran ran =
      run_rrfp({"init", "--layer-profile", profile, "--pp", "1", "--microbatches", "8"});
  EXPECT_EQ(ran.status, 2) << ran.err << ran.out;
}

// 126 x 65536 x 3 x 4096 tasks would take terabytes.
TEST(WorkloadCommand, IterationsTooLargeForAMachineAreRefused) {
  const std::vector<std::string> job = {"init",           "--model", "llama3-405b", "--pp", "126",
                                        "--microbatches", "65536",   "--tp",        "8"};
  std::vector<std::string> large = job;
  large.insert(large.end(), {"--dp", "4096"});
  const std::string why =
      "an iteration is too large: 126 stages x 65536 microbatches x 3 tasks x 4096 replicas; "
      "expected at most 100000000 tasks, so fewer microbatches or replicas\n";
  const Ran refused = run_rrfp(large);
  EXPECT_EQ(refused.status, 2);
  EXPECT_EQ(refused.err, "rrfp init: " + why);
  // As written by hand.
  std::string text = run_rrfp(init("llama3-8b", {"--pp", "4"})).out;
  const auto put = [&text](const std::string& found, const std::string& other) {
    text.replace(text.find(found), found.size(), other);
  };
  put("\"microbatches\": 8", "\"microbatches\": 65536");
  put("\"replicas\": 1", "\"replicas\": 4096");
  const std::string path = write_test_file(test_folder() + "/large.json", text);
  const Ran swept = run_rrfp({"sweep", path});
  EXPECT_EQ(swept.status, 2);
  EXPECT_TRUE(has(swept.err, "too large: 4 stages x 65536 microbatches x 3 tasks x 4096 replicas"))
      << swept.err;
}

// What nobody asked for is a comment in the file, not a note.
TEST(WorkloadCommand, OnlyPresetsAskedForAreNoted) {
  EXPECT_EQ(run_rrfp(init("llama3-8b", {"--pp", "4"})).err, "");
  EXPECT_TRUE(
      has(run_rrfp(init("llama3-8b", {"--pp", "4", "--variability", "healthy-dedicated"})).err,
          "note: presets: healthy-dedicated"));
  const std::string images = run_rrfp(init("qwen2.5-vl-7b", {"--pp", "4", "--tp", "4", "--images",
                                                             "2", "--image-counts", "burst"}))
                                 .err;
  EXPECT_TRUE(has(images, "note: presets: image-counts (modelled)")) << images;
}

TEST(WorkloadCommand, ModelsAreListed) {
  const Ran ran = run_rrfp({"models"});
  EXPECT_EQ(ran.status, 0);
  EXPECT_TRUE(has(ran.out, "mixtral-8x7b")) << ran.out;
  EXPECT_TRUE(has(ran.out, "2 of 8")) << ran.out;
  EXPECT_TRUE(has(ran.out, "141")) << ran.out;
}

// Work by length: at the longest everything is as without, below it attention shrinks faster.
TEST(WorkloadCommand, TimesFollowTheLengthsDrawn) {
  struct Job {
    std::vector<std::string> arguments;
    std::string longest;  ///< what the length is put to
    std::string drawn;    ///< what stood there
    double rest;          ///< of the time, at most, where nothing is drawn: text stays
  };
  const std::string folder = test_folder();
  for (const Job& job :
       {Job{init("llama3-8b", {"--pp", "4", "--gpu", "h200", "--micro-batch-size", "2", "--lengths",
                               "longtail"}),
            "4096", "{\"beta\": {\"a\": 0.257, \"b\": 1.067, \"scale\": 4096}}", 0.05},
        Job{init("qwen2.5-vl-7b", {"--pp", "4", "--gpu", "h200", "--tp", "2", "--micro-batch-size",
                                   "2", "--images", "2", "--image-counts", "burst"}),
            "2", "{\"mixture\": [[0.3, 0], [0.4, 1], [0.3, 2]]}", 0.9}}) {
    const Ran made = run_rrfp(job.arguments);
    ASSERT_EQ(made.status, 0) << made.err;
    EXPECT_TRUE(has(made.out, "1f1b ready+wait, hill")) << made.out;
    const std::string length = "\"length\": ";
    const std::size_t at = made.out.find(length + job.drawn);
    ASSERT_NE(at, std::string::npos) << made.out;
    const auto makespan = [&](const std::string& value) {
      std::string text = made.out;
      text.replace(at + length.size(), job.drawn.size(), value);
      // Lengths alone.
      const std::string healthy = "    \"healthy-dedicated\",\n";
      text.erase(text.find(healthy), healthy.size());
      const std::string path = write_test_file(folder + "/job.json", text);
      const Ran ran = run_rrfp({"simulate", path, "--policy", "1f1b split", "--json"});
      EXPECT_EQ(ran.status, 0) << ran.err;
      const std::string key = "\"makespan_ns\":";
      const std::size_t found = ran.out.find(key);
      return found == std::string::npos ? 0.0 : std::stod(ran.out.substr(found + key.size()));
    };
    const double longest = makespan(job.longest);
    // Without lengths: the model of a factor 1 in place of them.
    std::string fixed = made.out;
    const std::size_t begin = fixed.find("\"variability\": [");
    fixed.replace(begin, fixed.find("\n  ],\n", begin) - begin, "\"variability\": [");
    const Ran without = run_rrfp({"simulate", write_test_file(folder + "/plain.json", fixed),
                                  "--policy", "1f1b split", "--json"});
    ASSERT_EQ(without.status, 0) << without.err;
    const std::size_t key = without.out.find("\"makespan_ns\":");
    EXPECT_NEAR(longest / std::stod(without.out.substr(key + 14)), 1, 2e-4);
    EXPECT_LT(makespan("0"), job.rest * longest);
  }
}

// A sequence of no tokens sends nothing; of images, tokens of text are left. Activations are always
// the longest's, and the file says so.
TEST(WorkloadCommand, MessagesFollowTheLengthsDrawn) {
  const Ran text = run_rrfp(init("llama3-8b", {"--pp", "4", "--lengths", "longtail"}));
  EXPECT_TRUE(has(text.out, "\"messages\": true,\n")) << text.out;
  EXPECT_TRUE(has(text.out,
                  "times and messages do; activations are those of a microbatch at its "
                  "longest"))
      << text.out;
  const Ran images = run_rrfp(init(
      "qwen2.5-vl-7b", {"--pp", "4", "--tp", "4", "--images", "2", "--image-counts", "burst"}));
  EXPECT_FALSE(has(images.out, "\"messages\"")) << images.out;
  EXPECT_TRUE(has(images.out,
                  "activations and messages are those of a microbatch with all its "
                  "images"))
      << images.out;
  EXPECT_FALSE(has(run_rrfp(init("llama3-8b", {"--pp", "4"})).out, "differ"));
}

// Packed to the same number of tokens: what differs is attention, so no task takes longer than
// over one sequence of them all.
TEST(WorkloadCommand, LengthsOfAFileArePacked) {
  const std::string folder = test_folder();
  std::string table = "id,tokens\n";
  for (int i = 1; i <= 100; ++i) table += std::to_string(i) + "," + std::to_string(37 * i) + "\n";
  const std::string lengths = write_test_file(folder + "/lengths.csv", table);
  const std::string path = folder + "/job.json";
  const Ran made =
      run_rrfp(init("llama3-8b", {"--pp", "4", "--lengths", lengths + ":tokens", "--out", path}));
  ASSERT_EQ(made.status, 0) << made.err;
  EXPECT_TRUE(has(read_test_file(path),
                  "\"column\": \"tokens\", \"unit\": 4096, \"pack\": true, \"messages\": true"))
      << read_test_file(path);
  EXPECT_EQ(run_rrfp({"sweep", path, "--iterations", "1"}).status, 0);
}

// A colon may stand in a path; a path may be empty.
TEST(WorkloadCommand, PathsOfLengthsMayHaveColonsButNotBeEmpty) {
  const std::string folder = test_folder() + "/co:lon";
  std::filesystem::create_directory(folder);
  const std::string plain = write_test_file(folder + "/lengths.csv", "5\n700\n");
  const std::string table = write_test_file(folder + "/table-lengths.csv", "tokens\n5\n700\n");
  for (const auto& [given, column] :
       {std::pair{plain, false}, std::pair{table + ":tokens", true}}) {
    const Ran made = run_rrfp(init("llama3-8b", {"--pp", "4", "--lengths", given}));
    EXPECT_EQ(made.status, 0) << made.err;
    EXPECT_TRUE(has(made.out, "lengths.csv\"")) << made.out;
    EXPECT_EQ(has(made.out, "\"column\": \"tokens\""), column) << made.out;
  }
  for (const std::string empty : {"", ":tokens", ":"}) {
    const Ran ran = run_rrfp(init("llama3-8b", {"--pp", "4", "--lengths", empty}));
    EXPECT_EQ(ran.status, 2);
    EXPECT_EQ(ran.err,
              "rrfp init: --lengths: found \"\", which is no file; expected longtail or a file of "
              "token lengths\n");
  }
}

// The scenarios of the project that say how they were made are made so.
TEST(WorkloadCommand, ScenariosOfTheProjectAreMadeAgain) {
  const std::filesystem::path folder = std::string(RRFP_SOURCE_DIR) + "/experiments";
  int found = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".json") continue;
    const std::string text = read_test_file(entry.path().string());
    const std::vector<std::string> arguments = made_by(text);
    if (arguments.empty()) continue;
    ++found;
    const Ran ran = run_rrfp(arguments);
    EXPECT_EQ(ran.status, 0) << entry.path() << ran.err;
    EXPECT_EQ(ran.out, text) << entry.path();
  }
  EXPECT_GE(found, 9);
}

TEST(WorkloadCommand, ProfilesAreCut) {
  const std::string profile = std::string(RRFP_SHARED_DIR) + "/data/layer_profiles/gnmt_large.txt";
  if (!std::filesystem::exists(profile)) GTEST_SKIP() << profile << " is not there";
  const std::string path = test_folder() + "/gnmt.json";
  const Ran made = run_rrfp({"init", "--layer-profile", profile, "--pp", "4", "--microbatches", "8",
                             "--layout", "balanced", "--out", path});
  ASSERT_EQ(made.status, 0) << made.err;
  EXPECT_TRUE(has(made.out, "node*21")) << made.out;
  EXPECT_EQ(run_rrfp({"sweep", path, "--iterations", "1"}).status, 0);
}

}  // namespace
}  // namespace rrfp
