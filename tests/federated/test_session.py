"""Session: what one round asks, who is dropped, and what is noted as spent."""

import numpy as np
import pytest

from steadytree._base.exceptions import RefusedError
from steadytree.federated.messages import UNSET, WHOLE
from steadytree.federated.session import Session
from steadytree.federated.transport import LocalHolders
from steadytree.privacy.sampled_tree import OPEN
from tests.federated.test_holder import SCHEMA, holders


class Asked(LocalHolders):
    """Holders in this process that keep what they were asked; some refuse everything."""

    def __init__(self, several, gone=()):
        super().__init__(several)
        self.requests, self.gone = [], set(gone)

    def ask(self, requests):
        self.requests += requests.values()
        kept = {name: one for name, one in requests.items() if name not in self.gone}
        lost = requests.keys() - kept.keys()
        return super().ask(kept) | dict.fromkeys(lost, RefusedError("no answer"))


def test_weights_go_to_their_own_holder(tmp_path):
    asked = Asked(holders(tmp_path, 4.0, 2))
    session = Session(asked, SCHEMA, 4.0, "run", 4)
    weights = {0: (WHOLE, 5), 1: (7, WHOLE)}
    found = session.blocks({0: 0.5, 1: 0.5}, {0: OPEN, 1: OPEN}, 1, True, weights)
    assert [request.weights for request in asked.requests] == [(WHOLE, 5), (7, WHOLE)]
    assert set(found) == {0, 1}
    session.blocks({0: 0.5}, {0: OPEN}, 1, True)
    assert asked.requests[-1].weights is UNSET
    np.testing.assert_allclose(session.spent, [1.0, 0.5])
    assert session.spent_on == {"last block": 1.0}


def test_rounds_rise_and_missing_holders_are_dropped(tmp_path):
    asked = Asked(holders(tmp_path, 4.0, 3), gone=["h1"])
    session = Session(asked, SCHEMA, 4.0, "run", 4, minimum=2)
    assert session.next_round == 0
    session.count_rows()
    assert (session.next_round, session.active) == (1, [0, 2])
    asked.gone = {"h0"}
    with pytest.raises(RefusedError, match="no answer"):
        session.count_rows()
