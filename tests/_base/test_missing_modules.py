"""Pickles and Flower apps of the first layout are refused in one line that says what to do."""

import pickle
import sys

import pytest

from steadytree._base.missing_modules import MissingModules, install

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
    install()
    assert [type(each) for each in sys.meta_path].count(MissingModules) == 1
