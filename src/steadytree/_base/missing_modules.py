"""What to do where a pickle or a Flower app of another version names a module that is gone."""

import sys
from typing import Any


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


def install() -> None:
    """Add the finder once, behind all others."""
    if not any(isinstance(finder, MissingModules) for finder in sys.meta_path):
        sys.meta_path.append(MissingModules())
