// Goal: a program's tables agree with its spec on graphs of any shape.
#include "scheduler_core/program.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "scheduler_core/random.h"

namespace rrfp {
namespace {

Program random_graph(std::uint64_t seed) {
  RandomStream stream({seed, 0, 0, 0});
  ProgramSpec spec;
  spec.ranks = 3;
  spec.microbatches = 2;
  for (int stage = 0; stage < 9; ++stage) {
    spec.stages.push_back({static_cast<int>(stream.below(3)), {}, Backward::kFull});
    for (int before = stage - 1; before >= 0; --before) {
      if (stream.below(3) == 0) spec.stages.back().predecessors.push_back(before);
    }
  }
  return Program::create(spec).value();
}

TEST(Program, FindsEveryEdgeByItsEndsAndNoOther) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const Program program = random_graph(seed);
    std::size_t found = 0;
    for (const Kind kind :
         {Kind::kForward, Kind::kBackward, Kind::kInputGradient, Kind::kWeightGradient}) {
      for (int from = -1; from <= program.stages(); ++from) {
        for (int to = -1; to <= program.stages(); ++to) {
          const EdgeId id = program.find_edge(kind, from, to);
          if (id < 0) continue;
          ++found;
          EXPECT_EQ(program.edge(id).kind, kind);
          EXPECT_EQ(program.edge(id).from, from);
          EXPECT_EQ(program.edge(id).to, to);
        }
      }
    }
    EXPECT_EQ(found, program.edges().size());
  }
}

TEST(Program, ListsEachCarryingEdgeOnceAtEitherEnd) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    ProgramSpec spec = random_graph(seed).spec();
    spec.stages[0].backward = Backward::kNone;
    const Program program = Program::create(spec).value();
    std::size_t listed = 0;
    for (int stage = 0; stage < program.stages(); ++stage) {
      for (const Slot slot : {Slot::kForward, Slot::kBackward, Slot::kWeight}) {
        int before = -1;
        for (const EdgeId id : program.edges_to(stage, slot)) {
          const Edge& edge = program.edge(id);
          EXPECT_TRUE(edge.carries && edge.to == stage && edge.slot() == slot);
          EXPECT_LT(before, edge.from);
          before = edge.from;
          const auto sent = program.edges_from(edge.from, slot);
          EXPECT_EQ(std::count(sent.begin(), sent.end(), id), 1);
          ++listed;
        }
      }
    }
    const auto carries = [](const Edge& edge) { return edge.carries; };
    EXPECT_EQ(listed, static_cast<std::size_t>(
                          std::count_if(program.edges().begin(), program.edges().end(), carries)));
  }
}

}  // namespace
}  // namespace rrfp
