"""Measurement: one number about a model, with what it means."""

from dataclasses import asdict, dataclass
from typing import Any

from steadytree._base.notebook import Shown


@dataclass(frozen=True)
class Measurement(Shown):
    """A measured value that a person can read and a report can print.

    Parameters
    ----------
    name : str
    value : float
    meaning : str
        One line for someone who did not read the paper.
    interval : tuple of two floats, optional
        Confidence interval where the value was sampled; None where it is exact.
    unit : str, default=""
        Printed behind the value: "rows", "nodes", "%".
    level : float, default=0.95
        Confidence level of the interval.

    Examples
    --------
    >>> print(Measurement("accuracy", 0.934, "share of rows predicted correctly", (0.91, 0.95)))
    accuracy: 0.934 (95 % interval 0.91 to 0.95)
    """

    name: str
    value: float
    meaning: str
    interval: tuple[float, float] | None = None
    unit: str = ""
    level: float = 0.95

    def __post_init__(self) -> None:
        what = f"Measurement {self.name!r}"
        if self.interval is not None and not self.interval[0] <= self.interval[1]:
            raise ValueError(f"{what}: the interval is out of order, got {self.interval}.")
        if not 0 < self.level < 1:
            raise ValueError(f"{what}: level must be in (0, 1), got {self.level}.")

    def __str__(self) -> str:
        text = f"{self.name}: {self.value:.4g} {self.unit}".rstrip()
        if self.interval is not None:
            low, high = self.interval
            text += f" ({100 * self.level:.0f} % interval {low:.4g} to {high:.4g})"
        return text

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)
