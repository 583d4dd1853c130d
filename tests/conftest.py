import os
import pathlib

import hypothesis
import pytest

# A slow machine is no failure, and the same examples come in every run.
hypothesis.settings.register_profile("steadytree", deadline=None, derandomize=True)
hypothesis.settings.load_profile("steadytree")


@pytest.fixture
def data_folder():
    """Folder of the papers' data sets; tests that use it carry the mark `data`."""
    folder = os.environ.get("STEADYTREE_DATA")
    if not folder:
        pytest.skip("STEADYTREE_DATA names no folder")
    return pathlib.Path(folder)
