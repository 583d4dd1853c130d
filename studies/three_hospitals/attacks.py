"""Attacks on a holder and on a coordinator's proxy: timing, kills, idle connections, fuzzed bytes.

    python studies/three_hospitals/attacks.py timing --requests 10000 --keep times.json
    python studies/three_hospitals/attacks.py largest
    python studies/three_hospitals/attacks.py kills --times 500
    python studies/three_hospitals/attacks.py idle --idle 1000 --half 100
    python studies/three_hospitals/attacks.py fuzz --times 100000 --keep fuzz.json

With `--keep` a run that was stopped goes on where it was, and may be asked for more. Each prints
what it found, and ends with 1 where an attack succeeded. Rollbacks, forks and damage of a ledger
are tests (tests/privacy/test_witness.py).
"""

import argparse
import contextlib
import json
import math
import os
import pathlib
import random
import resource
import signal
import socket
import ssl
import sys
import tempfile
import threading
import time

import msgspec
import numpy as np
from scipy.stats import beta

from steadytree.data.schema import Schema
from steadytree.federated.answer_store import AnswerStore
from steadytree.federated.framing import STATUS, Refusal, read, refusal_in, write
from steadytree.federated.gateway import Gateway, Plan, Terms
from steadytree.federated.holder import MOST_WORK, Holder, schema_digest
from steadytree.federated.messages import Request, read_answer, request_message
from steadytree.privacy.ledger import Ledger

SCHEMA = Schema({"age": (0, 100), "dose": (0, 8)}, {"ward": ["A", "B", "C"]}, ["ill", "well"])
DIGEST = schema_digest(SCHEMA)


def patients(n_rows, seed=0):
    rng = np.random.default_rng(seed)
    columns = (
        rng.uniform(0, 100, n_rows),
        rng.uniform(0, 8, n_rows),
        rng.choice(list("ABC"), n_rows),
    )
    X = np.column_stack([np.asarray(column, object) for column in columns]).reshape(n_rows, 3)
    return X, rng.choice(["ill", "well"], n_rows)


@contextlib.contextmanager
def gateway_of(folder, data, budget=1e6, pace=0.0, schema=SCHEMA, seed=None, terms=None, **more):
    folder.mkdir(exist_ok=True)
    holder = Holder(
        "north", schema, *data, Ledger(folder / "ledger", budget), testing_seed=seed, **more
    )
    store = AnswerStore(folder / "ledger.answers", "north", schema_digest(schema))
    try:
        yield Gateway(holder, store, pace, terms)
    finally:
        store.close()


# ---- time ----
def bound(hits, others, runs, each):
    low = 0.0 if hits == 0 else beta.ppf(each, hits, runs - hits + 1)
    high = 1.0 if others == runs else beta.ppf(1 - each, others + 1, runs - others)
    return math.log(low / high) if low > 0 else -math.inf


def audit(times):
    """Lower bound (95 %) on epsilon by the best threshold, and the attack's advantage.

    The threshold and its direction are chosen on the first half, and counted on the second.
    """
    half = len(times[0]) // 2
    pilot = np.quantile(np.concatenate([one[:half] for one in times]), np.linspace(0.02, 0.98, 49))
    choices = []
    for limit in pilot:
        for sign in (1, -1):
            rates = [(sign * one[:half] > sign * limit).mean() for one in times]
            choices.append((rates[0] - rates[1], limit, sign))
            choices.append((rates[1] - rates[0], limit, -sign))
    _, limit, sign = max(choices)
    hits = [int((sign * one[half:] > sign * limit).sum()) for one in times]
    runs = len(times[0]) - half
    epsilon = max(bound(hits[0], hits[1], runs, 0.025), bound(hits[1], hits[0], runs, 0.025), 0.0)
    return epsilon, abs(hits[0] - hits[1]) / runs


def planned(holder, bins, levels):
    """The request of the highest price that a plan of so many bins and levels allows."""

    def complete(depth):
        return (-1,) if depth == 0 else (0, *complete(depth - 1), *complete(depth - 1))

    found = []
    for depth in (2, 3):
        how = (0.01, DIGEST, bins, (complete(levels - depth),))
        request = Request("s", 0, "last block", *how, depth=depth)
        found.append((holder.price(request, holder.admit(request)), depth, request))
    return max(found)[2]


def timing(arguments):
    """Neighbours: no row, and one; the largest request that their plan allows, in either order."""
    data = [(X[:n], y[:n]) for n, (X, y) in ((0, patients(1)), (1, patients(1)))]
    plan = Plan(arguments.bins, arguments.levels)
    more = {"pace": arguments.pace, "most_rows": arguments.rows, "terms": Terms(plans={"s": plan})}
    # computed and released, each without and with the row
    times = [[[], []], [[], []]]
    if arguments.keep is not None and arguments.keep.exists():
        times = json.loads(arguments.keep.read_text())
    rng, end = random.Random(len(times[0][0])), time.monotonic() + arguments.seconds
    while 2 * len(times[0][0]) < arguments.requests and time.monotonic() < end:
        with tempfile.TemporaryDirectory() as scratch, contextlib.ExitStack() as stack:
            both = [
                stack.enter_context(gateway_of(pathlib.Path(scratch) / str(k), data[k], **more))
                for k in (0, 1)
            ]
            rate = max(one._rate for one in both)  # one machine, one rate
            for one in both:
                one._rate = rate
                _clocked(one)
            asked = planned(both[0].holder, plan.n_bins, plan.levels)
            for number in range(min(100, arguments.requests // 2 - len(times[0][0]))):
                message = request_message(msgspec.structs.replace(asked, round=number))
                for which in [0, 1] if rng.random() < 0.5 else [1, 0]:
                    start = time.perf_counter()
                    reply = both[which].reply(message)
                    times[1][which].append(time.perf_counter() - start)
                    times[0][which].append(both[which].took)
                    assert read(reply)["ok"], reply[:100]
        if arguments.keep is not None:
            arguments.keep.write_text(json.dumps(times))
    for what, found in zip(("computed", "released"), times, strict=True):
        each = [np.array(one) for one in found]
        (epsilon, advantage), all_times = audit(each), np.concatenate(each)
        print(
            f"{what}: {1000 * all_times.mean():.1f} ms, slowest {all_times.max():.2f} s, "
            f"epsilon at least {epsilon:.4f}, advantage {advantage:.4f}"
        )
    print(f"requests {2 * len(times[0][0])}")
    return epsilon < 0.05 and all_times.max() < 60


def _clocked(gateway):
    draft = gateway.holder.draft

    def timed(*asked):
        start = time.perf_counter()
        found = draft(*asked)
        gateway.took = time.perf_counter() - start
        return found

    gateway.holder.draft = timed


def largest(arguments):
    """Seconds of the largest request that a holder admits."""
    schema = Schema({f"x{k}": (0, 1) for k in range(12)}, classes=["no", "yes"])
    rng = np.random.default_rng(0)
    data = rng.random((1_000, 12)), rng.choice(["no", "yes"], 1_000)
    with (
        tempfile.TemporaryDirectory() as scratch,
        gateway_of(
            pathlib.Path(scratch) / "g", data, schema=schema, pace=0.25, most_rows=65_536
        ) as gateway,
    ):
        best = None
        for depth, bins in ((2, 64), (2, 40), (3, 16)):
            for leaves in range(1, 4_000):
                trees = ((*(0,) * (leaves - 1), *(-1,) * leaves),)
                request = Request(
                    "s", 0, "last block", 0.5, schema_digest(schema), bins, trees, depth=depth
                )
                try:
                    price = gateway.holder.price(request, gateway.holder.admit(request))
                except ValueError:
                    break
                if best is None or price > best[0]:
                    best = price, request
        start, cpu = time.perf_counter(), time.process_time()
        assert read(gateway.reply(request_message(best[1])))["ok"]
        print(
            f"largest request: {best[0] / MOST_WORK:.0%} of what is admitted, "
            f"CPU {time.process_time() - cpu:.1f} s, "
            f"released after {time.perf_counter() - start:.1f} s"
        )
        return time.perf_counter() - start < 60


# ---- kill -9 ----
def serve_until_killed(folder, pipe):
    """A child: answers requests in order, and writes each answer that left to the pipe."""
    with gateway_of(folder, patients(50), seed=0) as gateway:
        number = len(gateway.holder.ledger.entries)
        while True:
            message = request_message(Request("s", number, "rows", 0.5, DIGEST, 4))
            reply = gateway.reply(message)
            os.write(pipe, json.dumps([number, reply.decode()]).encode() + b"\n")
            number += 1


def kills(arguments):
    """Kill a gateway at random moments; what left is paid for, once, and comes again unchanged."""
    rng, left = random.Random(0), {}
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch) / "g"
        for trial in range(arguments.times):
            if trial % 50 == 0:  # a long ledger would only be slower
                folder, left = pathlib.Path(scratch) / f"g{trial}", {}
            inside, outside = os.pipe()
            child = os.fork()
            if child == 0:
                os.close(inside)
                with contextlib.suppress(BaseException):
                    serve_until_killed(folder, outside)
                os._exit(1)
            os.close(outside)
            time.sleep(rng.uniform(0.0, 0.08))
            os.kill(child, signal.SIGKILL)
            with os.fdopen(inside, "rb") as file:
                sent = file.read().split(b"\n")[:-1]
            os.waitpid(child, 0)
            for line in sent:
                number, reply = json.loads(line)
                left[number] = read(reply.encode())["answer"]
            with gateway_of(folder, patients(50), seed=0) as gateway:
                paid = [entry.request for entry in gateway.holder.ledger.entries]
                assert len(set(paid)) == len(paid), "paid twice"
                assert {f"s:{number}" for number in left} <= set(paid), "left unpaid"
                for number in list(left)[-2:]:
                    message = request_message(Request("s", number, "rows", 0.5, DIGEST, 4))
                    assert read(gateway.reply(message))["answer"] == left[number], "changed"
                assert len(gateway.holder.ledger.entries) == len(paid)
    print(f"kills {arguments.times}: nothing unpaid, nothing paid twice")
    return True


# ---- connections ----
def idle(arguments):
    """Idle and half-open connections, and declared bodies without a key, before a proxy."""
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

    from steadytree.federated.flower.proxy import Proxy
    from steadytree.federated.keys import make_study_keys

    resource.setrlimit(resource.RLIMIT_NOFILE, (8_192, 8_192))
    with tempfile.TemporaryDirectory() as scratch:
        keys = pathlib.Path(scratch) / "keys"
        make_study_keys(keys, ["north"], ["127.0.0.1"])
        folder = keys / "coordinator"

        class Inner(BaseHTTPRequestHandler):
            def do_POST(self):
                self.rfile.read(int(self.headers["content-length"]))
                self.send_response(200)
                self.send_header("content-length", "2")
                self.end_headers()
                self.wfile.write(b"ok")

            def log_message(self, *_):
                pass

        there, here = os.pipe()
        child = os.fork()
        if child == 0:
            tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            tls.load_cert_chain(folder / "server.pem", folder / "server.key")
            inner = ThreadingHTTPServer(("127.0.0.1", 0), Inner)
            inner.socket = tls.wrap_socket(inner.socket, server_side=True)
            threading.Thread(target=inner.serve_forever, daemon=True).start()
            with Proxy(
                ("127.0.0.1", 0), ("127.0.0.1", inner.server_port), folder, ["north"]
            ) as proxy:
                os.write(here, str(proxy.server_port).encode() + b"\n")
                time.sleep(600)
            os._exit(0)
        try:
            port = int(os.read(there, 100))
            return _flood(arguments, port, keys, child)
        finally:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


def _flood(arguments, port, keys, proxy):
    sys.path.insert(0, str(pathlib.Path(__file__).parents[2]))
    from tests.federated.flower.test_proxy import PULL, Site, signed

    site = Site(keys)
    site.port, held, worst = port, [], 0.0
    before = _memory(proxy)

    def call():
        start = time.perf_counter()
        assert site.call()[0] == 200
        return time.perf_counter() - start

    for number in range(arguments.idle):
        with contextlib.suppress(OSError):
            held.append(site.connect())
        if number % 100 == 0:
            worst = max(worst, call())
    for _ in range(arguments.half):
        with contextlib.suppress(OSError):
            held.append(socket.create_connection(("127.0.0.1", port), timeout=10))
    for _ in range(50):  # each declares 79 MiB, and sends what is taken
        with contextlib.suppress(OSError):
            caller = site.connect()
            held.append(caller)
            caller.sendall(f"POST {PULL} HTTP/1.1\r\ncontent-length: {79 * 2**20}\r\n\r\n".encode())
            caller.settimeout(1.0)
            caller.sendall(b"x" * 2**20)
    worst = max(worst, *(call() for _ in range(10)))
    memory = _memory(proxy)
    print(
        f"{arguments.idle} idle, {arguments.half} half-open, 50 declared bodies: "
        f"proxy {memory:.0f} MB (before {before:.0f}), slowest call of a holder {worst:.2f} s"
    )
    return memory < 300 and worst < 10 and signed is not None


def _memory(process):
    lines = pathlib.Path(f"/proc/{process}/status").read_text().splitlines()
    peak = next(line for line in lines if line.startswith("VmHWM"))
    return int(peak.split()[1]) / 1024


# ---- fuzzed messages and files ----
def mutate(content, rng):
    changed = bytearray(content)
    for _ in range(rng.choice([1, 1, 1, 2, 5, 20])):
        kind, place = rng.randrange(7), rng.randrange(len(changed) + 1)
        if kind == 0 and changed:
            changed[place % len(changed)] ^= 1 << rng.randrange(8)
        elif kind == 1:
            changed[place:place] = rng.choice(
                [b'"', b"{", b"[", b"9" * 400, b"\xed\xa0\x80", b"\0"]
            )
        elif kind == 2:
            del changed[place : place + rng.choice([1, 3, 30])]
        elif kind == 3:
            changed[place:place] = changed[place : place + 40]
        elif kind == 4:
            changed[place : place + 1] = str(rng.choice([-1, 0, 2**63, 1e308, 10**30])).encode()
        elif kind == 5:
            changed[place:place] = rng.choice([b"[" * 3_000, b'{"a":' * 1_500, b"null", b"\\ud800"])
        else:
            changed[place : place + 1] = bytes([rng.randrange(256)])
    return bytes(changed)


def targets(folder):
    """What is fuzzed: a sample of bytes, and what reads them, which may raise ValueError only."""
    from steadytree.federated.checkpoint import Checkpoint
    from steadytree.federated.receipts import Receipts, keep_receipt, read_receipts, verify_ledger
    from steadytree.federated.study import StudyConfig

    gateway = gateway_of(folder / "g", patients(60), seed=0)
    found, file = gateway.__enter__(), folder / "file"
    request = Request("s", 0, "leaf counts", 0.5, DIGEST, 4, ((0, -1, -1),))
    answer = found.reply(request_message(request))
    receipts = Receipts("s", {"north": found.holder.ledger.head})
    asked = request_message(Request("s", 1, "side counts", 0.1, DIGEST, 4, questions=((0, 1),)))
    told = request_message(request, receipts.of("north"))

    def replies(content):
        reply = read(found.reply(content))
        if reply.get("ok") is not True and refusal_in(reply) is Refusal.INTERNAL:
            raise RuntimeError("a gateway failed by itself")

    def from_file(reader):
        def act(content):
            file.write_bytes(content)
            reader(file)

        return act

    hello = write({"version": 2, "type": "hello", "study": "s", "epsilon": 1.0})
    for message in (asked, told, hello, STATUS):
        yield message, replies
    yield answer, lambda content: read_answer(read(content), request, "north")
    keep_receipt(folder / "r", receipts.of("north"))
    yield (folder / "r").read_bytes(), from_file(read_receipts)
    checkpoint = Checkpoint(folder / "c", "plan")
    checkpoint.heads["north"] = found.holder.ledger.head
    checkpoint.note(0, {"north": request}, {"north": read_answer(read(answer), request, "north")})

    def resume(path):
        Checkpoint(path, "plan").recall(0, {"north": request})

    yield (folder / "c").read_bytes(), from_file(resume)
    SCHEMA.save(folder / "schema.toml")
    yield (folder / "schema.toml").read_bytes(), from_file(Schema.load)
    plan = b'study = "s"\nschema = "schema.toml"\nholders = ["a"]\nepsilon = 1.0\nout = "t.json"\n'
    yield plan, from_file(StudyConfig.load)
    yield (
        (folder / "g" / "ledger").read_bytes(),
        from_file(lambda path: _ledger(path, verify_ledger)),
    )
    yield from _files_of_keys(folder, found, replies, from_file)


def _files_of_keys(folder, gateway, replies, from_file):
    """Steps of secure sums, files that are signed before or after the change, keys, a witness."""
    from steadytree._base.documents import parse_json
    from steadytree.federated.keys import make_holder_keys, read_key
    from steadytree.federated.masking import SumKeys
    from steadytree.federated.messages import SUM, SumStep
    from steadytree.federated.signed_files import AnswerFile, read_signed, write_signed
    from steadytree.models.files import load, save
    from steadytree.privacy.private_tree import PrivateTreeClassifier
    from steadytree.privacy.witness import Witness

    keys = folder / "keys"
    make_holder_keys(keys)
    private, public = keys / "sign.key", keys / "sign.pub"
    gateway.holder.sums.keys = SumKeys(read_key(private), {"south": read_key(public, public=True)})
    for step in ("keys", "shares", "vector"):
        how = SumStep(step, 0, "bins", 0.01, 2, 1, {"south": "0a" * 96} if step != "keys" else {})
        yield request_message(Request("sums", 0, SUM, 1.0, DIGEST, 4, sum=how)), replies
    content = {"kind": "answer", "study": "s", "number": 0, "holder": "north", "private": True}
    content |= {"question": "0" * 64, "letter": {"numbers": [1, 2]}}
    write_signed(folder / "signed", content, private)
    check = from_file(lambda path: read_signed(path, AnswerFile, public))
    yield (folder / "signed").read_bytes(), check

    def signed_again(changed):
        found = parse_json(changed.decode())
        write_signed(folder / "again", found if isinstance(found, dict) else {}, private)
        read_signed(folder / "again", AnswerFile, public)

    yield write(content), signed_again
    yield private.read_bytes(), from_file(read_key)
    yield public.read_bytes(), from_file(lambda path: read_key(path, public=True))
    Witness(folder / "witness").note(gateway.holder.ledger.head)
    yield (folder / "witness").read_bytes(), from_file(lambda path: Witness(path).read())
    save(PrivateTreeClassifier(1.0, SCHEMA, testing_seed=0).fit(*patients(99)).tree_, folder / "t")
    yield (folder / "t").read_bytes(), from_file(load)


def _ledger(path, verify):
    mark = path.with_name(path.name + ".mark")
    mark.write_bytes((path.parent / "g" / "ledger.mark").read_bytes())
    verify(path)


def fuzz(arguments):
    """Changed bytes for all that is read, a thousand at a time."""
    found = {"done": 0, "refused": 0, "accepted": 0, "slowest": 0.0, "faults": []}
    if arguments.keep is not None and arguments.keep.exists():
        found = json.loads(arguments.keep.read_text())
    end = time.monotonic() + arguments.seconds
    while found["done"] < arguments.times and time.monotonic() < end:
        times = min(1_000, arguments.times - found["done"])
        refused, accepted, slowest, faults = run_fuzz(times, arguments.seed + found["done"])
        found["done"] += times
        found["refused"] += refused
        found["accepted"] += accepted
        found["slowest"] = max(found["slowest"], slowest)
        found["faults"] += faults
        if arguments.keep is not None:
            arguments.keep.write_text(json.dumps(found))
    print(
        f"fuzzed {found['done']}: refused {found['refused']}, accepted or answered by a code "
        f"{found['accepted']}, slowest {found['slowest']:.3f} s of CPU, faults "
        f"{len(found['faults'])}"
    )
    for fault in found["faults"][:10]:
        print("  ", fault)
    return not found["faults"] and found["slowest"] < 1


def run_fuzz(times, seed):
    """Numbers of refused and accepted bytes, seconds of the slowest, and what went wrong."""
    rng, slowest, refused, accepted, faults = random.Random(seed), 0.0, 0, 0, []
    with tempfile.TemporaryDirectory() as scratch:
        known = list(targets(pathlib.Path(scratch)))
        for trial in range(times):
            sample, act = known[trial % len(known)]
            content = mutate(sample, rng)
            start = time.process_time()
            try:
                act(content)
                accepted += 1
            except (ValueError, TypeError, OSError) as error:
                refused += 1
                if "\n" in str(error).strip() or not str(error):
                    faults.append((trial % len(known), "not one line", str(error)[:200]))
            except Exception as error:
                faults.append((trial % len(known), type(error).__name__, str(error)[:200]))
            slowest = max(slowest, time.process_time() - start)
    return refused, accepted, slowest, faults


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("attack", choices=["timing", "largest", "kills", "idle", "fuzz"])
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=math.inf, help="the most that it may take")
    parser.add_argument("--keep", type=pathlib.Path, help="a file of times, which runs add to")
    parser.add_argument("--pace", type=float, default=0.02, help="seconds of the grid")
    parser.add_argument("--rows", type=int, default=4_096, help="the declared number of rows")
    parser.add_argument("--bins", type=int, default=24, help="of the plan")
    parser.add_argument("--levels", type=int, default=4, help="of trees, by the plan")
    parser.add_argument("--times", type=int, default=500)
    parser.add_argument("--idle", type=int, default=1_000)
    parser.add_argument("--half", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as state:
        os.environ["XDG_STATE_HOME"] = state
        sys.exit(0 if globals()[arguments.attack](arguments) else 1)


if __name__ == "__main__":
    main()
