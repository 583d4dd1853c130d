"""A slow, obvious certificate: every value at which a least move can end, in every combination.

Costs are taken from what the perturbation says, not from how the package reads it, and predictions
are the model's own on raw values.
"""

from dataclasses import dataclass, field

import numpy as np
import pandas as pd


@dataclass
class Raw:
    """What is known of a raw column: its kind, and where the model may change its mind."""

    kind: str  # "number", "whole" or "category"
    ends: list = field(default_factory=list)  # values at which a least move of a number can end
    categories: list = field(default_factory=list)
    bounds: tuple = (-np.inf, np.inf)  # of the column itself


def around(threshold, single):
    """Values on both sides of a threshold: the last that goes left and the first that does not."""
    if not np.isfinite(threshold):
        return []
    if not single:
        return [threshold, np.nextafter(threshold, np.inf)]
    below = np.float32(threshold)
    if float(below) > threshold:
        below = np.nextafter(below, np.float32(-np.inf))
    above = np.nextafter(below, np.float32(np.inf))
    middle = (float(below) + float(above)) / 2  # rounds to one of both, whichever is even
    beside = [np.nextafter(middle, -np.inf), middle, np.nextafter(middle, np.inf)]
    return beside


def is_missing(value):
    return value is None or value is pd.NA or (isinstance(value, float) and np.isnan(value))


def unit_of(given, name):
    value = given.get(name) if isinstance(given, dict) else given
    return np.inf if value is None else value


def cost_of_change(noise, name, raw, x, z):
    """What it costs that a single column holds z instead of x."""
    if (is_missing(x) and is_missing(z)) or x == z:
        return 0.0
    if name in noise.frozen:
        return np.inf
    if raw.kind != "category":
        low, high = noise.bounds.get(name, raw.bounds)
        if not low <= z <= high:
            return np.inf
    if is_missing(x):
        return noise.missing_cost.get(name, np.inf)
    way = noise.direction.get(name, "both")
    if raw.kind != "category" and ((way == "up" and z < x) or (way == "down" and z > x)):
        return np.inf
    distance = 1.0 if raw.kind == "category" else abs(z - x)
    if noise.change_cost is not None:
        radius = unit_of(noise.radius, name) if noise.radius is not None else np.inf
        if not np.isfinite(unit_of(noise.change_cost, name)) or distance > radius * (1 + 1e-9):
            return np.inf
        if noise.radius is not None and unit_of(noise.radius, name) == np.inf:
            return np.inf  # not named
        return unit_of(noise.change_cost, name)
    if noise.radius is not None:
        radius = unit_of(noise.radius, name)
        return distance / radius if 0 < radius < np.inf else np.inf
    cost = unit_of(noise.step_cost, name)
    return distance * cost if cost < np.inf else np.inf


def values_of(noise, name, raw, x):
    """All values to try of a column, its own first."""
    if raw.kind == "category":
        return [x, *(one for one in raw.categories if one != x)]
    ends = list(raw.ends)
    if raw.kind == "whole" and (is_missing(x) or float(x).is_integer()):
        ends = [one for end in ends for one in (np.floor(end), np.ceil(end), np.floor(end) + 1)]
    for bound in filter(np.isfinite, noise.bounds.get(name, raw.bounds)):
        ends += [bound, np.ceil(bound), np.floor(bound)]
    if is_missing(x):
        ends.append(float(np.clip(0.0, *noise.bounds.get(name, raw.bounds))))
    if raw.kind == "whole" and (is_missing(x) or float(x).is_integer()):
        ends = [end for end in ends if float(end).is_integer()]
    return [x, *sorted(set(map(float, ends)))]


def shifts_of(noise, group, raws, row):
    """All shifts of a group that moves together, each as values and a size."""
    radius = {name: unit_of(noise.radius, name) for name in group}
    known = [name for name in group if not is_missing(row[name])]
    whole = all(raws[name].kind == "whole" for name in group)
    whole = whole and all(float(row[name]).is_integer() for name in known)
    sizes = {0.0}
    for name in known:
        for end in (*raws[name].ends, *noise.bounds.get(name, ())):
            if whole:
                step = np.floor(end - row[name])
                sizes |= {(step + k) / radius[name] for k in (-1, 0, 1, 2)}
            else:
                at = (end - row[name]) / radius[name]
                sizes |= {at, at * (1 + 1e-13), at * (1 - 1e-13), at + 1e-13, at - 1e-13}
    options = []
    for size in sizes:
        ends = {}
        for name in known:
            moved = row[name] + (np.rint(size * radius[name]) if whole else size * radius[name])
            ends[name] = float(moved)
        ways = [noise.direction.get(name, "both") for name in known]
        low_high = [noise.bounds.get(name, (-np.inf, np.inf)) for name in known]
        wrong = ("up" in ways and size < 0) or ("down" in ways and size > 0)
        outside = [not a <= ends[n] <= b for n, (a, b) in zip(known, low_high, strict=True)]
        if size == 0 or not (wrong or any(outside)):
            options.append((ends, abs(size)))
    return options


def turns_of(noise, group, row):
    """Every column of a one-hot group as the one that is 1, and what that costs."""
    own = next((name for name in group if row[name] == 1), None)
    if own is None:  # all are missing
        price, stays = noise.missing_cost.get(group[0], np.inf), [({}, 0.0)]
    else:
        price, stays = cost_of_change(noise, own, Raw("category"), 0, 1), []
    return stays + [
        ({name: float(name == other) for name in group}, 0.0 if other == own else price)
        for other in group
    ]


def least_move(model, row, raws, noise):
    """Size of the least move of a raw row (a dict) to another prediction of the model."""
    names = list(raws)
    grouped = {name for group in (*noise.one_hot, *noise.together) for name in group}
    options = []  # of each column or group: (values by name, cost)
    for name in names:
        if name not in grouped:
            x = row[name]
            options.append(
                [
                    ({name: z}, cost_of_change(noise, name, raws[name], x, z))
                    for z in values_of(noise, name, raws[name], x)
                ]
            )
    for group in noise.one_hot:
        options.append(turns_of(noise, group, row))
    for group in noise.together:
        options.append(shifts_of(noise, group, raws, row))
    options = [[one for one in own if one[1] < np.inf] for own in options]
    picked = np.indices([len(own) for own in options]).reshape(len(options), -1)
    costs = np.array(
        [np.array([c for _, c in own])[at] for own, at in zip(options, picked, strict=True)]
    )
    total = costs.max(axis=0) if noise.norm == "l_inf" else costs.sum(axis=0)
    columns = {name: np.full(picked.shape[1], row[name], dtype=object) for name in names}
    for own, at in zip(options, picked, strict=True):
        for name in own[-1][0]:
            columns[name] = np.array([part.get(name) for part, _ in own], dtype=object)[at]
    points = {name: np.append([row[name]], column) for name, column in columns.items()}
    labels = np.asarray(model.predict(frame_of(points, raws)))
    return min(total[labels[1:] != labels[0]], default=np.inf)


def frame_of(columns, raws):
    """Columns as a frame: text as objects, numbers as floats."""
    found = {}
    for name, raw in raws.items():
        values = [None if is_missing(value) else value for value in columns[name]]
        found[name] = np.array(values, dtype=object if raw.kind == "category" else float)
    return pd.DataFrame(found)
