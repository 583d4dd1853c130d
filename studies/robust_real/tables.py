"""Tables of the study."""

import collections

import numpy as np


def write_tables(results, groot, bounds):
    """All tables as text."""
    parts = [head(results, groot), by_set(results, groot), by_depth(results, groot), gaps(bounds)]
    return "\n\n".join(part for part in parts if part)


def joined(results, groot):
    """Cases that both have, with all methods side by side."""

    def name(case):
        return case["set"], case["share"], case["depth"], case["seed"]

    peers = {name(case): case for case in groot}
    return [{**case, "groot": peers[name(case)]} for case in results if name(case) in peers]


def head(results, groot):
    cases = joined(results, groot)
    if not cases:
        return ""
    gain = np.array([case["ours"]["train"] - case["groot"]["train"] for case in cases])
    two = [case["ours"]["gap"] == 0 for case in cases if case["depth"] == 2]
    agrees = sum(case[method]["agrees"] for case in cases for method in ("ours", "auto"))
    slowest = max(case["ours"]["seconds"] for case in cases)
    return "\n".join(
        [
            f"{len(cases)} cases (set, noise, depth, split)",
            f"training rows: at least GROOT's in {(gain > -1e-9).sum()}, more in "
            f"{(gain > 1e-9).sum()}; mean gain {100 * gain.mean():+.2f} points",
            f"certify agrees with the objective in {agrees} of {2 * len(cases)} fits",
            f"depth 2 proven in {sum(two)} of {len(two)}; slowest fit {slowest:.2f} CPU s",
        ]
    )


def mean_and_error(values):
    """Mean over splits and its standard error, in points."""
    values = 100 * np.array(values)
    return values.mean(), values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan


def by_set(results, groot):
    cases = joined(results, groot)
    if not cases:
        return ""
    lines = [
        "Test rows, certified accuracy less that of the peer, points (mean over noise and depth;"
    ]
    lines.append("standard error over splits)")
    lines.append(
        f"{'set':16}{'auto':>8}{'less GROOT':>16}{'less CART':>16}{'R = 0 less GROOT':>18}"
    )
    groups = collections.defaultdict(list)
    for case in cases:
        groups[case["set"]].append(case)
    groups["all"] = cases
    for name, own in groups.items():
        seeds = sorted({case["seed"] for case in own})

        def gain(method, peer, own=own, seeds=seeds):
            per_split = [
                np.mean([c[method]["test"] - c[peer]["test"] for c in own if c["seed"] == seed])
                for seed in seeds
            ]
            mean, error = mean_and_error(per_split)
            return f"{mean:+.2f} ± {error:.2f}"

        level = 100 * np.mean([case["auto"]["test"] for case in own])
        columns = gain("auto", "groot"), gain("auto", "cart"), gain("ours", "groot")
        lines.append(f"{name:16}{level:8.1f}{columns[0]:>16}{columns[1]:>16}{columns[2]:>18}")
    return "\n".join(lines)


def by_depth(results, groot):
    cases = joined(results, groot)
    if not cases:
        return ""
    lines = ["Gain on GROOT, points: training rows at R = 0, test rows at R = 0 and at auto"]
    for share in sorted({case["share"] for case in cases}):
        for depth in sorted({case["depth"] for case in cases}):
            own = [c for c in cases if c["depth"] == depth and c["share"] == share]
            train = 100 * np.mean([c["ours"]["train"] - c["groot"]["train"] for c in own])
            tests = [
                100 * np.mean([c[method]["test"] - c["groot"]["test"] for c in own])
                for method in ("ours", "auto")
            ]
            lines.append(
                f"noise {share:.2f}, depth {depth}: {train:+.2f}, {tests[0]:+.2f}, {tests[1]:+.2f}"
            )
    return "\n".join(lines)


def gaps(bounds):
    if not bounds:
        return ""
    lines = ["Whole sets: objective, bound, gap at the end and after so many CPU seconds"]
    for case in bounds:
        after = ", ".join(f"{limit} s {100 * gap:.1f} %" for limit, gap in case["gaps"].items())
        lines.append(
            f"{case['set']} (n = {case['n']}), noise {case['share']}, depth {case['depth']}: "
            f"{case['objective']:.0f} of at most {case['bound']:.0f}, "
            f"{100 * case['gap']:.1f} % after {case['seconds']:.0f} s ({case['status']}); {after}"
        )
    return "\n".join(lines)
