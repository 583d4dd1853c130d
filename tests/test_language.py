"""No name in the source, and no page or message, has words that the house replaced."""

import io
import pathlib
import re
import tokenize

PROJECT = pathlib.Path(__file__).parents[1]
# words of names that were replaced, each by one word for one thing (docs/architecture.rst)
OLD_WORDS = {
    "asked",
    "cards",
    "cheap",
    "codes",
    "cut",
    "cuts",
    "dear",
    "draw",
    "drawn",
    "elsewhere",
    "enemy",
    "evidence",
    "front",
    "gone",
    "greeting",
    "journal",
    "leash",
    "letters",
    "parties",
    "party",
    "place",
    "places",
    "present",
    "reading",
    "recipe",
    "said",
    "say",
    "slot",
    "slots",
    "told",
}
# a parameter of the robust tree, and a field of the records of traffic
PUBLIC = {"cuts", "asked_again"}
# sentences that a reader had to translate
OLD_PHRASES = (
    "different ends",
    "come out again",
    "takes the row to be",
    "truly 1",
    "said 1",
    "false alarms",
    "beats one half by this much",
    "a function is told",
    "True and False are none",
    "a penalty sees to it",
    "equal values are chance",
    "as bits, can hold no two",
    "gets right",
    "right as they are",
    "still right after",
    "very same tree",
    "turns the decision",
    "leaf has fallen",
    "keep the account",
    "not that there is nothing",
    "by itself is enough",
    "rows is not said",
    "is no JSON",
    "as they lie",
)


def words_of(name):
    return [word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)]


def names_in(text):
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NAME:
            yield token.string


def test_no_name_in_the_source_has_an_old_word():
    found = {
        f"{path.relative_to(PROJECT)}: {name}"
        for path in (PROJECT / "src").rglob("*.py")
        for name in names_in(path.read_text("utf-8"))
        if name not in PUBLIC and OLD_WORDS & set(words_of(name))
    }
    assert not found


def test_no_page_message_or_help_has_an_old_phrase():
    pages = [
        path
        for folder, pattern in (("src", "**/*.py"), ("src", "**/*.j2"), ("docs", "*.rst"))
        for path in (PROJECT / folder).glob(pattern)
    ]
    found = {
        f"{path.relative_to(PROJECT)}: {phrase}"
        for path in [*pages, PROJECT / "README.md", PROJECT / "CHANGELOG.md"]
        for phrase in OLD_PHRASES
        if phrase in path.read_text("utf-8")
    }
    assert not found


def test_words_of_names_are_found():
    assert words_of("readLetters_OF_2parties") == ["read", "letters", "of", "parties"]
    assert list(names_in("a.b(c) # d\n")) == ["a", "b", "c"]
