import importlib.metadata
from pathlib import Path

from steadytree.reporting.study import ClaimList

project = "steadytree"
author = "the steadytree developers"
copyright = author
release = version = importlib.metadata.version("steadytree")

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autosummary",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "gallery/*.ipynb", "gallery/*.py"]
templates_path = ["_templates"]
autosummary_generate = True
autodoc_typehints = "none"  # numpydoc already says the types
numpydoc_show_class_members = False
html_theme = "furo"
html_title = "steadytree"
html_copy_source = False
nitpicky = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/\d\d_",
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
    "abort_on_example_error": True,
}


def write_claims(app):
    """One page for the claims of each paper, from the files of its study."""
    pages = Path(app.srcdir) / "claims"
    pages.mkdir(exist_ok=True)
    for path in sorted(Path(app.srcdir).parent.glob("studies/*/claims.toml")):
        found = ClaimList.load(path.parent)
        name = path.parent.name
        lines = [f"# {name.replace('_', ' ').capitalize()}", "", f"{found.paper}.", ""]
        lines += [
            found.summary(),
            "",
            f"Measured by `{found.command}`. Of the paper's protocol:",
            "",
        ]
        lines += [*found.protocol_table(), "", *found.table(), ""]
        (pages / f"{name}.md").write_text("\n".join(lines), "utf-8")


def setup(app):
    app.connect("builder-inited", write_claims)
