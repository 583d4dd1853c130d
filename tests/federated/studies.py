"""Studies among gateways in memory, for tests."""

import contextlib
from dataclasses import asdict

from steadytree.federated import coordinator as studies
from steadytree.federated.coordinator import Coordinator
from steadytree.federated.study import StudyConfig
from steadytree.federated.transport import InMemory
from tests._base.clocks import ToldClock
from tests.federated import hospitals
from tests.federated.hospitals import NAMES, SCHEMA, gateway_of

PATIENCE = {"deadline": 5, "attempt": 1, "join": 5}  # seconds of a clock that only waiting moves


def make_plan(folder, **changed):
    SCHEMA.save(folder / "schema.toml")
    return StudyConfig.load(hospitals.write_plan(folder, **{"study": "s1", **PATIENCE, **changed}))


def run_study(plan, transport):
    """A study whose deadlines come through waiting alone, however slow the machine is."""
    return studies.run_study(plan, transport, ToldClock())


@contextlib.contextmanager
def gateways(folder, names=NAMES, **more):
    with contextlib.ExitStack() as stack:
        yield [
            stack.enter_context(gateway_of(folder, name, seed=place, **more))
            for place, name in enumerate(names)
        ]


def in_process(folder, plan):
    """The same study with holders in this process and nothing in between."""
    folder.mkdir()
    holders = [hospitals.make_holder(folder, n, seed=p) for p, n in enumerate(NAMES)]
    asked = (SCHEMA, plan.epsilon, plan.method)
    more = {"n_bins": 4, "testing_seed": plan.testing_seed, **asdict(plan.limits)}
    fitted = Coordinator(holders, *asked, **more).fit()
    return fitted.tree_, [holder.ledger.spent for holder in holders]


class Faulty(InMemory):
    """Gateways in memory of which some misbehave: `fault(name, message, reply)` gives the reply."""

    def __init__(self, gateways, fault):
        super().__init__(gateways)
        self._fault = fault

    def exchange(self, messages, seconds):
        found = super().exchange(messages, seconds)
        found = {name: self._fault(name, messages[name], reply) for name, reply in found.items()}
        return {name: reply for name, reply in found.items() if reply is not None}
