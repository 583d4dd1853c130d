"""Where compiled loops are kept when no usual place can be written to."""

import os
import stat

import pytest
from numba import config

from steadytree._base import jit as _cache

pytestmark = pytest.mark.skipif(not hasattr(os, "getuid"), reason="needs users with numbers")


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(config, "CACHE_DIR", "")
    return tmp_path


def no_place(**settings):
    def decorate(function):
        raise RuntimeError("cannot cache function: no locator available")

    return decorate


def test_a_usual_place_is_left_to_numba(temporary):
    _cache.find_folder()
    assert config.CACHE_DIR == ""


def test_without_a_place_a_folder_of_the_user_alone_is_made(temporary, monkeypatch):
    monkeypatch.setattr(_cache, "njit", no_place)
    _cache.find_folder()
    [made] = temporary.iterdir()
    assert str(made) == config.CACHE_DIR
    assert stat.S_IMODE(made.stat().st_mode) == 0o700
    _cache.find_folder()
    assert list(temporary.iterdir()) == [made]  # the same the next time


def test_a_folder_that_others_could_have_filled_is_not_trusted(temporary):
    first = _cache.own_folder()
    first.chmod(0o777)
    assert _cache.own_folder() != first
    first.rmdir()
    elsewhere = temporary / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    first.symlink_to(elsewhere)
    assert _cache.own_folder() not in (first, elsewhere)
