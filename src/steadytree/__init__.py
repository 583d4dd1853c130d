"""Single decision trees and risk scores that people can trust.

Every learner returns the same `Tree` or `Scorecard`, every metric reads it, and one report answers
"can I trust this model?". The public names are listed in ``__init__.pyi``; each is loaded when it
is first used, so that ``import steadytree`` and ``steadytree --help`` are quick.
"""

import lazy_loader

from steadytree._base.notebook import set_renderer
from steadytree._base.optional import install_finder


def _render(thing):
    from steadytree.reporting.plot import render  # loaded when a notebook first shows a result

    return render(thing)


install_finder()
set_renderer(_render)
_load, _, __all__ = lazy_loader.attach_stub(__name__, __file__)
_REPLACED = {  # names before 0.2 and what to use instead; to go after one release
    "Boxes": "certify, or steadytree.models.boxes.Boxes",
    "Condition": "steadytree.models.condition.Condition",
    "Reading": "Measurement",
    "card_html": "plot(scorecard).write('sheet.html')",
    "card_text": "str(plot(scorecard))",
    "card_to_sql": "Scorecard.to_sql()",
    "card_to_tree": "Scorecard.to_tree()",
    "draw": "plot",
    "draw_card": "plot",
    "from_sklearn": "as_tree",
    "one_hot": "to_sklearn, or steadytree.models.one_hot.one_hot",
    "path_distance": "tree_distance(a, b, kind='path')",
    "plot_collection": "plot",
    "plot_stability_curve": "plot",
    "tree_distances": "tree_distance of a list of trees",
}


def __getattr__(name):
    if name == "__version__":
        from importlib.metadata import version

        return version(__name__)
    if name in _REPLACED and name not in __all__:
        raise AttributeError(f"{__name__}.{name} was removed: use {_REPLACED[name]}.", name=name)
    return _load(name)


def __dir__():
    return [*__all__, "__version__"]
