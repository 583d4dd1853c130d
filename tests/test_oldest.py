"""The oldest-versions run installs what pyproject.toml promises."""

import importlib.util
import pathlib
import tomllib

import pytest

PROJECT = pathlib.Path(__file__).parents[1]

spec = importlib.util.spec_from_file_location("oldest", PROJECT / "tools/oldest.py")
oldest = importlib.util.module_from_spec(spec)
spec.loader.exec_module(oldest)


@pytest.mark.parametrize(
    ("requirement", "expected"),
    [
        ("numpy>=1.26.0", "numpy==1.26.0"),
        ("numpy >= 1.26, <3", "numpy==1.26"),
        ("dask[array,dataframe]>=2024.8.0", "dask[array,dataframe]==2024.8.0"),
    ],
)
def test_lower_bound_becomes_the_version(requirement, expected):
    assert oldest.oldest(requirement) == expected


@pytest.mark.parametrize("requirement", ["numpy", "numpy==1.26.0", "numpy<3"])
def test_requirement_without_lower_bound_is_refused(requirement):
    with pytest.raises(ValueError, match="has no lower bound"):
        oldest.oldest(requirement)


def test_every_dependency_has_a_lower_bound():
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text("utf-8"))["project"]
    for requirements in [project["dependencies"], *project["optional-dependencies"].values()]:
        for requirement in requirements:
            assert "==" in oldest.oldest(requirement)
            assert "==" not in requirement
