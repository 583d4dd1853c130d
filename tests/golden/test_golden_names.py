"""Public names, their parameters with defaults, and what the classes offer."""

import inspect

import steadytree as st


def signature(thing):
    """Parameters with defaults, without annotations: those name modules."""
    shown = []
    for parameter in inspect.signature(thing).parameters.values():
        default = parameter.default
        if default is not inspect.Parameter.empty and not is_plain(default):
            default = Shown()
        shown.append(parameter.replace(annotation=inspect.Parameter.empty, default=default))
    return str(inspect.Signature(shown))


def is_plain(default):
    return default is None or isinstance(default, bool | int | float | str | tuple)


class Shown:
    def __repr__(self):
        return "..."


def own(thing):
    """What a class offers itself; names inherited from scikit-learn differ between versions."""
    found = {}
    for name in sorted(dir(thing)):
        where = next(base for base in thing.__mro__ if name in vars(base))
        value = inspect.getattr_static(thing, name)
        if name.startswith("_") or where.__module__.split(".")[0] != "steadytree":
            continue
        if "RequestMethod" in type(value).__name__:  # set_fit_request, of scikit-learn
            continue
        is_call = isinstance(value, staticmethod | classmethod) or inspect.isfunction(value)
        found[name] = f"{name}{signature(getattr(thing, name))}" if is_call else name
    return found


def described(name):
    thing = getattr(st, name)
    if not inspect.isclass(thing):
        return [f"{name}{signature(thing)}"]
    return [f"class {name}{signature(thing)}", *(f"    {line}" for line in own(thing).values())]


def test_public_names_and_signatures(golden):
    lines = [line for name in sorted(st.__all__) for line in described(name)]
    golden("names.txt", "\n".join(lines))
