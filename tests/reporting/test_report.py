import pytest
from sklearn.datasets import load_iris
from sklearn.tree import DecisionTreeClassifier

import steadytree as st
from steadytree.models.sklearn import from_sklearn
from steadytree.reporting.report import report


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture(scope="module")
def case():
    X, y = load_iris(return_X_y=True, as_frame=True)
    return DecisionTreeClassifier(max_depth=3, random_state=0).fit(X[::2], y[::2]), X[1::2], y[1::2]


def test_page_is_written_whole(case, tmp_path):
    found = report(*case, path=tmp_path / "r.html", title="Iris")
    assert (tmp_path / "r.html").read_text("utf-8") == found.html
    assert names_in(tmp_path) == ["r.html"]


def test_same_input_and_date_same_file(case):
    first, second = (report(*case, date="2024-05-01").html for _ in range(2))
    assert first == second


def test_path_is_checked_before_the_work(tmp_path):
    with pytest.raises(FileNotFoundError, match="make its folder first"):
        report("no model", None, None, path=tmp_path / "none" / "r.html")


def test_a_page_is_not_written_as_another_kind_of_file(case, tmp_path):
    for name in ("r.pdf", "r.json"):
        with pytest.raises(ValueError, match=f"{name}' must end in .html, as what is written is"):
            report("no model", None, None, path=tmp_path / name)
        with pytest.raises(ValueError, match="must end in"):
            report(*case, quick=True).write(tmp_path / name)
    with pytest.raises(ValueError, match="must end in"):
        st.compare("no learner", None, None, path=tmp_path / "c.pdf")
    assert not list(tmp_path.iterdir())


def test_nothing_is_written_when_it_fails(case, tmp_path):
    model, X, y = case
    with pytest.raises(ValueError, match="model knows"):
        report(model, X, y + 1, path=tmp_path / "r.html")
    assert names_in(tmp_path) == []


def test_shows_itself(case):
    found = report(*case, title="Iris <3")
    assert str(found).startswith("Iris <3")
    assert "accuracy" in str(found)
    assert repr(found).startswith("Report('Iris <3'")
    frame = found._repr_html_()
    assert frame.startswith("<iframe srcdoc=")
    assert "sandbox" in frame
    assert "<h1>" not in frame  # escaped into the attribute


def test_a_note_of_the_tree_is_told(case):
    model, X, y = case
    found = report(from_sklearn(model, X).with_note("NOT PRIVATE <b>"), X, y)
    assert "<strong>NOT PRIVATE &lt;b&gt;</strong>" in found.html
    assert "NOT PRIVATE <b>" in str(found)


def test_no_rows_are_refused(case):
    model, X, y = case
    with pytest.raises(ValueError, match="0 sample"):
        report(model, X[:0], y[:0])
