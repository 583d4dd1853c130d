"""Confidence intervals of proportions and of their differences."""

import numpy as np
from scipy.special import ndtri


def wilson_interval(n_correct: float, n_rows: float, level: float = 0.95) -> tuple[float, float]:
    """Wilson score interval of a proportion (Wilson 1927)."""
    z = float(ndtri((1 + level) / 2))
    share, spread = n_correct / n_rows, z * z / n_rows
    middle = (share + spread / 2) / (1 + spread)
    half = z / (1 + spread) * np.sqrt(share * (1 - share) / n_rows + spread / (4 * n_rows))
    # at 0 and 1 the formula is exact except for rounding
    low = max(0.0, float(middle - half)) if n_correct > 0 else 0.0
    high = min(1.0, float(middle + half)) if n_correct < n_rows else 1.0
    return low, high


def difference_interval(
    first: tuple[float, float], second: tuple[float, float], level: float = 0.95
) -> tuple[float, float]:
    """Interval of a difference of two proportions, each as (count, rows) (Newcombe 1998)."""
    (low, high), (below, above) = (wilson_interval(*one, level) for one in (first, second))
    share, other = first[0] / first[1], second[0] / second[1]
    down, up = np.hypot(share - low, above - other), np.hypot(high - share, other - below)
    return float(share - other - down), float(share - other + up)
