"""Evidence: what a report may look at besides a tree and rows."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from steadytree.data.dataset import Dataset
from steadytree.data.schema import Schema
from steadytree.privacy.ledger import Ledger
from steadytree.reporting.limits import Limits
from steadytree.robustness.perturbation import Perturbation


@dataclass(frozen=True, eq=False)
class ReportOptions:
    """Everything beyond the tree and the rows it is judged on; all of it may be absent.

    Parameters
    ----------
    previous : tree or None
        The tree in use so far.
    learner : learner or None
        How the tree was learned, to learn it again.
    train : Dataset or None
        The rows it was learned from.
    perturbation : Perturbation or None
        How far inputs may move; 2 % of each column's range where none is stated.
    limits : Limits or None
    groups : mapping of name to labels of the rows
    card : Scorecard, fitted card learner or None
    ledger : Ledger or None
    schema : Schema or None
        Declared columns, for accuracy against epsilon.
    comparison : dict or None
        Words of a comparison, as ``Comparison.words``.
    quick : bool
        Leave out what takes long.
    seed : int
    """

    previous: Any = None
    learner: Any = None
    train: Dataset | None = None
    perturbation: Perturbation | None = None
    limits: Limits | None = None
    groups: Mapping[str, Any] = field(default_factory=dict)
    card: Any = None
    ledger: Ledger | None = None
    schema: Schema | None = None
    comparison: Mapping[str, Any] | None = None
    quick: bool = False
    seed: int = 0
