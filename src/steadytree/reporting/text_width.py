"""Text width: how wide a text is drawn, estimated from the letters of Arial and its kin."""

import unicodedata

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
