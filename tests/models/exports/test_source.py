"""Trees as Python and C source: what they answer, and that one that differs is not returned."""

import shutil
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from steadytree._base.exceptions import ExportError
from steadytree.data.column import Column
from steadytree.data.feature_space import FeatureSpace
from steadytree.models.exports import source
from steadytree.models.exports.probes import REFUSED, Probes, used_features
from steadytree.models.tree import Tree
from tests.models.trees import deep_tree, random_rows, random_tree

compiled = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
AWKWARD = ("it's", 'a "b"', "back\\slash", "", "ä??/*", "line\nend", "\U0001f600")


def awkward():
    """Names and texts that would end a literal or a comment, and classes that need quotes."""
    columns = (
        Column('*/ say "hi"', "numeric", 0, 1, missing=True),
        Column("group\n", "categorical", categories=AWKWARD, missing=True),
    )
    subset = np.zeros((7, len(AWKWARD)), bool)
    subset[1, [0, 2, 4]] = True
    subset[2, [1, 3, 5, 6]] = True
    return Tree(
        FeatureSpace(columns),
        ["it's\n", 'a "b" */', "ä"],
        [0, 1, 1, -1, -1, -1, -1],
        [0.1 + 0.2, *[np.nan] * 6],
        [1, 3, 5, -1, -1, -1, -1],
        [2, 4, 6, -1, -1, -1, -1],
        [[1, 0, 0]] * 3 + [[1, 0, 0], [0.1, 0.7, 0.2], [1 / 3, 1 / 3, 1 / 3], [0, 0, 1]],
        [1] * 7,
        [True, False, True, False, False, False, False],
        subset,
    )


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("single", [False, True])
def test_python_answers_as_the_tree(seed, single):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, n_leaves=9, single_precision=single)
    rows, made = random_rows(rng, tree, 60), {}
    exec(tree.to_source(), made)
    given = [dict(zip(rows, row, strict=True)) for row in rows.itertuples(index=False)]
    assert [made["leaf"](row) for row in given] == tree.apply(rows).tolist()
    assert [made["predict"](row) for row in given] == tree.predict(rows).tolist()
    assert [list(made["predict_proba"](row)) for row in given] == tree.predict_proba(rows).tolist()


@pytest.mark.parametrize("seed", range(8))
def test_the_branches_of_c_read_as_python_answer_as_the_tree(seed):
    """What is run where no compiler can be had."""
    tree = random_tree(np.random.default_rng(seed), n_leaves=9)
    probes = Probes.of_tree(tree)
    expected = probes.ask(tree.apply, used_features(tree), REFUSED)
    assert source._run_c_as_python(source._c(tree), probes) == expected


@compiled
@pytest.mark.parametrize("make", [awkward, lambda: random_tree(np.random.default_rng(1), 9)])
def test_compiled_c_answers_as_the_tree_and_warns_of_nothing(make, tmp_path):
    tree = make()
    text, check = source.tree_to_source(tree, "c")
    assert check.by in source.COMPILERS
    (tmp_path / "tree.c").write_text(text, encoding="utf-8")
    call = ["cc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-c", "tree.c"]
    subprocess.run(call, cwd=tmp_path, check=True)


def test_names_and_texts_that_would_end_a_literal():
    tree = awkward()
    made = {}
    exec(tree.to_source(), made)
    for text in (*AWKWARD, None, "other"):
        for number in (0.0, 0.1 + 0.2, np.nextafter(0.1 + 0.2, 1), None):
            row = {'*/ say "hi"': number, "group\n": text}
            known = np.array([[np.nan if number is None else number, text]], object)
            assert made["leaf"](row) == tree.apply(known)[0]
    probes = Probes.of_tree(tree)
    expected = probes.ask(tree.apply, [0, 1], REFUSED)
    assert source._run_c_as_python(source._c(tree), probes) == expected


def test_python_refuses_what_the_tree_refuses():
    made = {}
    exec(awkward().to_source(), made)
    with pytest.raises(ValueError, match="a number is infinite"):
        made["leaf"]({'*/ say "hi"': np.inf, "group\n": None})
    with pytest.raises(TypeError, match="a category must be text or None, got 3"):
        made["leaf"]({'*/ say "hi"': 0.0, "group\n": 3})


@pytest.mark.parametrize("language", source.LANGUAGES)
@pytest.mark.parametrize("fault", ["threshold", "side", "shares"])
def test_a_source_that_differs_is_not_returned(language, fault, monkeypatch):
    """Planted: a rounded threshold, missing values on the other side, shares of another leaf."""
    tree = random_tree(np.random.default_rng(5), n_leaves=8, n_categorical=0)
    name = language.upper() if language == "c" else "PYTHON"
    spoken = getattr(source, name)
    if fault == "threshold":
        number = (lambda x: f"{x:.1f}") if language == "python" else (lambda x: round(x, 1).hex())
        monkeypatch.setattr(source, name, spoken._replace(number=number))
    elif fault == "side":
        monkeypatch.setattr(source, name, spoken._replace(negated="({})"))
    else:
        written = source._python if language == "python" else source._c

        def other_shares(given):
            text = written(given)
            old, new = ("SHARES[leaf(row)]", "SHARES[min(SHARES)]")
            if language == "c":
                old, new = "return 0;", "return 1;"
            return text.replace(old, new)

        monkeypatch.setattr(source, written.__name__, other_shares)
        if language == "c" and shutil.which("cc") is None:
            pytest.skip("shares are compared where a compiler is")
    with pytest.raises(ExportError, match=f"the {language} source differs from the model"):
        tree.to_source(language)
    if (fault, language) == ("shares", "python"):  # of the second of two leaves alone
        with pytest.raises(ExportError, match="differs from the model"):
            random_tree(np.random.default_rng(5), n_leaves=2, n_categorical=0).to_source(language)


def test_deep_trees(monkeypatch):
    with pytest.raises(ValueError, match="depth 65 with 66 leaves is too large for source"):
        deep_tree(65).to_source()
    monkeypatch.setattr(shutil, "which", lambda name: None)
    for language in source.LANGUAGES:
        text, check = source.tree_to_source(deep_tree(64), language)
        assert check.n_leaves == 65
        assert text.count("return ") > 65
    assert "no compiler" in check.by


def test_a_source_has_at_most_two_thousand_leaves():
    source.check_size(SimpleNamespace(depth=64, n_leaves=2_000), "source")
    with pytest.raises(ValueError, match="at most 64 levels and 2,000 leaves"):
        source.check_size(SimpleNamespace(depth=12, n_leaves=2_001), "source")


def test_a_tree_of_one_leaf():
    space = FeatureSpace.declare(bounds={"a": (0, 1)})
    tree = Tree(space, [False, True], [-1], [np.nan], [-1], [-1], [[0.2, 0.8]], [3])
    made = {}
    exec(tree.to_source(), made)
    assert made["predict"]({}) is True
    assert "no column is used" in tree.to_source("c")


def test_a_name_in_a_comment_of_c_is_short_and_ends_nothing():
    assert source._c_comment("x" * 50) == "x" * 40
    assert source._c_comment("a */ b\n??/") == "a _ b_"


def test_what_c_cannot_hold_is_refused():
    column = Column("g", "categorical", categories=("a\0b",))
    nodes = ([0, -1, -1], [np.nan] * 3, [1, -1, -1], [2, -1, -1], [[1.0], [1.0], [1.0]], [1, 1, 1])
    tree = Tree(FeatureSpace((column,)), [0], *nodes, subset=[[True], [False], [False]])
    with pytest.raises(ValueError, match="'g' has a NUL sign"):
        tree.to_source("c")
    assert tree.to_source("python")
    with pytest.raises(ValueError, match="language must be one of"):
        tree.to_source("cobol")


def test_the_module_needs_nothing_but_python(tmp_path):
    (tmp_path / "exported.py").write_text(awkward().to_source(), encoding="utf-8")
    code = "import exported; print(exported.predict({'*/ say \"hi\"': 1, 'group\\n': \"it's\"}))"
    call = [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, '.'); {code}"]
    done = subprocess.run(
        call,
        cwd=tmp_path,
        capture_output=True,
        encoding="utf-8",
        check=True,
        env={"PYTHONIOENCODING": "utf-8"},
    )
    assert done.stdout.strip() == awkward().predict(np.array([[1, "it's"]], object))[0]


@pytest.mark.parametrize(("depth", "n_leaves", "fits"), [
    (64, 2_000, True), (65, 66, False), (64, 2_001, False), (1, 2, True),
])  # fmt: skip
def test_what_is_written_as_text_can_be_read(depth, n_leaves, fits):
    tree = SimpleNamespace(depth=depth, n_leaves=n_leaves)
    if fits:
        source.check_size(tree, "source")
    else:
        with pytest.raises(ValueError, match="at most 64 levels and 2,000 leaves"):
            source.check_size(tree, "source")
