"""Trees as Python and C source, run once before they are handed over."""

import ctypes
import math
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from steadytree._base.validation import OneOf
from steadytree.models.boxes import in_double
from steadytree.models.exports.probes import REFUSED, Check, Probes, used_features
from steadytree.models.tree import LEAF, Tree

MOST_LEVELS = 64  # Python takes 100 levels of blocks, and C 127
MOST_LEAVES = 2_000
LANGUAGES = ("python", "c")
COMPILERS = ("cc", "gcc", "clang")
COMPILER_SECONDS = 60
NO_LEAF = -2  # the right leaf with another class or share


def tree_to_source(tree: Tree, language: str = "python") -> tuple[str, Check]:
    """What `Tree.to_source` describes, and on what it was compared with the tree."""
    OneOf(*LANGUAGES).check(language, "language")
    check_size(tree, "source")
    tree = in_double(tree)
    probes, used = Probes.of_tree(tree), used_features(tree)
    expected = probes.ask(tree.apply, used, REFUSED)
    text = _python(tree) if language == "python" else _c(tree)
    found, by = (_run_python if language == "python" else _run_c)(text, tree, probes)
    return text, probes.compare(f"the {language} source", by, expected, found)


def check_size(tree: Tree, what: str, most_levels: int = MOST_LEVELS) -> None:
    """Refuse a tree that nobody could read as text."""
    if tree.depth > most_levels or tree.n_leaves > MOST_LEAVES:
        raise ValueError(
            f"a tree of depth {tree.depth:,} with {tree.n_leaves:,} leaves is too large for "
            f"{what}, at most {most_levels} levels and {MOST_LEAVES:,} leaves: prune it, or use "
            "to_onnx()."
        )


class Language(NamedTuple):
    """How a language writes the branches of a tree."""

    number: Callable[[float], str]
    among: Callable[[str, list[str], bool], str]  # a text is, or is not, one of these
    known: str  # whether a number is there
    negated: str
    if_: str
    else_: str
    end: str
    leaf: str


def _branches(tree: Tree, language: Language) -> Iterator[str]:
    """The lines of the nested branches; missing values take the side that the tree says."""

    def lines(node: int, indent: str) -> Iterator[str]:
        condition = "" if tree.feature[node] == LEAF else _condition(tree, node, language)
        if tree.feature[node] == LEAF:
            yield indent + language.leaf.format(node)
        elif not condition:  # every row goes left
            yield from lines(int(tree.left[node]), indent)
        else:
            yield indent + language.if_.format(condition)
            yield from lines(int(tree.left[node]), indent + "    ")
            yield indent + language.else_
            yield from lines(int(tree.right[node]), indent + "    ")
            if language.end:
                yield indent + language.end

    yield from lines(0, "    ")


def _condition(tree: Tree, node: int, language: Language) -> str:
    """What sends a row left; empty where everything does."""
    feature, missing_left = int(tree.feature[node]), bool(tree.missing_left[node])
    column, name, at = tree.space[feature], f"x{feature}", float(tree.threshold[node])
    if column.is_categorical:
        flags = tree.subset[node, : len(column.categories)] != missing_left
        chosen = [column.categories[k] for k in flags.nonzero()[0].tolist()]
        return language.among(name, chosen, missing_left) if chosen else ""
    if math.isinf(at):
        return "" if missing_left else language.known.format(name)
    # comparisons with nan are false, so that missing values take the other side
    if missing_left:
        return language.negated.format(f"{name} > {language.number(at)}")
    return f"{name} <= {language.number(at)}"


# ---- Python ----
def _among_python(name: str, texts: list[str], negated: bool) -> str:
    listed = ", ".join(map(ascii, texts))
    return f"{name} {'not in' if negated else 'in'} ({listed},)"


PYTHON = Language(repr, _among_python, "{0} == {0}", "not {}", "if {}:", "else:", "", "return {}")
PYTHON_FUNCTIONS = '''
def predict(row):
    """The most frequent class of the leaf."""
    return CLASSES[LABELS[leaf(row)]]


def predict_proba(row):
    """The share of each class in the leaf, in order of CLASSES."""
    return SHARES[leaf(row)]


def _number(value):
    value = math.nan if value is None else float(value)
    if math.isinf(value):
        raise ValueError("a number is infinite: mark it missing, or clip it")
    return value


def _text(value):
    if value is None or value != value:
        return None
    if not isinstance(value, str):
        raise TypeError(f"a category must be text or None, got {value!r}")
    return value
'''


def _python(tree: Tree) -> str:
    leaves = tree.is_leaf.nonzero()[0].tolist()
    shares = [f"    {leaf}: {tuple(tree.value[leaf].tolist())!r}," for leaf in leaves]
    labels = ", ".join(f"{leaf}: {tree.label[leaf]}" for leaf in leaves)
    read = [
        f"    x{j} = {'_text' if tree.space[j].is_categorical else '_number'}"
        f"(row[{tree.space[j].name!a}])"
        for j in used_features(tree)
    ]
    head = [
        '"""A decision tree of steadytree: a row is a mapping of column names to values.',
        "",
        "A missing value is None or nan. A category that was not known counts as missing.",
        '"""',
        "",
        "import math",
        "",
        f"CLASSES = {tree.classes.tolist()!a}",
        f"LABELS = {{{labels}}}  # index of the class of each leaf",
        "SHARES = {",
        *shares,
        "}",
        "",
        "",
        "def leaf(row):",
        '    """The number of the leaf that a row falls in."""',
    ]
    return "\n".join([*head, *read, *_branches(tree, PYTHON), "", *PYTHON_FUNCTIONS.split("\n")])


def _run_python(text: str, tree: Tree, probes: Probes) -> tuple[list[int], str]:
    made: dict[str, Any] = {}
    exec(compile(text, "exported tree", "exec"), made)  # text of our own, names and labels quoted

    labels, known = tree.label.tolist(), tree.classes.tolist()

    def leaf(row: dict[str, Any]) -> int:
        try:
            found = int(made["leaf"](row))
        except ValueError:
            return REFUSED
        same = list(made["predict_proba"](row)) == tree.value[found].tolist()
        return found if same and made["predict"](row) == known[labels[found]] else NO_LEAF

    names = probes.space.names
    by = f"Python {sys.version_info.major}.{sys.version_info.minor}"
    return [leaf(dict(zip(names, row, strict=True))) for row in probes.rows], by


# ---- C ----
def _c_text(text: str) -> str:
    """A literal of UTF-8; other than plain signs in octal, as they are read in every locale."""
    signs = (chr(b) if chr(b).isalnum() and b < 128 else f"\\{b:03o}" for b in text.encode("utf-8"))
    return f'"{"".join(signs)}"'


def _among_c(name: str, texts: list[str], negated: bool) -> str:
    listed = " || ".join(f"is({name}, {_c_text(text)})" for text in texts)
    return f"!({listed})" if negated else listed


C = Language(
    float.hex,
    _among_c,
    "{0} == {0}",
    "!({})",
    "if ({}) {{",
    "} else {",
    "}",
    "return {};",
)


def _c(tree: Tree) -> str:
    bad = [c.name for c in tree.space if any("\0" in text for text in c.categories)]
    if bad:
        raise ValueError(f"column {bad[0]!r} has a NUL sign, which texts of C cannot hold.")
    used = used_features(tree)
    fields, locals_, guards = [], [], []
    for j in used:
        column, kind = tree.space[j], "const char *"
        if not column.is_categorical:
            kind = "double "
            guards.append(f"    if (x{j} - x{j} != 0 && x{j} == x{j}) return {REFUSED};")
        fields.append(f"    {kind}x{j}; /* {_c_comment(column.name)} */")
        locals_.append(f"    {kind}x{j} = row->x{j};")
    leaves = tree.is_leaf.nonzero()[0].tolist()
    classes = ", ".join(f"{k}: {_c_comment(c)}" for k, c in enumerate(tree.classes.tolist()))
    n_classes = len(tree.classes)
    cases = [
        f"    case {leaf}: {' '.join(_c_share(k, s) for k, s in enumerate(tree.value[leaf]))} "
        f"return {tree.label[leaf]};"
        for leaf in leaves
    ]
    return "\n".join(
        [
            "/* A decision tree of steadytree. Missing numbers are NAN, missing texts NULL; a",
            "   text that is not known counts as missing. Texts are UTF-8.",
            f"   Classes by index: {classes} */",
            "#include <string.h>",
            "#ifdef __FAST_MATH__",
            '#error "comparisons with NAN must be exact: compile without -ffast-math"',
            "#endif",
            "",
            "struct tree_row {",
            *(fields or ["    double none; /* no column is used */"]),
            "};",
            "",
            "static int is(const char *x, const char *text) {",
            "    return x != NULL && strcmp(x, text) == 0;",
            "}",
            "",
            f"/* The number of the leaf; {REFUSED} where a number is infinite. */",
            "int tree_leaf(const struct tree_row *row) {",
            *(locals_ or ["    (void)row;"]),
            "    (void)is;",
            *guards,
            *_branches(tree, C),
            "}",
            "",
            f"/* The index of the class, and the share of each of the {n_classes} classes; "
            f"{REFUSED} as above. */",
            f"int tree_predict(const struct tree_row *row, double shares[{n_classes}]) {{",
            "    switch (tree_leaf(row)) {",
            *cases,
            "    }",
            f"    return {REFUSED};",
            "}",
            "",
        ]
    )


def _c_comment(value: Any) -> str:
    """A name that ends no comment and is no trigraph."""
    return re.sub(r"[^\w .,:;=()-]+", "_", str(value).encode("ascii", "replace").decode()[:40])


def _c_share(k: int, share: float) -> str:
    return f"shares[{k}] = {float(share).hex()};"


def _run_c(text: str, tree: Tree, probes: Probes) -> tuple[list[int], str]:
    """Compile and run it where there is a compiler; else run its branches as Python."""
    compiler = next(filter(None, map(shutil.which, COMPILERS)), None)
    if compiler is None or sys.platform == "win32":
        return _run_c_as_python(text, probes), "a reading of its branches, as no compiler was found"
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder, "tree.c"), Path(folder, "tree.so")
        source.write_text(text, encoding="utf-8")
        call = [compiler, "-std=c99", "-O1", "-fPIC", "-shared", "-o", str(library), str(source)]
        done = subprocess.run(call, capture_output=True, text=True, timeout=COMPILER_SECONDS)
        if done.returncode:
            raise ValueError(f"{compiler} does not compile the source: {done.stderr[:200]}")
        return _call_library(library, tree, probes), Path(compiler).name


def _call_library(library: Path, tree: Tree, probes: Probes) -> list[int]:
    used = used_features(tree)
    kinds = {j: ctypes.c_char_p if tree.space[j].is_categorical else ctypes.c_double for j in used}

    class Row(ctypes.Structure):
        _fields_ = [(f"x{j}", kinds[j]) for j in used] or [("none", ctypes.c_double)]

    made, shares = ctypes.CDLL(str(library)), (ctypes.c_double * len(tree.classes))()
    found = []
    for given in probes.rows:
        values = (given[j] for j in used)
        row = Row(*(v.encode("utf-8") if isinstance(v, str) else v for v in values))
        leaf = made.tree_leaf(ctypes.byref(row))
        label = made.tree_predict(ctypes.byref(row), shares)
        same = leaf == label == REFUSED or (
            leaf != REFUSED
            and label == tree.label[leaf]
            and list(shares) == tree.value[leaf].tolist()
        )
        found.append(leaf if same else NO_LEAF)
    return found


def _run_c_as_python(text: str, probes: Probes) -> list[int]:
    """The branches of the C source, line by line as Python, where no compiler can be had."""
    body = text.partition("tree_leaf(const struct tree_row *row) {\n")[2].partition("\n}\n")[0]
    lines = ["def leaf(row):"]
    for line in body.split("\n"):
        indent, bare = line[: len(line) - len(line.lstrip())], line.strip()
        bare = bare.replace("||", "or").replace("&&", "and").replace("!(", "not (")
        bare = re.sub(r"\(void\)\w+;", "pass", bare)
        bare = re.sub(r"(?:const char \*|double )(\w+) = row->(\w+);", r"\1 = row['\2']", bare)
        bare = re.sub(r"-?0x[0-9a-f.]+p[+-]\d+", lambda found: repr(float.fromhex(found[0])), bare)
        bare = re.sub(r"is\((\w+), (\"[^\"]*\")\)", r"(\1 == b\2)", bare)
        bare = re.sub(r"^if \((.*)\) (\{|return.*;)$", _python_if, bare)
        bare = bare.replace("} else {", "else:").rstrip(";")
        if bare != "}":
            lines.append(indent + bare)
    made: dict[str, Any] = {}
    exec(compile("\n".join(lines), "exported tree", "exec"), made)
    names = [f"x{j}" for j in range(len(probes.space))]
    rows = (
        {n: v.encode("utf-8") if isinstance(v, str) else v for n, v in zip(names, row, strict=True)}
        for row in probes.rows
    )
    return [made["leaf"](row) for row in rows]


def _python_if(found: re.Match[str]) -> str:
    return f"if {found[1]}:" + ("" if found[2] == "{" else f" {found[2].rstrip(';')}")
