"""Scoring: totals, risks, reasons and remarks of new rows, as columns of a table."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytree.data.table import Table
from steadytree.models.scorecard import Scorecard, scorecard_of
from steadytree.riskscore.scaling import Scaling

MISSING, UNSEEN, OUTSIDE = "missing", "unseen category", "outside the training range"


@dataclass(frozen=True, eq=False)
class ScoredRows:
    """Rows with their points, and what is unusual about them."""

    scorecard: Scorecard
    totals: NDArray[np.int64]  # (n_rows,), or (n_rows, n_classes) above two classes
    reasons: list[list[tuple[str, int]]]  # as `Scorecard.reasons` gives them; empty above two
    remarks: list[str]  # missing values, unseen categories, values outside the training range
    scaled: NDArray[np.int64] | None = None

    @classmethod
    def of(cls, model: Any, X: Any, scaling: Scaling | None = None) -> "ScoredRows":
        """Score rows; `scaling` adds the score of that scale."""
        scorecard, table = scorecard_of(model), Table.read(X)
        reasons = scorecard.reasons(table) if scorecard.is_binary else []
        remarks = remarks_on(scorecard, table)
        scaled = None if scaling is None else scaling.score(table)
        return cls(scorecard, scorecard.score(table), reasons, remarks, scaled)

    def columns(self, n_reasons: int = 3) -> dict[str, list[Any]]:
        """Columns to be written beside those of the rows."""
        scorecard, names = self.scorecard, self.scorecard.classes.tolist()
        found: dict[str, list[Any]] = {}
        if self.scaled is not None:
            found["score"] = self.scaled.tolist()
        by_class = self.totals.reshape(len(self.totals), -1)
        heads = ["total"] if scorecard.is_binary else [f"total {name}" for name in names]
        found |= dict(zip(heads, by_class.T.tolist(), strict=True))
        if scorecard.gives_risks:
            risks = scorecard.risk(self.totals)
            shown = range(1, 2) if scorecard.is_binary else range(len(names))
            found |= {f"risk {names[k]}": [float(f"{r:.6g}") for r in risks[:, k]] for k in shown}
        found["prediction"] = scorecard.classes[scorecard.answer_of(by_class)].tolist()
        if scorecard.risk_groups:
            starts = [group.least for group in scorecard.risk_groups[1:]]
            index = np.searchsorted(starts, self.totals, side="right")
            found["risk group"] = [scorecard.risk_groups[k].name for k in index.tolist()]
        for k in range(n_reasons if scorecard.is_binary else 0):
            found[f"reason {k + 1}"] = [
                f"{row[k][0]} ({row[k][1]:+d})" if k < len(row) else "" for row in self.reasons
            ]
        found["remarks"] = self.remarks
        return found


def remarks_on(model: Any, X: Any) -> list[str]:
    """For each row what is unusual about the variables of a scorecard; empty where nothing is."""
    scorecard, table = scorecard_of(model), Table.read(X)
    values = scorecard.encode(table)
    found: list[list[str]] = [[] for _ in range(len(values))]
    for variable in scorecard.variables:
        column, own = variable.column, values[:, variable.feature]
        missing = np.isnan(own)
        flagged = {MISSING: missing}
        if column.is_categorical:
            index = variable.feature if table.names is None else table.names.index(column.name)
            unseen = missing & (table.text(index).of_row >= 0)
            flagged = {MISSING: missing & ~unseen, UNSEEN: unseen}
        else:
            flagged[OUTSIDE] = (own < column.low) | (own > column.high)
        for what, rows in flagged.items():
            for row in np.flatnonzero(rows).tolist():
                found[row].append(f"{column.name}: {what}")
    return ["; ".join(one) for one in found]
