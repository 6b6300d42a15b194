"""Goal: figures are drawn from result files alone, whole or not at all, and bad input is told."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(os.environ["RRFP_SOURCE_DIR"])
PROGRAM = os.environ["RRFP_PROGRAM"]
PYTHON = os.environ["RRFP_PYTHON"]
SPEEDUP = SOURCE / "plots" / "speedup_vs_memory.py"
VALIDATION = SOURCE / "plots" / "validation.py"

try:
    import matplotlib  # noqa: F401
except ImportError:
    print("skipped: this Python has no matplotlib")
    sys.exit(77)


def plot(script, *arguments):
    return subprocess.run([PYTHON, script, *arguments], capture_output=True, text=True, check=False)


def check(condition, what):
    if not condition:
        sys.exit(f"failed: {what}")


def expect_figure(script, results, folder):
    first, second = folder / "a.png", folder / "b.png"
    drawn = plot(script, *results, first)
    check(drawn.returncode == 0 and not drawn.stderr, f"{results}: {drawn.stderr}")
    check(first.read_bytes().startswith(b"\x89PNG\r\n"), "the figure is a PNG")
    check(first.stat().st_size > 20000, "the figure holds something")
    plot(script, *results, second)
    check(first.read_bytes() == second.read_bytes(), "the same results give the same bytes")


def expect_refused(script, schema, folder):
    for text, word in (("{", "Expecting"), ('{"schema": "x"}', schema), ("[]", schema)):
        bad = folder / "bad.json"
        bad.write_text(text)
        drawn = plot(script, bad, folder / "bad.png")
        check(drawn.returncode == 1 and word in drawn.stderr, drawn.stderr)
        check(drawn.stderr.startswith(f"{script.stem}: "), drawn.stderr)
        check("Traceback" not in drawn.stderr, drawn.stderr)
        check(not (folder / "bad.png").exists(), "nothing is written")
    check(plot(script, "x").returncode == 1, "usage")


def expect_no_folder(script, results, folder):
    drawn = plot(script, results, folder / "nothing" / "here.png")
    check(drawn.returncode == 1 and "No such file" in drawn.stderr, drawn.stderr)
    check("Traceback" not in drawn.stderr, drawn.stderr)


def policy(name, measured_ns, predicted_ns):
    runs = [{"measured_ns": measured_ns + i * 1000, "simulated_ns": measured_ns,
             "predicted_ns": predicted_ns} for i in range(5)]
    return {"policy": name, "dropped": 1, "median_measured_ns": measured_ns,
            "measured_interval_ns": [measured_ns - 5000, measured_ns + 5000],
            "median_predicted_ns": predicted_ns, "model_error": 0.0001,
            "prediction_error": predicted_ns / measured_ns - 1, "iterations": runs}


# One of each model, and presets by name, with parameters and written out.
VARYING = [
    "healthy-dedicated", {"preset": "slow-worker", "rank": 1},
    {"model": "lognormal", "on": "compute", "cv": 0.3},
    {"model": "spikes", "on": "latency", "probability": 0.1, "extra_ms": 1},
    {"model": "factor", "on": "compute", "uniform": [1, 2], "from_preset": "my own"},
    {"model": "factor", "on": "compute", "F": {"uniform": [1, 2]}},
    {"model": "extra", "on": "latency", "extra_us": 5},
    {"model": "hold", "on": "latency", "episodes": {"on_ms": 1, "off_ms": 50}},
    {"model": "lengths", "length": {"uniform": [1, 2]},
     "costs": [{"constant": 0, "linear": 1, "quadratic": 0}]},
    {"model": "wave", "on": "compute", "amplitude": 0.1, "period_s": 1},
]


def expect_every_model(folder):
    scenario = {
        "schema": "rrfp.scenario/1", "name": "varied", "seed": 1, "iterations": 2,
        "pipeline": {"ranks": 2, "microbatches": 4},
        "durations": {"forward_ms": 1, "backward_ms": 2}, "network": {"latency_us": 10},
        "variability": [],
        "policies": [{"name": "1f1b", "hint": "1f1b", "fixed": True}, {"name": "bf", "hint": "bf"}],
        "grid": {"/variability": [[]] + [[entry] for entry in VARYING] + [VARYING]}}
    (folder / "varied.json").write_text(json.dumps(scenario))
    out = folder / "varied"
    swept = subprocess.run([PROGRAM, "sweep", folder / "varied.json", "--out", out],
                           capture_output=True, text=True, check=False)
    check(swept.returncode == 0, swept.stderr)
    expect_figure(SPEEDUP, [out / "summary.json"], out)


with tempfile.TemporaryDirectory() as folder:
    folder = pathlib.Path(folder)
    for name in ("zb-1.5b", "zb-1.5b-microbatches"):
        out = folder / name
        subprocess.run([PROGRAM, "sweep", SOURCE / "experiments" / f"{name}.json", "--iterations",
                        "3", "--out", out], check=True, capture_output=True)
        expect_figure(SPEEDUP, [out / "summary.json"], out)
    expect_every_model(folder)
    expect_refused(SPEEDUP, "rrfp.sweep/1", folder)
    expect_no_folder(SPEEDUP, folder / "zb-1.5b" / "summary.json", folder)

    results = []
    for transport, void in (("threads", False), ("mpi", True)):
        results.append(folder / f"{transport}.json")
        results[-1].write_text(json.dumps({
            "schema": "rrfp.validation/1", "name": "made up", "transport": transport,
            "prediction_void": void,
            "policies": [policy("1f1b blocking", 300_000_000, 301_000_000),
                         policy("zb-h2", 270_000_000, 268_000_000)]}))
    expect_figure(VALIDATION, results, folder)
    expect_refused(VALIDATION, "rrfp.validation/1", folder)
print("ok")
