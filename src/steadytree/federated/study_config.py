"""Greeting: before anything is spent, do all holders agree with the plan?"""

import hashlib
import json
import time
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

from steadytree._base.clock import CLOCK, Clock, Limit
from steadytree._base.paths import Place, check_apart
from steadytree.data.schema import Schema, to_dict
from steadytree.federated.framing import (
    MEANING,
    PASSING,
    VERSION,
    MessageError,
    read,
    refusal_code,
    write,
)
from steadytree.federated.messages import NAME
from steadytree.federated.transport import Transport
from steadytree.privacy.mechanisms import check_epsilon

METHODS = ("delegate", "duel", "vote", "local_rnm", "noisy_counts")
PLAN_KEYS = {
    *("study", "schema", "holders", "minimum", "epsilon", "method", "n_bins", "out"),
    *("checkpoint", "deadline", "attempt", "join", "keys", "superlink", "testing_seed"),
}


@dataclass(frozen=True)
class StudyConfig:
    """One study, as a plan file tells it.

    Parameters
    ----------
    study : str
        Its name. A holder answers each numbered question of a name once: a changed plan needs a
        new name.
    schema : Schema
    holders : tuple of str
    minimum : int
        Holders that must answer every round; the study stops where fewer do.
    epsilon : float
        What the study may cost each holder.
    method : str
    n_bins : int
    out, checkpoint, keys : Path
        The tree, the file to resume from, the folder of keys.
    deadline, attempt, join : float
        Seconds for a round, until a holder is asked again, and for holders to come online.
    superlink : str
        Address of Flower's SuperLink, host:port.
    testing_seed : int, optional
        FOR TESTS ONLY.
    files : tuple of Place
        What a study reads and writes: the plan file, what it names, and what is written beside.
    """

    study: str
    schema: Schema
    holders: tuple[str, ...]
    minimum: int
    epsilon: float
    method: str
    n_bins: int
    out: Path
    checkpoint: Path
    keys: Path
    deadline: float
    attempt: float
    join: float
    superlink: str
    testing_seed: int | None = None
    files: tuple[Place, ...] = ()

    @classmethod
    def load(cls, path: str | PathLike[str]) -> "StudyConfig":
        """Read a plan file (TOML); paths in it are beside it."""
        path = Path(path)
        if not path.is_file():
            raise FileNotFoundError(f"there is no plan {str(path)!r}: check the path.")
        try:
            found = tomllib.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise ValueError(f"{path.name!r} cannot be read as a plan: {error}.") from None
        return _plan(found, path)

    @property
    def digest(self) -> str:
        """What tells plans apart that must not share a checkpoint."""
        parts = [self.study, self.schema.key(), self.holders, self.minimum, self.epsilon]
        parts += [self.method, self.n_bins, self.testing_seed]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    @property
    def facts(self) -> Path:
        """Where the study writes what it cost and how it ended."""
        return self.out.with_name(self.out.name + ".study.json")


def _plan(found: Mapping[str, Any], path: Path) -> StudyConfig:
    unknown = sorted(set(found) - PLAN_KEYS)
    if unknown:
        raise ValueError(f"{path.name!r}: {unknown[0]!r} is nothing a plan knows.")
    absent = [
        name for name in ("study", "schema", "holders", "epsilon", "out") if name not in found
    ]
    if absent:
        raise ValueError(f"{path.name!r} needs {absent[0]!r}.")
    folder, study = path.resolve().parent, found["study"]
    holders, minimum = _holders(found, path.name)
    if not isinstance(study, str) or not NAME.fullmatch(study):
        raise ValueError(f"{path.name!r}: study must be 1 to 64 letters, digits or any of _.-")
    method = found.get("method", "delegate")
    if method not in METHODS:
        raise ValueError(f"{path.name!r}: method must be one of {METHODS}, got {method!r}.")
    schema = folder / str(found["schema"])
    if not schema.is_file():
        raise FileNotFoundError(f"{path.name!r}: there is no schema {str(schema)!r}.")
    plan = StudyConfig(
        study=study,
        schema=Schema.load(schema),
        holders=holders,
        minimum=minimum,
        epsilon=check_epsilon(found["epsilon"]),
        method=method,
        n_bins=_whole(found, "n_bins", 64, 2, 1_000, path.name),
        out=folder / str(found["out"]),
        checkpoint=folder / str(found.get("checkpoint", f"{study}.checkpoint.json")),
        keys=folder / str(found.get("keys", "keys")),
        deadline=_seconds(found, "deadline", 120.0, path.name),
        attempt=_seconds(found, "attempt", 40.0, path.name),
        join=_seconds(found, "join", 120.0, path.name),
        superlink=_address(found, path.name),
        testing_seed=found.get("testing_seed"),
    )
    files = _files(plan, path, schema)
    check_apart(files)
    return replace(plan, files=files)


def _files(plan: StudyConfig, path: Path, schema: Path) -> tuple[Place, ...]:
    return (
        Place(path, "read", "the plan"),
        Place(schema, "read", "the plan's schema"),
        Place(plan.keys / "coordinator", "read", "the plan's folder of keys"),
        Place(plan.out, "write", "the plan's out"),
        Place(plan.facts, "write", "the plan's out with .study.json"),
        Place(plan.checkpoint, "change", "the plan's checkpoint"),
    )


def _holders(found: Mapping[str, Any], name: str) -> tuple[tuple[str, ...], int]:
    holders = found["holders"]
    texts = isinstance(holders, list) and all(isinstance(each, str) for each in holders)
    if not texts or not holders or not all(NAME.fullmatch(each) for each in holders):
        raise ValueError(
            f"{name!r}: holders must be a list of names of letters, digits or any of _.-"
        )
    if len(set(holders)) < len(holders):
        raise ValueError(f"{name!r}: holders must have names that differ.")
    minimum = _whole(found, "minimum", len(holders), 1, 10_000, name)
    if minimum > len(holders):
        raise ValueError(
            f"{name!r}: minimum is {minimum}, but the plan has only {len(holders)} holders: add "
            "holders or lower it."
        )
    return tuple(holders), minimum


def _whole(found: Mapping[str, Any], key: str, default: int, low: int, high: int, name: str) -> int:
    value = found.get(key, default)
    if type(value) is not int or not low <= value <= high:
        raise ValueError(f"{name!r}: {key} must be a whole number from {low} to {high}.")
    return value


def _seconds(found: Mapping[str, Any], key: str, default: float, name: str) -> float:
    value = found.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1e6:
        raise ValueError(f"{name!r}: {key} must be a number of seconds, more than 0.")
    return float(value)


def _address(found: Mapping[str, Any], name: str) -> str:
    address = str(found.get("superlink", "127.0.0.1:9092"))
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit() or not 0 < int(port) < 65_536:
        raise ValueError(f"{name!r}: superlink must be host:port, got {address!r}.")
    return address


MOST_SKEW = 60.0  # seconds that clocks may differ


def greet(transport: Transport, plan: StudyConfig, seconds: float, clock: Clock = CLOCK) -> bool:
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
    except MessageError as error:
        raise ValueError(
            f"holder {name!r} does not speak this protocol: {error} {NOTHING}"
        ) from None
    if code is not None:
        if code not in PASSING:
            raise ValueError(f"holder {name!r} refused to begin: {MEANING[code]}. {NOTHING}")
        reasons[name] = MEANING[code]
        return None
    return content


NOTHING = "Nothing was spent."


def _check(name: str, found: Mapping[str, Any], plan: StudyConfig, sent: float) -> None:
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
