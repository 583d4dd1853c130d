"""Picture: what all drawings share, so that they look alike and need nothing else."""

import unicodedata
from os import PathLike

from markupsafe import Markup, escape

from steadytree._base.files import write_text_atomically

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


WIDTHS = {
    **dict.fromkeys("ijl|'", 0.23),
    **dict.fromkeys("It.,:;!/\\\\ f[]·", 0.29),
    **dict.fromkeys('r()-"{}*', 0.36),
    **dict.fromkeys("ckszvxyJ", 0.5),
    **dict.fromkeys("FTZL", 0.61),
    **dict.fromkeys("ABEKPSVXY&", 0.67),
    **dict.fromkeys("CDHNRUw", 0.73),
    **dict.fromkeys("GOQm", 0.8),
    **dict.fromkeys("MW%@—…", 0.95),
}
USUAL = 0.56  # digits and most small letters
WIDE = 1.0
MARGIN = 1.04  # fonts differ
BOLD = 1.07


def text_width(text: str, size: float = 12, bold: bool = False) -> float:
    """Estimated width in pixels.

    Examples
    --------
    >>> text_width("iii") < text_width("mmm")
    True
    """
    widths = (WIDTHS.get(letter) or _width_of(letter) for letter in text)
    return sum(widths) * size * MARGIN * (BOLD if bold else 1.0)


def fit_text(text: str, width: float, size: float = 12, bold: bool = False) -> str:
    """The text, or as much of its beginning and end as fits, with dots between.

    Examples
    --------
    >>> fit_text("short", 100)
    'short'
    >>> fit_text("a name that is much too long", 80)
    'a name…ong'
    """
    if text_width(text, size, bold) <= width:
        return text
    for kept in range(len(text) - 1, 1, -1):
        tail = kept // 3
        cut = f"{text[: kept - tail].rstrip()}…{text[len(text) - tail :].lstrip() if tail else ''}"
        if text_width(cut, size, bold) <= width:
            return cut
    return "…"


def _width_of(letter: str) -> float:
    if unicodedata.combining(letter):
        return 0.0
    return WIDE if unicodedata.east_asian_width(letter) in "WF" else USUAL


RECT = Markup('<rect class="{}" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:g}" rx="{}"/>')
FORMAT = "http://www.w3.org/2000/svg"
SMALLEST = 0.8  # share of its size a picture may shrink to before it scrolls

STYLE = """
.steadytree-picture { --ink: #1c2024; --quiet: #5b6470; --line: #b4bcc6; --paper: #ffffff;
  --empty: #e4e8ed; --accent: #0072b2; --warm: #d55e00;
  font-family: Arial, "Liberation Sans", "Helvetica Neue", sans-serif; }
@media (prefers-color-scheme: dark) { .steadytree-picture { --ink: #e8eaed; --quiet: #a3acb8;
  --line: #56606c; --paper: #1d2126; --empty: #3a414a; --accent: #56b4e9; --warm: #e69f00; } }
@media print { .steadytree-picture { --ink: #000; --quiet: #444; --line: #999; --paper: #fff;
  --empty: #ddd; --accent: #0072b2; --warm: #d55e00; } }
.steadytree-picture text { fill: var(--ink); font-size: 12.5px; }
.steadytree-picture .small { fill: var(--quiet); font-size: 11px; }
.steadytree-picture .side { text-anchor: middle; stroke: var(--paper); stroke-width: 3px;
  paint-order: stroke; }
.steadytree-picture .halo { stroke: var(--paper); stroke-width: 3px; paint-order: stroke; }
.steadytree-picture .name { font-weight: bold; }
.steadytree-picture .box { fill: var(--paper); stroke: var(--line); }
.steadytree-picture .edge { fill: none; stroke: var(--line); }
.steadytree-picture .empty { fill: var(--empty); }
.steadytree-picture .grid { stroke: var(--empty); stroke-width: 1px; fill: none; }
.steadytree-picture .axis { stroke: var(--line); stroke-width: 1px; fill: none; }
.steadytree-picture .mark { fill: var(--accent); }
.steadytree-picture .cut { stroke: var(--accent); stroke-width: 1.5px; opacity: .5; }
.steadytree-picture .own { stroke: var(--warm); stroke-width: 2.5px; }
.steadytree-picture .heat { fill: var(--accent); }
.steadytree-picture .cell { font-size: 11.5px; }
.steadytree-picture .on-heat-text { fill: var(--paper); }
.steadytree-picture .whisker { stroke: var(--quiet); stroke-width: 1.2px; }
"""


class Picture(Markup):
    """One ``<svg>`` element that needs nothing else; shows itself in a notebook."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return str(self)

    def write(self, path: str | PathLike[str]) -> None:
        """Write it to an SVG file, whole or not at all."""
        # a file of its own names its format; inside a page nothing has to
        text = str(self)
        if "xmlns=" not in text[: text.index(">")]:
            text = text.replace("<svg ", f'<svg xmlns="{FORMAT}" ', 1)
        write_text_atomically(path, text)


def frame_picture(width: float, height: float, label: str, body: Markup) -> Picture:
    """An ``<svg>`` element around parts that are drawn already.

    Parameters
    ----------
    width, height : float
        In pixels.
    label : str
        What the picture shows, for those who cannot see it.
    body : Markup
    """
    return Picture(
        Markup(
            '<svg class="steadytree-picture" '
            'viewBox="0 0 {w} {h}" width="{w}" height="{h}" style="min-width:{least}px" '
            'role="img" aria-label="{label}"><style>{style}</style>{body}</svg>'
        ).format(
            w=round(width),
            h=round(height),
            least=round(min(SMALLEST * width, 320) if width <= 480 else SMALLEST * width),
            label=label,
            style=Markup(STYLE + colour_style(".steadytree-picture")),
            body=body,
        )
    )


def text_at(x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> Markup:
    """A text; `anchor` says which of its ends stands at x."""
    attributes = Markup(' class="{}"').format(kind) if kind else Markup("")
    if anchor != "start":
        attributes += Markup(' text-anchor="{}"').format(anchor)
    return Markup('<text x="{:.1f}" y="{:.1f}"{}>{}</text>').format(x, y, attributes, escape(text))


def line_at(x1: float, y1: float, x2: float, y2: float, kind: str) -> Markup:
    """A straight line."""
    return Markup('<line class="{}" x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}"/>').format(
        kind, x1, y1, x2, y2
    )


def titled(body: Markup, title: str) -> Markup:
    """Parts with what a pointer at them shows."""
    return Markup("<g><title>{}</title>{}</g>").format(title, body)
