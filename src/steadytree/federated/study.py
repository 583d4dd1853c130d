"""A study: its configuration, and the handshake before anything is spent."""

import hashlib
import json
import time
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any

from steadytree._base.clock import CLOCK, Clock, Limit
from steadytree._base.exceptions import HolderError, MessageError
from steadytree._base.files import UsedPath, check_apart
from steadytree.data.schema import Schema, to_dict
from steadytree.federated.framing import PASSING, VERSION, Refusal, read, refusal_in, write
from steadytree.federated.messages import NAME
from steadytree.federated.receipts import Receipts, read_head
from steadytree.federated.transport import Transport
from steadytree.privacy.mechanisms import check_epsilon
from steadytree.privacy.topdown import PARAMETERS as TOP_DOWN
from steadytree.privacy.topdown import TopDown

TOP_DOWN_METHODS = ("local_rnm", "noisy_counts")
SECURE_SUM = "secure_sum"
METHODS = ("delegate", "duel", "vote", *TOP_DOWN_METHODS, SECURE_SUM)
REQUIRED = ("study", "schema", "holders", "epsilon", "out")
PLAN_KEYS = {
    *(*REQUIRED, "minimum", "method", "n_bins", "checkpoint", "deadline", "attempt", "join"),
    *("keys", "superlink", "testing_seed", "delta", "honest", *TOP_DOWN),
}
MOST_SKEW = 60.0  # seconds that clocks may differ
NOTHING = "Nothing was spent."


@dataclass(frozen=True)
class StudyConfig:
    """The configuration of one study, from a plan file."""

    study: str  # holders answer each round of a name once: a changed plan needs a new name
    schema: Schema
    holders: tuple[str, ...]
    minimum: int  # holders that must answer every round; with fewer, the study stops
    epsilon: float  # the most that the study may cost each holder
    method: str
    n_bins: int
    out: Path  # the tree
    checkpoint: Path  # the file to resume from
    keys: Path  # the folder of keys
    deadline: float  # seconds for a round
    attempt: float  # seconds until a request is repeated
    join: float  # seconds for holders to come online
    superlink: str  # address of Flower's SuperLink, host:port
    testing_seed: int | None = None  # FOR TESTS ONLY
    files: tuple[UsedPath, ...] = ()  # what a study reads and writes
    limits: TopDown = field(default_factory=TopDown)  # of "local_rnm" and "noisy_counts"
    delta: float = 0.0  # of "secure_sum"
    honest: int = 0  # of "secure_sum": holders whose noise must be enough

    @classmethod
    def load(cls, path: str | PathLike[str]) -> "StudyConfig":
        """Read a plan file (TOML); paths in it are relative to its folder."""
        path = Path(path)
        if not path.is_file():
            raise FileNotFoundError(f"there is no plan {str(path)!r}: check the path.")
        try:
            found = tomllib.loads(path.read_text(encoding="utf-8"))
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{path.name!r} cannot be read as a plan: {error}.") from None
        return _config(found, path)

    @property
    def digest(self) -> str:
        """Identifies plans that may share a checkpoint."""
        parts: list[Any] = [self.study, self.schema.key(), self.holders, self.minimum, self.epsilon]
        parts += [self.method, self.n_bins, self.testing_seed]
        if self.method in TOP_DOWN_METHODS:
            parts.append(asdict(self.limits))
        if self.method == SECURE_SUM:
            parts += [self.delta, self.honest]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    @property
    def facts(self) -> Path:
        """The file that records what the study cost and how it ended."""
        return self.out.with_name(self.out.name + ".study.json")


def _config(found: Mapping[str, Any], path: Path) -> StudyConfig:
    unknown = sorted(set(found) - PLAN_KEYS)
    if unknown:
        raise ValueError(f"{path.name!r}: {unknown[0]!r} is not a key of a plan.")
    absent = [name for name in REQUIRED if name not in found]
    if absent:
        raise ValueError(f"{path.name!r} needs {absent[0]!r}.")
    folder, study, name = path.resolve().parent, found["study"], path.name
    holders, minimum = _holders(found, name)
    if not isinstance(study, str) or not NAME.fullmatch(study):
        raise ValueError(f"{name!r}: study must be 1 to 64 letters, digits or any of _.-")
    method = found.get("method", "delegate")
    if method not in METHODS:
        raise ValueError(f"{name!r}: method must be one of {METHODS}, got {method!r}.")
    schema = folder / str(found["schema"])
    if not schema.is_file():
        raise FileNotFoundError(f"{name!r}: there is no schema {str(schema)!r}.")
    address = str(found.get("superlink", "127.0.0.1:9092"))
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit() or not 0 < int(port) < 65_536:
        raise ValueError(f"{name!r}: superlink must be host:port, got {address!r}.")
    config = StudyConfig(
        study=study,
        schema=Schema.load(schema),
        holders=holders,
        minimum=minimum,
        epsilon=check_epsilon(found["epsilon"]),
        method=method,
        n_bins=_integer(found, "n_bins", 64, 2, 1_000, name),
        out=folder / str(found["out"]),
        checkpoint=folder / str(found.get("checkpoint", f"{study}.checkpoint.json")),
        keys=folder / str(found.get("keys", "keys")),
        deadline=_seconds(found, "deadline", 120.0, name),
        attempt=_seconds(found, "attempt", 40.0, name),
        join=_seconds(found, "join", 120.0, name),
        superlink=address,
        testing_seed=found.get("testing_seed"),
        limits=_limits(found, method, name),
        **_sums(found, method, len(holders), minimum, name),
    )
    files = (
        UsedPath(path, "read", "the plan"),
        UsedPath(schema, "read", "the plan's schema"),
        UsedPath(config.keys / "coordinator", "read", "the plan's folder of keys"),
        UsedPath(config.out, "write", "the plan's out"),
        UsedPath(config.facts, "write", "the plan's out with .study.json"),
        UsedPath(config.checkpoint, "change", "the plan's checkpoint"),
    )
    check_apart(files)
    return replace(config, files=files)


def _holders(found: Mapping[str, Any], name: str) -> tuple[tuple[str, ...], int]:
    holders = found["holders"]
    texts = isinstance(holders, list) and all(isinstance(each, str) for each in holders)
    if not texts or not holders or not all(NAME.fullmatch(each) for each in holders):
        message = "holders must be a list of names of letters, digits or any of _.-"
        raise ValueError(f"{name!r}: {message}")
    if len(set(holders)) < len(holders):
        raise ValueError(f"{name!r}: holders must have names that differ.")
    minimum = _integer(found, "minimum", len(holders), 1, 10_000, name)
    if minimum > len(holders):
        raise ValueError(
            f"{name!r}: minimum is {minimum}, but the plan has only {len(holders)} holders: add "
            "holders or lower it."
        )
    return tuple(holders), minimum


def _limits(found: Mapping[str, Any], method: str, name: str) -> TopDown:
    given = {key: found[key] for key in TOP_DOWN if key in found}
    if given and method not in TOP_DOWN_METHODS:
        raise ValueError(
            f"{name!r}: {next(iter(given))!r} is for methods {TOP_DOWN_METHODS}, not {method!r}: "
            "leave it out."
        )
    try:
        return TopDown(**given)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name!r}: {error}") from None


def _sums(
    found: Mapping[str, Any], method: str, n_holders: int, minimum: int, name: str
) -> dict[str, Any]:
    """Delta of secure sums, and how many holders' noise must be enough."""
    if method != SECURE_SUM:
        given = [key for key in ("delta", "honest") if key in found]
        if given:
            raise ValueError(f"{name!r}: {given[0]!r} is for method 'secure_sum': leave it out.")
        return {}
    delta = found.get("delta", 1e-6)
    if isinstance(delta, bool) or not isinstance(delta, int | float) or not 0 < delta < 1:
        raise ValueError(f"{name!r}: delta must be a number between 0 and 1, got {delta!r}.")
    honest = _integer(found, "honest", max(minimum - 1, 1), 1, 10_000, name)
    if not n_holders - minimum < honest < minimum:
        raise ValueError(
            f"{name!r}: secure sums of {n_holders} holders with a minimum of {minimum} need honest "
            f"from {n_holders - minimum + 1} to {minimum - 1}, got {honest}: raise the minimum, or "
            "name more holders."
        )
    return {"delta": float(delta), "honest": honest}


def _integer(
    found: Mapping[str, Any], key: str, default: int, low: int, high: int, name: str
) -> int:
    value = found.get(key, default)
    if type(value) is not int or not low <= value <= high:
        raise ValueError(f"{name!r}: {key} must be an integer from {low} to {high}.")
    return value


def _seconds(found: Mapping[str, Any], key: str, default: float, name: str) -> float:
    value = found.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1e6:
        raise ValueError(f"{name!r}: {key} must be a number of seconds, more than 0.")
    return float(value)


# ---- the handshake ----
def handshake(
    transport: Transport,
    config: StudyConfig,
    seconds: float,
    clock: Clock = CLOCK,
    receipts: Receipts | None = None,
) -> tuple[bool, int | None]:
    """Ask every holder who it is, and refuse to begin if one does not match the plan.

    Holders may be missing while the plan's minimum answers. Nothing is spent. Returns whether all
    holders state that their noise is private, and, if all protect persons, the most rows of one.
    """
    receipts = receipts or Receipts(config.study, {})
    limit, sent = Limit(seconds, clock=clock), time.time()
    known: dict[str, dict[str, Any]] = {}
    reasons: dict[str, str] = {}
    while (left := [name for name in config.holders if name not in known]) and limit.left > 0:
        patience = max(min(config.attempt, limit.left), 0.1)
        replies = transport.exchange({n: hello(config, n, receipts) for n in left}, patience)
        for name, reply in replies.items():
            try:
                found = read(reply)
            except MessageError as error:
                fault = f"holder {name!r} does not speak this protocol: {error}"
                raise ValueError(f"{fault} {NOTHING}") from None
            if (refusal := refusal_in(found)) in PASSING:
                reasons[name] = refusal.meaning
            elif fault := _fault(name, found, refusal, config, sent):
                raise ValueError(f"{fault} {NOTHING}")
            else:
                try:
                    receipts.note(name, read_head(found))
                except HolderError as error:
                    raise ValueError(f"{error} {NOTHING}") from None
                known[name] = found
        if len(known) < len(config.holders):
            clock.sleep(min(0.5, seconds / 10))
    if len(known) < config.minimum:
        absent = [name for name in config.holders if name not in known]
        missing = [f"{name!r} ({reasons.get(name, 'not online')})" for name in absent]
        raise ValueError(
            f"{len(known)} of {len(config.holders)} holders answered, the plan needs "
            f"{config.minimum}; missing: {', '.join(missing)}. {NOTHING}"
        )
    stated = [known.get(name, {}).get("rows_per_person") for name in config.holders]
    counts = [number for number in stated if type(number) is int and number > 0]
    most = max(counts) if len(counts) == len(stated) else None
    return all(found["private"] for found in known.values()), most


def hello(config: StudyConfig, holder: str, receipts: Receipts) -> bytes:
    """What a coordinator asks before a study; with a receipt, if the holder showed its ledger."""
    known = {"type": "hello", "study": config.study, "epsilon": config.epsilon}
    receipt = receipts.of(holder)
    more = {} if receipt is None else {"receipt": receipt}
    return write({"version": VERSION, **known, **more})


def _fault(
    name: str, found: Mapping[str, Any], refusal: Refusal | None, config: StudyConfig, sent: float
) -> str:
    """Why the study cannot begin with a holder that replied; empty if it can."""
    if refusal is not None:
        return f"holder {name!r} refused to begin: {refusal.meaning}."
    types = {"holder": str, "private": bool, "schema": dict, "time": float, "enough": bool}
    if any(not isinstance(found.get(key), kind) for key, kind in types.items()):
        return f"holder {name!r} does not speak this protocol."
    if found["holder"] != name:
        own = found["holder"][:64]
        return f"the holder at {name!r} calls itself {own!r}: start its gateway with --name {name}."
    if differs := schema_difference(config.schema, found["schema"]):
        return f"the schema of holder {name!r} differs from the plan's: {differs}"
    skew = max(sent - found["time"], found["time"] - time.time(), 0.0)
    if skew > MOST_SKEW:
        return f"the clock of holder {name!r} is off by {skew:.0f} s or more: set the clocks right."
    if not found["enough"]:
        left = f"less left in its ledger than the plan's epsilon of {config.epsilon:g}"
        return f"holder {name!r} has {left}."
    return ""


def schema_difference(ours: Schema, theirs: Mapping[str, Any]) -> str:
    """The first field in which a holder's schema differs; empty if none does.

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
            own, planned = found.get(key), described.get(key)
            if own != planned:
                return f"{key!r} of column {name!r} is {own}, the plan says {planned}."
    return ""
