"""Sphinx configuration: `make docs` builds the pages into site/ and treats warnings as errors."""

import re
from importlib import metadata
from typing import Any

project = "Pointillist"
author = "The Pointillist developers"
release = version = metadata.version("pointillist")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.mathjax"]
myst_enable_extensions = ["amsmath", "dollarmath"]  # $...$ and $$...$$; MathJax typesets them in the browser
myst_heading_anchors = 3
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_member_order = "bysource"

html_theme = "furo"
html_title = f"{project} {version}"
html_show_copyright = False


def escape_bars(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Escape |Q|, the size of Q, which reStructuredText would read as a substitution."""
    lines[:] = [re.sub(r"\|(\w+)\|", r"\\|\1\\|", line) for line in lines]


def setup(app: Any) -> None:
    app.connect("autodoc-process-docstring", escape_bars)
