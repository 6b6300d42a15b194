// Goal: PyTorch profiler files from the field, chosen for being odd, are read
// whole; and damaged files of any kind never break the importer.
#include "tests/traces/kineto_for_tests.h"
#include "traces/kineto_reader.h"

namespace rrfp {
namespace {

std::string real_file(const std::string& name) {
  return (std::filesystem::path(RRFP_SHARED_DIR) / "data" / "kineto" / name).string();
}

TEST(RealProfiles, AreReadWhole) {
  if (!std::filesystem::exists(real_file(""))) GTEST_SKIP() << real_file("") << " is absent";
  struct Known {
    const char* name;
    std::int64_t events;   ///< as a strict parser counts them
    std::size_t kernels;   ///< with correlation
    std::int64_t dropped;  ///< kernels without
  };
  for (const Known& known :
       {Known{"amd_mi250.json.gz", 220, 14, 0}, Known{"cpu_only.json.gz", 30, 0, 0},
        Known{"distributed_info_missing.json.gz", 2467, 0, 0},
        Known{"large_integer.json.gz", 2, 0, 1}, Known{"ns_resolution.json.gz", 68692, 4350, 0},
        Known{"out_of_order.json", 75, 1, 0}, Known{"pair_rank0.json.gz", 4855, 1154, 0},
        Known{"pair_rank1.json.gz", 4720, 1104, 0}, Known{"rank_missing.json.gz", 2467, 0, 0},
        Known{"simple_add.json.gz", 1348, 79, 0}}) {
    Result<ProfileNames> names = ProfileNames::create({});
    ASSERT_TRUE(names.ok());
    const auto profile = read_kineto_file(real_file(known.name), &*names, 0);
    ASSERT_TRUE(profile.ok()) << profile.error().message;
    EXPECT_EQ(profile->events, known.events) << known.name;
    EXPECT_EQ(profile->kernels.size(), known.kernels) << known.name;
    EXPECT_EQ(profile->dropped.total(), known.dropped) << known.name;
    EXPECT_EQ(profile->cut, "") << known.name;
  }
}

TEST_F(KinetoTest, KernelsOfARealPairFollowTheirAnnotations) {
  if (!std::filesystem::exists(real_file(""))) GTEST_SKIP() << real_file("") << " is absent";
  for (const char* name : {"pair_rank0.json.gz", "pair_rank1.json.gz"}) {
    std::filesystem::copy_file(real_file(name), folder_ / name);
  }
  ProfileImportOptions options;
  options.patterns.forward = "^## forward ##$";
  options.layout.replicas = 1;
  const auto imported = import(options);
  ASSERT_TRUE(imported.ok()) << imported.error().message;
  // The extents of the kernels but NCCL's, worked out with another program.
  std::vector<std::int64_t> lengths_us;
  for (const TraceTask& task : all<TraceTask>(*imported)) {
    lengths_us.push_back((task.end_ns - task.start_ns) / 1000);
  }
  EXPECT_EQ(lengths_us, (std::vector<std::int64_t>{146'805, 139'184, 162'119, 161'539}));
}

TEST_F(KinetoTest, DamageAnywhereIsAResultOrAnErrorThatNamesTheFile) {
  const std::string whole =
      kineto_file({annotation("ProfilerStep#3", "0", "900"), annotation("PP:0F0", "10", "5"),
                   kernel(1, "11", "100.125", "10"), annotation("PP:0B0", "20", "5"),
                   kernel(2, "21", "200", "30"), annotation("nccl:send 0->1", "30", "5")});
  std::size_t tasks = 0;
  for (std::size_t size = 0; size <= whole.size(); ++size) {
    write("rank0.json", whole.substr(0, size));
    const auto imported = import();
    if (!imported.ok()) {
      EXPECT_NE(imported.error().message.find("rank0.json"), std::string::npos)
          << imported.error().message;
      continue;
    }
    // More of a file never gives less.
    EXPECT_GE(all<TraceTask>(*imported).size() + 1, tasks) << size;
    tasks = all<TraceTask>(*imported).size();
  }
  EXPECT_EQ(tasks, 2U);
  constexpr std::string_view kBytes = "{}[]\",:\\ 0-n\x01\xff";
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (std::size_t way = 0; way < 3; ++way) {
      std::string text = whole;
      const char byte = kBytes[(at * 7 + way * 5) % kBytes.size()];
      if (way == 0) text[at] = byte;
      if (way == 1) text.insert(at, 1, byte);
      if (way == 2) text.erase(at, 1);
      write("rank0.json", text);
      const auto imported = import();
      if (imported.ok()) continue;
      EXPECT_NE(imported.error().message.find("rank0.json"), std::string::npos)
          << imported.error().message;
    }
  }
}

}  // namespace
}  // namespace rrfp
