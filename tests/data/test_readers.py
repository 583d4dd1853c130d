import gzip

import numpy as np
import pandas as pd
import pytest

from steadytree.data import readers as data_file
from steadytree.data.readers import column_names, read_cells, read_data, read_texts


def read_text(tmp_path, text, name="a.csv", encoding="utf-8"):
    path = tmp_path / name
    path.write_bytes(text.encode(encoding))
    return read_data(path)


def columns_of(table):
    return {
        name: [None if value != value else value for value in column.tolist()]
        for name, column in zip(table.names, table.columns, strict=True)
    }


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_delimiter_is_found(tmp_path, delimiter):
    table = read_text(tmp_path, "a,b\n1,x\n2,y\n".replace(",", delimiter))
    assert columns_of(table) == {"a": [1, 2], "b": ["x", "y"]}


def test_what_excel_writes_is_read(tmp_path):
    table = read_text(tmp_path, "Größe;Name\r\n1,5;Ä\r\n2;B\r\n", encoding="utf-8-sig")
    assert columns_of(table) == {"Größe": [1.5, 2.0], "Name": ["Ä", "B"]}


def test_missing_values_are_known_by_their_marks(tmp_path):
    table = read_text(tmp_path, "a,b\n1,x\n,NA\nNaN,\n?,null\n#N/A,<NA>\n")
    assert columns_of(table) == {"a": [1] + [None] * 4, "b": ["x"] + [None] * 4}


@pytest.mark.parametrize("text", ["2020_01", "1.2.3", "1,5", "abc", "0x10"])
def test_what_is_no_number_is_text(tmp_path, text):
    table = read_text(tmp_path, f'a,b\n"{text}",1\n"3",2\n')
    assert columns_of(table)["a"] == [text, "3"]


def test_quoted_fields_and_blank_lines(tmp_path):
    table = read_text(tmp_path, 'a,"b, c"\n"x ""y""",1\n\n"two\nlines",2\n')
    assert columns_of(table) == {"a": ['x "y"', "two\nlines"], "b, c": [1, 2]}


def test_the_row_that_is_named_is_the_one_that_does_not_fit(tmp_path, monkeypatch):
    """Rows count from 1 below the header; blank lines and line breaks in quotes do not count."""
    random = np.random.default_rng(0)
    for _ in range(60):
        monkeypatch.setattr(data_file, "ROWS_AT_ONCE", int(random.integers(1, 5)))
        n_rows = int(random.integers(1, 12))
        wrong = int(random.integers(1, n_rows + 1))
        lines = ["a,b"]
        for row in range(1, n_rows + 1):
            lines += [""] * int(random.integers(0, 3))
            cell = f'"r{row}\n\nx"' if random.random() < 0.3 else f"r{row}"
            lines.append(cell + [",1", "", ",1,2"][int(row == wrong) * int(random.integers(1, 3))])
        with pytest.raises(ValueError, match=rf"row {wrong} has [13] field.*begins 'r{wrong}\b"):
            read_text(tmp_path, "\n".join(lines) + "\n")


def test_column_that_turns_to_text_late_is_read_again(tmp_path, monkeypatch):
    monkeypatch.setattr(data_file, "ROWS_AT_ONCE", 2)
    table = read_text(tmp_path, "a,b\n01,1\n2,2\n3,3\nx,4\n,5\n")
    assert columns_of(table) == {"a": ["01", "2", "3", "x", None], "b": [1, 2, 3, 4, 5]}


def test_agrees_with_pandas(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "x": rng.normal(size=5000),
            "n": rng.integers(0, 9, 5000),
            "t": rng.choice(["u", "v"], 5000),
        }
    )
    frame.loc[::7, "x"] = np.nan
    frame.loc[::11, "t"] = None
    frame.to_csv(tmp_path / "a.csv", index=False)
    table = read_data(tmp_path / "a.csv")
    np.testing.assert_array_equal(table.columns[0], frame["x"])
    np.testing.assert_array_equal(table.columns[1], frame["n"])
    assert [value is None for value in table.columns[2]] == frame["t"].isna().tolist()


def test_parquet_and_csv_give_the_same_table(tmp_path):
    frame = pd.DataFrame({"x": [0.5, np.nan, 2.0], "t": ["u", None, "v"], "n": [1, 2, 3]})
    frame.to_parquet(tmp_path / "a.parquet")
    frame.to_csv(tmp_path / "a.csv", index=False)
    parquet, csv = read_data(tmp_path / "a.parquet"), read_data(tmp_path / "a.csv")
    assert columns_of(parquet) == columns_of(csv)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("n_rows", [0, 1, 2])
def test_one_row_is_enough(tmp_path, ending, n_rows):
    frame, path = pd.DataFrame({"x": [1.5, 2.5][:n_rows]}), tmp_path / f"a.{ending}"
    frame.to_csv(path, index=False) if ending == "csv" else frame.to_parquet(path)
    if n_rows == 0:
        with pytest.raises(ValueError, match="no rows"):
            read_data(path)
    else:
        assert columns_of(read_data(path)) == {"x": [1.5, 2.5][:n_rows]}


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_columns_are_skipped_unread(tmp_path, ending):
    frame = pd.DataFrame({"x": [0.5, 1.5], "day": pd.to_datetime(["2024-01-01"] * 2)})
    path = tmp_path / f"a.{ending}"
    frame.to_csv(path, index=False) if ending == "csv" else frame.to_parquet(path)
    assert column_names(path) == ["x", "day"]
    assert columns_of(read_data(path, skip=["day"])) == {"x": [0.5, 1.5]}


def test_names_twice_in_parquet_are_named(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    table = pyarrow.table([[1.0], [2.0]], names=["a", "a"])
    parquet.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(ValueError, match="'a' appear more than once"):
        read_data(tmp_path / "a.parquet")


def test_columns_without_a_name_are_called_by_their_place(tmp_path):
    assert read_text(tmp_path, ",b\n1,2\n").names == ("(unnamed 1)", "b")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("\n\n", "is empty"),
        ("a,b\n", "no rows"),
        ("a,a\n1,2\n", "'a' appear more than once"),
        ("a,b\n1,2\n1,2,3\n", r"row 2 has 3 field\(s\) where the header has 2"),
        ("a,b\n1\n", r"row 1 has 1 field\(s\)"),
        ("1,2\n3,4\n", "add a first line that names the columns"),
        ("a,b\n1,\xe4\n", "CSV UTF-8"),
        ("a,b\0\n1,2\n", "not a csv file"),
        ('a,b\n1,"2"3\n', "not a csv file"),
    ],
)
def test_bad_csv_is_refused_in_words(tmp_path, text, message):
    with pytest.raises(ValueError, match=message):
        read_text(tmp_path, text, encoding="latin-1")


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("none.csv", FileNotFoundError, "there is no file"),
        ("a.xlsx", ValueError, "a spreadsheet, which is not read: save the sheet as 'CSV UTF-8'"),
        ("a.doc", ValueError, r"'\.doc': pass a file that ends in \.csv"),
        ("a.csv.gz", ValueError, "not a whole gzip file"),
        ("a", ValueError, "'nothing'"),
        ("a.parquet", ValueError, "not a parquet file"),
        (".", IsADirectoryError, "is a folder"),
    ],
)
def test_other_files_are_refused_in_words(tmp_path, name, error, message):
    if name not in ("none.csv", "."):
        (tmp_path / name).write_text("PK", "utf-8")
    with pytest.raises(error, match=message):
        read_data(tmp_path / name)


def test_parquet_without_a_reader_says_what_to_install(tmp_path, monkeypatch):
    def absent(name):
        def read(path, skip):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

        return read

    monkeypatch.setattr(data_file, "_with_pyarrow", absent("pyarrow"))
    monkeypatch.setattr(data_file, "_with_polars", absent("polars"))
    (tmp_path / "a.parquet").write_text("", "utf-8")
    with pytest.raises(ImportError, match="pip install pyarrow"):
        read_data(tmp_path / "a.parquet")


def test_parquet_is_read_by_polars_too(tmp_path, monkeypatch):
    pd.DataFrame({"x": [1.5, 2.5]}).to_parquet(tmp_path / "a.parquet")

    def absent(path, skip):
        raise ModuleNotFoundError("No module named 'pyarrow'", name="pyarrow")

    monkeypatch.setattr(data_file, "_with_pyarrow", absent)
    assert columns_of(read_data(tmp_path / "a.parquet")) == {"x": [1.5, 2.5]}


def test_numbers_and_text_of_a_csv_file(tmp_path):
    (tmp_path / "a.csv").write_text("age,town\n34,Ulm\n,Bonn\n", "utf-8")
    table = read_data(tmp_path / "a.csv")
    assert table.names == ("age", "town")
    np.testing.assert_array_equal(table.columns[0], [34.0, np.nan])
    assert table.columns[1].tolist() == ["Ulm", "Bonn"]


def test_a_compressed_csv_file_is_read_like_the_plain_one(tmp_path):
    text = "a;b\n1,5;x\n;y\n2;x\n" + "3;z\n" * 5000 + "4;late\n"
    (tmp_path / "rows.csv").write_text(text, "utf-8")
    (tmp_path / "rows.CSV.gz").write_bytes(gzip.compress(text.encode()))
    plain, packed = read_data(tmp_path / "rows.csv"), read_data(tmp_path / "rows.CSV.gz")
    assert plain.names == packed.names == tuple(column_names(tmp_path / "rows.CSV.gz"))
    for one, other in zip(plain.columns, packed.columns, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
    (tmp_path / "cut.csv.gz").write_bytes(gzip.compress(text.encode())[:-20])
    with pytest.raises(ValueError, match="not a whole gzip file"):
        read_data(tmp_path / "cut.csv.gz")


def test_texts_are_those_of_the_file(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('id;note;x\n007;"a; ""b""";1,50\n\n 8 ;NA;\n', "utf-8")
    found = {"id": ["007", " 8 "], "note": ['a; "b"', "NA"], "x": ["1,50", ""]}
    assert read_texts(path) == found
    assert list(read_texts(path, skip=["note"])) == ["id", "x"]
    pytest.importorskip("pyarrow")
    pd.DataFrame({"id": ["007", None], "x": [1.5, 2.0]}).to_parquet(tmp_path / "a.parquet")
    assert read_texts(tmp_path / "a.parquet") == {"id": ["007", ""], "x": ["1.5", "2.0"]}


def test_cells_are_read_one_by_one_with_a_point_for_a_comma(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('id;x;note\n"1,5";2,5;"a,b"\n;3.5;1,2,3\nNA;1,5.0;7,5\n', "utf-8")
    table = read_cells(path, ["x", "note", "id"], as_they_stand=["7,5"])
    assert table.names == ("x", "note", "id")
    assert [column.tolist() for column in table.columns] == [
        ["2.5", "3.5", "1,5.0"],
        ["a,b", "1,2,3", "7,5"],
        ["1.5", None, None],
    ]
    path.write_text('id,x\n"1,5",2\n', "utf-8")  # commas stand between fields: none is decimal
    assert read_cells(path, ["id"]).columns[0].tolist() == ["1,5"]
    with pytest.raises(ValueError, match=r"lacks the column\(s\) 'y'"):
        read_cells(path, ["y", "id"])
    path.write_text("id,x\nsecret,2,3\n", "utf-8")
    with pytest.raises(ValueError, match="rows that do not fit its header") as error:
        read_cells(path, ["id"])
    assert "secret" not in str(error.value)
    pd.DataFrame({"x": [1.5, None], "t": ["u", None]}).to_parquet(tmp_path / "a.parquet")
    found = read_cells(tmp_path / "a.parquet", ["t", "x"])
    assert found.columns[0].tolist() == ["u", None]
    np.testing.assert_array_equal(found.columns[1].astype(float), [1.5, np.nan])


def test_a_known_text_is_found_with_its_spaces(tmp_path):
    """A model's own text comes first, then the text without spaces; a mark may be a category."""
    table = read_text(tmp_path, "a,b\nNO ,1\nNO,2\n yes ,3\n?,4\n")
    assert table.columns[0].tolist() == ["NO", "NO", "yes", None]

    def read_by(table, known):
        text = table.text_for(0, known)
        return [None if k < 0 else text.values[k] for k in text.of_row.tolist()]

    assert read_by(table, {"NO ", "NO", "?"}) == ["NO ", "NO", "yes", "?"]
    assert read_by(table, {"NO", "yes"}) == ["NO", "NO", "yes", None]
    assert read_by(table.take(np.array([3, 0])), {"NO ", "?"}) == ["?", "NO "]
    assert read_by(table.select(["a"]), {"NO "}) == ["NO ", "NO", "yes", None]
    plain = read_text(tmp_path, "a,b\nNO,1\n,2\n")
    assert not plain.as_given


def test_empty_cells_are_missing_whatever_a_model_knows(tmp_path):
    """Else the answer for a row would depend on the other rows of the file."""
    table = read_text(tmp_path, 'a,b\nNO ,1\n"",2\n')
    assert table.as_given
    assert table.text_for(0, {"", "NO "}).of_row[1] == -1


def test_marks_among_numbers_are_found_by_a_model_that_knows_them(tmp_path):
    """A column of codes is read as numbers, also in parts of the file that have no mark."""
    rows = ["1"] * 2_500 + ["?", "", "NA", "2"]
    table = read_text(tmp_path, "a,b\n" + "".join(f"{cell},1\n" for cell in rows))
    assert table.columns[0].dtype == np.float64
    assert list(table.as_given) == ["a"]
    text = table.text_for(0, {"1", "?"})
    found = [None if k < 0 else text.values[k] for k in text.of_row.tolist()]
    assert found == ["1"] * 2_500 + ["?", None, None, "2"]
