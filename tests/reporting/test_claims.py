"""Every claim of the five papers has a line, each named test exists, each value was measured."""

import ast
import json
import pathlib
import re

import pytest

from steadytree.reporting.study import VERDICTS, Claim, ClaimList, find_value, study_page
from tests.cli.commands import refused

ROOT = pathlib.Path(__file__).parents[2]
# claims of each paper, and its numbered items; those of separation with the rows of four tables
COUNTS = {
    "average_sensitivity": 53,
    "robust_optimal": 26,
    "tree_distance": 43,
    "separation": 51 + 52,
    "private_distributed": 62,
}
NUMBERED = {
    "average_sensitivity": [
        *(f"Algorithm {k}" for k in range(1, 6)),
        *(f"Theorem {k}" for k in ("4.1", "5.1", "6.1", "A.1", "C.2")),
        *("Lemma A.2", "Lemma A.3", "Lemma A.4", "Lemma C.1", "Claim A.5", "Claim A.6", "Table 1"),
        *(f"Figure {k}" for k in range(1, 8)),
    ],
    "robust_optimal": [*(f"Figure {k}" for k in range(1, 5)), "Algorithm 1", "Headline 1"],
    "tree_distance": [
        *(f"Figure {k}" for k in range(1, 9)),
        *("Table 1", "Table 2", "Table 3", "Lemma 1", "Proposition 1", "Proposition 2"),
        *("Corollary 1", "Eq. (1)", "Eq. (2)", "Eq. (3)", "Eq. (4)"),
    ],
    "separation": [
        *(f"Theorem {k}" for k in (1, 2, 3, 4, 5, 8, 9)),
        *("Claim 6", "Claim 7", "Algorithm 1"),
        *(f"Table {k}" for k in range(1, 7)),
        *(f"Figure {k}" for k in range(1, 6)),
    ],
    "private_distributed": [
        *(f"Theorem {k}" for k in (2, 3, 8, 9, 14, 15)),
        *(f"Lemma {k}" for k in (4, 6, 10, 11, 12, 13, 17, 18, 19, 20)),
        *(f"Corollary {k}" for k in (5, 7, 16)),
        *("Definition 1", "Algorithm 1"),
        *(f"Figure {k}" for k in range(1, 7)),
    ],
}
RESULTS = """first
| set | a |
| one | 0.5 (0.4 to 0.6) | 12 |
second
| set | a |
| one | 1,250.5% | -3e-05 |
"""


@pytest.fixture(params=sorted(COUNTS))
def study(request):
    return request.param


def claims_of(name):
    return ClaimList.load(ROOT / "studies" / name)


def functions(path):
    return {each.name for each in ast.parse(path.read_text("utf-8")).body if hasattr(each, "name")}


def test_every_claim_has_a_line(study):
    found = claims_of(study)
    assert len(found.claims) == COUNTS[study]
    names = " / ".join(claim.id for claim in found.claims)
    assert [item for item in NUMBERED[study] if item not in names] == []


def test_every_named_test_exists(study):
    for claim in claims_of(study).claims:
        if claim.test:
            path, _, name = claim.test.partition("::")
            assert (ROOT / path).is_file(), claim
            assert not name or name in functions(ROOT / path), claim


def test_what_is_covered_can_be_checked(study):
    """A test, a value of the results, a command or a place in the source."""
    for claim in claims_of(study).claims:
        if claim.verdict in ("same", "better"):
            assert claim.test or claim.values or claim.command or "studies/" in claim.ours, claim


NUMBER = r"(\d*\.?\d+)"


def is_within_errors(claim):
    """Whether values agree with printed ones, to two standard errors and half a printed digit."""
    one_more = claim.id.endswith("RobDT")  # the paper counts the level of the leaves there
    for name in ("IC", "accuracy", "ER", "depth"):
        printed, error = re.search(rf"{name} {NUMBER}±{NUMBER}", claim.paper).groups()
        ours, own = re.search(rf"{name} {NUMBER}(?: \(± {NUMBER}\))?", claim.ours).groups()
        rounded = 0.005 + 2 * max(float(error), 0.0025)  # .00 stands for up to .005
        apart = abs(float(ours) + (one_more and name == "depth") - float(printed))
        if apart > (rounded**2 + (2 * float(own or 0)) ** 2) ** 0.5:
            return False
    return True


def test_rows_of_the_tables_of_separation_are_the_same_where_they_agree():
    rows = [c for c in claims_of("separation").claims if c.id.startswith("Tables 3 to 6, ")]
    measured = [claim for claim in rows if claim.verdict in ("same", "better", "differs")]
    assert len(rows) == 52
    assert len(measured) > 35
    for claim in measured:
        assert (claim.verdict == "same") == is_within_errors(claim), claim


def test_every_study_tells_what_of_the_protocol_was_run(study):
    found = claims_of(study)
    assert len(found.protocol) >= 3
    for part in found.protocol:  # what is left has a command, or its data are told to be missing
        how = (r"`(--|[a-z]+ --)", "^nothing", "^[a-z, ]+ are not at hand: the study names")
        assert any(re.search(one, part["left"]) for one in how), part
    assert all(all(part.values()) for part in found.protocol)
    assert f"left: {found.protocol[0]['left']}" in "\n".join(found.lines())
    page = study_page("a", "b", ["text"], [], claims=found)
    assert page.count('<td data-label="left">') == len(found.protocol)
    assert len(found.protocol_table()) == 2 + len(found.protocol)


def test_values_are_those_of_the_results():
    """One of each form of table, by hand."""
    found = {claim.id: claim.ours for claim in claims_of("average_sensitivity").claims}
    figure = found["Figure 2 (a) breast cancer, sensitivity"]
    assert figure.startswith("greedy 0.0212 (0.0135 to 0.0289), .0316 0.0166")
    found = {claim.id: claim.ours for claim in claims_of("tree_distance").claims}
    assert "AUC 0.852 and 0.808" in found["Headline"]
    found = {claim.id: claim.ours for claim in claims_of("robust_optimal").claims}
    assert "average gain +1.28 at .85" in found["lambda .85 performs well"]


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("first > | one | > 1", "0.5 (0.4 to 0.6)"),
        ("first > | one | > 2", "12"),
        ("second > | one | > 1", "1,250.5%"),
        ("| one | > second > | one > 2", "-3e-05"),
        ("second > | set | > | one | > 1", "1,250.5%"),
    ],
)
def test_a_value_is_found_by_the_lines_above_it(place, value):
    assert find_value(place, RESULTS.splitlines()) == value


@pytest.mark.parametrize("place", ["third > | one | > 1", "first > | one | > 3", "first > | t > 1"])
def test_a_value_that_is_not_there_is_named(place):
    with pytest.raises(LookupError, match=r"'(third|first) > "):
        find_value(place, RESULTS.splitlines())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"verdict": "fine"}, "verdict must be one of same, better"),
        ({"verdict": "differs"}, "needs a reason"),
    ],
)
def test_a_claim_needs_a_verdict_and_a_reason(changes, message):
    with pytest.raises(ValueError, match=message):
        Claim(**{"id": "a", "where": "1", "paper": "b", "verdict": "same", **changes})


def test_a_broken_list_is_refused(tmp_path):
    lines = 'paper = "p"\ncommand = "c"\n'
    one = '[[claim]]\nid = "a"\nwhere = "1"\npaper = "b"\nverdict = "same"\n'
    (tmp_path / "claims.toml").write_text(lines + one + one, "utf-8")
    with pytest.raises(ValueError, match="stands there twice"):
        ClaimList.load(tmp_path)
    (tmp_path / "claims.toml").write_text(lines + one + '[[protocol]]\ntable = "1"\n', "utf-8")
    with pytest.raises(ValueError, match="a protocol has table, paper, run, left, in this order"):
        ClaimList.load(tmp_path)
    (tmp_path / "claims.toml").write_text(lines + one + 'values = { x = "no > 1" }\n', "utf-8")
    with pytest.raises(ValueError, match="'no > 1' is not in the results"):
        ClaimList.load(tmp_path)


def test_three_verdicts_count_as_covered():
    claims = [Claim(v, "1", "a | b", v, reason="because") for v in VERDICTS]
    found = ClaimList("p", "c", tuple(claims))
    assert found.summary() == (
        "5 claims, 3 covered: 1 same, 1 better, 1 differs, 1 not covered, 1 not reproducible."
    )
    assert found.table()[2] == "| same | 1 | a / b |  | same: because |  |"


def test_the_command_prints_every_claim(run, study):
    code, out, err = run("reproduce", study.replace("_", "-"), "--claims", "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert sum(found["counts"].values()) == len(found["claims"]) == COUNTS[study]
    code, out, _ = run("reproduce", study, "--claims")
    assert code == 0
    assert (
        sum(line.endswith(VERDICTS) and "(section " in line for line in out.splitlines())
        == (COUNTS[study])
    )


def test_a_study_of_no_paper_has_no_claims(run):
    refused(run("reproduce", "steady", "--claims"), "follows no paper")


def test_the_table_has_a_line_a_claim(study):
    found = claims_of(study)
    table = found.table()
    assert len(table) == 2 + COUNTS[study]
    assert {line.count("|") for line in table} == {7}
    assert found.summary().startswith(f"{COUNTS[study]} claims, ")


def test_the_page_of_a_study_has_its_claims_on_top(study):
    found = claims_of(study)
    page = study_page("a", "b", ["text"], [], claims=found)
    assert page.index('id="claims"') < page.index('id="tables"')
    assert found.summary() in page
    assert page.count('<span class="quiet">section ') == COUNTS[study]
