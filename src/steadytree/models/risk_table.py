"""RiskTable: what totals of a scorecard meant among rows; RiskGroup: totals under one name."""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from steadytree._base.intervals import wilson_interval

if TYPE_CHECKING:
    from steadytree.models.scorecard import Scorecard


@dataclass(frozen=True)
class RiskGroup:
    """Totals from `least` on, up to the next group; the first group has all below as well."""

    name: str
    least: int


@dataclass(frozen=True)
class RiskRow:
    """One total of one class."""

    label: Any  # the class whose risk it is
    total: int  # points with the offset
    n_rows: float  # training rows (or their summed weights) with this total
    n_label: float  # those of the class
    share: float  # n_label / n_rows
    interval: tuple[float, float]  # 95 % Wilson interval of the share
    # the scorecard's risk; above two classes the share, since one class's total does not give it
    risk: float

    @classmethod
    def of(
        cls, scorecard: "Scorecard", label: Any, total: int, n_rows: float, n_label: float
    ) -> "RiskRow":
        """The row that counts of rows make; all else follows from them and the card."""
        share = n_label / n_rows
        fits = scorecard.is_binary and scorecard.gives_risks
        risk = float(scorecard.risk([total])[0, 1]) if fits else share
        return cls(label, total, n_rows, n_label, share, wilson_interval(n_label, n_rows), risk)


@dataclass(frozen=True)
class RiskTable:
    """Risk by total, lowest total first; with more than two classes, class by class."""

    rows: tuple[RiskRow, ...]

    @classmethod
    def of(
        cls,
        scorecard: "Scorecard",
        totals: NDArray[np.int64],
        labels: NDArray[np.int64],
        weights: NDArray[np.float64] | None = None,
    ) -> "RiskTable":
        """Count rows with given totals (as `Scorecard.score` returns them) and class indices."""
        weights = np.ones(len(labels)) if weights is None else weights
        rows: list[RiskRow] = []
        for index in [1] if scorecard.is_binary else range(len(scorecard.classes)):
            own = totals if scorecard.is_binary else totals[:, index]
            for total in np.unique(own):
                here = own == total
                n_rows = float(weights[here].sum())
                n_label = min(float(weights[here & (labels == index)].sum()), n_rows)
                label = scorecard.classes[index : index + 1].tolist()[0]
                rows.append(RiskRow.of(scorecard, label, int(total), n_rows, n_label))
        return cls(tuple(rows))

    def to_dict(self) -> dict[str, list[Any]]:
        """Columns of plain values, which pandas and polars take as they are."""
        listed = [asdict(row) for row in self.rows]
        names = RiskRow.__dataclass_fields__
        return {name: [row[name] for row in listed] for name in names}
