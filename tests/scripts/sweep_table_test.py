"""Goal: the table of sweeps compares at equal memory, from results alone, and bad input is told."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

TABLE = pathlib.Path(os.environ["RRFP_SOURCE_DIR"]) / "plots" / "sweep_table.py"


def table(*arguments):
    return subprocess.run([os.environ["RRFP_PYTHON"], TABLE, *arguments], capture_output=True,
                          text=True, check=False)


def check(condition, what):
    if not condition:
        sys.exit(f"failed: {what}")


def policy(name, fixed, mean_ms, peak_gb, runs=1, blocked=0):
    return {"name": name, "fixed": fixed, "mean_ns": mean_ms * 1e6, "peak_bytes": peak_gb * 10**9,
            "speedup": 1000 / mean_ms, "runs": runs, "blocked": blocked}


SWEEP = {
    "schema": "rrfp.sweep/1", "name": "a job",
    "points": [{
        "values": [["healthy-dedicated", {"model": "lengths"},
                    {"model": "lengths", "from_preset": "x"}]],
        "baseline": "1f1b", "activation_bytes": 10**9,
        "policies": [
            policy("1f1b", True, 1000, 8), policy("zb-h1", True, 800, 8),
            policy("zb-h2", True, 500, 15, blocked=1),  # did not run to its end
            policy("zb-h1 ready+wait", False, 640, 8.4),
            policy("bfw ready+wait @zb-h1", False, 900, 8),
            policy("zb-h2 ready+wait", False, 400, 15),
            policy("bfw ready+wait @gpu", False, 450, 20),
        ],
    }],
}

with tempfile.TemporaryDirectory() as folder:
    folder = pathlib.Path(folder)
    (folder / "summary.json").write_text(json.dumps(SWEEP))
    printed = table(folder / "summary.json")
    check(printed.returncode == 0, printed.stderr)
    lines = printed.stdout.splitlines()
    check(len(lines) == 3, printed.stdout)
    check(lines[2] == "| a job | healthy-dedicated + lengths + x | 1000 ms (8.0 GB) | "
          "zb-h1: 1.250 (8.0 GB) | zb-h1 ready+wait: 1.562 (8.4 GB) | bfw ready+wait @zb-h1: 1.111 (8.0 GB) | "
          "zb-h2 ready+wait: 2.500 (15.0 GB) |", lines[2])

    # An activation of one byte is one that has no size.
    small = SWEEP | {"complete": False, "points": [SWEEP["points"][0] | {
        "activation_bytes": 1, "iterations": 20, "iterations_done": 3,
        "policies": [policy("1f1b", True, 1000, 0) | {"peak_bytes": 4}]}]}
    (folder / "part.json").write_text(json.dumps(small))
    printed = table(folder / "part.json").stdout
    check("| a job (interrupted: 3 of 20 iterations) |" in printed, printed)
    check("| 1000 ms (4 activations) | 1f1b: 1.000 (4 activations) | - |" in printed, printed)
    sized = SWEEP | {"points": [SWEEP["points"][0] | {
        "activation_bytes": 1_500_000,
        "policies": [policy("1f1b", True, 1000, 0) | {"peak_bytes": 6_000_000}]}]}
    (folder / "sized.json").write_text(json.dumps(sized))
    printed = table(folder / "sized.json").stdout
    check("| 1000 ms (6.0 MB) |" in printed, printed)

    # More than a pipe holds, to one who reads nothing.
    (folder / "long.json").write_text(json.dumps(SWEEP | {"points": SWEEP["points"] * 2000}))
    with subprocess.Popen([os.environ["RRFP_PYTHON"], TABLE, folder / "long.json"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        process.stdout.close()
        told = process.stderr.read()
    check(told == "" and process.returncode == 141, f"{process.returncode}: {told}")
    for text, word in (("{", "Expecting"), ("[]", "rrfp.sweep/1")):
        (folder / "bad.json").write_text(text)
        printed = table(folder / "bad.json")
        check(printed.returncode == 1 and word in printed.stderr, printed.stderr)
        check("Traceback" not in printed.stderr, printed.stderr)
told = table().stderr
check(told.startswith("sweep_table: usage"), told)
print("ok")
