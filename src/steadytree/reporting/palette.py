"""Palette: colours that people with any colour vision tell apart (Okabe and Ito)."""

OKABE_ITO = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442")
OTHERS = "#8A919B"
N_COLOURS = len(OKABE_ITO)


def class_colours(counts: list[int]) -> list[int]:
    """A colour for each class: its own for the most frequent ones, one for all others.

    Classes keep their order where all have a colour of their own.

    Examples
    --------
    >>> class_colours([5, 9])
    [0, 1]
    >>> class_colours([1, 1, 1, 1, 1, 1, 1, 1, 9])[-1]
    0
    """
    if len(counts) <= N_COLOURS:
        return list(range(len(counts)))
    ranked = sorted(range(len(counts)), key=lambda place: (-counts[place], place))
    colours = [N_COLOURS] * len(counts)
    for colour, place in enumerate(ranked[:N_COLOURS]):
        colours[place] = colour
    return colours


def colour_style(prefix: str) -> str:
    """Style rules that give the classes ``c0`` to ``c7`` their fill and background.

    Lines get the same colours by the classes ``s0`` to ``s7``.

    Examples
    --------
    >>> colour_style(".a").splitlines()[0]
    '.a .c0 { fill: #0072B2; background: #0072B2; }'
    """
    return "\n".join(
        f"{prefix} .c{place} {{ fill: {colour}; background: {colour}; }}"
        f"\n{prefix} .s{place} {{ stroke: {colour}; }}"
        for place, colour in enumerate((*OKABE_ITO, OTHERS))
    )
