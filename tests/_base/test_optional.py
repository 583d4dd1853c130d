"""A missing extra or module is explained in one line; frames are made by the library at hand."""

import gc
import pathlib
import pickle
import sys
import tomllib
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import polars as pl
import pytest

from steadytree._base import optional
from steadytree._base.optional import (
    LateModule,
    MissingModules,
    install_finder,
    is_a,
    load_late,
    require,
    to_frame,
    uncollected,
)

PYPROJECT = pathlib.Path(__file__).parents[2] / "pyproject.toml"
BRINGS = {
    "private": "opendp",
    "federated": "flwr",
    "dask": "dask",
    "parquet": "pyarrow",
    "mio": "pyscipopt",
    "plot": "matplotlib",
    "frame": "pandas",
    "skops": "skops",
    "ensembles": "veritas",
    "onnx": "onnx",
}
COLUMNS = {"leaves": np.array([4, 7]), "origin": np.array(["a", "b"])}
FOR_DEVELOPERS = {"bench", "check", "docs", "interop", "test"}


def test_every_extra_is_known_here():
    extras = tomllib.loads(PYPROJECT.read_text("utf-8"))["project"]["optional-dependencies"]
    assert set(extras) == set(BRINGS) | FOR_DEVELOPERS


@pytest.mark.parametrize("extra", BRINGS)
def test_missing_extra_says_how_to_get_it(extra, monkeypatch):
    monkeypatch.setitem(sys.modules, BRINGS[extra], None)
    with pytest.raises(ImportError) as caught:
        require(BRINGS[extra], extra=extra, purpose="doing that")
    expected = f"doing that needs {BRINGS[extra]}: pip install 'steadytree[{extra}]'"
    assert str(caught.value) == expected


def test_missing_submodule_names_the_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.delitem(sys.modules, "matplotlib.pyplot", raising=False)
    with pytest.raises(ImportError, match=r"^plotting needs matplotlib: pip install"):
        require("matplotlib.pyplot", extra="plot", purpose="plotting")


def test_present_module_is_returned():
    assert require("json.decoder", extra="plot", purpose="reading") is sys.modules["json.decoder"]


def test_broken_module_raises_its_own_error(tmp_path, monkeypatch):
    (tmp_path / "half_installed.py").write_text("import its_missing_dependency\n", "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="its_missing_dependency"):
        require("half_installed", extra="plot", purpose="plotting")


def test_a_frame_is_one_of_pandas():
    found = to_frame(COLUMNS)
    assert isinstance(found, pd.DataFrame)
    assert found.to_dict("list") == {"leaves": [4, 7], "origin": ["a", "b"]}


def test_a_frame_is_one_of_polars_where_pandas_is_missing(monkeypatch):
    monkeypatch.setattr(optional, "find_spec", lambda name: None if name == "pandas" else "there")
    found = to_frame(COLUMNS)
    assert isinstance(found, pl.DataFrame)
    assert found.to_dict(as_series=False) == {"leaves": [4, 7], "origin": ["a", "b"]}


def test_a_frame_needs_pandas_or_polars(monkeypatch):
    monkeypatch.setattr(optional, "find_spec", lambda name: None)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"pip install 'steadytree\[frame\]'"):
        to_frame(COLUMNS)


def test_a_module_that_does_not_exist_is_named_with_its_extra():
    assert require("json", extra="plot", purpose="reading settings").__name__ == "json"
    message = r"^plotting the frontier needs no_such_module: pip install 'steadytree\[plot\]'$"
    with pytest.raises(ImportError, match=message):
        require("no_such_module", extra="plot", purpose="plotting the frontier")
    assert to_frame({"leaves": np.array([4, 7])}).shape == (2, 1)


# what a coordinator of the first layout shipped to holders
OLD_APP = "from steadytree.sources.flower_relay import make_client_app\n\napp = make_client_app()\n"


def old_pickle(module, name):
    """How a pickle of protocol 0 names a class."""
    return f"c{module}\n{name}\n.".encode()


def test_a_pickle_that_names_a_module_of_the_first_layout_says_what_to_do():
    with pytest.raises(ModuleNotFoundError, match=r"fit the model again .* save\(\)") as caught:
        pickle.loads(old_pickle("steadytree.learn.stable_tree", "StableTreeClassifier"))
    assert "\n" not in str(caught.value)
    assert caught.value.name == "steadytree.learn"


def test_a_flower_app_of_the_first_layout_says_what_to_do():
    with pytest.raises(ModuleNotFoundError, match="one version on all sides and run") as caught:
        exec(OLD_APP, {})
    assert "\n" not in str(caught.value)


def test_other_imports_are_left_alone():
    with pytest.raises(ModuleNotFoundError, match=r"^No module named 'no_such_module'$"):
        __import__("no_such_module")
    with pytest.raises(ImportError, match="cannot import name 'nothing'"):
        exec("from steadytree.models import nothing", {})


def test_the_finder_is_the_last_and_installed_once():
    install_finder()
    assert [type(each) for each in sys.meta_path].count(MissingModules) == 1


@pytest.fixture
def slow_package(tmp_path, monkeypatch):
    """A package that notes when it is run, and its name; forgotten afterwards."""
    (tmp_path / "slow_one").mkdir()
    (tmp_path / "slow_one" / "__init__.py").write_text(
        "import sys, time\nsys.times_run += 1\ntime.sleep(0.05)\nfrom .part import answer\n",
        "utf-8",
    )
    # a part that looks at the whole before it is there
    (tmp_path / "slow_one" / "part.py").write_text(
        "import slow_one\nassert not hasattr(slow_one, 'answer')\nanswer = 42\n", "utf-8"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "times_run", 0, raising=False)
    yield "slow_one"
    for name in [name for name in sys.modules if name.partition(".")[0] == "slow_one"]:
        del sys.modules[name]


def test_a_late_module_is_run_when_it_is_used_not_when_it_is_imported(slow_package):
    load_late(slow_package)
    import slow_one

    assert sys.times_run == 0
    assert type(slow_one) is LateModule
    assert slow_one.answer == 42
    load_late(slow_package)  # it is there
    assert sys.times_run == 1
    assert slow_one is sys.modules[slow_package]
    assert type(slow_one) is not LateModule
    with pytest.raises(AttributeError, match="nothing"):
        slow_one.nothing


def test_the_import_of_a_part_runs_the_whole_first(slow_package):
    load_late(slow_package)
    from slow_one.part import answer  # whose own assertion fails if it is run twice

    part = sys.modules["slow_one.part"]
    assert (answer, sys.times_run) == (42, 1)
    assert part is sys.modules["slow_one"].part
    assert part.__spec__.origin == part.__file__


def test_a_late_module_that_fails_is_not_kept(slow_package, tmp_path):
    (tmp_path / "slow_one" / "__init__.py").write_text("import its_missing_dependency\n", "utf-8")
    load_late(slow_package)
    import slow_one

    with pytest.raises(ModuleNotFoundError, match="its_missing_dependency"):
        slow_one.answer
    assert slow_package not in sys.modules


def test_late_modules_that_are_not_installed_stay_so():
    load_late("no_such_module_at_all")
    assert "no_such_module_at_all" not in sys.modules


def test_two_threads_that_use_a_late_module_run_it_once(slow_package):
    load_late(slow_package)
    import slow_one

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: slow_one.answer, range(16)))
    assert (set(found), sys.times_run) == ({42}, 1)


def test_classes_of_modules_that_are_not_loaded():
    assert is_a(pathlib.Path(), "pathlib", "PurePosixPath", "Path")
    assert not is_a("text", "pathlib", "Path")
    assert not is_a("text", "no_such_module_at_all", "Path")


def test_nothing_is_collected_in_short_work():
    assert gc.isenabled()
    with uncollected():
        assert not gc.isenabled()
        with uncollected():  # inside another one
            pass
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(ImportError), uncollected():
        import no_such_module_at_all  # noqa: F401
    assert gc.isenabled()
