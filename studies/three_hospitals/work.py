"""What a gateway does for a request, line by line: the same for neighbouring rows, or a leak.

    python studies/three_hospitals/work.py --requests 10000
    NUMBA_DISABLE_JIT=1 python studies/three_hospitals/work.py --requests 300    # loops by lines

Random requests of every kind, sensible or not, go to two gateways whose rows differ by one row, of
a declared class or not; in every seventh pair there is none without it. What noise decides is set
beforehand, the same for both: it is in the answers, so it is public. All else must then be equal:
the bytes of the reply (of secure sums their number, since keys are fresh), the lines of steadytree
that were run and how often each, the noise that was asked for and how much of it, the arguments of
compiled loops in kind and size, the steps of work as counted and as priced, the ledger and what is
stored. Ends with 1 and names the lines where two gateways did something else.
"""

import argparse
import contextlib
import os
import pathlib
import random
import sys
import tempfile
import time
from collections import Counter

import numpy as np

from steadytree._base.exceptions import MessageError
from steadytree.data.schema import Schema
from steadytree.data.splits import SplitTable
from steadytree.federated import messages
from steadytree.federated.answer_store import AnswerStore
from steadytree.federated.framing import read
from steadytree.federated.gateway import Gateway, Plan, Terms
from steadytree.federated.holder import Holder, schema_digest
from steadytree.federated.messages import CHOICES, KINDS, SUM, Request, SumStep, request_message
from steadytree.privacy import _kernels, padding, tree_mechanism
from steadytree.privacy.ledger import Ledger
from steadytree.privacy.sampled_tree import from_numbers

SCHEMA = Schema(
    {"age": (0, 100), "dose": (0, 8)}, {"ward": ["A", "B", "C"]}, ["ill", "well", "gone"],
    {"age": "integer"},
)  # fmt: skip
DIGEST = schema_digest(SCHEMA)
PACKAGE = str(pathlib.Path(tree_mechanism.__file__).parents[1])
# these get no rows: what they wrote is compared instead
UNSEEN = ("_base", "privacy/ledger.py", "privacy/ledger_lines.py", "privacy/accounting.py",
          "privacy/witness.py")  # fmt: skip
LEFT_OUT = tuple(f"{PACKAGE}{os.sep}{each}" for each in UNSEEN)
LOOPS = {
    tree_mechanism: ("root_terms", "impurity_scores", "order_by_class", "pack_sides"),
    padding: ("count_classes", "order_by_class", "pack_sides"),
}
if os.environ.get("NUMBA_DISABLE_JIT") == "1":  # what is one instruction when it is compiled
    _kernels.popcount = lambda word: np.uint64(int(word).bit_count())
MOST_ROWS = 192  # declared
SIZES = (1, 65, 2, MOST_ROWS, 64, 100, 63)  # of the larger of two neighbours


class SetNoise:
    """Noise whose outcomes are set beforehand, whatever is noised; it is counted."""

    private = True  # so that samples that are thrown away come from here, too

    def __init__(self, seed):
        self._random, self.asked = np.random.default_rng(seed), []

    def _counts(self, kind, values, scale):
        self.asked.append((kind, np.shape(values), np.asarray(values).dtype.str, float(scale)))
        return self._random.integers(-50, 500, np.shape(values))

    def laplace(self, values, scale):
        return self._counts("laplace", values, scale)

    def gaussian(self, values, scale):
        return self._counts("gaussian", values, scale)

    def highest(self, scores, scale):
        self.asked.append(("highest", len(scores), float(scale)))
        return int(self._random.integers(len(scores)))

    def sample_index(self, log_weights):
        self.asked.append(("index", len(log_weights)))
        # a leaf, the last of the splits, as often as all splits together
        some = [self._random.integers(len(log_weights)), len(log_weights) - 1]
        return int(self._random.choice(some))


class Traced:
    """The lines of the package that run inside, and the sizes of what compiled loops get."""

    def __init__(self):
        self.lines, self.loops = Counter(), Counter()

    def __enter__(self):
        self._before = {
            (module, name): getattr(module, name) for module in LOOPS for name in LOOPS[module]
            if hasattr(module, name)
        }  # fmt: skip
        for (module, name), loop in self._before.items():
            setattr(module, name, self._noted(name, loop))
        sys.settrace(self._enter)
        return self

    def __exit__(self, *_):
        sys.settrace(None)
        for (module, name), loop in self._before.items():
            setattr(module, name, loop)

    def _noted(self, name, loop):
        def noted(*arguments):
            sizes = tuple((np.shape(one), getattr(one, "dtype", type(one))) for one in arguments)
            self.loops[name, str(sizes)] += 1
            return loop(*arguments)

        return noted

    def _enter(self, frame, event, argument):
        code, lines = frame.f_code, self.lines
        name = code.co_filename
        if not name.startswith(PACKAGE) or name.startswith(LEFT_OUT):
            return None

        def line(frame, event, argument):
            if event == "line":
                lines[name, frame.f_lineno] += 1
            return line

        lines[name, code.co_firstlineno] += 1
        return line


# ---- neighbours ----
def patients(n_rows, rng):
    columns = (
        rng.uniform(-10, 110, n_rows).round(1),  # beyond the bounds, too
        rng.uniform(0, 8, n_rows),
        rng.choice(["A", "B", "C", "D"], n_rows),
    )
    X = np.column_stack([np.asarray(column, object) for column in columns]).reshape(n_rows, 3)
    for row in range(0, n_rows, 7):
        X[row, rng.integers(3)] = None
    return X, rng.choice(["ill", "well", "gone", "unknown"], n_rows, p=[0.5, 0.3, 0.1, 0.1])


def neighbours(seed):
    """Rows without one of them, and with it."""
    rng = np.random.default_rng(seed)
    n_rows = SIZES[seed[1] % len(SIZES)]
    X, y = patients(n_rows, rng)
    out = int(rng.integers(n_rows))
    kept = np.arange(n_rows) != out
    return (X[kept], y[kept]), (X, y)


class Site:
    """A gateway over one of two neighbours, and the other members of its secure sums."""

    def __init__(self, folder, data, seed, keys):
        folder.mkdir()
        ledger = Ledger(folder / "ledger", 6.0, 1e-6 if keys is not None else 0.0)
        persons = (
            {"persons": np.arange(len(data[1])), "rows_per_person": 1} if seed % 5 == 0 else {}
        )
        self.holder = Holder("north", SCHEMA, *data, ledger, most_rows=MOST_ROWS, **persons)
        self.holder._noise = self.noise = SetNoise(seed)
        if keys is not None:
            self.holder.sums.keys = keys["north"]
        self.store = AnswerStore(folder / "ledger.answers", "north", DIGEST)
        terms = Terms(plans={"planned": Plan(4, 3)}, least_epsilon=1e-3)
        self.gateway = Gateway(self.holder, self.store, 0.0, terms)

    def reply(self, message):
        """The reply, and all that was done for it."""
        self.noise.asked.clear()
        done = self.holder.done
        with Traced() as traced:
            reply = self.gateway.reply(message)
        taken = (tuple(self.noise.asked), self.holder.done - done)
        kept = sorted(
            (path.name, path.stat().st_size) for path in self.store.folder.glob("*.answer")
        )
        entries = [entry.to_body(0) for entry in self.holder.ledger.entries]
        return reply, traced, (*taken, kept, entries)


# ---- requests ----
def a_tree(rng, n_splits, levels, closed):
    if levels == 0 or rng.random() < 0.4:
        return (-2,) if closed and rng.random() < 0.3 else (-1,)
    below = [a_tree(rng, n_splits, levels - 1, closed) for _ in range(2)]
    # now and then a split that does not exist
    return (rng.randrange(n_splits + (rng.random() < 0.01)), *below[0], *below[1])


def a_request(rng, number):
    """A random request; one in ten is refused for what it asks."""
    kind, n_bins = rng.choice([each for each in KINDS if each != SUM]), 4
    n_splits = len(SplitTable.declared(SCHEMA.space, n_bins))
    closed = kind in CHOICES or kind == "side counts"
    more = {}
    n_trees = rng.choice([1, 2, 3]) if kind == "leaf counts" else 1
    trees = tuple(a_tree(rng, n_splits, rng.randrange(4), closed) for _ in range(n_trees))
    if kind in ("block", "last block"):
        more["depth"] = rng.choice([1, 1, 2, 2, 3])
        if rng.random() < 0.4:
            more["weights"] = tuple(rng.choice([1_000, 500, 1]) for _ in SCHEMA.classes)
    if kind == "side counts":
        some = [tuple(rng.sample(range(n_splits), rng.randrange(1, 4))) for _ in range(20)]
        more["questions"] = tuple(some[: sum(split == -1 for split in trees[0])])
    session = rng.choice(["study", "study", "planned", "other"])
    wrong = rng.random()
    digest = "0" * 64 if wrong < 0.02 else DIGEST
    epsilon = rng.choice([1e-4, 100.0]) if 0.02 < wrong < 0.05 else rng.choice([0.002, 0.05, 0.3])
    if 0.05 < wrong < 0.08:
        number = rng.randrange(number + 1)  # again, or another one under an old number
    return Request(session, number, kind, epsilon, digest, n_bins, trees, **more)


def sum_requests(rng, number, others, sites):
    """The four requests of a secure sum, each made from the replies to the one before, by site."""
    from steadytree.federated.masking import ADVERTISED, ENCRYPTED, Member, sum_context, to_bytes

    what = rng.choice(["rows", "bins", "leaf counts"])
    tree = a_tree(rng, 8, 2, False)
    fixed = (number, what, 0.0001, 2, 1)

    def request(step, at, parts=()):
        texts = {name: content.hex() for name, content in dict(parts).items()}
        about = ("sums", number + at, SUM, 0.5, DIGEST, 4, (tree,))
        return Request(*about, sum=SumStep(step, *fixed, texts))

    first = request("keys", 0)
    context = sum_context(first, True)
    partners = [Member("south", others["south"], context, 2) for _ in sites]
    keys = [{"south": one.advertise()} for one in partners]
    found = yield [first] * len(sites)

    def sent(reply, at, size):
        asked = request(("keys", "shares")[at], at, keys[0])
        return to_bytes(messages.read_answer(read(reply), asked).numbers)[:size]

    for each, reply in zip(keys, found, strict=True):
        numbers = read(reply)["answer"]["numbers"]
        each["north"] = _content(numbers)[:ADVERTISED]
    found = yield [request("shares", 1, each) for each in keys]
    shares = [
        {"south": partner.share(each)["north"][:ENCRYPTED]}
        for partner, each in zip(partners, keys, strict=True)
    ]
    found = yield [request("vector", 2, each) for each in shares]
    yield [request("unmask", 3, {"north": b"", "south": b""})] * len(sites)


def _content(numbers):
    import base64

    return np.frombuffer(base64.b64decode(numbers), "<i8").astype(np.uint8).tobytes()


# ---- the audit ----
def compare(requests, sites, numbers):
    """What two gateways did differently for requests that differ in nothing public."""
    results = [site.reply(request_message(one)) for site, one in zip(sites, requests, strict=True)]
    (one, traced, kept), (other, again, others) = results
    numbers["requests"] += 1
    ok = read(one)["ok"]
    numbers[f"answered {requests[0].kind}" if ok else read(one)["code"]] += 1
    secret = requests[0].kind == SUM  # keys and shares are fresh
    wrong = []
    if len(one) != len(other):
        wrong.append("replies have other sizes")
    if not (secret and ok) and _told(one) != _told(other):
        wrong.append("replies differ")
    for place in (traced.lines - again.lines) + (again.lines - traced.lines):
        file, line = place
        wrong.append(f"{pathlib.Path(file).name}:{line} ran {traced.lines[place]} times, "
                     f"and {again.lines[place]}")  # fmt: skip
    if traced.loops != again.loops:
        wrong.append("compiled loops got other sizes")
    names = ("noise", "work counted", "answers stored", "the ledger")
    wrong += [f"{n} differ" for n, a, b in zip(names, kept, others, strict=True) if a != b]
    repeated = kept[:2] == ((), 0)
    if ok and not secret and not repeated and kept[1] != _price(requests[0], sites[0].holder):
        wrong.append("the price is not the work that was done")
    if ok is False and read(one)["code"] == "INTERNAL":
        wrong.append("a gateway failed by itself")
    numbers["lines"] += sum(traced.lines.values())
    return wrong, [one, other]


def _told(reply):
    """A reply without the head of the ledger, which has a random name."""
    return {name: value for name, value in read(reply).items() if name != "ledger"}


def _price(request, holder):
    candidates = SplitTable.declared(holder.schema.space, request.n_bins)
    closed = request.kind in CHOICES or request.kind == "side counts"
    trees = [from_numbers(tree, len(candidates), closed) for tree in request.trees]
    return holder.price(request, (candidates, trees))


def sum_keys(folder):
    """Keys of two members, where secure sums can be had."""
    from steadytree.federated.keys import make_holder_keys, read_key
    from steadytree.federated.masking import SumKeys

    for name in ("north", "south"):
        make_holder_keys(folder / name)
    public = {
        name: read_key(folder / name / "sign.pub", public=True) for name in ("north", "south")
    }
    return {
        name: SumKeys(read_key(folder / name / "sign.key"), {other: public[other]})
        for name, other in (("north", "south"), ("south", "north"))
    }


def run_audit(n_requests, seed=0, each=40, seconds=float("inf")):
    """Numbers of what was asked, and what two neighbours' gateways did differently."""
    numbers, faults, end = Counter(), [], time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        known = sum_keys(folder)
        _warm_up(folder, known)
        while numbers["requests"] < n_requests and time.monotonic() < end and len(faults) < 20:
            trial = numbers["trials"]
            rng = random.Random(f"{seed} {trial}")
            both = neighbours([seed, trial])
            keys = known if trial % 4 == 0 else None
            with contextlib.ExitStack() as stack:
                sites = [Site(folder / f"{trial}.{k}", both[k], trial, keys) for k in (0, 1)]
                for site in sites:
                    stack.callback(site.store.close)
                number = 0
                for _ in range(min(each, n_requests - numbers["requests"])):
                    if keys is not None and rng.random() < 0.1:
                        steps, found = sum_requests(rng, number, keys, sites), None
                        with contextlib.suppress(StopIteration, MessageError, KeyError):
                            while True:
                                wrong, found = compare(steps.send(found), sites, numbers)
                                faults += [(trial, number, one) for one in wrong]
                        number += 4
                        continue
                    request = a_request(rng, number)
                    wrong, _ = compare([request] * 2, sites, numbers)
                    faults += [(trial, request.kind, one) for one in wrong]
                    number += 1
            numbers["trials"] += 1
    return numbers, faults


WARM = []


def _warm_up(folder, keys):
    """Some requests: loops are compiled and caches filled before anything is compared."""
    if WARM:
        return
    WARM.append(True)
    rng = random.Random(0)
    site = Site(folder / "first", neighbours([0, 1])[1], 0, keys)
    for number in range(30):
        site.reply(request_message(a_request(rng, number)))
    site.store.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as state:
        os.environ["XDG_STATE_HOME"] = state
        numbers, faults = run_audit(arguments.requests, arguments.seed, seconds=arguments.seconds)
    print(f"{numbers['requests']:,} requests to {numbers['trials']:,} pairs of neighbours, "
          f"{numbers['lines']:,} lines compared; differences: {len(faults)}")  # fmt: skip
    known = ("requests", "trials", "lines")
    print(", ".join(f"{name} {n:,}" for name, n in numbers.most_common() if name not in known))
    for fault in faults[:10]:
        print("  ", *fault)
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
