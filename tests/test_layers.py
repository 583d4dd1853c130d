"""Imports point downwards only, and what the house does not want stays out."""

import ast
import functools
import pathlib

import pytest

ROOT = pathlib.Path(__file__).parents[1] / "src/steadytree"
LEVELS = [
    {"kernels"},
    {"core"},
    {"privacy"},
    {"interop", "solve", "sources"},
    {"measure", "learn"},
    {"judging"},
    {"reporting"},
    {"cli"},
    {"__main__"},
]
LEVEL = {layer: height for height, level in enumerate(LEVELS) for layer in level}
TOUCHES_SKLEARN_INTERNALS = ROOT / "interop/sklearn_tree.py"
KERNELS_MAY_IMPORT = {"math", "typing", "numpy", "numba", "steadytree.kernels"}
NO_KERNEL = ROOT / "kernels/_cache.py"  # finds a folder for what is compiled
HEAVY = {"jinja2", "numba", "numpy", "pandas", "polars", "scipy", "sklearn"}

MODULES = sorted(ROOT.rglob("*.py"))
in_each_module = pytest.mark.parametrize(
    "path", MODULES, ids=lambda path: path.relative_to(ROOT).with_suffix("").as_posix()
)


def layer_of(path):
    """Name of the layer a file belongs to; None for the package's own `__init__`."""
    first = path.relative_to(ROOT).parts[0].removesuffix(".py")
    return None if first == "__init__" else first


@functools.cache
def parse(path):
    return ast.parse(path.read_text())


def imported_names(tree, path=ROOT / "__init__.py"):
    """Dotted names a piece of code imports, at the top, in functions, or by `import_module`."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = absolute_module(node, path)
            names |= {f"{base}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Call):
            names |= names_imported_by_call(node)
    return names


def absolute_module(node, path):
    package = ("steadytree", *path.relative_to(ROOT).parts[:-1])
    above = package[: len(package) + 1 - node.level] if node.level else ()
    return ".".join((*above, *filter(None, [node.module])))


def names_imported_by_call(call):
    function = call.func
    called = getattr(function, "attr", None) or getattr(function, "id", None)
    if called not in {"import_module", "__import__", "require"} or not call.args:
        return set()
    target = call.args[0]
    return {target.value} if isinstance(target, ast.Constant) else set()


def layers_used(names):
    """Layers of ours among imported names; "steadytree" stands for the package itself."""
    ours = [name.split(".") for name in names if name.split(".")[0] == "steadytree"]
    return {parts[1] if parts[1:] and parts[1] in LEVEL else "steadytree" for parts in ours}


def wrong_layers(layer, used):
    """Layers among `used` that `layer` may not import."""
    below = {other for other in LEVEL if LEVEL[other] < LEVEL[layer]}
    allowed = below | {layer} | ({"steadytree"} if layer == "cli" else set())
    return used - allowed


def runs_on_import(tree):
    """The part of a module that runs when it is imported: all but function bodies."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
    waiting, found = list(tree.body), []
    while waiting:
        node = waiting.pop()
        if isinstance(node, functions) or is_for_type_checkers(node):
            continue
        found.append(node)
        waiting += ast.iter_child_nodes(node)
    return ast.Module([node for node in found if isinstance(node, ast.stmt | ast.expr)], [])


def is_for_type_checkers(node):
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def private_sklearn(names):
    return {
        name
        for name in names
        if name.startswith("sklearn.") and any(part.startswith("_") for part in name.split("."))
    }


@in_each_module
def test_module_imports_only_lower_layers(path):
    layer = layer_of(path)
    if layer is None:
        return  # the public names come from everywhere
    assert layer in LEVEL, f"{layer} is no layer of the house"
    wrong = wrong_layers(layer, layers_used(imported_names(parse(path), path)))
    assert not wrong, f"{layer} may not import {sorted(wrong)}"


@in_each_module
def test_only_public_sklearn_is_used(path):
    if path == TOUCHES_SKLEARN_INTERNALS:
        return
    private = private_sklearn(imported_names(parse(path), path))
    assert not private, f"private scikit-learn names: {sorted(private)}"


@in_each_module
def test_nothing_prints_or_asserts(path):
    for node in ast.walk(parse(path)):
        called = getattr(node.func, "id", None) if isinstance(node, ast.Call) else None
        assert called != "print", f"line {node.lineno}: print"
        assert not isinstance(node, ast.Assert), f"line {node.lineno}: assert"


@pytest.mark.parametrize(
    "path",
    [path for path in MODULES if layer_of(path) == "kernels" and path != NO_KERNEL],
    ids=lambda path: path.stem,
)
def test_kernels_import_numpy_and_numba_only(path):
    others = {
        name
        for name in imported_names(parse(path), path)
        if not any(f"{name}.".startswith(f"{allowed}.") for allowed in KERNELS_MAY_IMPORT)
    }
    assert not others


def test_nothing_is_called_utils():
    assert not [path for path in MODULES if "utils" in path.stem or "utils" in path.parent.name]


def test_command_line_imports_nothing_heavy_at_the_top():
    for path in (ROOT / "cli").glob("*.py"):
        names = imported_names(runs_on_import(parse(path)))
        assert not {name.split(".")[0] for name in names} & HEAVY, path


@pytest.mark.parametrize(
    ("layer", "code", "wrong"),
    [
        ("core", "import steadytree.learn.stable", {"learn"}),
        ("core", "from steadytree.learn import stable", {"learn"}),
        ("core", "from steadytree import learn", {"learn"}),
        ("core", "from steadytree import Tree", {"steadytree"}),
        ("core", "import steadytree", {"steadytree"}),
        ("core", "from ..reporting import render", {"reporting"}),
        ("core", "from .. import sources", {"sources"}),
        ("core", "from . import tree", set()),
        ("core", "def late():\n    from steadytree.measure import distance", {"measure"}),
        ("core", "import_module('steadytree.measure')", {"measure"}),
        ("measure", "import steadytree.learn", {"learn"}),
        ("learn", "from steadytree.measure import distance", {"measure"}),
        ("solve", "from steadytree.sources import rows", {"sources"}),
        ("learn", "from steadytree.kernels import count_bins", set()),
        ("cli", "from steadytree import report", set()),
        ("cli", "from steadytree import Tree", set()),
    ],
)
def test_the_rule_sees_every_form_of_import(layer, code, wrong):
    names = imported_names(ast.parse(code), ROOT / layer / "any.py")
    assert wrong_layers(layer, layers_used(names)) == wrong


@pytest.mark.parametrize(
    ("code", "private"),
    [
        ("from sklearn.tree import _tree", {"sklearn.tree._tree"}),
        ("from sklearn.tree._tree import Tree", {"sklearn.tree._tree.Tree"}),
        ("import sklearn.tree._tree as inside", {"sklearn.tree._tree"}),
        ("from sklearn.tree import DecisionTreeClassifier", set()),
    ],
)
def test_the_rule_sees_private_sklearn(code, private):
    assert private_sklearn(imported_names(ast.parse(code))) == private


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("try:\n    import numpy\nexcept ImportError:\n    numpy = None", {"numpy"}),
        ("class A:\n    import numpy", {"numpy"}),
        ("def late():\n    import numpy", set()),
        ("if TYPE_CHECKING:\n    import numpy", set()),
    ],
)
def test_the_rule_knows_what_runs_on_import(code, names):
    assert imported_names(runs_on_import(ast.parse(code))) == names
