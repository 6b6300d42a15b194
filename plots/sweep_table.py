#!/usr/bin/python3
"""One row for each world of each sweep: fixed orders against hints, with the memory of both.

  plots/sweep_table.py SUMMARY.json...

Reads summary.json of `rrfp sweep --out`, and nothing else; prints a table in Markdown. Ratios are
the baseline's mean time over the policy's: larger is faster. Memory is that of the fullest rank,
activations and received activations together; the hints of a row need no more than its fixed order,
up to half an activation.
"""

import os
import sys

from figure_file import fail
from result_file import name_of_varying, read_summary

HEADER = ("job", "world", "baseline", "fastest fixed order", "fastest hint within its memory",
          "fastest bfw within its memory", "fastest of all")
PLAIN_HINTS = ("bf ", "bfw ")


def world_of(point):
    """The names of what varies, or the values of the grid as they are."""
    names = []
    for value in point["values"]:
        for entry in value if isinstance(value, list) else [value]:
            names.append(name_of_varying(entry))
    return " + ".join(names) or "as in the file"


def job_of(sweep, point):
    """Its name, and how much of it there is where that is not all."""
    done = point.get("iterations_done")
    if sweep.get("complete", True) or done == point.get("iterations"):
        return sweep["name"]
    return f"{sweep['name']} (interrupted: {done} of {point.get('iterations')} iterations)"


def memory_of(policy, activation_bytes):
    """A scenario that names no sizes has activations of one byte."""
    peak_bytes = policy["peak_bytes"]
    if activation_bytes <= 1:
        return f"{peak_bytes} activation" + ("" if peak_bytes == 1 else "s")
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if peak_bytes >= size / 10:
            return f"{peak_bytes / size:.1f} {unit}"
    return f"{peak_bytes} bytes"


def cell(policy, activation_bytes, in_ms=False):
    if policy is None:
        return "-"
    value = f"{policy['mean_ns'] / 1e6:.0f} ms" if in_ms else f"{policy['speedup']:.3f}"
    name = "" if in_ms else f"{policy['name']}: "
    return f"{name}{value} ({memory_of(policy, activation_bytes)})"


def fastest(policies):
    return min(policies, key=lambda policy: policy["mean_ns"], default=None)


def rows_of(sweep):
    for point in sweep["points"]:
        ran = [p for p in point["policies"] if p["runs"] > 0 and p["blocked"] == 0]
        baseline = next((p for p in ran if p["name"] == point["baseline"]), None)
        fixed = fastest([p for p in ran if p["fixed"]])
        activation_bytes = point["activation_bytes"]
        most = fixed["peak_bytes"] + activation_bytes / 2 if fixed else 0
        within = [p for p in ran if not p["fixed"] and p["peak_bytes"] <= most]
        plain = [p for p in within if p["name"].startswith(PLAIN_HINTS)]
        shaped = [p for p in within if not p["name"].startswith(PLAIN_HINTS)]
        yield (job_of(sweep, point), world_of(point), cell(baseline, activation_bytes, in_ms=True),
               *(cell(policy, activation_bytes)
                 for policy in (fixed, fastest(shaped), fastest(plain), fastest(ran))))


def main():
    if len(sys.argv) < 2:
        fail("usage: sweep_table.py SUMMARY.json...")
    rows = [row for path in sys.argv[1:] for row in rows_of(read_summary(path))]
    for row in (HEADER, ["---"] * len(HEADER), *rows):
        print("| " + " | ".join(row) + " |")


if __name__ == "__main__":
    try:
        main()
        sys.stdout.flush()
    except BrokenPipeError:  # whoever reads, as `head` does, has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)  # as of a program that SIGPIPE ended
