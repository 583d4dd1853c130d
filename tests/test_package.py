"""What the package promises before any of it is used."""

import importlib.metadata
import pathlib
import re
import subprocess
import sys
import tomllib

import pytest

import steadytree

PROJECT = pathlib.Path(__file__).parents[1]
PYPROJECT = PROJECT / "pyproject.toml"
OPTIONAL = ["dask", "distributed", "flwr", "matplotlib", "opendp", "pandas", "polars", "pyarrow"]
BLOCK = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {names!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Blocked())
"""


def run_python(code):
    """Run code in a fresh interpreter and return what it printed."""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_public_names_are_few():
    assert len(steadytree.__all__) == len(set(steadytree.__all__)) <= 40


def test_every_public_name_is_there():
    assert all(hasattr(steadytree, name) for name in steadytree.__all__)
    assert set(steadytree.__all__) <= set(dir(steadytree))


@pytest.mark.parametrize(
    ("name", "instead"),
    [("from_sklearn", "use as_tree."), ("card_to_sql", r"use Scorecard\.to_sql\(\)\.")],
)
def test_a_name_that_is_gone_says_what_to_use_instead(name, instead):
    with pytest.raises(AttributeError, match=rf"^steadytree\.{name} was removed: {instead}$"):
        getattr(steadytree, name)
    assert not hasattr(steadytree, "no_such_name")


def test_every_public_name_is_documented():
    page = (PROJECT / "docs/api.rst").read_text("utf-8")
    listed = [line.strip() for line in page.splitlines() if line.startswith("   ")]
    assert sorted(name for name in listed if name and name[0] != ":") == sorted(steadytree.__all__)


def test_names_that_pages_use_are_there():
    pages = [*PROJECT.glob("docs/*.rst"), PROJECT / "README.md", *PROJECT.glob("examples/**/*.py")]
    assert len(pages) > 20
    for page in pages:
        used = set(re.findall(r"(?<![\w.])st\.([A-Za-z_]+)", page.read_text("utf-8")))
        assert not [name for name in used if not hasattr(steadytree, name)], page.name


def test_public_names_outlive_the_import_of_every_module():
    # `report` is also the name of a layer, and importing a layer binds its name in the package
    code = (
        "import importlib, pkgutil, types, steadytree\n"
        "for module in pkgutil.walk_packages(steadytree.__path__, 'steadytree.'):\n"
        "    importlib.import_module(module.name)\n"
        "names = steadytree.__all__\n"
        "print([n for n in names if isinstance(getattr(steadytree, n), types.ModuleType)])"
    )
    assert run_python(code).strip() == "[]"


def test_version_is_that_of_the_installed_package():
    declared = tomllib.loads(PYPROJECT.read_text("utf-8"))["project"]["version"]
    assert steadytree.__version__ == importlib.metadata.version("steadytree") == declared


def test_package_is_typed():
    assert (pathlib.Path(steadytree.__file__).parent / "py.typed").is_file()


def test_works_without_optional_packages():
    blocked = BLOCK.format(names=[*OPTIONAL, "pyscipopt"])
    fit = (
        "import steadytree as st\n"
        "model = st.StableTreeClassifier(max_depth=1, epsilon=0).fit([[0.0], [1.0]], ['a', 'b'])\n"
        "print(model.predict([[1.0]])[0])"
    )
    assert run_python(blocked + fit).strip() == "b"


@pytest.mark.parametrize(
    ("call", "needed"),
    [
        ("st.StableTreeClassifier().fit(Collection(), Collection())", "steadytree[dask]"),
        ("st.StableTreeClassifier().fit_files('rows.parquet', 'y')", "steadytree[parquet]"),
    ],
)
def test_without_optional_packages_it_says_what_to_install(call, needed):
    blocked = BLOCK.format(names=OPTIONAL)
    code = (
        "import steadytree as st\n"
        "class Collection:\n"
        "    def __dask_graph__(self): return {}\n"
        f"try:\n    {call}\nexcept ImportError as error:\n    print(error)"
    )
    assert f"pip install '{needed}'" in run_python(blocked + code)


@pytest.mark.parametrize("heavy", ["jinja2", "numba", "numpy", "pandas", "sklearn"])
def test_command_line_starts_without_heavy_modules(heavy):
    code = f"import sys, steadytree.cli; print({heavy!r} in sys.modules)"
    assert run_python(code).strip() == "False"
