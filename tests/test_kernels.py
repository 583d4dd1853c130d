"""Each kernel equals its twin in reference.py, on random data full of ties and edges."""

import ast
import importlib
import inspect
import pathlib
import re
import types

import numba
import numpy as np
import pytest
from numba.core.registry import CPUDispatcher

import steadytree
from steadytree.data.binning import even_cells
from steadytree.data.column import Column
from steadytree.data.feature_space import FeatureSpace
from steadytree.data.splits import SplitTable
from steadytree.models.walk import Walk
from steadytree.privacy import _kernels
from tests.data import reference

ROOT = pathlib.Path(steadytree.__file__).parent
IS_KERNEL = re.compile(r"(^|\.)_kernels(\.|$)")
KERNEL = (CPUDispatcher, types.FunctionType)  # plain numpy where no loop is hot
if numba.config.DISABLE_JIT:  # as for mutants of kernels
    _kernels.popcount = lambda bits: int(bits).bit_count()  # exists compiled only


def module_name(path, root, package):
    return ".".join((package, *path.relative_to(root).with_suffix("").parts))


SOURCES = {module_name(path, ROOT, "steadytree"): path for path in sorted(ROOT.rglob("*.py"))}
MODULES = [importlib.import_module(name) for name in SOURCES if IS_KERNEL.search(name)]
# each topic's twins; its CASES make their arguments, its COMPARE tells how results compare
TESTS = pathlib.Path(__file__).parent
TOPICS = [
    importlib.import_module(module_name(path, TESTS, "tests"))
    for path in sorted(TESTS.rglob("reference*.py"))
]
TWINS = {name: value for topic in TOPICS for name, value in vars(topic).items() if callable(value)}
ALL = {
    name: value
    for module in MODULES
    for name, value in vars(module).items()
    if isinstance(value, KERNEL) and value.__module__ == module.__name__
}
KERNELS = {name: kernel for name, kernel in ALL.items() if name in TWINS}
# those that promise a set or a bound have tests of their own
APART = {name for topic in TOPICS for name in getattr(topic, "COMPARED_APART", ())}


def imported_kernels(path):
    """Names that a module takes from modules of kernels, by name or through the module."""
    nodes = list(ast.walk(ast.parse(path.read_text("utf-8"))))
    modules = set()
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module and IS_KERNEL.search(node.module):
            yield from (alias.name for alias in node.names)
            modules |= {alias.asname or alias.name for alias in node.names}
    for node in nodes:
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            yield from [node.attr] if node.value.id in modules else []


def test_every_kernel_that_others_call_has_a_twin():
    called = {
        name
        for module, path in SOURCES.items()
        if not IS_KERNEL.search(module)
        for name in imported_kernels(path)
        if name in ALL
    }
    assert len(called) > 40
    assert not called - set(KERNELS)


def from_topics(table, name):
    for topic in TOPICS:
        if name in getattr(topic, table, {}):
            return getattr(topic, table)[name]
    return None


@pytest.fixture(autouse=True)
def groups_from_few_rows(monkeypatch):
    """Groups of categories, however few rows there are."""
    monkeypatch.setattr("steadytree.data.splits.GROUPED_ROWS", 0)


def random_columns(rng):
    """A few columns: numeric, constant, binary, two and more categories, with and without nan."""
    kinds = [
        Column(
            "a",
            "numeric",
            0.0,
            9.0,
            missing=True,
            thresholds=np.sort(rng.choice(90, 7, False) / 10),
        ),
        Column("b", "integer", 1.0, 6.0, thresholds=np.arange(1.0, 6.0)),
        Column("c", "categorical", categories=("u", "v"), missing=bool(rng.integers(2))),
        Column("d", "categorical", categories=tuple("pqrst"), missing=bool(rng.integers(2))),
        Column("e", "numeric", 2.0, 2.0),
        Column("f", "categorical", categories=("only",), missing=True),
    ]
    return tuple(kinds[k] for k in rng.permutation(6)[: rng.integers(1, 7)])


def random_rows(rng, columns, n):
    """Codes of the full grid, and the offsets of its bins."""
    offsets = np.cumsum([0] + [column.n_bins + 1 for column in columns])
    binned = np.empty((len(columns), n), np.uint16)
    for j, column in enumerate(columns):
        # few values only, so that bins stay empty and ties abound
        known = rng.integers(0, column.n_bins, rng.integers(1, column.n_bins + 1))
        binned[j] = rng.choice(known, n)
        if column.missing:
            binned[j, rng.random(n) < 0.2] = column.n_bins
    return binned, offsets


def random_walk(rng):
    """Three splits, the second about categories, of a tree whose nodes are stored otherwise."""
    missing_right, left = rng.integers(0, 2, 3), np.array([1, 3, 2, 3, 5, 5, 6])
    parts = [missing_right[0] << 24, 2 | missing_right[1] << 24 | 1 << 25, 0, 0, 0, 0, 0]
    parts[4] = 1 | missing_right[2] << 24
    split = left.astype(np.uint64) << np.uint64(32) | np.array(parts, np.uint64)
    threshold = np.array([0.1, np.nan, np.inf, np.inf, 0.5, np.inf, np.inf])
    subset = rng.integers(0, 2, (7, 3)).astype(bool)
    return Walk(threshold, split, np.array([0, 4, 1, 5, 6, 2, 3]), subset)


CROWDED = [-1.0, -0.5, 0.0, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 7.0, 1e9]


class Case:
    """Random input for every kernel, drawn from one seed."""

    def __init__(self, seed):
        self.rng = rng = np.random.default_rng(seed)
        self.n = int(rng.choice([0, 1, 2, 25, 25, 25]))
        self.n_classes = int(rng.integers(1, 4))
        self.columns = random_columns(rng)
        self.full, self.offsets = random_rows(rng, self.columns, self.n)
        self.labels = rng.integers(0, self.n_classes, self.n).astype(np.int32)
        merged = None if rng.integers(2) else self.full_counts()
        self.rules = SplitTable.of(FeatureSpace(self.columns), merged)
        self.binned = self.rules.merge_bins(self.full)
        self.slots = rng.integers(-1, 3, self.n).astype(np.int32)
        self.table = self.rules.table

    def full_counts(self):
        root = np.zeros(self.n, np.int32)
        shape = (1, self.offsets, self.n_classes)
        return reference.count_classes(self.full, self.labels, root, *shape)[0]

    def counts(self):
        offsets = self.table.bin_offsets
        return reference.count_classes(
            self.binned, self.labels, self.slots, 3, offsets, self.n_classes
        )

    def order_of(self, column):
        """Any order of categories, the missing bin last; that of numbers is their own."""
        order = np.arange(column.n_bins + 1)
        if column.is_categorical:
            order[:-1] = self.rng.permutation(column.n_bins)
        return order

    def chosen(self):
        top = len(self.table.feature)
        return self.rng.integers(-1, top, 3) if top else np.full(3, -1)

    def next_level(self):
        """A split of each node, and the numbers of the children that stay open."""
        split = self.chosen()
        is_open = (self.rng.random((3, 2)) < 0.7) & (split >= 0)[:, None]
        number = np.where(is_open, np.cumsum(is_open).reshape(3, 2) - 1, -1)
        return split, number[:, 0], number[:, 1]

    def shape(self):
        """left, right, label of a random tree."""
        left, right, n = [-1], [-1], 1
        for _ in range(self.rng.integers(0, 8)):
            leaf = self.rng.choice([k for k in range(n) if left[k] < 0])
            # children must come later, which appending grants
            left[leaf], right[leaf] = n, n + 1
            left, right, n = [*left, -1, -1], [*right, -1, -1], n + 2
        return np.array(left), np.array(right), self.rng.integers(0, 2, n)

    def values(self):
        values = self.rng.choice([-1.0, 0.0, 0.1, 0.5, 2.0, 7.5, np.nan], (self.n, 3))
        return values.astype(self.rng.choice([np.float32, np.float64]))


def columns_of(case):
    """What the splits of a case's columns are listed from."""
    return (
        case.full_counts().any(axis=1),
        case.offsets,
        np.array([len(c.categories) for c in case.columns]),
        np.array([int(c.missing) for c in case.columns]),
        np.concatenate([case.order_of(c) for c in case.columns]),
        case.rng.random(len(case.columns)) < 0.5,
    )


def uneven_columns(rng):
    """As `columns_of`, of columns of few and of many bins, in any order."""
    n_bins = rng.permutation([2, 9, 40])  # with that of missing values
    offsets = np.concatenate([[0], np.cumsum(n_bins)])
    n_categories = np.where(rng.random(3) < 0.5, n_bins - 1, 0)
    order = [
        np.append(rng.permutation(n - 1) if own else np.arange(n - 1), n - 1)
        for n, own in zip(n_bins, n_categories, strict=True)
    ]
    occupied, has_missing = rng.random(offsets[-1]) < 0.8, rng.integers(0, 2, 3)
    return occupied, offsets, n_categories, has_missing, np.concatenate(order), rng.random(3) < 0.5


def case_for(name, seed):
    case = Case(seed)
    if from_topics("CASES", name):
        return from_topics("CASES", name)(case)
    rng, table = case.rng, case.table
    score, min_leaf = int(rng.integers(2)), float(rng.integers(1, 3))
    sizes = rng.integers(0, 6, 2).astype(float)
    bits = np.uint64(rng.integers(2**63))
    cuts = np.sort(rng.choice(50, rng.integers(0, 9), False) / 10)
    makers = {
        "find_leaves": lambda: (
            case.values(),
            random_walk(rng),
            3,
            np.zeros(case.n, np.int64),
        ),
        "fill_bins": lambda: (
            np.repeat(case.values(), 2, axis=1),
            int(rng.integers(4)),
            # nearly all thresholds lie in one cell: the last of a column, or the first
            *even_cells(
                np.array([*(-x for x in reversed(CROWDED)), *CROWDED, 0.0, 2.0]),
                np.array([0, 11, 22, 24]),
            ),
            np.array([0, 0, 2]),
            np.zeros((3, case.n), np.uint8),
            *sorted(rng.integers(0, case.n + 1, 2)),
        ),
        "merge_bins": lambda: (
            case.full,
            case.offsets,
            rng.integers(0, 200, case.offsets[-1]).astype(np.uint16),
            np.zeros(case.full.shape, np.uint8),
        ),
        "list_splits": lambda: uneven_columns(rng) if seed % 2 else columns_of(case),
        "split_goes_left": lambda: (
            int(rng.integers(0, 4)),
            SplitTable.of(FeatureSpace((Column("a", "numeric", 0.0, 1.0, (), True, cuts),))).table,
            int(rng.integers(0, 2 * len(cuts) + 1)),
        ),
        "count_classes": lambda: (
            case.binned,
            case.labels,
            case.slots,
            3,
            table.bin_offsets,
            case.n_classes,
        ),
        "weigh_classes": lambda: (
            case.binned,
            case.labels,
            case.slots,
            rng.random(case.n),
            3,
            table.bin_offsets,
            case.n_classes,
        ),
        "add_counts": lambda: (
            case.binned,
            own_rows := np.arange(0, case.n, 2, dtype=np.uint32)[: rng.integers(2) * case.n],
            case.labels[: len(own_rows) or None],
            rng.integers(0, 3, len(own_rows) or case.n),
            own_weights := rng.random(rng.integers(2) * (len(own_rows) or case.n)),
            table.bin_offsets,
            np.zeros((3, table.bin_offsets[-1], case.n_classes), own_weights.dtype),
            *sorted(rng.integers(0, len(case.binned) + 1, 2)),
        ),
        "move_rows": lambda: (
            case.binned,
            case.slots,
            table,
            case.chosen(),
            rng.integers(-1, 6, 3),
            rng.integers(-1, 6, 3),
        ),
        "order_rows": lambda: (
            np.ascontiguousarray(case.binned.T),
            np.array([0, case.n // 3, case.n // 3, case.n]),
            table,
            *case.next_level(),
        ),
        "count_nodes": lambda: (
            np.ascontiguousarray(case.binned.T),
            case.labels,
            own_weights := rng.random(case.n if rng.integers(2) else 0),
            np.array([0, case.n // 3, case.n // 3, case.n]),
            table.bin_offsets,
            case.n_classes,
            np.zeros((3, table.bin_offsets[-1] * case.n_classes), own_weights.dtype),
            *sorted(rng.integers(0, len(case.binned) + 1, 2)),
        ),
        "child_counts": lambda: (case.counts(), table, case.chosen()),
        "add_class": lambda: (float(rng.integers(9)), float(rng.integers(5)), score),
        "side_score": lambda: (float(rng.integers(1, 9)), float(rng.integers(0, 9)), score),
        "split_score": lambda: (*sizes, *(sizes * 0.7), sizes.sum() / 2, score, min_leaf),
        "score_splits": lambda: (
            case.counts()[0],
            table,
            score,
            min_leaf,
            np.zeros(len(table.feature)),
        ),
        "mix": lambda: (bits,),
        "mix_all": lambda: (rng.integers(2**64, size=case.n, dtype=np.uint64),),
        "hash_all": lambda: rng.integers(2**64, size=(2, case.n), dtype=np.uint64),
        "uniform_all": lambda: (
            rng.integers(2**64, size=case.n, dtype=np.uint64),
            int(rng.integers(999)),
        ),
        "surely_below": lambda: (rng.random(), float(rng.choice([-9.0, rng.gumbel(), 40.0, 99.0]))),
        "hash_node": lambda: (int(rng.integers(2**31)), bits),
        "hash_feature": lambda: (bits, int(rng.integers(99))),
        "uniform_at": lambda: (bits, int(rng.integers(999))),
        "largest_uniform": lambda: (bits, 3, 3 + int(rng.integers(9)), bool(rng.integers(2))),
        "gumbel": lambda: (rng.random(),),
        "pick_split": lambda: (
            rng.integers(-1, int(rng.choice([1, 4])), len(table.feature)).astype(float),
            table,
            float(rng.choice([0.0, 0.5, 20.0, 1000.0])),
            bits,
        ),
        "preorder_nodes": lambda: case.shape()[:2],
        "prune_to": lambda: (lambda a, b, c: (a, b, c > 0))(*case.shape()),
        "uniform_nodes": case.shape,
        "split_level": lambda: (
            (chosen := case.chosen()),
            reference.child_counts(case.counts(), table, chosen)[1],
            np.arange(3, 6, dtype=np.uint64),
            bool(rng.integers(2)),
        ),
    }
    if name not in makers:
        raise AssertionError(f"kernel {name!r} has no test case: add one here")
    return makers[name]()


def copied(arguments):
    def copy(argument):
        if isinstance(argument, tuple) and type(argument) is tuple:
            return tuple(copy(part) for part in argument)
        return argument.copy() if isinstance(argument, np.ndarray) else argument

    return [copy(argument) for argument in arguments]


def assert_same(found, expected, exact):
    if isinstance(expected, tuple):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_same(one, other, exact)
    elif exact:
        np.testing.assert_array_equal(found, expected)
    else:
        np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("name", sorted(set(KERNELS) - APART))
def test_kernel_equals_its_reference(name):
    exact = name not in {
        "score_splits",
        "choose_splits",
        "choose_by_column",
        "score_ahead",
        "split_score",
        "side_score",
        "add_class",
        "gumbel",
    }
    for seed in range(60):
        arguments = case_for(name, seed)
        ours, theirs = copied(arguments), copied(arguments)
        found = KERNELS[name](*ours)
        expected = TWINS[name](*theirs)
        if from_topics("COMPARE", name):
            from_topics("COMPARE", name)(found, expected)
        elif expected is not None:
            assert_same(found, expected, exact)
        for one, other in zip(ours, theirs, strict=True):  # those that fill an argument
            if isinstance(one, np.ndarray) or type(one) is tuple:
                assert_same(one, other, exact)


@pytest.mark.parametrize("name", sorted(KERNELS))
def test_twin_takes_the_same_arguments(name):
    kernel = getattr(KERNELS[name], "py_func", KERNELS[name])
    expected = inspect.signature(kernel).parameters
    assert list(inspect.signature(TWINS[name]).parameters) == list(expected)


def test_counts_of_two_holders_add_up():
    case = Case(7)
    sizes = (3, case.table.bin_offsets, case.n_classes)
    whole = ALL["count_classes"](case.binned, case.labels, case.slots, *sizes)
    parts = [
        ALL["count_classes"](
            np.ascontiguousarray(case.binned[:, k::2]), case.labels[k::2], case.slots[k::2], *sizes
        )
        for k in (0, 1)
    ]
    np.testing.assert_array_equal(parts[0] + parts[1], whole)


def test_noise_lies_strictly_inside_the_unit_interval_and_looks_uniform():
    bits = ALL["hash_feature"](ALL["hash_node"](3, 5), 2)
    u = np.array([ALL["uniform_at"](bits, t) for t in range(20_000)])
    assert u.min() > 0
    assert u.max() < 1
    # Kolmogorov-Smirnov at level 1e-4: critical distance 2.23 / sqrt(n)
    distance = np.abs(np.sort(u) - (np.arange(len(u)) + 0.5) / len(u)).max()
    assert distance < 2.23 / np.sqrt(len(u))
