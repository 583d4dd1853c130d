"""PrivateTreeClassifier: a differentially private decision tree."""

import logging
import warnings
from os import PathLike
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import validate_data

from steadytree._base.validation import Instance, Integer, OneOf, Parameters, validate
from steadytree.data.schema import Schema, check_schema
from steadytree.data.splits import SplitTable
from steadytree.models.base import TreeClassifierMixin
from steadytree.models.tree import Tree
from steadytree.privacy import budget, growers, mechanisms
from steadytree.privacy.budget import PrivacyStatement, logged_refusal
from steadytree.privacy.ledger import Ledger, charge
from steadytree.privacy.mechanisms import Noise, release_counts
from steadytree.privacy.sampled_tree import leaves_of
from steadytree.privacy.topdown import PARAMETERS as TOP_DOWN
from steadytree.privacy.topdown import ReportNoisyMax, TopDown, count_variance, grow_top_down
from steadytree.privacy.tree_mechanism import MOST_ROWS, leaf_counts

_LOG = logging.getLogger(__name__)
DEEPEST = 16  # of "gibbs" and "greedy"
LEAST_PART = 2 * mechanisms.SMALLEST_PART  # of a depth: half selects, half counts
PARAMETERS: Parameters = {
    "method": OneOf("gibbs", "greedy", "topdown"),
    "public_rows": Integer(1, also=(None,)),
    "n_bins": Integer(2, 1_000, also=(None,)),
    "rows_per_person": growers.ROWS_PER_PERSON,
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
        Columns, bounds, categories and classes, declared without looking at the data. Categories
        have no order: declare an ordered column as whole numbers, and give its codes.
    method : {"gibbs", "greedy", "topdown"}, default="gibbs"
        "gibbs" samples whole trees of two or three levels in one step each, and is the most
        accurate; "greedy" selects one split a node, level by level, and is the fastest;
        "topdown" is DP-TopDown with its mechanisms corrected.
    max_depth : int, optional
        Maximum depth, 1 to 16; by default chosen from epsilon times the noisy number of rows and
        the number of classes. "topdown" has no such limit: any number, by default none.
    criterion : {"gini", "entropy"}, default="gini"
        How "greedy" and "topdown" score a split. One row changes Gini scores by less than 2,
        entropy by up to 28.4: Gini needs far less noise.
    leaf_share : float or "auto", default="auto"
        Share of epsilon for class counts of the leaves, hence probabilities. With "gibbs", 0
        spends nothing: labels are sampled with the tree, probabilities are then 0 or 1 and
        every leaf has the same weight; "auto" does so if epsilon times rows is small. With
        "topdown" what the splits do not need is added, and 0 is allowed: labels then come from
        the counts of the splits. 1 is refused.
    budget : {"decay", "uniform"}, default="decay"
        How "topdown" divides its budget among depths: halved at each, or 1 / max_splits for each.
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
    n_bins : int, optional
        Bins of numeric columns for "greedy" and "topdown", with so many thresholds less one;
        by default 32, or fewer if there were more than 4,000 candidate splits.
    rows_per_person : int, optional
        Protect persons instead of rows: `fit` needs `persons`, keeps the first so many rows of
        each, and neighbouring data sets differ by all rows of one person. A row then has
        epsilon / rows_per_person.

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
        n_bins=None,
        rows_per_person=None,
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
        self.n_bins = n_bins
        self.rows_per_person = rows_per_person

    def fit(
        self, X: Any, y: Any, client: Any = None, persons: Any = None
    ) -> "PrivateTreeClassifier":
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
        persons : array-like of shape (n_samples,), optional
            Whose row each is, for `rows_per_person`; rows of nobody (missing) are left out.

        Returns
        -------
        self : PrivateTreeClassifier
        """
        with logged_refusal(_LOG, "refused a private fit"):
            schema = self._validate()
            if self.ledger is not None:  # before rows are read, so that timing reveals nothing
                self.ledger.check(float(self.epsilon), "private tree")
            X, y = self._bound_rows(X, y, client, persons)
            rows = growers.read_rows(schema, X, y, client)
            shown = getattr(rows, "sample", X)
            if isinstance(shown, list | tuple) and len(shown) == 0:  # a list without a row
                shown = np.empty((0, len(schema.names)))
            validate_data(self, shown, skip_check_array=True)
            if rows.n_read > MOST_ROWS:
                raise ValueError(f"X may have at most {MOST_ROWS:,} rows: fit on a sample.")
        noise, epsilon = mechanisms.make_noise(self.testing_seed), float(self.epsilon)
        most = self.rows_per_person or 1
        relation = budget.relation(self.rows_per_person)
        name = self.method if self.rows_per_person is None else f"{self.method}, {relation}"
        charge(self.ledger, {"private tree": epsilon}, mechanisms.ledger_mark(noise, name))
        spent: dict[str, float] = {}
        if self.public_rows is None:
            spent["number of rows"] = self._row_epsilon * budget.ROWS_SHARE
            exact = np.array([rows.n_kept])
            noisy = release_counts(exact, spent["number of rows"], noise)
            self.n_rows_ = float(max(noisy[0], 1))
        else:
            self.n_rows_ = float(self.public_rows)
        self.classes_ = np.array(schema.classes)
        tree = self._grow(schema, rows, noise, spent)
        self.tree_ = tree if noise.private else tree.with_note(mechanisms.NOT_PRIVATE)
        parts = {purpose: most * amount for purpose, amount in spent.items()}
        how = (self.method, noise.private, relation)
        self.privacy_ = PrivacyStatement(epsilon, 0.0, parts, *how)
        return self

    @property
    def _row_epsilon(self) -> float:
        """Epsilon for one row: whoever has k rows loses k times as much (group privacy)."""
        return float(self.epsilon) / (self.rows_per_person or 1)

    def _bound_rows(self, X: Any, y: Any, client: Any, persons: Any) -> tuple[Any, Any]:
        """At most `rows_per_person` rows of each person."""
        if persons is not None and client is not None:
            raise ValueError("rows_per_person needs data in memory, not a client.")
        return growers.bound_rows(X, y, persons, self.rows_per_person)

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

    def _grow(self, schema: Schema, rows: Any, noise: Noise, spent: dict[str, float]) -> Tree:
        """Sample the splits, count the rows of the leaves with noise, and build the tree."""
        left = self._row_epsilon - sum(spent.values())
        strength, share, labels = self._row_epsilon * self.n_rows_, self.leaf_share, None
        if self.method == "gibbs":
            limits = (len(schema.classes), left, strength, self.max_depth, share)
            depths, epsilons, leaf, candidates = budget.allocate_blocks(schema.space, *limits)
            block = rows.block(candidates)
            sampled = growers.grow_blocks(block, candidates, epsilons, depths, noise)
            labels = np.array([part.label for part in leaves_of(sampled)])
            spent["questions and labels"] = float(sum(epsilons))
            if leaf == 0:
                counts = growers.counts_from_labels(labels, len(schema.classes), self.n_rows_)
                return growers.build_tree(sampled, candidates, schema, counts)
            exact = leaf_counts(sampled, block, candidates)
        else:
            candidates = budget.level_candidates(schema.space, self.n_bins)
            if self.method == "topdown":
                return self._grow_top_down(candidates, schema, rows, noise, spent)
            depth = self.max_depth or budget.greedy_depth(strength)
            leaf = left * (budget.greedy_leaf_share(strength, depth) if share == "auto" else share)
            parts, source = [(left - leaf) / depth] * depth, rows.source(candidates)
            how = (source, candidates, parts, self.criterion, noise)
            sampled, exact = growers.grow_greedy(*how)
            spent["questions"] = left - leaf
        spent["leaf counts"] = leaf  # a row is in one leaf and one class
        noisy = release_counts(exact, leaf, noise)
        counts = growers.plausible_counts(noisy, labels)
        return growers.build_tree(sampled, candidates, schema, counts)

    def _grow_top_down(
        self,
        candidates: SplitTable,
        schema: Schema,
        rows: Any,
        noise: Noise,
        spent: dict[str, float],
    ) -> Tree:
        """DP-TopDown; what its splits do not need is spent on the leaves."""
        left, limits = self._row_epsilon - sum(spent.values()), self._limits()
        block = rows.block(candidates)
        find = ReportNoisyMax(block, candidates, limits.criterion, noise)
        parts = limits.epsilons(left, LEAST_PART)
        grown = grow_top_down(find, parts, len(schema.classes), limits)
        spent["questions"], leaf = grown.epsilon, left - grown.epsilon
        counts = np.array([estimate.counts for estimate in grown.leaves])
        if leaf >= mechanisms.SMALLEST_PART:
            spent["leaf counts"] = leaf
            noisy = release_counts(leaf_counts(grown.tree, block, candidates), leaf, noise)
            counts = grown.labelled(noisy, count_variance(leaf))
        counts = growers.plausible_counts(counts)
        return growers.build_tree(grown.tree, candidates, schema, counts)

    def _limits(self) -> TopDown:
        return TopDown(**{name: getattr(self, name) for name in TOP_DOWN})

    def _validate(self) -> Schema:
        schema = check_schema(self.schema)
        mechanisms.check_epsilon(self.epsilon)
        validate(self, PARAMETERS)
        self._limits()
        if self.method != "topdown":
            Integer(1, DEEPEST, also=(None,)).check(self.max_depth, "max_depth")
        if self.leaf_share == 0 and self.method == "greedy":
            raise ValueError("leaf_share must be more than 0 for method='greedy'.")
        part = self._smallest_part()
        if part < mechanisms.SMALLEST_PART:
            raise ValueError(
                f"epsilon must be more than {self.epsilon} to be divided as requested: increase "
                "it, or use a smaller max_depth."
            )
        budget.check_fit(schema, self.method, part, self.max_depth, self.max_splits, self.n_bins)
        return schema

    def _smallest_part(self) -> float:
        """The smallest part that epsilon may be divided into, for any number of rows."""
        share = 0.5 if self.leaf_share == "auto" else float(self.leaf_share)
        least = 1 / DEEPEST
        if self.method == "topdown":  # it stops where its parts become too small
            least = self._limits().epsilons(1.0, 0.0)[0] / 2 / (1 - share)
        leaf = share if self.leaf_share not in ("auto", 0) else budget.LEAST_LEAF_SHARE
        after_rows = (1 - budget.ROWS_SHARE) * min((1 - share) * least, leaf)
        return self._row_epsilon * min(budget.ROWS_SHARE, after_rows)
