#!/usr/bin/python3
"""Speed-up against memory, one panel per point of a sweep.

  plots/speedup_vs_memory.py SUMMARY.json OUT.png

Reads summary.json of `rrfp sweep --out`, and nothing else. Policies with the same memory on their
fullest rank share a band; inside it every hint has a column of its own, so that a fixed order and
what readiness makes of it stand one above the other. Colours are Okabe and Ito's.
"""

import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402  (the backend comes first)
from matplotlib.lines import Line2D  # noqa: E402

from figure_file import fail, save  # noqa: E402
from result_file import name_of_varying, read_summary  # noqa: E402

COLOURS = {
    "1f1b": "#E69F00",
    "eager-1f1b": "#D55E00",
    "zb-h1": "#56B4E9",
    "zb-h2": "#0072B2",
    "bf": "#CC79A7",
    "bfw": "#009E73",
}
OTHER_COLOUR = "#666666"
# What a policy is: marker, legend.
KINDS = {
    "blocking": ("x", "fixed order, blocking send and receive"),
    "queue": ("+", "fixed order, launch queue of a GPU"),
    "fixed": ("s", "fixed order"),
    "ready": ("o", "readiness-first"),
    "wait": ("^", "readiness-first with anticipation"),
}


def kind_of(policy):
    if policy["network"] == "launch-queue":
        return "queue"
    if policy["network"] != "eager":
        return "blocking"
    if policy["fixed"]:
        return "fixed"
    return "wait" if policy["anticipates"] else "ready"


def hint_of(policy):
    # An order from a file goes by the first word of the policy's name.
    return policy["hint"] or policy["name"].split()[0].rstrip(",")


def describe_varying(entry):
    """An entry of "variability": the name of its preset, or what its model says of itself."""
    name = name_of_varying(entry)
    if not isinstance(entry, dict) or name != entry.get("model"):
        return name
    if name == "spikes" and "probability" in entry:
        return f"{100 * entry['probability']:g} % of messages late"
    what = "microbatch" if entry.get("scope") == "microbatch" else entry.get("on", "")
    if name == "lognormal" and "cv" in entry:
        return f"{what} CV {entry['cv']:g}"
    return f"{what} {name}".strip()


def describe_value(pointer, value):
    if pointer == "/variability" and isinstance(value, list):
        # A preset may stand for several models.
        return ", ".join(dict.fromkeys(map(describe_varying, value))) or "no variability"
    if pointer.startswith("/variability/") and isinstance(value, (dict, str)):
        return describe_varying(value)
    name = pointer.rsplit("/", 1)[-1].replace("_", " ")
    return f"{name} {value:g}" if isinstance(value, (int, float)) else f"{name} {value}"


def title_of(axes, values):
    return "\n".join(describe_value(a, v) for a, v in zip(axes, values)) or "all iterations"


def memory_of(point, policy):
    """Activations of the fullest rank, and of the average rank."""
    unit = max(1, point["activation_bytes"])
    return round(policy["peak_bytes"] / unit), policy["all_ranks_bytes"] / unit / point["ranks"]


def averages_of(points):
    """Which averages count as one: {band: [least of each group]}, 8 % of the band apart.

    Inboxes of two runs are never quite alike, and a policy may leave a little of its budget unused.
    """
    found = {}
    for point in points:
        for policy in point["policies"]:
            band, average = memory_of(point, policy)
            found.setdefault(band, []).append(average)
    groups = {}
    for band, averages in found.items():
        last = None
        for average in sorted(averages):
            if last is None or average - last > 0.08 * band:
                groups.setdefault(band, []).append(average)
            last = average
    return groups


def place_of(point, policy, groups):
    """The band, and in it the column: the group of its average memory, and its hint."""
    band, average = memory_of(point, policy)
    return band, (max(g for g in groups[band] if g <= average), hint_of(policy))


def bands_of(points, groups):
    """Bands of equal memory over all panels: {activations: [columns]}, both ascending."""
    bands = {}
    for point in points:
        for policy in point["policies"]:
            band, column = place_of(point, policy, groups)
            bands.setdefault(band, set()).add(column)
    return {band: sorted(columns) for band, columns in sorted(bands.items())}


def positions_of(bands):
    """The place of each (band, column) along the axis, and the edges of each band."""
    places, edges, at = {}, {}, 0.0
    for band, columns in bands.items():
        edges[band] = (at, at + len(columns) + 0.6)
        for i, column in enumerate(columns):
            places[band, column] = at + 0.8 + i
        at += len(columns) + 1.0
    return places, edges


def spans_of(places):
    """First and last place of each (band, average memory)."""
    spans = {}
    for (band, (average, _)), at in places.items():
        left, right = spans.get((band, average), (at, at))
        spans[band, average] = (min(left, at), max(right, at))
    return spans


def draw_point(axes, point, groups, places, edges):
    for left, right in edges.values():
        axes.axvspan(left, right, color="#f3f3f3", zorder=0)
    axes.axhline(1, color="black", linewidth=0.8, linestyle=(0, (4, 3)), zorder=1)
    for policy in point["policies"]:
        if "speedup" not in policy or policy["name"] == point["baseline"]:
            continue
        if policy.get("misses_latency_draws"):  # it met another world than the baseline
            continue
        band, column = place_of(point, policy, groups)
        kind = kind_of(policy)
        x = places[band, column] + {"fixed": -0.2, "wait": 0.2}.get(kind, 0)
        colour = COLOURS.get(hint_of(policy), OTHER_COLOUR)
        low, high = policy.get("speedup_interval", [policy["speedup"]] * 2)
        axes.plot([x, x], [low, high], color=colour, linewidth=1.2, zorder=2)
        filled = policy["arrange"] == "given"
        edged = filled and kind not in ("blocking", "queue")  # those two are nothing but lines
        axes.plot(x, policy["speedup"], marker=KINDS[kind][0], color=colour if filled else "white",
                  markersize=6 if filled else 5, linestyle="", zorder=3,
                  markeredgecolor="white" if edged else colour,
                  markeredgewidth=0.7 if edged else 1.4)
    for (band, average), (left, right) in spans_of(places).items():
        axes.text((left + right) / 2, 0.015, f"⌀ {average:.2g}", ha="center", fontsize=7,
                  color="#555555", transform=axes.get_xaxis_transform())
        if left - 1 > edges[band][0]:
            axes.axvline(left - 0.5, color="white", linewidth=1.5, zorder=0)
    axes.set_xlim(-0.3, max(right for _, right in edges.values()) + 0.3)
    axes.set_xticks([(left + right) / 2 for left, right in edges.values()])
    axes.set_xticklabels([f"{band}" for band in edges])
    axes.tick_params(axis="x", length=0)
    axes.grid(axis="y", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def legends(figure, points, columns):
    hints, kinds, arranged = set(), set(), False
    for point in points:
        for policy in point["policies"]:
            arranged = arranged or policy["arrange"] != "given"
            if policy["name"] != point["baseline"]:
                hints.add(hint_of(policy))
                kinds.add(kind_of(policy))
    known = [hint for hint in COLOURS if hint in hints] + sorted(hints - set(COLOURS))
    colours = [Line2D([], [], color=COLOURS.get(hint, OTHER_COLOUR), linewidth=5, label=hint)
               for hint in known]
    markers = [Line2D([], [], color="#444444", marker=marker, linestyle="", label=text)
               for kind, (marker, text) in KINDS.items() if kind in kinds]
    if arranged:
        markers.append(Line2D([], [], color="white", marker="o", markeredgecolor="#444444",
                              markeredgewidth=1.4, linestyle="", label="hollow: arranged"))
    height = figure.get_size_inches()[1]
    for handles, inches in ((colours, 0.32), (markers, 0.06)):
        figure.legend(handles=handles, loc="lower center", ncol=len(handles), frameon=False,
                      fontsize=9 if columns == 4 else 8, columnspacing=1.2, borderpad=0,
                      bbox_to_anchor=(0.5, inches / height))


def draw(sweep):
    points = [point for point in sweep["points"] if point["policies"]]
    if not points:
        fail("the sweep holds no finished iteration")
    groups = averages_of(points)
    places, edges = positions_of(bands_of(points, groups))
    columns = min(4, len(points))
    rows = -(-len(points) // columns)
    figure, grid = plt.subplots(rows, columns, figsize=(3.1 * columns + 0.6, 3.6 * rows + 1.0),
                                sharey=True, squeeze=False, dpi=160)
    for axes in grid.flat[len(points):]:
        axes.set_visible(False)
    for axes, point in zip(grid.flat, points):
        draw_point(axes, point, groups, places, edges)
        axes.set_title(title_of(sweep["axes"], point["values"]).replace(", ", ",\n"), fontsize=10)
        axes.set_xlabel("peak memory of the fullest rank\n[activations, inbox included; ⌀: of all]",
                        fontsize=9)
    for row in grid:
        row[0].set_ylabel(f"speed-up over {points[0]['baseline']}\n[ratio of mean iteration times]",
                          fontsize=9)
    done = min(point["iterations_done"] for point in points)
    note = "" if sweep["complete"] else ", interrupted"
    figure.suptitle(f"{sweep['name']}: {done} simulated iterations a panel{note}" +
                    ("; " if columns == 4 else "\n") + "bars are 95 % intervals", fontsize=11)
    figure.tight_layout(rect=(0, 0.6 / (3.6 * rows + 1.0), 1, 1))
    legends(figure, points, columns)
    return figure


def main(arguments):
    if len(arguments) != 2:
        fail("usage: plots/speedup_vs_memory.py SUMMARY.json OUT.png")
    save(draw(read_summary(arguments[0])), arguments[1])


if __name__ == "__main__":
    main(sys.argv[1:])
