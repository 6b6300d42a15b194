// Goal: the layer graph of a profile becomes a list of layers in an order that
// the graph allows; faults are named by their line.
#include "traces/workload_profile.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "traces/workload_layout.h"

namespace rrfp {
namespace {

std::string profile_file(const std::string& text) {
  const std::string path = testing::TempDir() + std::to_string(getpid()) + "_rrfp_layers.txt";
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

std::string node(const std::string& id, const std::string& name, const std::string& forward,
                 const std::string& backward, const std::string& output,
                 const std::string& parameters) {
  return id + " -- " + name + " -- forward_compute_time=" + forward +
         ", backward_compute_time=" + backward + ", activation_size=" + output +
         ", parameter_size=" + parameters + "\n";
}

// node1 -> node2 -> node3, and node1 -> node3 past it: both outputs are read after node2.
TEST(WorkloadProfile, LayersComeInOrderWithWhatLaterOnesRead) {
  const std::string path =
      profile_file(node("node10", "Linear(4, 4)", "2.5", "4.0", "300.0", "64.0") +
                   node("node9", "ReLU(inplace)", "0.5", "1.0", "[150.0; 50.0]", "0.0") +
                   node("node1", "Input0", "0.0", "0.0", "100.0", "0.0") +
                   "\tnode9 -- node10\n\tnode1 -- node9\n\tnode1 -- node10\n");
  const Result<std::vector<LayerCost>> layers = read_layer_profile(path, 0.25);
  ASSERT_TRUE(layers.ok()) << layers.error().message;
  ASSERT_EQ(layers->size(), 3u);
  EXPECT_EQ((*layers)[0].name, "Input0");
  EXPECT_EQ((*layers)[1].name, "ReLU(inplace)");
  EXPECT_EQ((*layers)[2].name, "Linear(4, 4)");
  EXPECT_EQ((*layers)[0].output_bytes, 100);
  EXPECT_EQ((*layers)[1].output_bytes, 300);  // the 200 of node9 and the 100 that pass it
  EXPECT_EQ((*layers)[2].output_bytes, 0);    // the end
  // An input keeps nothing; without parameters there is no weight gradient.
  EXPECT_EQ((*layers)[0].activation_bytes, 0);
  EXPECT_EQ((*layers)[1].activation_bytes, 200);
  EXPECT_DOUBLE_EQ((*layers)[1].time_ns.input_gradient.sum(), 1e6);
  EXPECT_DOUBLE_EQ((*layers)[1].time_ns.weight_gradient.sum(), 0);
  EXPECT_DOUBLE_EQ((*layers)[2].time_ns.forward.sum(), 2.5e6);
  EXPECT_DOUBLE_EQ((*layers)[2].time_ns.input_gradient.sum(), 3e6);
  EXPECT_DOUBLE_EQ((*layers)[2].time_ns.weight_gradient.sum(), 1e6);
  EXPECT_EQ((*layers)[2].parameters, 16);
}

TEST(WorkloadProfile, FaultsAreNamedByTheirLine) {
  const std::string good = node("a", "x", "1.0", "1.0", "1.0", "0.0");
  const auto fault = [](const std::string& text) {
    const auto layers = read_layer_profile(profile_file(text), 0.5);
    if (layers.ok()) return std::string("none");
    const std::string& message = layers.error().message;
    return message.substr(message.find(".txt: ") + 6);
  };
  EXPECT_EQ(fault(""), "found no nodes; expected the graph of a profile");
  EXPECT_EQ(fault(good + good), "line 2: node \"a\" stands here a second time");
  EXPECT_EQ(fault(good + "\ta -- b\n"), "line 2: an edge of \"b\", which is no node above");
  EXPECT_EQ(fault("a\n"),
            "line 1: found \"a\"; expected a node (\"id -- layer -- costs\") or an edge (tab, "
            "\"id -- id\")");
  EXPECT_EQ(fault("a -- b\n"),
            "line 1: expected \"node -- layer -- forward_compute_time=...\"; found no costs");
  EXPECT_EQ(fault("a -- x -- forward_compute_time=1.0\n"),
            "line 1: a node without backward_compute_time");
  for (const char* bad : {"-1.0", "nan", "1e400", "[1.0; x]", "[1.0", ""}) {
    EXPECT_EQ(fault(node("a", "x", "1.0", bad, "1.0", "0.0")).find("line 1: backward_compute_time"),
              0u)
        << bad;
  }
  EXPECT_EQ(fault(good + node("b", "y", "1.0", "1.0", "1.0", "0.0") + "\ta -- b\n\tb -- a\n"),
            "node \"a\" is in a cycle, or after one");
}

// Sums of the public profiles, and that a balanced cut of one is balanced.
TEST(WorkloadProfile, PublicProfilesAreRead) {
  const std::string folder = std::string(RRFP_SHARED_DIR) + "/data/layer_profiles/";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << folder << " is not there";
  struct Profile {
    const char* file;
    std::size_t nodes;
    double forward_ms;
    double backward_ms;
  };
  for (const Profile& profile :
       {Profile{"gnmt.txt", 48, 33.533, 55.883}, Profile{"gnmt_large.txt", 96, 182.563, 337.89},
        Profile{"resnet50.txt", 177, 201.45, 260.931},
        Profile{"vgg16.txt", 41, 251.874, 438.633}}) {
    const auto layers = read_layer_profile(folder + profile.file, 0.5);
    ASSERT_TRUE(layers.ok()) << layers.error().message;
    EXPECT_EQ(layers->size(), profile.nodes) << profile.file;
    double forward = 0;
    double backward = 0;
    std::vector<double> costs;
    for (const LayerCost& layer : *layers) {
      forward += layer.time_ns.forward.sum();
      backward += layer.time_ns.input_gradient.sum() + layer.time_ns.weight_gradient.sum();
      costs.push_back(layer.time_ns.forward.sum() + layer.time_ns.input_gradient.sum() +
                      layer.time_ns.weight_gradient.sum());
    }
    EXPECT_NEAR(forward / 1e6, profile.forward_ms, 1e-3) << profile.file;
    EXPECT_NEAR(backward / 1e6, profile.backward_ms, 1e-3) << profile.file;
    EXPECT_TRUE(balanced_layout(costs, 4).ok());
  }
}

}  // namespace
}  // namespace rrfp
