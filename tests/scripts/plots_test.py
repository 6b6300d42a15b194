"""Goal: a figure is drawn from a sweep's results alone, whole or not at all, and bad input is told."""

import os
import pathlib
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(os.environ["RRFP_SOURCE_DIR"])
PROGRAM = os.environ["RRFP_PROGRAM"]
PYTHON = os.environ["RRFP_PYTHON"]
PLOT = SOURCE / "plots" / "speedup_vs_memory.py"

try:
    import matplotlib  # noqa: F401
except ImportError:
    print("skipped: this Python has no matplotlib")
    sys.exit(77)


def plot(*arguments):
    return subprocess.run([PYTHON, PLOT, *arguments], capture_output=True, text=True, check=False)


def check(condition, what):
    if not condition:
        sys.exit(f"failed: {what}")


with tempfile.TemporaryDirectory() as folder:
    folder = pathlib.Path(folder)
    for name in ("zb-1.5b", "zb-1.5b-microbatches"):
        out = folder / name
        subprocess.run([PROGRAM, "sweep", SOURCE / "experiments" / f"{name}.json", "--iterations",
                        "3", "--out", out], check=True, capture_output=True)
        first, second = out / "a.png", out / "b.png"
        drawn = plot(out / "summary.json", first)
        check(drawn.returncode == 0 and not drawn.stderr, f"{name}: {drawn.stderr}")
        check(first.read_bytes().startswith(b"\x89PNG\r\n"), "the figure is a PNG")
        check(first.stat().st_size > 20000, "the figure holds something")
        plot(out / "summary.json", second)
        check(first.read_bytes() == second.read_bytes(), "the same results give the same bytes")

    for text, word in (("{", "Expecting"), ('{"schema": "x"}', "rrfp.sweep/1"), ("[]", "rrfp.sweep/1")):
        bad = folder / "bad.json"
        bad.write_text(text)
        drawn = plot(bad, folder / "bad.png")
        check(drawn.returncode == 1 and word in drawn.stderr, drawn.stderr)
        check("Traceback" not in drawn.stderr, drawn.stderr)
        check(not (folder / "bad.png").exists(), "nothing is written")
    check(plot("x").returncode == 1, "usage")
print("ok")
