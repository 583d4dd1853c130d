"""The figures of the study as text."""

import numpy as np
from measure import SHIFTS

LIMITS = (0.01, 0.1, 1, 2, 4, 60, 300)


def proofs(cells):
    """Figure 2 by confidence and by depth: share proven within some CPU seconds, largest gap."""
    used = [limit for limit in LIMITS if limit <= max(2, *(c["seconds"] for c in cells))]
    lines = ["share proven within so many seconds of CPU time, and the gap of the others"]
    for key in ("confidence", "depth", "set"):
        for value in dict.fromkeys(cell[key] for cell in cells):
            own = [cell for cell in cells if cell[key] == value]
            seconds = np.array([c["seconds"] if c["proven"] else np.inf for c in own])
            shares = " ".join(f"{limit:g}s {np.mean(seconds <= limit):4.0%}" for limit in used)
            gaps = [cell["gap"] for cell in own if not cell["proven"]]
            gap = f"gap median {np.median(gaps):.1%} largest {max(gaps):.1%}" if gaps else "all"
            idle = np.mean([c["objective"] <= c["majority"] for c in own])
            lines.append(
                f"{key:>10} {value!s:<18} {len(own):>4} instances: {shares}; {gap}; "
                f"majority not beaten {idle:.0%}"
            )
    return "\n".join(lines)


def gains(cells):
    """Figures 3 and 4: gain over the plain tree in points, by shift and confidence."""
    lines = ["gain in points, mean; median [quartiles] (least to largest): worst case | average"]
    for shift in SHIFTS:
        for confidence in sorted({cell["confidence"] for cell in cells}):
            own = [cell for cell in cells if cell["confidence"] == confidence]
            both = [spread([c[shift][0][k] - c[shift][1][k] for c in own]) for k in (0, 1)]
            lines.append(f"{shift:>12} confidence {confidence:<5}: {both[0]} | {both[1]}")
    return "\n".join(lines)


def spread(values):
    """Mean, median, quartiles and range as text."""
    low, middle, high = np.quantile(values, (0.25, 0.5, 0.75))
    ends = f"({min(values):+.2f} to {max(values):+.2f})"
    return f"{np.mean(values):+.2f}; {middle:+.2f} [{low:+.2f} {high:+.2f}] {ends}"
