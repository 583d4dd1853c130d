"""ReportOptions: the one list of the options of a report."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

from steadytree.data.dataset import Dataset
from steadytree.data.schema import Schema
from steadytree.privacy.ledger import Ledger
from steadytree.reporting.data_set import Origin
from steadytree.reporting.limits import Limits
from steadytree.robustness.perturbation import Perturbation


@dataclass(frozen=True, eq=False)
class ReportOptions:
    """Everything besides model and rows; made by `report` and the command, read by the sections.

    All of it may be absent: a section is left out where what it needs was not given.
    """

    title: str | None = None
    date: str | None = None  # today where it is not given
    origin: Origin = field(default_factory=Origin)  # where data and model came from
    previous: Any = None  # the tree in use so far
    learner: Any = None  # unfitted learner that gave the model, for retraining
    train: Dataset | None = None  # the rows that the model was fitted on
    perturbation: Perturbation | None = None  # by default 2 % of each column's range
    limits: Limits | None = None
    groups: Mapping[str, Any] = field(default_factory=dict)  # labels of the rows, by name
    scorecard: Any = None  # Scorecard or fitted RiskScoreClassifier, shown beside the tree
    ledger: Ledger | None = None
    schema: Schema | None = None  # declared columns, for accuracy against epsilon
    comparison: Mapping[str, Any] | None = None  # `Comparison.formatted`
    quick: bool = False  # leave out the slow sections
    seed: int = 0
    # for `report_file`, which fits what was not given
    learner_name: str | None = None  # one of TREE_LEARNERS
    max_depth: int = 5
    criterion: str = "gini"
    compared_learners: Sequence[str] = ()
    comparison_file: str | PathLike[str] | None = None  # a page that `compare` wrote
    n_jobs: int = 1
    command: str = ""
