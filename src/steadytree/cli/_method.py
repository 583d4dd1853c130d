"""Names that commands of `steadytree private` choose from."""

from __future__ import annotations

from enum import StrEnum


class Method(StrEnum):
    """How a private tree is grown."""

    GIBBS = "gibbs"
    GREEDY = "greedy"
    TOPDOWN = "topdown"
