"""Greeting: before anything is spent, do all holders agree with the plan?"""

import time
from collections.abc import Mapping
from typing import Any

from steadytree.core.clock import CLOCK, Clock, Limit
from steadytree.core.schema import Schema
from steadytree.core.schema_file import to_dict
from steadytree.sources.letters import (
    MEANING,
    PASSING,
    VERSION,
    LetterError,
    read,
    refusal_code,
    write,
)
from steadytree.sources.parties import Transport
from steadytree.sources.plan import Plan

MOST_SKEW = 60.0  # seconds that clocks may differ


def greet(transport: Transport, plan: Plan, seconds: float, clock: Clock = CLOCK) -> bool:
    """Ask every holder who it is, and refuse to begin where one does not fit the plan.

    Holders that do not answer are no hindrance while the plan's minimum does. Nothing is spent.

    Returns
    -------
    private : bool
        Whether all holders say that their noise protects.
    """
    hello = {"type": "hello", "study": plan.study, "epsilon": plan.epsilon}
    letter = write({"version": VERSION, **hello})
    limit, sent = Limit(seconds, clock=clock), time.time()
    known: dict[str, dict[str, Any]] = {}
    reasons: dict[str, str] = {}
    while (left := [name for name in plan.holders if name not in known]) and (limit.left > 0):
        patience = max(min(plan.attempt, limit.left), 0.1)
        replies = transport.exchange(dict.fromkeys(left, letter), patience)
        for name, reply in replies.items():
            found = _read(reply, reasons, name)
            if found is not None:
                _check(name, found, plan, sent)
                known[name] = found
        if len(known) < len(plan.holders):
            clock.sleep(min(0.5, seconds / 10))
    if len(known) < plan.minimum:
        missing = [
            f"{n!r} ({reasons.get(n, 'not online')})" for n in plan.holders if n not in known
        ]
        raise ValueError(
            f"{len(known)} of {len(plan.holders)} holders answered, the plan needs {plan.minimum}; "
            f"missing: {', '.join(missing)}. Nothing was spent."
        )
    return all(found["private"] for found in known.values())


def _read(reply: bytes, reasons: dict[str, str], name: str) -> dict[str, Any] | None:
    try:
        content = read(reply)
        code = refusal_code(content)
    except LetterError:
        raise ValueError(f"holder {name!r} does not speak this protocol. {NOTHING}") from None
    if code is not None:
        if code not in PASSING:
            raise ValueError(f"holder {name!r} refused to begin: {MEANING[code]}. {NOTHING}")
        reasons[name] = MEANING[code]
        return None
    return content


NOTHING = "Nothing was spent."


def _check(name: str, found: Mapping[str, Any], plan: Plan, sent: float) -> None:
    types = {"holder": str, "private": bool, "schema": dict, "time": float, "enough": bool}
    if any(not isinstance(found.get(key), kind) for key, kind in types.items()):
        raise ValueError(f"holder {name!r} does not speak this protocol. {NOTHING}")
    if found["holder"] != name:
        raise ValueError(
            f"who should be {name!r} calls itself {found['holder'][:64]!r}: start its gateway "
            f"with --name {name}. {NOTHING}"
        )
    differs = schema_difference(plan.schema, found["schema"])
    if differs:
        raise ValueError(
            f"the schema of holder {name!r} differs from the plan's: {differs} {NOTHING}"
        )
    skew = max(sent - found["time"], found["time"] - time.time(), 0.0)
    if skew > MOST_SKEW:
        raise ValueError(
            f"the clock of holder {name!r} is off by {skew:.0f} s or more: set the clocks right. "
            f"{NOTHING}"
        )
    if not found["enough"]:
        raise ValueError(
            f"holder {name!r} has less left in its ledger than the plan's epsilon of "
            f"{plan.epsilon:g}. {NOTHING}"
        )


def schema_difference(ours: Schema, theirs: Mapping[str, Any]) -> str:
    """The first field in which a holder's schema differs; empty where none does.

    Examples
    --------
    >>> ours = Schema({"age": (0, 100)}, classes=["no", "yes"])
    >>> theirs = to_dict(Schema({"age": (0, 120)}, classes=["no", "yes"]))
    >>> schema_difference(ours, theirs)
    "'high' of column 'age' is 120.0, the plan says 100.0."
    """
    wanted, columns = to_dict(ours), theirs.get("columns")
    if theirs.get("classes") != wanted["classes"]:
        return f"'classes' are {theirs.get('classes')}, the plan says {wanted['classes']}."
    if not isinstance(columns, dict) or set(columns) != set(wanted["columns"]):
        odd = sorted(set(columns or {}) ^ set(wanted["columns"]))
        return f"only one of them has column {odd[0]!r}." if odd else "it has no columns."
    for name, described in wanted["columns"].items():
        found = columns[name] if isinstance(columns[name], dict) else {}
        for key in sorted({*described, *found}):
            if found.get(key) != described.get(key):
                return (
                    f"{key!r} of column {name!r} is {found.get(key)}, the plan says "
                    f"{described.get(key)}."
                )
    return ""
