#include "experiments/variance_components.h"

#include <algorithm>
#include <boost/math/distributions/fisher_f.hpp>
#include <cmath>
#include <numeric>
#include <string>

namespace rrfp {

namespace {

/// Mean squares below this are rounding: a relative deviation of 1e-9.
constexpr double kNothing = 1e-18;
/// What is divided by stays above this, however light a microbatch is.
constexpr double kLeastFactor = 0.05;
/// Of a column's variance, as the least uniqueness that weighs its score.
constexpr double kLeastUniqueness = 1e-3;
constexpr int kMostSweeps = 1000;

double square(double x) { return x * x; }

/// A mean square and its degrees of freedom.
struct MeanSquare {
  double value = 0;
  double freedom = 0;

  static MeanSquare of(double sum, double freedom) {
    return {freedom > 0 ? sum / freedom : 0, freedom};
  }
};

/// The probability of such a ratio or a larger one where both estimate the same.
double f_test(const MeanSquare& above, const MeanSquare& below) {
  if (above.freedom <= 0 || below.freedom <= 0 || above.value <= kNothing) return 1;
  if (below.value <= kNothing) return 0;
  const boost::math::fisher_f distribution(above.freedom, below.freedom);
  return boost::math::cdf(boost::math::complement(distribution, above.value / below.value));
}

/// An effect of whose deviations each is the mean of `averaged` values. What
/// other effects add to its variance is `elsewhere`.
void estimate(EffectEstimate& effect, const MeanSquare& own, const MeanSquare& below,
              double averaged, double elsewhere = 0) {
  effect.estimable = own.freedom > 0 && below.freedom > 0;
  effect.p_value = f_test(own, below);
  if (effect.p_value >= kSignificance) return;
  effect.variance = std::max(0.0, (own.value - below.value) / averaged - elsewhere);
  effect.reliability = effect.variance * averaged / own.value;
}

class Decomposition {
 public:
  explicit Decomposition(const DurationTable& table)
      : table_(table),
        columns_(table.columns.size()),
        rows_(table.rows()),
        iterations_(table.iterations),
        replicas_(table.replicas),
        microbatches_(table.microbatches) {
    for (const DurationColumn& column : table.columns) out_.ranks.push_back(column.rank);
    std::sort(out_.ranks.begin(), out_.ranks.end());
    out_.ranks.erase(std::unique(out_.ranks.begin(), out_.ranks.end()), out_.ranks.end());
  }

  VarianceComponents run() && {
    take_relative();
    const std::vector<std::vector<double>> by_rank = rank_means();
    std::vector<double> all(rows_);
    for (const std::vector<double>& one : by_rank) {
      for (std::size_t row = 0; row < rows_; ++row) {
        all[row] += one[row] / static_cast<double>(by_rank.size());
      }
    }
    estimate_gpus(by_rank, all);
    estimate_replicas(all);
    remove_effects();
    take_covariances();
    std::vector<std::size_t> members(columns_);
    std::iota(members.begin(), members.end(), std::size_t{0});
    out_.microbatch = take_factor(members);
    for (const Kind kind :
         {Kind::kForward, Kind::kBackward, Kind::kInputGradient, Kind::kWeightGradient}) {
      members.clear();
      for (std::size_t column = 0; column < columns_; ++column) {
        if (table_.columns[column].kind == kind) members.push_back(column);
      }
      out_.of_kind.push_back(take_factor(members));
    }
    take_residuals();
    return std::move(out_);
  }

 private:
  std::size_t cells() const { return static_cast<std::size_t>(iterations_) * replicas_; }
  std::size_t cell_of(std::size_t row) const {
    return row / static_cast<std::size_t>(microbatches_);
  }
  std::size_t rank_index(std::size_t column) const {
    const auto at =
        std::lower_bound(out_.ranks.begin(), out_.ranks.end(), table_.columns[column].rank);
    return static_cast<std::size_t>(at - out_.ranks.begin());
  }
  EffectEstimate& effect(VarianceSource which) {
    return out_.effects[static_cast<std::size_t>(which)];
  }

  void take_relative() {
    for (std::size_t column = 0; column < columns_; ++column) {
      double sum = 0;
      for (std::size_t row = 0; row < rows_; ++row) {
        sum += static_cast<double>(table_.at(column, row));
      }
      const double mean = sum / static_cast<double>(rows_);
      std::vector<double> relative(rows_, 1.0);
      double squares = 0;
      for (std::size_t row = 0; mean > 0 && row < rows_; ++row) {
        relative[row] = static_cast<double>(table_.at(column, row)) / mean;
        squares += square(relative[row] - 1);
      }
      out_.mean_ns.push_back(mean);
      out_.variance.push_back(squares / static_cast<double>(rows_ - 1));
      y_.push_back(std::move(relative));
    }
  }

  /// Of each rank, by row, all its columns counting alike.
  std::vector<std::vector<double>> rank_means() const {
    std::vector<std::vector<double>> means(out_.ranks.size(), std::vector<double>(rows_));
    std::vector<double> counts(out_.ranks.size());
    for (std::size_t column = 0; column < columns_; ++column) ++counts[rank_index(column)];
    for (std::size_t column = 0; column < columns_; ++column) {
      const std::size_t rank = rank_index(column);
      for (std::size_t row = 0; row < rows_; ++row) {
        means[rank][row] += y_[column][row] / counts[rank];
      }
    }
    return means;
  }

  /// By iteration and replica, over its microbatches.
  std::vector<double> cell_means(const std::vector<double>& by_row) const {
    std::vector<double> means(cells());
    for (std::size_t row = 0; row < rows_; ++row) means[cell_of(row)] += by_row[row];
    for (double& mean : means) mean /= microbatches_;
    return means;
  }
  double within(const std::vector<double>& by_row, const std::vector<double>& means) const {
    double sum = 0;
    for (std::size_t row = 0; row < rows_; ++row) sum += square(by_row[row] - means[cell_of(row)]);
    return sum;
  }
  /// Over the iterations of each replica.
  std::vector<double> replica_means(const std::vector<double>& by_cell) const {
    std::vector<double> means(static_cast<std::size_t>(replicas_));
    for (std::size_t cell = 0; cell < cells(); ++cell) {
      means[cell % means.size()] += by_cell[cell] / iterations_;
    }
    return means;
  }

  /// How a rank differs from the mean of all, in analyses of variance of their own.
  void estimate_gpus(const std::vector<std::vector<double>>& by_rank,
                     const std::vector<double>& all) {
    const double others = static_cast<double>(by_rank.size()) - 1;
    EffectEstimate& always = effect(VarianceSource::kGpu);
    EffectEstimate& changing = effect(VarianceSource::kGpuIteration);
    double always_sum = 0;
    double changing_sum = 0;
    double within_sum = 0;
    std::vector<double> difference(rows_);
    for (const std::vector<double>& rank : by_rank) {
      for (std::size_t row = 0; row < rows_; ++row) difference[row] = rank[row] - all[row];
      const std::vector<double> by_cell = cell_means(difference);
      const std::vector<double> by_replica = replica_means(by_cell);
      within_sum += within(difference, by_cell);
      for (const double mean : by_replica) {
        always.deviations.push_back(mean);
        always_sum += square(mean) * iterations_ * microbatches_;
      }
      for (std::size_t cell = 0; cell < cells(); ++cell) {
        const double deviation = by_cell[cell] - by_replica[cell % by_replica.size()];
        changing.deviations.push_back(deviation);
        changing_sum += square(deviation) * microbatches_;
      }
    }
    const auto inner =
        MeanSquare::of(within_sum, others * static_cast<double>(cells()) * (microbatches_ - 1));
    const auto changes = MeanSquare::of(changing_sum, others * replicas_ * (iterations_ - 1));
    estimate(changing, changes, inner, microbatches_);
    estimate(always, MeanSquare::of(always_sum, others * (replicas_ - 1)), changes,
             static_cast<double>(iterations_) * microbatches_);
  }

  void estimate_replicas(const std::vector<double>& all) {
    const std::vector<double> by_cell = cell_means(all);
    const std::vector<double> by_replica = replica_means(by_cell);
    std::vector<double> by_iteration(static_cast<std::size_t>(iterations_));
    for (std::size_t cell = 0; cell < cells(); ++cell) {
      by_iteration[cell / by_replica.size()] += by_cell[cell] / replicas_;
    }
    double iteration_sum = 0;
    double replica_sum = 0;
    double both_sum = 0;
    const double m = microbatches_;
    for (const double mean : by_iteration) {
      effect(VarianceSource::kIteration).deviations.push_back(mean - 1);
      iteration_sum += square(mean - 1) * replicas_ * m;
    }
    for (const double mean : by_replica) {
      effect(VarianceSource::kReplica).deviations.push_back(mean - 1);
      replica_sum += square(mean - 1) * iterations_ * m;
    }
    for (std::size_t cell = 0; cell < cells(); ++cell) {
      const double deviation = by_cell[cell] - by_iteration[cell / by_replica.size()] -
                               by_replica[cell % by_replica.size()] + 1;
      effect(VarianceSource::kReplicaIteration).deviations.push_back(deviation);
      both_sum += square(deviation) * m;
    }
    const double ranks = static_cast<double>(out_.ranks.size());
    const double freedom = iterations_ - 1.0;
    const auto inner =
        MeanSquare::of(within(all, by_cell), static_cast<double>(cells()) * (microbatches_ - 1));
    const auto both = MeanSquare::of(both_sum, freedom * (replicas_ - 1));
    // What devices do by themselves moves the mean of their replica as well.
    estimate(effect(VarianceSource::kReplicaIteration), both, inner, m,
             effect(VarianceSource::kGpuIteration).variance / ranks);
    estimate(effect(VarianceSource::kReplica), MeanSquare::of(replica_sum, replicas_ - 1.0), both,
             iterations_ * m, effect(VarianceSource::kGpu).variance / ranks);
    estimate(effect(VarianceSource::kIteration), MeanSquare::of(iteration_sum, freedom),
             replicas_ > 1 ? both : inner, replicas_ * m);
  }

  /// Takes the best guess of each effect out of the relative durations.
  void remove_effects() {
    std::array<std::vector<double>, kVarianceSources> best;
    for (std::size_t i = 0; i < best.size(); ++i) best[i] = out_.effects[i].best();
    const auto of = [&best](VarianceSource which) -> const std::vector<double>& {
      return best[static_cast<std::size_t>(which)];
    };
    for (std::size_t column = 0; column < columns_; ++column) {
      const std::size_t rank = rank_index(column);
      double sum = 0;
      for (std::size_t row = 0; row < rows_; ++row) {
        const std::size_t cell = cell_of(row);
        const std::size_t replica = cell % static_cast<std::size_t>(replicas_);
        const double factor =
            (1 + of(VarianceSource::kIteration)[cell / static_cast<std::size_t>(replicas_)]) *
            (1 + of(VarianceSource::kReplica)[replica]) *
            (1 + of(VarianceSource::kReplicaIteration)[cell]) *
            (1 + of(VarianceSource::kGpu)[rank * static_cast<std::size_t>(replicas_) + replica]) *
            (1 + of(VarianceSource::kGpuIteration)[rank * cells() + cell]);
        y_[column][row] /= std::max(factor, kLeastFactor);
        sum += y_[column][row];
      }
      for (double& value : y_[column]) value *= static_cast<double>(rows_) / sum;
    }
  }

  /// Within replicas and iterations, by pair of columns.
  void take_covariances() {
    std::vector<std::vector<double>> deviations = y_;
    for (std::vector<double>& column : deviations) {
      const std::vector<double> means = cell_means(column);
      for (std::size_t row = 0; row < rows_; ++row) column[row] -= means[cell_of(row)];
    }
    const double freedom = static_cast<double>(cells()) * (microbatches_ - 1);
    covariance_.assign(columns_ * columns_, 0);
    for (std::size_t a = 0; a < columns_; ++a) {
      for (std::size_t b = a; b < columns_; ++b) {
        covariance_[a * columns_ + b] = covariance_[b * columns_ + a] =
            std::inner_product(deviations[a].begin(), deviations[a].end(), deviations[b].begin(),
                               0.0) /
            freedom;
      }
    }
  }
  double covariance(std::size_t a, std::size_t b) const { return covariance_[a * columns_ + b]; }

  /// Do these columns move together within microbatches more than by chance?
  double test_together(const std::vector<std::size_t>& members) const {
    double together = 0;
    double trace = 0;
    for (const std::size_t a : members) {
      trace += covariance(a, a);
      for (const std::size_t b : members) together += covariance(a, b);
    }
    const double n = static_cast<double>(members.size());
    if (n < 2) return 1;
    const double freedom = static_cast<double>(cells()) * (microbatches_ - 1);
    const MeanSquare microbatch{together / n, freedom};
    return f_test(microbatch, MeanSquare::of((trace - together / n) * freedom, freedom * (n - 1)));
  }

  /// Each step takes the load that fits the other columns best: the squares of
  /// what is left off the diagonal can only fall.
  void fit_loads(const std::vector<std::size_t>& members, std::vector<double>& load) const {
    double together = 0;
    double alone = 0;
    for (const std::size_t a : members) {
      for (const std::size_t b : members) {
        if (a == b) continue;
        together += covariance(a, b);
        alone += std::sqrt(covariance(a, a) * covariance(b, b));
      }
    }
    const double correlation = alone > 0 ? std::clamp(together / alone, 0.0, 1.0) : 0;
    for (const std::size_t a : members) load[a] = std::sqrt(covariance(a, a) * correlation);
    for (int sweep = 0; sweep < kMostSweeps; ++sweep) {
      double moved = 0;
      for (const std::size_t a : members) {
        double numerator = 0;
        double denominator = 0;
        for (const std::size_t b : members) {
          if (b == a) continue;
          numerator += covariance(a, b) * load[b];
          denominator += square(load[b]);
        }
        if (denominator <= 0) continue;
        const double next = std::clamp(numerator / denominator, 0.0, std::sqrt(covariance(a, a)));
        moved = std::max(moved, std::abs(next - load[a]));
        load[a] = next;
      }
      if (moved < 1e-9) break;
    }
  }

  /// The weighted mean of what each column says of a row (Bartlett 1937), scaled
  /// to a variance of 1; empty where no column says anything.
  std::vector<double> scores_of(const std::vector<std::size_t>& members,
                                const std::vector<double>& load) const {
    std::vector<double> scores(rows_);
    for (const std::size_t a : members) {
      const double own = covariance(a, a);
      if (own <= kNothing) continue;
      const double unique = std::max(own - square(load[a]), kLeastUniqueness * own);
      for (std::size_t row = 0; row < rows_; ++row) {
        scores[row] += load[a] / unique * (y_[a][row] - 1);
      }
    }
    double squares = 0;
    for (const double score : scores) squares += square(score);
    if (squares <= 0) return {};
    const double deviation = std::sqrt(squares / static_cast<double>(rows_));
    for (double& score : scores) score /= deviation;
    return scores;
  }

  /// What these columns have in common, if anything; it is taken out of durations and
  /// covariances.
  CommonFactor take_factor(const std::vector<std::size_t>& members) {
    CommonFactor factor;
    factor.load.assign(columns_, 0);
    factor.p_value = test_together(members);
    if (factor.p_value >= kFactorSignificance) return factor;
    fit_loads(members, factor.load);
    factor.scores = scores_of(members, factor.load);
    if (!factor.found()) return factor;
    for (const std::size_t a : members) {
      double sum = 0;
      for (std::size_t row = 0; row < rows_; ++row) {
        y_[a][row] /= std::max(1 + factor.load[a] * factor.scores[row], kLeastFactor);
        sum += y_[a][row];
      }
      for (double& value : y_[a]) value *= static_cast<double>(rows_) / sum;
      // Of a product of independent factors of mean 1.
      for (const std::size_t b : members) {
        const double common = factor.load[a] * factor.load[b];
        double& left = covariance_[a * columns_ + b];
        left = (left - common) / (1 + common);
        if (a == b) left = std::max(left, 0.0);
      }
    }
    return factor;
  }

  void take_residuals() {
    for (std::size_t a = 0; a < columns_; ++a) {
      const double variance = covariance(a, a);
      std::vector<double> residual(rows_);
      double squares = 0;
      for (std::size_t row = 0; row < rows_; ++row) {
        residual[row] = y_[a][row] - 1;
        squares += square(residual[row]);
      }
      const double observed = squares / static_cast<double>(rows_);
      const double scale = observed > kNothing ? std::sqrt(variance / observed) : 0;
      for (double& value : residual) value *= scale;
      out_.residual_variance.push_back(scale > 0 ? variance : 0);
      out_.residuals.push_back(std::move(residual));
    }
    correlate_residuals();
  }

  void correlate_residuals() {
    int stages = 0;
    for (const DurationColumn& column : table_.columns) stages = std::max(stages, column.stage + 1);
    out_.residual_correlation.assign(static_cast<std::size_t>(stages), 0);
    for (std::size_t a = 0; a < columns_; ++a) {
      for (std::size_t b = 0; b < columns_; ++b) {
        const DurationColumn& forward = table_.columns[a];
        const DurationColumn& backward = table_.columns[b];
        const bool pair =
            forward.kind == Kind::kForward && forward.stage == backward.stage &&
            (backward.kind == Kind::kBackward || backward.kind == Kind::kInputGradient);
        if (!pair || covariance(a, a) <= kNothing || covariance(b, b) <= kNothing) continue;
        out_.residual_correlation[static_cast<std::size_t>(forward.stage)] = std::clamp(
            covariance(a, b) / std::sqrt(covariance(a, a) * covariance(b, b)), -1.0, 1.0);
      }
    }
  }

  const DurationTable& table_;
  const std::size_t columns_;
  const std::size_t rows_;
  const int iterations_;
  const int replicas_;
  const int microbatches_;
  VarianceComponents out_;
  std::vector<std::vector<double>> y_;  ///< [column][row], relative
  std::vector<double> covariance_;      ///< [column][column]
};

std::vector<double> times(const std::vector<double>& values, double factor) {
  std::vector<double> product = values;
  for (double& value : product) value *= factor;
  return product;
}

}  // namespace

std::vector<double> EffectEstimate::best() const { return times(deviations, reliability); }

std::vector<double> EffectEstimate::to_draw_from() const {
  return times(deviations, std::sqrt(reliability));
}

Result<VarianceComponents> decompose_variance(const DurationTable& durations) {
  if (durations.iterations < 2) {
    return Error{"has " + std::to_string(durations.iterations) +
                 " iteration in which every task was recorded; a fit needs at least 2, and 10 or "
                 "more to tell what changes from one to the next"};
  }
  if (durations.microbatches < 2) {
    return Error{
        "has one microbatch per iteration; a fit needs at least 2 to tell a microbatch from its "
        "replica"};
  }
  return Decomposition(durations).run();
}

}  // namespace rrfp
