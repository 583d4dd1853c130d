"""Modules that come with an extra: imported when asked for, explained when missing."""

from importlib import import_module
from types import ModuleType


def require(module: str, extra: str, purpose: str) -> ModuleType:
    """Import an optional module, or say which extra brings it.

    Parameters
    ----------
    module : str
        Dotted name, such as ``"matplotlib.pyplot"``.
    extra : str
        Name of the extra that installs it.
    purpose : str
        What the caller is doing; the message begins with it.

    Examples
    --------
    >>> require("json", extra="plot", purpose="reading settings").__name__
    'json'
    >>> require("no_such_module", extra="plot", purpose="plotting the frontier")
    Traceback (most recent call last):
        ...
    ImportError: plotting the frontier needs no_such_module: pip install 'steadytree[plot]'
    """
    package = module.partition(".")[0]
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        # A package that is there but broken has its own story: let it tell that.
        if (error.name or "").partition(".")[0] != package:
            raise
        message = f"{purpose} needs {package}: pip install 'steadytree[{extra}]'"
    raise ImportError(message, name=package)
