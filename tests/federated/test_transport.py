"""RemoteHolders: messages repeated until a deadline, and nothing spent twice."""

import threading

import pytest

from steadytree.federated import coordinator as studies
from steadytree.federated.framing import Refusal, read, refusal
from steadytree.federated.transport import HolderError, InMemory
from tests._base.clocks import ToldClock
from tests.federated import hospitals
from tests.federated.hospitals import NAMES
from tests.federated.studies import Faulty, gateways, in_process, make_plan, run_study


class Impatient(InMemory):
    """Does not wait for one holder, which goes on with its work."""

    def __init__(self, gateways, slow):
        super().__init__(gateways)
        self.slow, self.threads = slow, []

    def exchange(self, messages, seconds):
        found = super().exchange({n: a for n, a in messages.items() if n != self.slow}, seconds)
        if self.slow in messages and read(messages[self.slow])["type"] == "question":
            work = threading.Thread(
                target=super().exchange, args=({self.slow: messages[self.slow]}, seconds)
            )
            work.start()
            self.threads.append(work)
        elif self.slow in messages:
            found |= super().exchange({self.slow: messages[self.slow]}, seconds)
        return found


@pytest.mark.parametrize("minimum", [2, 3])
def test_a_slow_holder_past_the_deadline(tmp_path, monkeypatch, minimum):
    """It pays once, however often it is asked; the study ends without it, or later with it."""
    plan = make_plan(tmp_path, minimum=minimum)
    finish = threading.Event()
    with gateways(tmp_path) as served:
        drafts, draft = [], served[1].holder.draft

        def slow(request, admitted):
            drafts.append(request.name)
            finish.wait(hospitals.PATIENCE)
            return draft(request, admitted)

        monkeypatch.setattr(served[1].holder, "draft", slow)
        impatient = Impatient(served, "south")
        if minimum == 3:
            with pytest.raises(HolderError, match="no reply before the deadline"):
                run_study(plan, impatient)
        else:
            assert run_study(plan, impatient).missing == ("south",)
        finish.set()
        study = run_study(plan, InMemory(served))  # asked again while it may still be at work
        for thread in impatient.threads:
            thread.join(hospitals.PATIENCE)
        spent = [gateway.holder.ledger.spent for gateway in served]
    assert len(drafts) == len(set(drafts))
    if minimum == 3:
        assert (study.tree, spent) == in_process(tmp_path / "twin", plan)
    else:
        assert study.missing == ("south",)


def test_a_holder_that_fails_for_a_while_is_asked_again(tmp_path):
    plan, asked = make_plan(tmp_path), []

    def hiccups(name, message, reply):
        asked.append(name)
        return refusal(Refusal.INTERNAL) if name == "east" and asked.count("east") == 2 else reply

    with gateways(tmp_path) as served:
        study = run_study(plan, Faulty(served, hiccups))
        spent = [gateway.holder.ledger.spent for gateway in served]
    assert study.traffic.asked_again == 1
    assert (study.tree, spent) == in_process(tmp_path / "twin", plan)


class Noting(InMemory):
    """Gateways of which one is never heard; notes who was asked, and for how long."""

    def __init__(self, gateways, silent):
        super().__init__(gateways)
        self._silent, self.asked = silent, []

    def exchange(self, messages, seconds):
        questions = [name for name, one in messages.items() if read(one)["type"] == "question"]
        if questions:
            self.asked.append((sorted(questions), seconds))
        heard = {n: a for n, a in messages.items() if n != self._silent or n not in questions}
        return super().exchange(heard, seconds)


def test_a_silent_holder_is_asked_until_the_deadline_and_never_beyond(tmp_path):
    plan = make_plan(tmp_path, minimum=2, deadline=3.5, attempt=2)
    clock = ToldClock()
    with gateways(tmp_path) as served:
        noting = Noting(served, "south")
        study = studies.run_study(plan, noting, clock)
    assert study.missing == ("south",)
    (everyone, first), *again = noting.asked[:4]
    assert (everyone, first) == (sorted(NAMES), 2)
    assert again == [(["south"], 2), (["south"], 1.5), (["south"], 0.5)]
    assert clock.slept == [1.0, 1.0, 1.0, 0.5]
    assert study.traffic.asked_again == 3
    assert study.traffic.seconds == [3.5, *[0.0] * (study.rounds - 1)]
    assert all("south" not in names for names, _ in noting.asked[4:])
