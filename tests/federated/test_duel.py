"""Unlike holders: who proposes, and what it costs."""

import numpy as np

from steadytree.federated.holder import Holder
from steadytree.federated.strategies import METHODS, Session
from steadytree.federated.transport import LocalHolders
from steadytree.privacy.ledger import Ledger
from tests.federated.test_holder import SCHEMA, frame


def test_holders_with_many_mixed_rows_propose(tmp_path):
    """Two have both classes; one has many rows of one class only, one has next to none."""
    X, y = frame(3_000, 0)
    one_class = np.flatnonzero(y == "no")[:900]
    parts = [np.arange(900), one_class, np.arange(900, 1_800), np.arange(8)]
    several = [
        Holder(
            f"h{j}", SCHEMA, X.iloc[rows], y[rows], Ledger(tmp_path / str(j), 4.0), testing_seed=j
        )
        for j, rows in enumerate(parts)
    ]
    session = Session(LocalHolders(several), SCHEMA, 4.0, "run", 4)
    METHODS["duel"](session, [1, 3, 0, 2])
    proposed = [sum(entry.what == "block" for entry in holder.ledger.entries) for holder in several]
    assert proposed[0] == proposed[2] > 0
    assert proposed[1] == proposed[3] == 0
    assert all(holder.ledger.spent <= 4.0 for holder in several)
