"""PrivateTreeClassifier: a differentially private decision tree."""

import logging
import warnings
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import validate_data

from steadytree._base.validation import Instance, Integer, OneOf, Parameters, Real, validate
from steadytree.data.schema import Schema, check_schema
from steadytree.data.splits import SplitTable
from steadytree.models.base import TreeClassifierMixin
from steadytree.models.tree import Tree
from steadytree.privacy.budget import (
    LEAST_LEAF_SHARE,
    LEVEL_BINS,
    LEVEL_CANDIDATES,
    ROWS_SHARE,
    PrivacyStatement,
    allocate_blocks,
    check_fit,
    gibbs_leaf_share,
    greedy_depth,
    greedy_leaf_share,
    logged_refusal,
)
from steadytree.privacy.growers import (
    RowsInDask,
    RowsInMemory,
    TopDown,
    build_tree,
    counts_from_labels,
    grow_blocks,
    grow_greedy,
    plausible_counts,
    read_rows,
    split_shares,
)
from steadytree.privacy.ledger import Ledger, charge
from steadytree.privacy.mechanisms import (
    NOT_PRIVATE,
    SMALLEST_PART,
    Noise,
    check_epsilon,
    ledger_mark,
    make_noise,
    release_counts,
)
from steadytree.privacy.tree_mechanism import (
    MOST_ROWS,
    BlockRows,
    SampledTree,
    leaf_counts,
    leaves_of,
)

_LOG = logging.getLogger(__name__)
DEEPEST, TOPDOWN_DEPTH = 16, 8
PARAMETERS: Parameters = {
    "method": OneOf("gibbs", "greedy", "topdown"),
    "criterion": OneOf("gini", "entropy"),
    "budget": OneOf("decay", "uniform"),
    "max_depth": Integer(1, DEEPEST, also=(None,)),
    "leaf_share": Real(0, 0.95, also=("auto",)),
    "max_splits": Integer(1, 10_000),
    "error": Real(0, 1),
    "public_rows": Integer(1, also=(None,)),
    "ledger": Instance(Ledger, "a Ledger"),
}


class PrivateTreeClassifier(TreeClassifierMixin, ClassifierMixin, BaseEstimator):
    """A differentially private decision tree.

    Neighbouring data sets differ by one row, added or removed. Everything in the fitted model is
    covered by `epsilon`: splits, labels, counts and the number of rows. Sibling leaves with equal
    labels are merged.

    Parameters
    ----------
    epsilon : float, default=1.0
        The whole budget of this fit, 1e-6 to 1e6.
    schema : Schema, or path of a schema file
        Columns, bounds, categories and classes, declared without looking at the data.
    method : {"gibbs", "greedy", "topdown"}, default="gibbs"
        "gibbs" samples whole trees of two or three levels in one step each, and is the most
        accurate; "greedy" selects one split a node, level by level, and is the fastest;
        "topdown" is DP-TopDown with its mechanisms corrected.
    max_depth : int, optional
        Maximum depth, 1 to 16; by default chosen from epsilon times the noisy number of rows and
        the number of classes (for "topdown" 8).
    criterion : {"gini", "entropy"}, default="gini"
        How "greedy" and "topdown" score a split. One row changes Gini scores by less than 2,
        entropy by up to 28.4: Gini needs far less noise.
    leaf_share : float or "auto", default="auto"
        Share of epsilon for class counts of the leaves, hence probabilities. With "gibbs", 0
        spends nothing: labels are sampled with the tree, probabilities are then 0 or 1 and
        every leaf has the same weight; "auto" does so if epsilon times rows is small.
    budget : {"decay", "uniform"}, default="decay"
        How "topdown" divides its budget among depths: halved at each, or evenly.
    max_splits : int, default=64
        Maximum number of splits of a "topdown" tree.
    error : float, default=0.1
        "topdown" splits leaves with at least error / max_splits of the rows.
    public_rows : int, optional
        The number of rows, if it is public. By default 2 % of epsilon is spent on a noisy count.
    ledger : Ledger, optional
        Charged with epsilon before anything is sampled; refuses a fit that it cannot cover.
    testing_seed : int, optional
        FOR TESTS ONLY: seeds the noise. The model is then not private, as ``privacy_`` states.

    Attributes
    ----------
    tree_ : Tree
    classes_ : ndarray
        The declared classes.
    privacy_ : PrivacyStatement
        Epsilon by purpose, the relation, and the guarantee in one sentence.
    n_rows_ : float
        The noisy number of rows, or the public one.

    Examples
    --------
    >>> from steadytree.data.schema import Schema
    >>> schema = Schema(bounds={"age": (0, 100)}, classes=["no", "yes"])
    >>> X, y = [[20], [70]] * 200, ["no", "yes"] * 200
    >>> model = PrivateTreeClassifier(epsilon=1.0, schema=schema, testing_seed=0).fit(X, y)
    >>> model.predict([[20], [70]])
    array(['no', 'yes'], dtype='<U3')
    >>> model.privacy_.guarantee
    'NOT PRIVATE: the noise came from a testing seed, so nothing is promised.'
    """

    def __init__(
        self,
        epsilon=1.0,
        schema=None,
        method="gibbs",
        max_depth=None,
        criterion="gini",
        leaf_share="auto",
        budget="decay",
        max_splits=64,
        error=0.1,
        public_rows=None,
        ledger=None,
        testing_seed=None,
    ):
        self.epsilon = epsilon
        self.schema = schema
        self.method = method
        self.max_depth = max_depth
        self.criterion = criterion
        self.leaf_share = leaf_share
        self.budget = budget
        self.max_splits = max_splits
        self.error = error
        self.public_rows = public_rows
        self.ledger = ledger
        self.testing_seed = testing_seed

    def fit(self, X: Any, y: Any, client: Any = None) -> "PrivateTreeClassifier":
        """Fit the tree and spend `epsilon`.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Values outside the schema's bounds are clipped, unknown ones count as missing. A dask
            array or dataframe is encoded on its workers; only bins are gathered here.
        y : array-like of shape (n_samples,)
            Rows whose label is not among the schema's classes are left out.
        client : distributed.Client, optional
            The cluster that a Dask collection is computed on; by default the active client, and
            without one Dask's own scheduler.

        Returns
        -------
        self : PrivateTreeClassifier
        """
        with logged_refusal(_LOG, "a private fit"):
            schema = self._validate()
            if self.ledger is not None:  # before rows are read, so that timing reveals nothing
                self.ledger.check(float(self.epsilon), "private tree")
            read = read_rows(schema, X, y, client)
            validate_data(self, read.sample, skip_check_array=True)
            if read.n_read > MOST_ROWS:
                raise ValueError(f"X may have at most {MOST_ROWS:,} rows: fit on a sample.")
        noise = make_noise(self.testing_seed)
        charge(self.ledger, {"private tree": float(self.epsilon)}, ledger_mark(noise, self.method))
        spent: dict[str, float] = {}
        self.n_rows_ = self._count_rows(read.n_kept, noise, spent)
        self.classes_ = np.array(schema.classes)
        rows = _Rows(schema, read, noise)
        left = float(self.epsilon) - sum(spent.values())
        tree = self._grow(rows, left, spent)
        self.tree_ = tree if noise.private else tree.with_note(NOT_PRIVATE)
        self.privacy_ = PrivacyStatement(
            float(self.epsilon), 0.0, spent, self.method, noise.private
        )
        return self

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted tree to a ``*.tree.json`` file, which does not hold ``privacy_``.

        A tree whose noise came from a testing seed is marked in its file, and the tree that
        `steadytree.load` returns is marked in its ``note``.
        """
        super().save(path)
        if not self.privacy_.private:
            warnings.warn(
                "this model is NOT PRIVATE (testing seed), as its file states: do not share it.",
                UserWarning,
                stacklevel=2,
            )

    def _count_rows(self, n_rows: int, noise: Noise, spent: dict[str, float]) -> float:
        if self.public_rows is not None:
            return float(self.public_rows)
        spent["number of rows"] = float(self.epsilon) * ROWS_SHARE
        noisy = release_counts(np.array([n_rows]), spent["number of rows"], noise)
        return float(max(noisy[0], 1))

    def _grow(self, rows: "_Rows", left: float, spent: dict[str, float]) -> Tree:
        strength = float(self.epsilon) * self.n_rows_
        if self.method == "gibbs":
            return self._grow_gibbs(rows, left, strength, spent)
        depth = self.max_depth or (
            TOPDOWN_DEPTH if self.method == "topdown" else greedy_depth(strength)
        )
        share = self.leaf_share
        if share == "auto":
            share = greedy_leaf_share(strength, depth) if self.method == "greedy" else 0.5
        leaf_epsilon = left * share
        candidates = SplitTable.at_most(rows.schema.space, LEVEL_BINS, LEVEL_CANDIDATES)
        epsilon = left - leaf_epsilon
        if self.method == "greedy":
            source = rows.read.source(candidates)
            epsilons = [epsilon / depth] * depth
            how = (self.criterion, rows.noise)
            sampled, exact = grow_greedy(source, candidates, epsilons, *how)
        else:
            shares = split_shares(self.budget, depth)
            grower = TopDown(candidates, self.criterion, rows.noise, shares)
            block = rows.block(candidates)
            sampled = grower.grow(block, epsilon, self.max_splits, self.error)
            exact = leaf_counts(sampled, block, candidates)
        spent["questions"] = epsilon
        return rows.finish(sampled, exact, candidates, leaf_epsilon, spent)

    def _grow_gibbs(
        self, rows: "_Rows", left: float, strength: float, spent: dict[str, float]
    ) -> Tree:
        share = self.leaf_share
        if share == "auto":
            share = gibbs_leaf_share(strength)
        limits = (self.max_depth, share)
        n_classes = len(rows.schema.classes)
        allocation = allocate_blocks(rows.schema.space, n_classes, left, strength, *limits)
        candidates, epsilons = allocation.candidates, allocation.epsilons
        block = rows.block(candidates)
        sampled = grow_blocks(block, candidates, epsilons, allocation.depths, rows.noise)
        spent["questions and labels"] = float(sum(epsilons))
        labels = np.array([leaf.label for leaf in leaves_of(sampled)])
        if allocation.leaf_epsilon > 0:
            exact = leaf_counts(sampled, block, candidates)
            return rows.finish(sampled, exact, candidates, allocation.leaf_epsilon, spent, labels)
        counts = counts_from_labels(labels, n_classes, self.n_rows_)
        return build_tree(sampled, candidates, rows.schema, counts)

    def _validate(self) -> Schema:
        schema = check_schema(self.schema)
        check_epsilon(self.epsilon)
        validate(self, PARAMETERS)
        if self.leaf_share == 0 and self.method != "gibbs":
            raise ValueError(f"leaf_share must be more than 0 for method={self.method!r}.")
        part = self._smallest_part()
        if part < SMALLEST_PART:
            raise ValueError(
                f"epsilon must be more than {self.epsilon} to be divided as requested: increase "
                "it, or use a smaller max_depth."
            )
        check_fit(schema, self.method, part, self.max_depth, self.max_splits)
        return schema

    def _smallest_part(self) -> float:
        """The smallest part that epsilon may be divided into, for any number of rows."""
        epsilon = float(self.epsilon)
        share = 0.5 if self.leaf_share == "auto" else float(self.leaf_share)
        if self.method == "topdown":
            depth = self.max_depth or TOPDOWN_DEPTH
            splits = (1 - share) * float(split_shares(self.budget, depth).min()) / 2
        else:
            splits = (1 - share) / DEEPEST
        leaf = share if self.leaf_share not in ("auto", 0) else LEAST_LEAF_SHARE
        return epsilon * min(ROWS_SHARE, splits * (1 - ROWS_SHARE), leaf * (1 - ROWS_SHARE))


class _Rows:
    """Encoded rows; nothing exact is released from them."""

    def __init__(self, schema: Schema, read: RowsInMemory | RowsInDask, noise: Noise) -> None:
        self.schema, self.noise, self.read = schema, noise, read

    def block(self, candidates: SplitTable) -> BlockRows:
        binned, labels = self.read.binned(candidates)
        return BlockRows(binned, labels, len(self.schema.classes), np.arange(len(labels)))

    def finish(
        self,
        sampled: SampledTree,
        exact: NDArray[np.int64],
        candidates: SplitTable,
        leaf_epsilon: float,
        spent: dict[str, float],
        labels: Any = None,
    ) -> Tree:
        """A tree of the sampled splits with noisy, plausible leaf counts."""
        spent["leaf counts"] = leaf_epsilon  # a row is in one leaf and one class
        counts = plausible_counts(release_counts(exact, leaf_epsilon, self.noise), labels)
        return build_tree(sampled, candidates, self.schema, counts)
