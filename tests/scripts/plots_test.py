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


with tempfile.TemporaryDirectory() as folder:
    folder = pathlib.Path(folder)
    for name in ("zb-1.5b", "zb-1.5b-microbatches"):
        out = folder / name
        subprocess.run([PROGRAM, "sweep", SOURCE / "experiments" / f"{name}.json", "--iterations",
                        "3", "--out", out], check=True, capture_output=True)
        expect_figure(SPEEDUP, [out / "summary.json"], out)
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
