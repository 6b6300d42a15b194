// Goal: `rrfp validate` leaves out what says nothing about the model and says
// what its figures are worth.
#include "experiments/validation.h"

#include <gtest/gtest.h>

namespace rrfp {
namespace {

// 2 ms of 5 s are nothing, and 2 ms of 20 ms are.
TEST(Validation, AStallCountsByItsShareOfALongIteration) {
  EXPECT_FALSE(is_stalled(2'000'000, 20'000'000));
  EXPECT_TRUE(is_stalled(2'000'001, 20'000'000));
  EXPECT_TRUE(is_stalled(2'000'001, 100'000'000));
  EXPECT_FALSE(is_stalled(99'000'000, 5'000'000'000));
  EXPECT_TRUE(is_stalled(100'000'001, 5'000'000'000));
}

TEST(Validation, FiguresOfFewIterationsAreNone) {
  Validation validation;
  ValidatedPolicy& policy = validation.policies.emplace_back();
  policy.name = "1f1b";
  EXPECT_FALSE(has_figures(validation)) << "none was kept";
  policy.kept = 5;
  policy.dropped = 15;
  EXPECT_TRUE(has_figures(validation));
  policy.kept = 4;
  policy.dropped = 16;
  EXPECT_FALSE(has_figures(validation));
  EXPECT_NE(describe_validation(validation).find("too few iterations: of 1f1b 4 of 20 had no"),
            std::string::npos)
      << describe_validation(validation);
}

// `count` iterations that took so long, and were predicted so long.
ValidatedPolicy measured(const std::string& name, std::int64_t measured_ns,
                         std::int64_t predicted_ns) {
  ValidatedPolicy policy;
  policy.name = name;
  policy.iterations.assign(20, {measured_ns, measured_ns, predicted_ns});
  policy.kept = 20;
  return policy;
}

TEST(Validation, WhatCannotBeRankedIsNotSaidToBe) {
  Validation validation;
  validation.mean_task_ns = 1'000'000;
  validation.policies = {measured("a", 10'000'000, 10'000'000)};
  const std::string alone = describe_validation(validation);
  EXPECT_TRUE(alone.ends_with("for the worst policy\n")) << alone;
  validation.policies.push_back(measured("b", 10'000'000, 11'000'000));
  const std::string alike = describe_validation(validation);
  EXPECT_TRUE(alike.ends_with("; measurement tells no two policies apart\n")) << alike;
  validation.policies.back() = measured("b", 20'000'000, 11'000'000);
  const std::string apart = describe_validation(validation);
  EXPECT_TRUE(
      apart.ends_with("the one pair of policies that measurement tells apart is ranked alike\n"))
      << apart;
  validation.policies.push_back(measured("c", 30'000'000, 9'000'000));
  const std::string three = describe_validation(validation);
  EXPECT_TRUE(three.ends_with(
      "; of 3 pairs of policies that measurement tells apart, 1 are ranked alike\n"))
      << three;
}

TEST(Validation, ACalibrationOfAnotherJobIsToldFromThatOfThisOne) {
  Calibration of_job;
  of_job.job = "this";
  of_job.workers = 4;
  of_job.transport = "threads";
  Calibration made = of_job;
  made.task_extra_ns = 1'000;
  EXPECT_EQ(what_is_foreign(made, of_job), "");
  made.job = "";
  made.transport = "";
  EXPECT_EQ(what_is_foreign(made, of_job), "") << "not known";
  made.job = "that";
  made.workers = 8;
  made.transport = "mpi";
  made.device = CalibratedDevice{"4 partitions", {}};
  EXPECT_EQ(
      what_is_foreign(made, of_job),
      "of that and not this, with 8 workers and not 4 workers, over mpi and not threads, on 4 "
      "partitions and not emulated devices");
}

}  // namespace
}  // namespace rrfp
