"""compare: learners compared on the same folds, as text, as a page or as plain values."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import cached_property
from os import PathLike
from typing import Any

from steadytree._base.files import check_can_write, check_is_page, write_text_atomically
from steadytree._base.progress import Progress, following
from steadytree.comparison.compare import Results, compare_learners
from steadytree.comparison.learners import Settings
from steadytree.data.dataset import hash_data
from steadytree.data.schema import Schema
from steadytree.reporting.data_set import Origin, made_with
from steadytree.reporting.formatting import format_comparison
from steadytree.reporting.html import framed, render_comparison
from steadytree.reporting.text import comparison_text
from steadytree.robustness.perturbation import Perturbation

FORMAT = 1


class Comparison(Results):
    """A comparison of learners; shows itself in a terminal and in a notebook."""

    @classmethod
    def of(cls, found: Results) -> "Comparison":
        """Figures that show themselves."""
        return cls(*(getattr(found, item.name) for item in fields(found)))

    @cached_property
    def formatted(self) -> dict[str, Any]:
        """What the page shows, as plain values that JSON can hold."""
        return format_comparison(self.to_dict())

    @cached_property
    def html(self) -> str:
        """The comparison as one page that needs nothing else."""
        return render_comparison(page_data(self, "", "", None))

    def write(self, path: str | PathLike[str]) -> None:
        """Write the page to a file, whole or not at all."""
        write_text_atomically(path, self.html)

    def __str__(self) -> str:
        return comparison_text(self.formatted)

    def __repr__(self) -> str:
        return f"Comparison({', '.join(one.name for one in self.results)}; {self.n_folds} folds)"

    def _repr_html_(self) -> str:
        return framed(self.html, "comparison")


def page_data(found: Comparison, title: str, sha256: str, origin: Origin | None) -> dict[str, Any]:
    """All figures of a comparison and where they come from."""
    return {
        "format": FORMAT,
        "kind": "comparison",
        "title": title or "Comparison of learners",
        "comparison": found.formatted,
        "data_sha256": sha256,
        "origin": (origin or Origin()).to_dict(),
        "made": made_with(),
    }


def compare(
    models: Sequence[str] | Mapping[str, Any],
    X: Any,
    y: Any,
    *,
    n_folds: int = 5,
    max_depth: int = 4,
    max_leaf_nodes: int = 8,
    perturbation: Perturbation | None = None,
    epsilon: float = 1.0,
    schema: Schema | None = None,
    time_limit: float = 2.0,
    sensitivity: bool = True,
    n_jobs: int | None = None,
    random_state: int = 0,
    path: str | PathLike[str] | None = None,
    progress: bool | Callable[[str], None] | Progress | None = None,
) -> Comparison:
    """Compare learners on the same folds.

    Every learner is fitted to all folds but one and evaluated on that one: accuracy, AUC, size,
    certified and worst-case accuracy. The retraining distance is the mean path distance between
    the trees of two folds, which share all but two folds' rows. Average sensitivity is exact for
    learners that can repeat a fit (``cart``, ``stable``), sampled for others, and left out where a
    fit takes too long to repeat. With more than 5,000 rows a sample is used; ``note`` states it and
    names learners that are left out because they cannot take the rows, with the reason.

    Parameters
    ----------
    models : names, or mapping of name to unfitted learner
        Names out of "steady", "cart", "cart-cv" (its size chosen by cross-validation), "stable",
        "pareto", "robust", "score", "private" and "boosted" (an ensemble, which shows what a
        readable model gives up).
    X, y : rows and their classes
    n_folds : int, default=5
    max_depth : int, default=4
        For the named learners; "robust" goes no deeper than 2.
    max_leaf_nodes : int, default=8
        For "steady" and "cart-cv".
    perturbation : Perturbation, optional
        What certified and worst-case accuracy are about, and what "robust" hardens against. By
        default every number may move by 2 % of its column's range.
    epsilon : float, default=1.0
        Privacy budget of "private".
    schema : Schema, optional
        For "private". Without it bounds are read off the data: good for a comparison, not private.
    time_limit : float, default=2.0
        Seconds for each search of "robust".
    sensitivity : bool, default=True
        Whether to measure average sensitivity, which takes longest.
    n_jobs : int, optional
        Processes.
    random_state : int, default=0
    path : str or path-like, optional
        Where to write the comparison as one offline HTML page.
    progress : bool or callable, optional
        True shows a bar with the time left, False none; by default one is shown in a terminal or
        notebook after 2 seconds. A function is called with what is done next.

    Returns
    -------
    comparison : Comparison
        ``comparison["cart"].measurements`` holds the numbers; ``columns()`` makes a frame.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> found = compare(["steady", "cart"], X, y, n_folds=3, max_depth=2)
    >>> found
    Comparison(steady, cart; 3 folds)
    >>> bool(found["cart"].measurements["accuracy"].value > 0.9)
    True
    """
    if path is not None:
        check_is_page(path)
        check_can_write(path)
    settings = Settings(
        max_depth, perturbation, epsilon, schema, time_limit, random_state, max_leaf_nodes
    )
    with following(progress) as on_progress:
        found = compare_learners(models, X, y, settings, n_folds, n_jobs, on_progress, sensitivity)
    made = Comparison.of(found)
    if path is not None:
        data = page_data(made, "", hash_data(X, y), None)
        write_text_atomically(path, render_comparison(data))
    return made
