"""Counterexample: a small move that changes an answer, in words."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytree.data.column import Column
from steadytree.data.feature_space import FeatureSpace


@dataclass(frozen=True)
class Step:
    """One feature that moves, from what to what; None is missing."""

    feature: str
    start: float | str | None
    end: float | str | None

    def __str__(self) -> str:
        start, end = _shown(self.start, self.end)
        return f"{self.feature} from {start} to {end}"


@dataclass(frozen=True)
class Counterexample:
    """A row, the least move that changes its answer, and what the answer becomes."""

    row: int
    size: float
    answer: Any
    other: Any
    steps: tuple[Step, ...]

    def __str__(self) -> str:
        moved = ", ".join(str(step) for step in self.steps)
        becomes = f"{self.answer!r} becomes {self.other!r}"
        return f"row {self.row}: {becomes} at size {self.size:.4g}: {moved}"

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)


def explain_move(
    space: FeatureSpace, start: NDArray[np.float64], end: NDArray[np.float64]
) -> tuple[Step, ...]:
    """The columns in which two encoded rows differ."""
    same = (start == end) | (np.isnan(start) & np.isnan(end))
    return tuple(
        Step(space[j].name, _decode(space[j], start[j]), _decode(space[j], end[j]))
        for j in np.flatnonzero(~same).tolist()
    )


def _decode(column: Column, value: float) -> float | str | None:
    if np.isnan(value):
        return None
    return column.categories[int(value)] if column.is_categorical else float(value)


def _shown(start: float | str | None, end: float | str | None) -> tuple[str, str]:
    """Both as text, with as few digits as keep them apart."""
    if not isinstance(start, float) or not isinstance(end, float):
        return _plain(start), _plain(end)
    for digits in range(4, 17):
        texts = f"{start:.{digits}g}", f"{end:.{digits}g}"
        if texts[0] != texts[1] and abs(float(texts[1]) - end) <= 1e-3 * max(
            abs(end - start), 1e-300
        ):
            break
    return texts


def _plain(value: float | str | None) -> str:
    if value is None:
        return "missing"
    return repr(value) if isinstance(value, str) else f"{value:.6g}"
