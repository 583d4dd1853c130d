"""What a second privacy review found at gateways and in studies, each as the misuse itself."""

import pytest

import hospitals
from hospitals import gateway_of, letter
from steadytree.sources import holder as holder_module
from steadytree.sources.letters import read
from steadytree.sources.messages import RefusedError


@pytest.fixture
def gateway(tmp_path):
    with gateway_of(tmp_path) as found:
        yield found


def code_of(reply):
    return read(reply).get("code")


# ---- refusals depend on public numbers alone, or are paid for ----
def test_an_answer_too_large_is_paid_for(gateway, monkeypatch):
    monkeypatch.setattr(gateway.holder, "_numbers", lambda *_: hospitals.np.array([2**50]))
    assert code_of(gateway.reply(letter())) == "INTERNAL"
    assert gateway.holder.ledger.spent == 0.5


def test_noise_that_could_be_too_large_is_refused_before_rows_are_looked_at(gateway, monkeypatch):
    def never(*_):
        raise AssertionError

    monkeypatch.setattr(gateway.holder, "_numbers", never)
    monkeypatch.setattr(holder_module, "LARGEST", 2**27 + 64 * 10)
    for few in ({"kind": "side counts", "questions": ((0, 1, 2, 3, 4, 5),)}, {"epsilon": 0.05}):
        assert code_of(gateway.reply(letter(**{"epsilon": 0.5, **few}))) == "MALFORMED"
    assert gateway.holder.ledger.spent == 0


def test_a_question_counts_once_in_a_leaf(gateway):
    assert code_of(gateway.reply(letter(kind="side counts", questions=((1, 1),)))) == "MALFORMED"
    assert gateway.holder.ledger.spent == 0
    with pytest.raises(RefusedError, match="must differ"):
        gateway.holder.answer(hospitals.ask("side counts", questions=((1, 1),)))
