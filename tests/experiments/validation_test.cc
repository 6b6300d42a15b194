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
