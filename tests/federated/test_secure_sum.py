"""Secure sums over messages: equal to plain sums, paid for sum by sum, and no lie is summed."""

import contextlib
import pathlib

import numpy as np
import pytest
from msgspec import structs

from steadytree._base.exceptions import HolderError, RefusedError
from steadytree.data.splits import SplitTable
from steadytree.federated import holder as holder_module
from steadytree.federated.framing import read
from steadytree.federated.gateway import AnswerStore, Gateway, Terms
from steadytree.federated.holder import Holder
from steadytree.federated.masking import SumKeys
from steadytree.federated.messages import SUM, SumStep
from steadytree.federated.secure_sum import MaskedSums
from steadytree.federated.session import Session
from steadytree.federated.transport import InMemory, LocalHolders
from steadytree.privacy.ledger import Ledger
from steadytree.privacy.ledger_lines import decimal_of
from steadytree.privacy.sampled_tree import OPEN, SampledTree
from tests.federated.hospitals import DIGEST, SCHEMA, rows
from tests.federated.studies import Faulty, make_plan, run_study
from tests.federated.test_holder import ask

ed25519 = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.ed25519")
FOUR = ("north", "south", "east", "west")
SIGNING = {name: ed25519.Ed25519PrivateKey.generate() for name in FOUR}
STEPS = ("keys", "shares", "vector", "unmask")
CANDIDATES = SplitTable.declared(SCHEMA.space, 4)
STUMP = SampledTree(0, OPEN, OPEN)


def make_holders(folder, budget=4.0, delta=1e-6, seed=0):
    found = []
    for place, name in enumerate(FOUR):
        ledger = Ledger(pathlib.Path(folder) / f"{name}.ledger", budget, delta)
        seeded = None if seed is None else seed + place
        holder = Holder(name, SCHEMA, *rows(place, 500), ledger, testing_seed=seeded)
        others = {each: key.public_key() for each, key in SIGNING.items() if each != name}
        holder.sums.keys = SumKeys(SIGNING[name], others)
        found.append(holder)
    return found


@contextlib.contextmanager
def four_gateways(folder, terms=None):
    with contextlib.ExitStack() as stack:
        found = []
        for holder in make_holders(folder):
            beside = pathlib.Path(folder) / f"{holder.name}.answers"
            store = AnswerStore(beside, holder.name, DIGEST)
            stack.callback(store.close)
            found.append(Gateway(holder, store, terms=terms))
        yield found


def plan_of(folder, **more):
    wanted = {"method": "secure_sum", "holders": list(FOUR), "minimum": 3, "testing_seed": 0}
    return make_plan(folder, **{**wanted, **more})


def absent_from(name, step):
    """A holder that answers no question from the given step of its first sum on."""
    gone = []

    def fault(who, message, reply):
        asked = read(message).get("request", {}).get("sum")
        if who == name and asked and asked["step"] == step:
            gone.append(step)
        return None if who == name and gone else reply

    return fault


def test_a_study_learns_and_pays_for_each_sum(tmp_path):
    plan = plan_of(tmp_path, epsilon=4.0)
    with four_gateways(tmp_path, Terms({"s1": decimal_of(4.0, "epsilon")})) as served:
        study = run_study(plan, InMemory(served))
        ledgers = [gateway.holder.ledger for gateway in served]
    X, y = rows(77)
    assert (study.tree.predict(X) == y).mean() > 0.85
    assert (study.privacy.epsilon, study.privacy.delta) == (4.0, 1e-6)
    for ledger in ledgers:
        costs = [float(entry.rho) for entry in ledger.entries]
        assert len(costs) == study.tree.depth + 2  # rows, one a level, leaves: nothing else is paid
        assert 4.0 * (1 - 1e-6) < ledger.spent <= 4.0
        assert {entry.what for entry in ledger.entries} == {SUM}


@pytest.mark.parametrize("step", STEPS)
def test_a_study_goes_on_without_a_holder_that_is_lost_at_any_step(tmp_path, step):
    with four_gateways(tmp_path) as served:
        study = run_study(plan_of(tmp_path, epsilon=4.0), Faulty(served, absent_from("east", step)))
        paid = {g.holder.name: len(g.holder.ledger.entries) for g in served}
    assert study.missing == ("east",)
    assert paid["east"] == (step in ("vector", "unmask"))  # it sent the vector that got lost
    assert paid["north"] > 3


def test_a_study_ends_when_too_few_are_left(tmp_path):
    with four_gateways(tmp_path) as served, pytest.raises(HolderError):
        run_study(plan_of(tmp_path, minimum=4), Faulty(served, absent_from("east", "vector")))


# ---- without noise the sums are exact ----
class Leaves(LocalHolders):
    """Holders of which one leaves at a step of each sum."""

    def __init__(self, several, name, step):
        super().__init__(several)
        self.absent = name, step

    def ask(self, requests):
        gone = {n for n, one in requests.items() if (n, one.sum.step) == self.absent}
        found = super().ask({n: one for n, one in requests.items() if n not in gone})
        return found | dict.fromkeys(gone, RefusedError("no answer"))


@pytest.mark.parametrize("step", [None, *STEPS])
@pytest.mark.parametrize("what", ["rows", "bins", "leaf counts"])
def test_sums_without_noise_are_plain_sums(tmp_path, monkeypatch, what, step):
    monkeypatch.setattr(holder_module, "release_share", lambda counts, *_: counts)
    several = make_holders(tmp_path)
    session = Session(Leaves(several, "south", step), SCHEMA, 1.0, "run", 4, minimum=3)
    found = MaskedSums(session, 1.0, 1e-6, 2).ask(0.5, what, STUMP, CANDIDATES)
    kept = [h for h in several if step in (None, "unmask") or h.name != "south"]
    blocks = {holder: holder._rows.block(CANDIDATES) for holder in kept}
    expected = sum(h._summed(STUMP, block, CANDIDATES, what) for h, block in blocks.items())
    np.testing.assert_array_equal(found, expected)


class Noted(LocalHolders):
    """Holders whose requests are kept."""

    def __init__(self, several):
        super().__init__(several)
        self.requests = []

    def ask(self, requests):
        self.requests += requests.values()
        return super().ask(requests)


@pytest.mark.parametrize("what", ["rows", "bins", "leaf counts"])
def test_the_price_of_a_sum_is_the_work_that_is_done(tmp_path, what):
    several = make_holders(tmp_path)
    holders = Noted(several)
    session = Session(holders, SCHEMA, 1.0, "run", 4, minimum=3)
    MaskedSums(session, 1.0, 1e-6, 2).ask(0.5, what, STUMP, CANDIDATES)
    for request in holders.requests:
        if request.sum.step == "vector":
            price = several[0].price(request, (CANDIDATES, [STUMP]))
            assert (price > 0) == (what != "rows")
        else:
            assert several[0].price(request, (CANDIDATES, [STUMP])) == 0
    assert {holder.done for holder in several} == {price}


# ---- what a holder refuses ----
def begun(several, round=0, **changed):
    """The first step of a sum at every holder: requests, and the keys that came back."""
    step = SumStep("keys", round, "rows", 0.01, 3, 2)
    requests = {
        holder.name: ask_sum(round, structs.replace(step, **changed.get(holder.name, {})))
        for holder in several
    }
    keys = {
        holder.name: bytes(holder.answer(requests[holder.name]).numbers.tolist()).hex()
        for holder in several
    }
    return requests, keys


def ask_sum(round, step):
    return structs.replace(ask("rows", round), kind=SUM, schema=DIGEST, session="run", sum=step)


def next_step(request, round, step, parts):
    return ask_sum(round, structs.replace(request.sum, step=step, parts=parts))


@pytest.mark.parametrize("changed", [{"rho": 9.0}, {"honest": 1}, {"what": "bins"}])
def test_holders_that_were_asked_for_different_sums_refuse_each_other(tmp_path, changed):
    """Somebody asked to add less noise than the others expect would leave them unprotected."""
    several = make_holders(tmp_path)
    several = several if changed != {"honest": 1} else several[:]
    lied = {"south": changed} if changed != {"honest": 1} else {"south": {"minimum": 4}}
    requests, keys = begun(several, **lied)
    for holder in several:
        with pytest.raises(RefusedError, match="wrong signature"):
            holder.answer(next_step(requests[holder.name], 1, "shares", keys))
    assert all(holder.ledger.spent == 0 for holder in several)


def test_a_replayed_or_changed_step_is_refused(tmp_path):
    several = make_holders(tmp_path)
    requests, keys = begun(several)
    north, request = several[0], requests["north"]
    with pytest.raises(RefusedError, match="stale"):
        north.answer(request)
    changed = structs.replace(request.sum, rho=5.0)
    with pytest.raises(RefusedError, match="not the one that was begun"):
        north.answer(next_step(ask_sum(1, changed), 1, "shares", keys))
    north.answer(next_step(request, 2, "shares", keys))
    with pytest.raises(RefusedError, match="once, in order"):
        north.answer(next_step(request, 3, "shares", keys))
    with pytest.raises(RefusedError, match="once, in order"):
        north.answer(next_step(request, 4, "unmask", dict.fromkeys(FOUR, "")))
    begun(several, 5)  # another sum ends the one before
    with pytest.raises(RefusedError, match="not the one that was begun"):
        north.answer(next_step(request, 6, "vector", {}))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"honest": 3}, "fewer honest holders"),
        ({"minimum": 2, "honest": 1}, "must exceed 4 together"),
        ({"first": 7}, "begins with its keys"),
        ({"rho": 1e-30}, "too small"),
    ],
)
def test_sums_that_protect_nobody_are_refused(tmp_path, changed, message):
    several = make_holders(tmp_path)
    step = structs.replace(SumStep("keys", 0, "rows", 0.01, 3, 2), **changed)
    with pytest.raises(RefusedError, match=message):
        several[0].answer(ask_sum(0, step))


def test_a_holder_without_keys_or_without_delta_takes_no_part(tmp_path):
    (tmp_path / "pure").mkdir()
    pure = make_holders(tmp_path / "pure", delta=0.0)[0]
    step = ask_sum(0, SumStep("keys", 0, "rows", 0.01, 3, 2))
    with pytest.raises(ValueError, match="needs a ledger with a delta"):
        pure.admit(step)
    holder = make_holders(tmp_path)[0]
    holder.sums.keys = None
    with pytest.raises(RefusedError, match="no keys for secure sums"):
        holder.answer(step)


def test_seeded_and_real_holders_are_never_summed_together(tmp_path):
    pytest.importorskip("opendp")
    (tmp_path / "real").mkdir()
    mixed = [make_holders(tmp_path)[0], *make_holders(tmp_path / "real", seed=None)[1:]]
    requests, keys = begun(mixed)
    for holder in mixed:
        with pytest.raises(RefusedError, match="wrong signature"):
            holder.answer(next_step(requests[holder.name], 1, "shares", keys))


# ---- the plan ----
@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"delta": 0.0}, "delta must be a number between 0 and 1"),
        ({"minimum": 2}, "need honest from 3 to 1"),
        ({"honest": 3}, "need honest from 2 to 2, got 3"),
        ({"method": "vote", "delta": 1e-6}, "'delta' is for method 'secure_sum'"),
    ],
)
def test_a_plan_says_how_many_must_be_honest(tmp_path, changed, message):
    with pytest.raises(ValueError, match=message):
        plan_of(tmp_path, **changed)
    plan = plan_of(tmp_path)
    assert (plan.delta, plan.honest) == (1e-6, 2)
