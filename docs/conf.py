"""Settings of the documentation; `python -m nox -s docs` builds it into docs-output/."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from reference_pages import write_pages  # noqa: E402
from sphinx.application import Sphinx  # noqa: E402

project = "taeda"
author = "the taeda authors"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
source_suffix = {".rst": "restructuredtext", ".md": "markdown"}
root_doc = "index"
exclude_patterns = []
html_theme = "alabaster"
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
napoleon_google_docstring = True
napoleon_numpy_docstring = False
# Guides refer to files of the repository, which are no pages.
suppress_warnings = ["myst.xref_missing", "myst.header"]

write_pages(HERE / "reference" / "generated")


def escape_bars(app: object, what: str, name: str, thing: object, options: object, lines: list[str]) -> None:
    """Bars mean absolute values in our docstrings, not substitutions."""
    for number, line in enumerate(lines):
        parts = line.split("``")  # what stands at odd places is code
        parts[::2] = [part.replace("|", r"\|") for part in parts[::2]]
        lines[number] = "``".join(parts)


def setup(app: Sphinx) -> None:
    """Install what the build needs."""
    app.connect("autodoc-process-docstring", escape_bars)
