#!/usr/bin/python3
"""Measured, simulated from a run's own times, and predicted: one panel per run.

  plots/validation.py VALIDATION.json... OUT.png

Reads what `rrfp validate --out` writes, and nothing else. Above: iteration times of each policy.
Below: how far the simulator is off, with the bounds that the README states.
"""

import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402  (the backend comes first)

from figure_file import fail, save  # noqa: E402
from result_file import read_result  # noqa: E402

# Okabe and Ito's colours.
MEASURED, PREDICTED, SIMULATED = "#0072B2", "#D55E00", "#009E73"
TRANSPORTS = {"threads": "threads of one process", "mpi": "one process per rank, MPI"}
MOST_MODEL_ERROR_PERCENT = 0.3
MOST_PREDICTION_ERROR_PERCENT = 2


def read_validation(path):
    validation = read_result(path, "rrfp.validation/1", "a validation")
    if not any(policy["iterations"] for policy in validation["policies"]):
        fail(f"{path}: holds no iteration without a stall")
    return validation


def draw_times(axes, policies):
    for at, policy in enumerate(policies):
        measured = [i["measured_ns"] * 1e-6 for i in policy["iterations"]]
        # Side by side, so that equal times can be told apart.
        spread = [at - 0.18 + 0.1 * (k / max(1, len(measured) - 1) - 0.5)
                  for k in range(len(measured))]
        axes.plot(spread, measured, ".", color=MEASURED, alpha=0.3, markersize=4, zorder=2)
        low, high = (ns * 1e-6 for ns in policy["measured_interval_ns"])
        axes.plot([at - 0.18] * 2, [low, high], color=MEASURED, linewidth=2, zorder=3)
        label = at == 0
        axes.plot(at - 0.18, policy["median_measured_ns"] * 1e-6, "o", color=MEASURED, zorder=4,
                  markeredgecolor="white", label="measured: median, 95 % interval" if label else None)
        axes.plot(at + 0.18, policy["median_predicted_ns"] * 1e-6, "D", color=PREDICTED, zorder=4,
                  markeredgecolor="white", label="predicted" if label else None)
    axes.grid(axis="y", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.legend(fontsize=8, frameon=False)


def draw_errors(axes, policies, void):
    places = range(len(policies))
    axes.axhline(0, color="black", linewidth=0.8)
    for bound, colour in ((MOST_MODEL_ERROR_PERCENT, SIMULATED),
                          (MOST_PREDICTION_ERROR_PERCENT, PREDICTED)):
        for sign in (-1, 1):
            axes.axhline(sign * bound, color=colour, linewidth=0.8, linestyle=(0, (4, 3)))
    axes.bar([at - 0.18 for at in places], [100 * p["model_error"] for p in policies], 0.3,
             color=SIMULATED, label="model error (absolute)")
    axes.bar([at + 0.18 for at in places], [100 * p["prediction_error"] for p in policies], 0.3,
             color=PREDICTED, hatch="//" if void else None,
             label="prediction error" + (", void: noisy machine" if void else ""))
    axes.set_xticks(list(places))
    axes.set_xticklabels([p["policy"].replace(" ", "\n", 1) for p in policies], fontsize=9)
    axes.legend(fontsize=8, frameon=False)


def draw(validations):
    columns = len(validations)
    figure, grid = plt.subplots(2, columns, figsize=(5.2 * columns, 6.0), sharex="col",
                                sharey="row", squeeze=False, dpi=160,
                                gridspec_kw={"height_ratios": [3, 2]})
    for column, validation in enumerate(validations):
        policies = [policy for policy in validation["policies"] if policy["iterations"]]
        draw_times(grid[0][column], policies)
        draw_errors(grid[1][column], policies, validation["prediction_void"])
        transport = TRANSPORTS.get(validation["transport"], validation["transport"])
        kept = sum(len(policy["iterations"]) for policy in policies)
        dropped = sum(policy["dropped"] for policy in validation["policies"])
        grid[0][column].set_title(f"{transport}\n{kept} iterations, {dropped} more with a stall",
                                  fontsize=10)
    grid[0][0].set_ylabel("iteration [ms]", fontsize=9)
    grid[1][0].set_ylabel("simulator against run [%]", fontsize=9)
    for axes in grid.flat:
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
    figure.suptitle(validations[0]["name"], fontsize=11)
    figure.tight_layout()
    return figure


def main(arguments):
    if len(arguments) < 2:
        fail("usage: plots/validation.py VALIDATION.json... OUT.png")
    save(draw([read_validation(path) for path in arguments[:-1]]), arguments[-1])


if __name__ == "__main__":
    main(sys.argv[1:])
