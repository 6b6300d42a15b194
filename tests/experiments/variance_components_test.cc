// Goal: the decomposition gives planted variances and correlations back, takes
// nothing for an effect that is not there, and says what it cannot tell.
#include "experiments/variance_components.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "scheduler_core/random.h"
#include "traces/deterministic_math.h"

namespace rrfp {
namespace {

/// Standard deviations of what is planted.
struct Planted {
  int ranks = 3;
  int iterations = 40;
  int replicas = 12;
  int microbatches = 8;
  double iteration = 0;
  double replica = 0;
  double replica_iteration = 0;
  double gpu = 0;
  double gpu_iteration = 0;
  std::vector<double> forward_load = {0, 0, 0};  ///< by rank
  std::vector<double> backward_load = {0, 0, 0};
  double residual = 0.01;
  std::uint64_t seed = 1;
};

double normal(std::uint64_t seed, std::uint64_t purpose, std::uint64_t index) {
  return normal_quantile(random_unit({seed, 0, purpose, index}));
}

/// Uneven and skewed, of mean 0 and variance 1, as sequence lengths are.
double skewed(double z) {
  const double sigma = 0.8;
  const double variance = std::exp(sigma * sigma) - 1;
  return (std::exp(sigma * z - sigma * sigma / 2) - 1) / std::sqrt(variance);
}

DurationTable plant(const Planted& planted) {
  DurationTable table;
  table.iterations = planted.iterations;
  table.replicas = planted.replicas;
  table.microbatches = planted.microbatches;
  for (int rank = 0; rank < planted.ranks; ++rank) {
    table.columns.push_back({Kind::kForward, rank, rank});
    table.columns.push_back({Kind::kBackward, rank, rank});
  }
  table.ns.resize(table.columns.size() * table.rows());
  for (std::size_t column = 0; column < table.columns.size(); ++column) {
    const int rank = table.columns[column].rank;
    const bool forward = table.columns[column].kind == Kind::kForward;
    const double mean_ns = (forward ? 2e9 : 5e9) + 1e9 * rank;
    const double load = (forward ? planted.forward_load : planted.backward_load)[rank];
    for (int i = 0; i < table.iterations; ++i) {
      for (int r = 0; r < table.replicas; ++r) {
        const auto cell = static_cast<std::uint64_t>(i * table.replicas + r);
        const auto gpu = static_cast<std::uint64_t>(rank * table.replicas + r);
        const double shared =
            (1 + planted.iteration * normal(planted.seed, 1, i)) *
            (1 + planted.replica * normal(planted.seed, 2, r)) *
            (1 + planted.replica_iteration * normal(planted.seed, 3, cell)) *
            (1 + planted.gpu * normal(planted.seed, 4, gpu)) *
            (1 + planted.gpu_iteration * normal(planted.seed, 5, (gpu << 20) + i));
        for (int m = 0; m < table.microbatches; ++m) {
          const std::size_t row = table.row(i, r, m);
          const double z = skewed(normal(planted.seed, 6, row));
          const double left =
              planted.residual * normal(planted.seed, 7, column * table.rows() + row);
          table.at(column, row) = std::llround(mean_ns * shared * (1 + load * z) * (1 + left));
        }
      }
    }
  }
  return table;
}

VarianceComponents decomposed(const DurationTable& table) {
  Result<VarianceComponents> components = decompose_variance(table);
  EXPECT_TRUE(components.ok());
  return *std::move(components);
}

double deviation(const VarianceComponents& components, VarianceSource effect) {
  return std::sqrt(components.effect(effect).variance);
}

// Every effect at once, loads that differ by kind and stage.
TEST(VarianceComponents, GivesPlantedComponentsBack) {
  Planted planted;
  planted.iteration = 0.03;
  planted.replica = 0.05;
  planted.replica_iteration = 0.04;
  planted.gpu = 0.06;
  planted.gpu_iteration = 0.05;
  planted.forward_load = {0.27, 0.22, 0.17};
  planted.backward_load = {0.44, 0.38, 0.31};
  planted.residual = 0.02;
  planted.iterations = 60;
  planted.replicas = 24;
  const VarianceComponents components = decomposed(plant(planted));
  // Within three or four standard errors of a standard deviation, which is
  // about 1 / sqrt(2 n) of it for n of them.
  EXPECT_NEAR(deviation(components, VarianceSource::kIteration), 0.03, 0.011);
  EXPECT_NEAR(deviation(components, VarianceSource::kReplica), 0.05, 0.026);
  EXPECT_NEAR(deviation(components, VarianceSource::kReplicaIteration), 0.04, 0.012);
  EXPECT_NEAR(deviation(components, VarianceSource::kGpu), 0.06, 0.022);
  EXPECT_NEAR(deviation(components, VarianceSource::kGpuIteration), 0.05, 0.003);
  ASSERT_TRUE(components.microbatch.found());
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_NEAR(components.microbatch.load[2 * rank], planted.forward_load[rank], 0.02) << rank;
    EXPECT_NEAR(components.microbatch.load[2 * rank + 1], planted.backward_load[rank], 0.02)
        << rank;
    EXPECT_NEAR(std::sqrt(components.residual_variance[2 * rank]), 0.02, 0.01) << rank;
    EXPECT_NEAR(std::sqrt(components.residual_variance[2 * rank + 1]), 0.02, 0.015) << rank;
  }
}

// What heavy microbatches add to the mean of a replica or an iteration is no
// effect of theirs: a decomposition that does not correct for it finds a
// deviation of 0.3 / sqrt(8) = 0.106 for replicas in iterations.
TEST(VarianceComponents, TakesNoMicrobatchForAReplica) {
  int found = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Planted planted;
    planted.forward_load = {0.3, 0.3, 0.3};
    planted.backward_load = {0.3, 0.3, 0.3};
    planted.seed = seed;
    planted.iterations = 20;
    planted.replicas = 8;
    const VarianceComponents components = decomposed(plant(planted));
    ASSERT_TRUE(components.microbatch.found());
    for (const EffectEstimate& effect : components.effects) {
      found += effect.significant() ? 1 : 0;
      EXPECT_LT(std::sqrt(effect.variance), 0.06) << seed;
    }
  }
  // 5 % of 100 tests, and three standard deviations of that.
  EXPECT_LE(found, 12);
}

// Three devices that each differ by 15 % move the mean of their replica by 9 %.
TEST(VarianceComponents, TakesNoDeviceForItsReplica) {
  Planted planted;
  planted.gpu_iteration = 0.15;
  const VarianceComponents components = decomposed(plant(planted));
  EXPECT_NEAR(deviation(components, VarianceSource::kGpuIteration), 0.15, 0.015);
  EXPECT_LT(deviation(components, VarianceSource::kReplicaIteration), 0.05);
}

// A common factor is what columns share: unlike a principal component it does
// not grow with what each column has alone.
TEST(VarianceComponents, TakesNoResidualForALoad) {
  Planted planted;
  planted.forward_load = {0.1, 0.1, 0.1};
  planted.backward_load = {0.1, 0.1, 0.1};
  planted.residual = 0.2;
  planted.iterations = 100;
  planted.replicas = 16;
  const VarianceComponents components = decomposed(plant(planted));
  ASSERT_TRUE(components.microbatch.found());
  for (std::size_t column = 0; column < components.microbatch.load.size(); ++column) {
    EXPECT_NEAR(components.microbatch.load[column], 0.1, 0.015) << column;
    EXPECT_NEAR(std::sqrt(components.residual_variance[column]), 0.2, 0.015) << column;
  }
}

TEST(VarianceComponents, TakesNoResidualForAMicrobatch) {
  int found = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    Planted planted;
    planted.residual = 0.1;
    planted.seed = seed;
    planted.iterations = 10;
    planted.replicas = 4;
    const VarianceComponents components = decomposed(plant(planted));
    found += components.microbatch.found() ? 1 : 0;
    if (components.microbatch.found()) continue;
    for (const double variance : components.residual_variance) {
      EXPECT_NEAR(std::sqrt(variance), 0.1, 0.02);
    }
  }
  EXPECT_LE(found, 1);
}

// The scores are the microbatches' own draws, up to their noise.
TEST(VarianceComponents, ScoresFollowThePlantedLengths) {
  Planted planted;
  planted.forward_load = {0.2, 0.2, 0.2};
  planted.backward_load = {0.3, 0.3, 0.3};
  const DurationTable table = plant(planted);
  const VarianceComponents components = decomposed(table);
  double product = 0;
  double squares = 0;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const double z = skewed(normal(planted.seed, 6, row));
    product += components.microbatch.scores[row] * z;
    squares += z * z;
  }
  EXPECT_GT(product / std::sqrt(squares * static_cast<double>(table.rows())), 0.99);
}

// F and B of one stage and microbatch that share what other stages do not have.
TEST(VarianceComponents, TellsWhatForwardAndBackwardShareBesides) {
  Planted planted;
  planted.ranks = 6;
  planted.forward_load = planted.backward_load = {0.1, 0.1, 0.1, 0.1, 0.1, 0.1};
  planted.residual = 0.02;
  DurationTable table = plant(planted);
  EXPECT_NEAR(decomposed(table).residual_correlation[0], 0, 0.15);
  for (std::size_t column = 0; column < table.columns.size(); ++column) {
    for (std::size_t row = 0; row < table.rows(); ++row) {
      const double own = normal(9, static_cast<std::uint64_t>(table.columns[column].stage), row);
      const auto ns = static_cast<double>(table.at(column, row));
      table.at(column, row) = std::llround(ns * (1 + 0.04 * own));
    }
  }
  // 0.04^2 of 0.04^2 + 0.02^2, a little of which goes into the common factor.
  EXPECT_NEAR(decomposed(table).residual_correlation[0], 0.8, 0.1);
}

// Forwards of a microbatch that have something in common on all stages, and the
// backwards do not.
TEST(VarianceComponents, TellsWhatOneKindHasInCommon) {
  Planted planted;
  planted.forward_load = {0.2, 0.2, 0.2};
  planted.backward_load = {0.3, 0.3, 0.3};
  DurationTable table = plant(planted);
  const std::size_t forward = static_cast<std::size_t>(Kind::kForward);
  const std::size_t backward = static_cast<std::size_t>(Kind::kBackward);
  EXPECT_LT(decomposed(table).of_kind[forward].load[0], 0.02);
  for (std::size_t column = 0; column < table.columns.size(); ++column) {
    if (table.columns[column].kind != Kind::kForward) continue;
    for (std::size_t row = 0; row < table.rows(); ++row) {
      const auto ns = static_cast<double>(table.at(column, row));
      table.at(column, row) = std::llround(ns * (1 + 0.05 * normal(9, 9, row)));
    }
  }
  const VarianceComponents components = decomposed(table);
  ASSERT_TRUE(components.of_kind[forward].found());
  // Some of it may go into the factor of all kinds.
  EXPECT_NEAR(components.of_kind[forward].load[0], 0.045, 0.015);
  EXPECT_NEAR(std::sqrt(components.residual_variance[0]), 0.01, 0.01);
  EXPECT_LT(components.of_kind[backward].load[1], 0.03);
}

TEST(VarianceComponents, OneReplicaAndOneRankAreEnough) {
  Planted planted;
  planted.ranks = 1;
  planted.replicas = 1;
  planted.iterations = 60;
  planted.iteration = 0.12;
  planted.forward_load = {0.2};
  planted.backward_load = {0.2};
  const VarianceComponents components = decomposed(plant(planted));
  EXPECT_NEAR(deviation(components, VarianceSource::kIteration), 0.12, 0.04);
  for (const VarianceSource which : {VarianceSource::kReplica, VarianceSource::kReplicaIteration,
                                     VarianceSource::kGpu, VarianceSource::kGpuIteration}) {
    EXPECT_FALSE(components.effect(which).estimable);
    EXPECT_FALSE(components.effect(which).significant());
  }
  EXPECT_NEAR(components.microbatch.load[0], 0.2, 0.04);
  EXPECT_NEAR(components.microbatch.load[1], 0.2, 0.04);
}

TEST(VarianceComponents, NothingVaries) {
  Planted planted;
  planted.residual = 0;
  const VarianceComponents components = decomposed(plant(planted));
  EXPECT_FALSE(components.microbatch.found());
  for (const EffectEstimate& effect : components.effects) EXPECT_FALSE(effect.significant());
  for (const double variance : components.residual_variance) EXPECT_EQ(variance, 0);
}

TEST(VarianceComponents, SaysHowMuchIsNeeded) {
  Planted planted;
  planted.iterations = 1;
  Result<VarianceComponents> components = decompose_variance(plant(planted));
  ASSERT_FALSE(components.ok());
  EXPECT_NE(components.error().message.find("at least 2"), std::string::npos);
  planted.iterations = 2;
  planted.microbatches = 1;
  components = decompose_variance(plant(planted));
  ASSERT_FALSE(components.ok());
  EXPECT_NE(components.error().message.find("one microbatch"), std::string::npos);
}

}  // namespace
}  // namespace rrfp
