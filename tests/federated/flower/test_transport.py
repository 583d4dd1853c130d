"""The relay starts for every message: it must not load what only the coordinator needs."""

import subprocess
import sys

PROGRAM = """
import sys
from steadytree.federated.flower import transport
heavy = {"pandas", "sklearn", "numba", "scipy", "opendp"} & set(sys.modules)
assert not heavy, heavy
"""


def test_the_relay_loads_little():
    subprocess.run([sys.executable, "-c", PROGRAM], check=True)
