"""Modules that may be missing or are rarely used: optional packages, and slow ones loaded late."""

import gc
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, module_from_spec, spec_from_loader
from threading import RLock
from types import ModuleType
from typing import Any


def require(module: str, extra: str, purpose: str) -> ModuleType:
    """Import an optional module; the error of a missing one names the purpose and the extra."""
    package = module.partition(".")[0]
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        # a package that is installed but broken raises its own error
        if (error.name or "").partition(".")[0] != package:
            raise
        message = f"{purpose} needs {package}: pip install 'steadytree[{extra}]'"
    raise ImportError(message, name=package)


def to_frame(columns: Mapping[str, Any]) -> Any:
    """A pandas frame, or a polars frame where only that is installed."""
    if find_spec("pandas") is None and find_spec("polars") is not None:
        lists = {name: column.tolist() for name, column in columns.items()}
        return require("polars", extra="frame", purpose="making a frame").DataFrame(lists)
    return require("pandas", extra="frame", purpose="making a frame").DataFrame(dict(columns))


PIPELINE = "sklearn.pipeline", "Pipeline"  # for `is_a`


def is_a(thing: Any, module: str, *names: str) -> bool:
    """Whether a thing is of a class of a module, which is not loaded for that."""
    loaded = sys.modules.get(module)  # it is there if the thing is one of its own
    return loaded is not None and isinstance(thing, tuple(getattr(loaded, n) for n in names))


_LOADING = RLock()


class LateModule(ModuleType):
    """Stands for a module until one of its names is asked for; then it becomes that module."""

    def __getattr__(self, name: str) -> Any:  # asked for names that are not there yet
        own, spec = vars(self), vars(self)["__spec__"]
        with _LOADING:  # other threads wait until it is whole
            if own.pop("is_late", False):
                try:
                    own.update(vars(module_from_spec(spec)))
                    spec.loader.exec_module(self)
                except BaseException:
                    sys.modules.pop(spec.name, None)
                    raise
                self.__class__ = ModuleType  # type: ignore[assignment]
            elif type(self) is LateModule:  # it is being run, and asks for what comes later
                raise AttributeError(f"module {spec.name!r} has no attribute {name!r}", name=name)
        return getattr(self, name)


class LoadedParts:
    """The first finder: a part that its late module has loaded meanwhile is not loaded twice.

    The import of a part asks a late module for its path, which runs it, and it may import the part.
    """

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        return spec_from_loader(name, self) if name in sys.modules else None  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        self.kept = vars(sys.modules[spec.name]).copy()
        return sys.modules[spec.name]

    def exec_module(self, module: ModuleType) -> None:
        vars(module).update(self.kept)  # its own spec and loader


def load_late(*names: str) -> None:
    """Let modules be loaded when they are first used, not when another one imports them.

    scikit-learn imports some that take long and that it hardly uses. For commands: a library does
    not decide this for the program it is in.
    """
    if not any(isinstance(finder, LoadedParts) for finder in sys.meta_path):
        sys.meta_path.insert(0, LoadedParts())
    for name in names:
        spec = None if name in sys.modules else find_spec(name)
        if spec is not None:
            module = LateModule(name)
            # without __path__, so that the import of a part of it loads the whole first
            vars(module).update(__spec__=spec, __file__=spec.origin, is_late=True)
            sys.modules[name] = module


@contextmanager
def uncollected() -> Iterator[None]:
    """For short work: nothing is looked for that could be freed, which takes long and finds little.

    What nothing refers to is freed at once all the same; only circles of references wait.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


class MissingModules:
    """The last finder of modules, so it is reached only by names that no other finder knows."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        """Refuse a module of steadytree that does not exist, in one line."""
        if name.startswith("steadytree."):
            raise ModuleNotFoundError(
                f"this steadytree has no module {name!r}. Where a pickle of another version names "
                "it, fit the model again and keep it with save(); where a Flower app does, install "
                "one version on all sides and run `steadytree private coordinate` again.",
                name=name,
            )


def install_finder() -> None:
    """Add the finder once, behind all others."""
    if not any(isinstance(finder, MissingModules) for finder in sys.meta_path):
        sys.meta_path.append(MissingModules())
