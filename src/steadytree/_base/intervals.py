"""Confidence intervals of proportions."""

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
