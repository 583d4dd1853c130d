"""Imports point down only, subjects keep to their rooms, and nothing unwanted comes in."""

import ast
import functools
import pathlib

import pytest

ROOT = pathlib.Path(__file__).parents[1] / "src/steadytree"
LEVELS = [
    {"_base"},
    {"data"},
    {"models"},
    {"metrics"},
    {"distance"},
    {"robustness"},
    {"stability", "riskscore", "privacy"},
    {"federated"},
    {"comparison"},
    {"reporting"},
    {"cli"},
    {"__main__"},
]
LEVEL = {layer: height for height, level in enumerate(LEVELS) for layer in level}
TOUCHES_SKLEARN_INTERNALS = ROOT / "models/sklearn.py"
KERNELS_MAY_IMPORT = {"math", "typing", "numpy", "numba", "steadytree._base.jit"}
HEAVY = {"jinja2", "numba", "numpy", "pandas", "polars", "scipy", "sklearn"}
MOST_LINES, MOST_MODULES = 400, 20

MODULES = sorted(ROOT.rglob("*.py"))


def layer_of(path):
    """Name of the layer a file belongs to; None for the package's own `__init__`."""
    first = path.relative_to(ROOT).parts[0].removesuffix(".py")
    return None if first == "__init__" else first


def is_kernel(path):
    return "_kernels" in (path.stem, path.parent.name) and path.stem != "__init__"


@functools.cache
def parse(path):
    return ast.parse(path.read_text("utf-8"))


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


def modules_loaded_at_import(start):
    """Every module of ours that importing `start` loads, by the imports that run at import."""
    loaded, waiting = set(), [start]
    while waiting:
        path = waiting.pop()
        if path in loaded:
            continue
        loaded.add(path)
        for name in imported_names(runs_on_import(parse(path)), path):
            waiting += files_of(name)
    return loaded


def files_of(name):
    """Files that importing a dotted name of ours runs."""
    parts = name.split(".")
    if parts[0] != "steadytree" or len(parts) < 2:
        return []
    below = ROOT.joinpath(*parts[1:])
    tries = [below.with_suffix(".py"), below / "__init__.py", below.parent.with_suffix(".py")]
    return [path for path in tries if path.is_file() and path != ROOT / "__init__.py"]


def test_modules_import_only_lower_layers():
    wrong = []
    for path in MODULES:
        layer = layer_of(path)
        if layer is None:
            continue  # the public names come from everywhere
        assert layer in LEVEL, f"{layer} is no layer of the house"
        used = wrong_layers(layer, layers_used(imported_names(parse(path), path)))
        wrong += [f"{path.relative_to(ROOT)} imports {other}" for other in sorted(used)]
    assert not wrong


def test_only_public_sklearn_is_used():
    wrong = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in MODULES
        if path != TOUCHES_SKLEARN_INTERNALS
        for name in private_sklearn(imported_names(parse(path), path))
    }
    assert not wrong


def test_nothing_prints_or_asserts():
    wrong = []
    for path in MODULES:
        for node in ast.walk(parse(path)):
            called = getattr(node.func, "id", None) if isinstance(node, ast.Call) else None
            if called == "print" or isinstance(node, ast.Assert):
                wrong.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert not wrong


def test_kernels_import_numpy_numba_and_other_kernels_only():
    wrong = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in MODULES
        if is_kernel(path)
        for name in imported_names(parse(path), path)
        if "._kernels." not in f"{name}."
        and not any(f"{name}.".startswith(f"{allowed}.") for allowed in KERNELS_MAY_IMPORT)
    }
    assert not wrong


def test_nothing_is_called_utils():
    assert not [path for path in MODULES if "utils" in path.stem or "utils" in path.parent.name]


def test_files_and_folders_stay_small():
    long = [path for path in MODULES if len(path.read_text("utf-8").splitlines()) > MOST_LINES]
    folders = {path.parent for path in MODULES}
    full = [folder for folder in folders if len(list(folder.glob("*.py"))) > MOST_MODULES]
    assert not [str(path.relative_to(ROOT)) for path in long + full]


def test_command_line_imports_nothing_heavy_at_the_top():
    for path in (ROOT / "cli").glob("*.py"):
        names = imported_names(runs_on_import(parse(path)))
        assert not {name.split(".")[0] for name in names} & HEAVY, path


@pytest.mark.parametrize(
    ("layer", "code", "wrong"),
    [
        ("models", "import steadytree.stability.stable_tree", {"stability"}),
        ("models", "from steadytree.stability import stable_tree", {"stability"}),
        ("models", "from steadytree import stability", {"stability"}),
        ("models", "from steadytree import Tree", {"steadytree"}),
        ("models", "import steadytree", {"steadytree"}),
        ("models", "from ..reporting import html", {"reporting"}),
        ("models", "from .. import federated", {"federated"}),
        ("models", "from . import tree", set()),
        ("models", "def late():\n    from steadytree.distance import path", {"distance"}),
        ("models", "import_module('steadytree.distance')", {"distance"}),
        ("privacy", "import steadytree.stability", {"stability"}),
        ("stability", "from steadytree.riskscore import boosting", {"riskscore"}),
        ("stability", "from steadytree.data._kernels.counts import count_classes", set()),
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
