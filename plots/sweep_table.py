#!/usr/bin/python3
"""One row for each world of each sweep: fixed orders against hints, with the memory of both.

  plots/sweep_table.py SUMMARY.json...

Reads summary.json of `rrfp sweep --out`, and nothing else; prints a table in Markdown. Ratios are
the baseline's mean time over the policy's: larger is faster. Memory is that of the fullest rank,
activations and received activations together; the hints of a row need no more than its fixed order,
up to half an activation.
"""

import json
import sys

from figure_file import fail
from result_file import read_summary

HEADER = ("job", "world", "baseline", "fastest fixed order", "fastest hint within its memory",
          "fastest bfw within its memory", "fastest of all")
PLAIN_HINTS = ("bf ", "bfw ")


def world_of(point):
    """The names of what varies, or the values of the grid as they are."""
    names = []
    for value in point["values"]:
        for entry in value if isinstance(value, list) else [value]:
            if isinstance(entry, dict):
                entry = (entry.get("preset") or entry.get("from_preset") or entry.get("model")
                         or json.dumps(entry))
            names.append(str(entry))
    return " + ".join(names) or "as in the file"


def cell(policy, in_ms=False):
    if policy is None:
        return "-"
    gb = policy["peak_bytes"] / 1e9
    value = f"{policy['mean_ns'] / 1e6:.0f} ms" if in_ms else f"{policy['speedup']:.3f}"
    name = "" if in_ms else f"{policy['name']}: "
    return f"{name}{value} ({gb:.1f} GB)"


def fastest(policies):
    return min(policies, key=lambda policy: policy["mean_ns"], default=None)


def rows_of(sweep):
    for point in sweep["points"]:
        ran = [p for p in point["policies"] if p["runs"] > 0 and p["blocked"] == 0]
        baseline = next((p for p in ran if p["name"] == point["baseline"]), None)
        fixed = fastest([p for p in ran if p["fixed"]])
        most = fixed["peak_bytes"] + point["activation_bytes"] / 2 if fixed else 0
        within = [p for p in ran if not p["fixed"] and p["peak_bytes"] <= most]
        plain = [p for p in within if p["name"].startswith(PLAIN_HINTS)]
        shaped = [p for p in within if not p["name"].startswith(PLAIN_HINTS)]
        yield (sweep["name"], world_of(point), cell(baseline, in_ms=True), cell(fixed),
               cell(fastest(shaped)), cell(fastest(plain)), cell(fastest(ran)))


def main():
    if len(sys.argv) < 2:
        fail("usage: sweep_table.py SUMMARY.json...")
    rows = [row for path in sys.argv[1:] for row in rows_of(read_summary(path))]
    for row in (HEADER, ["---"] * len(HEADER), *rows):
        print("| " + " | ".join(row) + " |")


if __name__ == "__main__":
    main()
