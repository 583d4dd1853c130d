"""Compiled loops: one decorator for every kernel, and where compiled code is kept.

Compiled code is looked for in numba's cache, then in a folder that a wheel may bring along
(``tools/compiled_wheel.py`` fills it). Neither is used where a source file of the kernel or of a
kernel that it calls differs, nor the wheel's for another numba, Python or processor.
"""

import contextlib
import functools
import hashlib
import os
import pickle
import re
import stat
import tempfile
from pathlib import Path
from typing import Any

from numba import config, njit, types
from numba.core import event

from steadytree._base.progress import report_compiling

PACKAGE = Path(__file__).parents[1]
SHIPPED = PACKAGE / "_compiled"
BUILD = "STEADYTREE_COMPILED"  # names a folder that takes a copy of all that is compiled
IMPORTED = re.compile(rb"^(?:from|import) steadytree\.([\w.]+)", re.MULTILINE)


def find_folder():
    """Let numba cache compiled code in a temporary folder where it finds no other.

    Without a folder numba refuses to compile: so it is where the package belongs to another user
    and there is no home folder, as in many containers.
    """
    try:
        njit(cache=True)(own_folder)  # never called: it only has to find a folder
    except RuntimeError:
        config.CACHE_DIR = str(own_folder())  # type: ignore[attr-defined]


def own_folder():
    """A folder that only this user can write: the code in it is run."""
    user = os.getuid() if hasattr(os, "getuid") else "user"
    folder = Path(tempfile.gettempdir()) / f"steadytree-numba-{user}"
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    known = folder.lstat()
    if not stat.S_ISDIR(known.st_mode) or known.st_mode & 0o077 or known.st_uid != user:
        return Path(tempfile.mkdtemp(prefix="steadytree-numba-"))
    return folder


find_folder()


class Compiling(event.Listener):
    """Says which loop is compiled, as the first use of many takes a minute."""

    def on_start(self, event):
        """Name the loop; those that it calls are compiled inside."""
        report_compiling(getattr(event.data.get("dispatcher"), "__name__", "a loop"))

    def on_end(self, event):
        """Go back to the step itself."""
        report_compiling(None)


event.register("numba:compile", Compiling())


@functools.cache
def source_digest(path: Path) -> str:
    """Digest of a source file and of the files of this package that it imports, and they.

    numba compares the file of a function alone: code compiled before a function in another file
    changed would still be run.
    """
    source = path.read_bytes()
    parts = [hashlib.sha256(source).hexdigest()]
    for name in sorted(set(IMPORTED.findall(source))) if path.parent.name != "_base" else ():
        other = PACKAGE.joinpath(*name.decode().split(".")).with_suffix(".py")
        parts.append(source_digest(other))
    return hashlib.sha256("".join(parts).encode()).hexdigest()


def _make_cache(function):
    """A cache of one function; None where this numba keeps compiled code in another way."""
    try:
        return _cache_class()(function)
    except (ImportError, AttributeError, TypeError):
        return None


@functools.cache
def _cache_class():
    from numba.core import caching

    class KernelCache(caching.FunctionCache):
        """Compiled code of one kernel: that of numba's folder, else that of the wheel."""

        def __init__(self, function):
            super().__init__(function)
            stamp = source_digest(Path(function.__code__.co_filename))
            base = self._impl.filename_base
            self._cache_file = caching.IndexDataCacheFile(self._cache_path, base, stamp)
            base = f"{function.__module__}.{base}"  # many files are called _kernels
            self._shipped = caching.IndexDataCacheFile(str(SHIPPED), base, stamp)
            folder = os.environ.get(BUILD)
            self._built = folder and caching.IndexDataCacheFile(folder, base, stamp)

        def _load_overload(self, sig, target_context):
            if self._built:
                return None  # everything is compiled anew
            with contextlib.suppress(Exception):  # a damaged file: compile, and write it anew
                found = super()._load_overload(sig, target_context)
                if found is not None:
                    return found
            with contextlib.suppress(Exception):
                return self._load_shipped(sig, target_context)
            return None

        def _load_shipped(self, sig, target_context):
            wanted, (triple, _, _), hashes = self._index_key(sig, target_context.codegen())
            for (known, built_for, of), name in self._shipped._load_index().items():
                same = known == wanted and of == hashes and built_for[0] == triple
                if same and _host_has(built_for[2]):
                    return self._impl.rebuild(target_context, self._shipped._load_data(name))
            return None

        def _save_overload(self, sig, data):
            try:
                super()._save_overload(sig, data)
            except (pickle.UnpicklingError, EOFError, AttributeError, ImportError):
                self.flush()  # a damaged index, or one that names a type that is no more
                super()._save_overload(sig, data)
            if self._built and self._impl.check_cachable(data):
                self._built.save(self._index_key(sig, data.codegen), self._impl.reduce(data))

    return KernelCache


@functools.cache
def _host_has(features: str) -> bool:
    """Whether this processor has all features ("+avx2,-sse4a", ...) that code was built for."""
    import llvmlite.binding  # type: ignore[import-untyped]

    there: Any = llvmlite.binding.get_host_cpu_features()
    return all(there.get(one[1:], False) for one in features.split(",") if one.startswith("+"))


@functools.cache
def _inner_compiler():
    """Compiles what other kernels take in; None where this numba is built in another way.

    numba optimises each function and makes machine code of it, then does both again in every
    function that calls it, directly or not. Once, in the function that Python calls, is enough.
    """
    try:
        from numba.core.codegen import JITCodeLibrary
        from numba.core.compiler import Compiler
    except ImportError:
        return None

    class Environment:
        """A code generator that is not told of Python objects: kernels have none."""

        def __init__(self, codegen):
            self._codegen = codegen

        def __getattr__(self, name):
            return getattr(self._codegen, name)

        def set_env(self, name, environment):
            """Leave it: there is no machine code yet that could use it."""

    class InnerLibrary(JITCodeLibrary):
        """Code to be linked into another library, without machine code of its own."""

        codegen = property(lambda self: Environment(self._codegen))

        def _optimize_final_module(self):
            """Leave it to the library that links this one."""

        def _finalize_final_module(self):
            self._finalize_dynamic_globals()
            self._finalized = True

        def get_pointer_to_function(self, name):
            self._ensure_finalized()
            return 0

    class InnerCompiler(Compiler):
        def compile_extra(self, func):
            codegen = self.state.targetctx.codegen()
            self.state.library = InnerLibrary(codegen, func.__qualname__)
            return super().compile_extra(func)

    return InnerCompiler


def kernel(function=None, **options):
    """Compile a function on its first call, cache it on disk, and run it without the GIL."""
    if function is None:
        return functools.partial(kernel, **options)
    if config.DISABLE_JIT:  # type: ignore[attr-defined]
        return function  # as NUMBA_DISABLE_JIT=1 asks for, so that a debugger sees it
    compiled = njit(cache=True, nogil=True, **(options | {"no_cfunc_wrapper": True}))(function)
    cache = _make_cache(function)
    if cache is not None:
        compiled._cache = cache
    recursive = function.__name__ in function.__code__.co_names  # compiled while it is compiled
    if _inner_compiler() is not None and not recursive:
        options |= {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
        inner = njit(nogil=True, pipeline_class=_inner_compiler(), **options)(function)

        def template(args, kwargs):
            """The code for types alone: numbers as they stand would each be compiled apart."""
            kwargs = {name: types.unliteral(one) for name, one in kwargs.items()}
            return inner.get_call_template(tuple(types.unliteral(one) for one in args), kwargs)

        compiled.get_call_template = template
        compiled.get_overload = inner.get_overload
    return compiled
