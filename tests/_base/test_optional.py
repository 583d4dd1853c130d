"""A missing extra or module is explained in one line; frames are made by the library at hand."""

import pathlib
import pickle
import sys
import tomllib

import numpy as np
import pandas as pd
import polars as pl
import pytest

from steadytree._base import optional
from steadytree._base.optional import MissingModules, install_finder, require, to_frame

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
}
COLUMNS = {"leaves": np.array([4, 7]), "origin": np.array(["a", "b"])}
FOR_DEVELOPERS = {"bench", "check", "docs", "interop", "test"}


def test_every_extra_is_known_here():
    extras = tomllib.loads(PYPROJECT.read_text())["project"]["optional-dependencies"]
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
    (tmp_path / "half_installed.py").write_text("import its_missing_dependency\n")
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
