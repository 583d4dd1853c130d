"""Where compiled loops are kept when no usual place can be written to."""

import importlib.util
import os
import shutil
import stat
import sys

import numba
import pytest
from numba import config
from numba.core import event

from steadytree._base import jit

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
    jit.find_folder()
    assert config.CACHE_DIR == ""


def test_without_a_place_a_folder_of_the_user_alone_is_made(temporary, monkeypatch):
    monkeypatch.setattr(jit, "njit", no_place)
    jit.find_folder()
    [made] = temporary.iterdir()
    assert str(made) == config.CACHE_DIR
    assert stat.S_IMODE(made.stat().st_mode) == 0o700
    jit.find_folder()
    assert list(temporary.iterdir()) == [made]  # the same the next time


def test_a_folder_that_others_could_have_filled_is_not_trusted(temporary):
    first = jit.own_folder()
    first.chmod(0o777)
    assert jit.own_folder() != first
    first.rmdir()
    elsewhere = temporary / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    first.symlink_to(elsewhere)
    assert jit.own_folder() not in (first, elsewhere)


# ---- compiled code: used only where every source is the one it was compiled from ----
INNER = "from steadytree._base.jit import kernel\n\n\n@kernel\ndef inner(x):\n    return x + {}\n"
OUTER = (
    "from steadytree.made_inner import inner\nfrom steadytree._base.jit import kernel\n\n\n"
    "@kernel\ndef outer(x):\n    return inner(x) * 10\n"
)


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A made-up package of two modules; returns a function that loads them anew."""
    monkeypatch.setattr(jit, "PACKAGE", tmp_path)
    monkeypatch.setattr(jit, "SHIPPED", tmp_path / "shipped")
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path / "cache"))
    # Python tells a changed file by its second and its size, and both may be the same here
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    (tmp_path / "_base").mkdir()
    (tmp_path / "_base" / "jit.py").write_text("", "utf-8")
    (tmp_path / "made_outer.py").write_text(OUTER, "utf-8")

    def load(added):
        (tmp_path / "made_inner.py").write_text(INNER.format(added), "utf-8")
        jit.source_digest.cache_clear()
        for name in ("made_inner", "made_outer"):
            spec = importlib.util.spec_from_file_location(
                f"steadytree.{name}", tmp_path / f"{name}.py"
            )
            module = importlib.util.module_from_spec(spec)
            monkeypatch.setitem(sys.modules, f"steadytree.{name}", module)
            spec.loader.exec_module(module)
        return module.outer

    yield load
    jit.source_digest.cache_clear()


def was_read(outer):
    return sum(outer.stats.cache_hits.values()) == 1


def test_compiled_code_is_read_again(package):
    assert package(1)(1) == 20
    again = package(1)
    assert again(1) == 20
    assert was_read(again)


def test_a_change_in_a_file_that_is_called_compiles_the_caller_anew(package):
    assert package(1)(1) == 20
    changed = package(2)  # the file of the caller is the same
    assert changed(1) == 30
    assert not was_read(changed)


def test_a_damaged_file_is_compiled_anew(package, tmp_path):
    package(1)(1)
    for path in (tmp_path / "cache").rglob("*.nb?"):
        path.write_bytes(path.read_bytes()[:-20] + b"nothing of use here.")
    again = package(1)
    assert again(1) == 20
    assert not was_read(again)


def ship(package, tmp_path, monkeypatch):
    (tmp_path / "shipped").mkdir()
    monkeypatch.setenv(jit.BUILD, str(tmp_path / "shipped"))
    package(1)(1)
    monkeypatch.delenv(jit.BUILD)
    shutil.rmtree(tmp_path / "cache")


def test_code_that_a_wheel_brings_is_used(package, tmp_path, monkeypatch):
    ship(package, tmp_path, monkeypatch)
    outer = package(1)
    assert outer(1) == 20
    assert was_read(outer)


@pytest.mark.parametrize("change", ["source", "processor", "numba"])
def test_code_that_a_wheel_brings_is_left_alone(package, tmp_path, monkeypatch, change):
    ship(package, tmp_path, monkeypatch)
    if change == "processor":
        monkeypatch.setattr(jit, "_host_has", lambda features: False)
    if change == "numba":
        for path in (tmp_path / "shipped").glob("*.nbi"):
            path.write_bytes(path.read_bytes().replace(numba.__version__.encode(), b"9.9.9"[:6]))
    outer = package(2 if change == "source" else 1)
    assert outer(1) == (30 if change == "source" else 20)
    assert not was_read(outer)


def test_features_of_a_processor(monkeypatch):
    monkeypatch.setattr("llvmlite.binding.get_host_cpu_features", lambda: {"avx2": True})
    jit._host_has.cache_clear()
    assert jit._host_has("+avx2,-avx512f")
    assert not jit._host_has("+avx2,+avx512f")
    assert jit._host_has("")
    jit._host_has.cache_clear()


# ---- loops that other loops call ----
def kept_functions(folder):
    return {path.name.partition("-")[0] for path in folder.rglob("*.nbi")}


def test_a_loop_that_another_calls_has_no_code_of_its_own(package, tmp_path):
    outer = package(1)
    assert outer(1) == 20
    assert kept_functions(tmp_path / "cache") == {"made_outer.outer"}
    inner = outer.py_func.__globals__["inner"]
    assert not inner.signatures
    assert inner(1) == 2  # compiled for Python now
    assert outer(2.5) == 35.0
    assert kept_functions(tmp_path / "cache") == {"made_outer.outer", "made_inner.inner"}


def test_where_numba_is_built_in_another_way_each_loop_has_its_code(package, tmp_path, monkeypatch):
    monkeypatch.setattr(jit, "_inner_compiler", lambda: None)
    assert package(1)(1) == 20
    assert kept_functions(tmp_path / "cache") == {"made_outer.outer", "made_inner.inner"}


FAILING = (
    "from steadytree._base.jit import kernel\n\n\n@kernel\ndef inner(x):\n"
    "    if x > 5:\n        raise ValueError('too large')\n    return x + {}\n"
)


def test_an_error_of_an_inner_loop_reaches_python_also_from_the_cache(package, monkeypatch):
    monkeypatch.setitem(globals(), "INNER", FAILING)
    for _ in range(2):
        outer = package(1)
        with pytest.raises(ValueError, match="too large"):
            outer(9)
        assert outer(1) == 20
    assert was_read(outer)


def taken(pair, x):
    return pair[0] + pair[1] + x


def taking(x):
    return taken((1, 2), 3) + taken((x, x), x) + taken((x, 2), x=4)


def test_numbers_as_they_stand_are_compiled_as_any_of_their_type(tmp_path, monkeypatch):
    compiled = []

    class Listener(event.Listener):
        def on_start(self, event):
            compiled.append(event.data["dispatcher"].py_func.__name__)

        def on_end(self, event):
            pass

    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path))
    monkeypatch.setitem(globals(), "taken", jit.kernel(taken))
    with event.install_listener("numba:compile", Listener()):
        assert jit.kernel(taking)(5) == 6 + 15 + 11
    assert sorted(set(compiled)) == sorted(compiled)


def test_a_loop_that_calls_itself_is_compiled():
    assert add_up(4) == 10


@jit.kernel
def add_up(n):
    return n if n < 1 else n + add_up(n - 1)


def test_without_compiling_a_loop_stays_a_function(monkeypatch):
    def double(x):
        return 2 * x

    monkeypatch.setattr(config, "DISABLE_JIT", 1)
    assert jit.kernel(double) is double
    assert jit.kernel(inline="always")(double) is double
