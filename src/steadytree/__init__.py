"""Single decision trees and risk scores that people can trust.

Every learner returns the same `Tree` or `Scorecard`, every metric reads it, and one report answers
"can I trust this model?". The public names are listed in ``__init__.pyi``; each is loaded when it
is first used, so that ``import steadytree`` and ``steadytree --help`` are quick.
"""

import lazy_loader

from steadytree._base import missing_modules

missing_modules.install()
_load, _, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name):
    if name == "__version__":
        from importlib.metadata import version

        return version(__name__)
    return _load(name)


def __dir__():
    return [*__all__, "__version__"]
