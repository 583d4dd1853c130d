"""Results print as one line."""

from dataclasses import dataclass

import numpy as np

from steadytree._base import notebook


@dataclass(frozen=True, eq=False, repr=False)
class Result(notebook.Shown):
    name: str
    values: np.ndarray


@dataclass(frozen=True, eq=False, repr=False)
class Measured(Result):
    def measurements(self):
        return ["accuracy: 0.9", "AUC: 0.8"]


def test_arrays_are_counted_and_measurements_listed():
    assert repr(Result("a", np.zeros(5000))) == "Result(name: 'a', values: 5000 values)"
    assert repr(Measured("a", np.zeros(5000))) == "Measured(accuracy: 0.9; AUC: 0.8)"


def test_without_a_renderer_the_line_is_shown(monkeypatch):
    monkeypatch.setattr(notebook, "_renderers", [])
    assert Result("a", np.zeros(3))._repr_html_() is None
    notebook.set_renderer(lambda thing: f"<b>{thing.name}</b>")
    assert Result("a", np.zeros(3))._repr_html_() == "<b>a</b>"
