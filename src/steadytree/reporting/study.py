"""Studies: results kept cell by cell, a paper's claims beside ours, and the page of a study."""

import base64
import json
import re
import tomllib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

from steadytree._base.files import write_text_atomically
from steadytree.reporting.data_set import made_with
from steadytree.reporting.html import render_study

VERDICTS = ("same", "better", "differs", "not covered", "not reproducible")
COVERED = VERDICTS[:3]
CLAIMS, OUTPUT = "claims.toml", "results.txt"
# a number with its unit, and what stands in parentheses behind it, such as its interval
NUMBER = re.compile(r"[-+]?(?:\d[\d,]*)?\.?\d+(?:e[-+]?\d+)?%?(?: ?\([^)|]*\))?")
HEAD = ("claim", "section", "paper", "ours", "verdict", "test")
PROTOCOL = ("table", "paper", "run", "left")
WIDE = 2000  # pixels
KINDS = {".png": "image/png", ".svg": "image/svg+xml"}


class Results:
    """Finished cells in a file, read where it exists; each is written as soon as it is known.

    Settings, where given, are the file's first line: cells of other settings are refused.
    """

    def __init__(self, path: str | PathLike[str], settings: dict[str, Any] | None = None) -> None:
        self._path = Path(path)
        lines = self._path.read_text("utf-8").splitlines() if self._path.exists() else []
        self.cells: list[dict[str, Any]] = [json.loads(line) for line in lines]
        self._head: list[dict[str, Any]] = []
        if settings is not None:
            self._head = [{"settings": settings}]
            noted = self.cells.pop(0) if lines else self._head[0]
            if json.dumps(noted) != json.dumps(self._head[0]):
                old = json.dumps(noted.get("settings", "no settings"))
                raise ValueError(
                    f"{path} was made with {old}, this command has {json.dumps(settings)}: "
                    "go on with the old settings, or name another --out."
                )

    def find(self, **used: Any) -> dict[str, Any] | None:
        """The first cell with these values, or None."""
        return next((cell for cell in self.cells if used.items() <= cell.items()), None)

    def add(self, cell: dict[str, Any]) -> None:
        """Keep a cell."""
        self.cells.append(cell)
        text = "".join(json.dumps(each) + "\n" for each in (*self._head, *self.cells))
        write_text_atomically(self._path, text)


@dataclass(frozen=True)
class Claim:
    """One statement of a paper, or one of its tables, figures, algorithms or theorems."""

    id: str
    where: str  # section of the paper
    paper: str  # its statement, with the printed values
    verdict: str
    ours: str = ""  # what we have; {name} stands for one of `values`
    reason: str = ""  # why it differs or is missing
    # where in the results of the study a value is: lines to go through in their order, the last
    # one by its beginning, and which number behind that beginning, all separated by " > "; the
    # value of a list of such locations is their mean
    values: dict[str, str | list[str]] = field(default_factory=dict)
    test: str = ""  # a test that holds it
    command: str = ""  # the command that measures it, where not that of the study

    def __post_init__(self) -> None:
        if self.verdict not in VERDICTS:
            raise ValueError(
                f"claim {self.id!r}: verdict must be one of {', '.join(VERDICTS)}, "
                f"got {self.verdict!r}."
            )
        if self.verdict in VERDICTS[2:] and not self.reason:
            raise ValueError(f"claim {self.id!r}: {self.verdict!r} needs a reason.")


@dataclass(frozen=True)
class ClaimList:
    """The claims of one paper, with the values of `ours` filled in."""

    paper: str
    command: str
    claims: tuple[Claim, ...]
    # of each table or figure: the paper's protocol, what of it was run, and what is left
    protocol: tuple[dict[str, str], ...] = ()

    @classmethod
    def load(cls, folder: Path) -> "ClaimList | None":
        """The claims of a study, None where it follows no paper."""
        path, results = folder / CLAIMS, folder / OUTPUT
        if not path.exists():
            return None
        found = tomllib.loads(path.read_text("utf-8"))
        lines = results.read_text("utf-8").splitlines() if results.exists() else []
        claims = [_filled(Claim(**one), lines) for one in found["claim"]]
        double = [name for name, n in Counter(one.id for one in claims).items() if n > 1]
        if double:
            raise ValueError(f"{path}: claim {double[0]!r} stands there twice: rename one.")
        protocol = tuple(found.get("protocol", ()))
        if any(tuple(part) != PROTOCOL for part in protocol):
            raise ValueError(f"{path}: a protocol has {', '.join(PROTOCOL)}, in this order.")
        return cls(found["paper"], found["command"], tuple(claims), protocol)

    @property
    def counts(self) -> dict[str, int]:
        """Claims by verdict."""
        found = Counter(claim.verdict for claim in self.claims)
        return {verdict: found[verdict] for verdict in VERDICTS}

    def summary(self) -> str:
        """One sentence with the counts."""
        counts, n = self.counts, len(self.claims)
        covered = sum(counts[verdict] for verdict in COVERED)
        parts = ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS)
        return f"{n} claims, {covered} covered: {parts}."

    def table(self) -> list[str]:
        """A table in Markdown, one line a claim."""
        return _markdown([HEAD, *(_row(claim) for claim in self.claims)])

    def protocol_table(self) -> list[str]:
        """A table in Markdown: what of the paper's protocol was run."""
        return _markdown([PROTOCOL, *(tuple(part.values()) for part in self.protocol)])

    def lines(self) -> list[str]:
        """The claims as text for a terminal."""
        found = [self.paper, self.summary(), f"measured by: {self.command}"]
        for part in self.protocol:
            found += [
                "",
                *(f"{'' if name == 'table' else '  '}{name}: {part[name]}" for name in part),
            ]
        for claim in self.claims:
            found += ["", f"{claim.id} (section {claim.where}): {claim.verdict}"]
            parts = {"paper": claim.paper, "ours": claim.ours, "reason": claim.reason}
            parts |= {"test": claim.test, "command": claim.command}
            found += [f"  {name}: {text}" for name, text in parts.items() if text]
        return found

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        claims = [{k: v for k, v in vars(one).items() if k != "values"} for one in self.claims]
        about = {"paper": self.paper, "command": self.command, "summary": self.summary()}
        return {**about, "counts": self.counts, "protocol": self.protocol, "claims": claims}


def _markdown(rows: Sequence[tuple[str, ...]]) -> list[str]:
    rows = [rows[0], ("---",) * len(rows[0]), *rows[1:]]
    return ["| " + " | ".join(row) + " |" for row in rows]


def _filled(claim: Claim, lines: Sequence[str]) -> Claim:
    """The claim with its values in the text of `ours`."""
    try:
        values = {name: _value(locations, lines) for name, locations in claim.values.items()}
        ours = claim.ours.format(**values)
    except (LookupError, ValueError) as error:
        raise ValueError(f"claim {claim.id!r}: {error}") from error
    return Claim(**(vars(claim) | {"ours": ours}))


def _value(locations: str | list[str], lines: Sequence[str]) -> str:
    if isinstance(locations, str):
        return find_value(locations, lines)
    numbers = [float(find_value(location, lines).split("(")[0]) for location in locations]
    return f"{sum(numbers) / len(numbers):.3f}"


def find_value(location: str, lines: Sequence[str]) -> str:
    """A number in the results of a study; see `Claim.values`."""
    *above, start, ordinal = location.split(" > ")
    position = 0
    for text in above:
        position = _next(lines, position, lambda line, text=text: text in line, location) + 1
    position = _next(lines, position, lambda line: line.lstrip().startswith(start), location)
    line = lines[position].lstrip()[len(start) :]
    found = NUMBER.findall(line)
    if not 1 <= int(ordinal) <= len(found):
        raise LookupError(f"{location!r}: the line of the results has {len(found)} numbers.")
    return str(found[int(ordinal) - 1])


def _next(lines: Sequence[str], position: int, wanted: Any, location: str) -> int:
    for index in range(position, len(lines)):
        if wanted(lines[index]):
            return index
    raise LookupError(f"{location!r} is not in the results.")


def _row(claim: Claim) -> tuple[str, ...]:
    verdict = f"{claim.verdict}: {claim.reason}" if claim.reason else claim.verdict
    ours = f"{claim.ours} (`{claim.command}`)" if claim.command else claim.ours
    test = claim.test.rsplit("/", 1)[-1].replace("::", ": ")
    texts = (claim.id, claim.where, claim.paper, ours, verdict, test)
    return tuple(text.replace("|", "/") for text in texts)


def study_page(
    name: str,
    about: str,
    output: Sequence[str],
    pictures: Sequence[str | PathLike[str]],
    command: str = "",
    seconds: float | None = None,
    kept: str = "",
    claims: ClaimList | None = None,
) -> str:
    r"""One page of tables and pictures that needs no scripts and fetches nothing."""
    data = {
        "name": name,
        "about": about,
        "command": command,
        "seconds": seconds,
        "made": made_with(),
        "output": list(output),
        "pictures": [Path(path).name for path in pictures],
        "claims": None if claims is None else claims.to_dict(),
    }
    return render_study(data, blocks(output), [_embedded(Path(path)) for path in pictures], kept)


def blocks(lines: Sequence[str]) -> list[dict[str, Any]]:
    """Runs of lines: tables in Markdown, and text that stands as it is."""
    runs: list[tuple[str, list[str]]] = []
    for line in lines:
        kind = "table" if line.startswith("|") and line.rstrip().endswith("|") else "text"
        if not runs or runs[-1][0] != kind:
            runs.append((kind, []))
        runs[-1][1].append(line.rstrip())
    found = [_table(run) if kind == "table" else _text(run) for kind, run in runs]
    return [block for block in found if block["rows" if block["kind"] == "table" else "text"]]


def _text(lines: list[str]) -> dict[str, Any]:
    return {"kind": "text", "text": "\n".join(lines).strip("\n")}


def _table(lines: list[str]) -> dict[str, Any]:
    rows = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines]
    ruled = len(rows) > 1 and all(set(cell) <= set("-:") and cell for cell in rows[1])
    if not ruled:
        return _text(lines)
    right = [cell.endswith(":") for cell in rows[1]]
    return {"kind": "table", "head": rows[0], "right": right, "rows": rows[2:]}


def _embedded(path: Path) -> dict[str, Any]:
    content, kind = path.read_bytes(), KINDS[path.suffix.lower()]
    # a PNG's width stands in its head; a wide one is left so wide that it can be read
    wide = kind == "image/png" and int.from_bytes(content[16:20], "big") > WIDE
    address = f"data:{kind};base64,{base64.b64encode(content).decode('ascii')}"
    return {"name": path.stem.replace("-", " "), "address": address, "wide": wide}
