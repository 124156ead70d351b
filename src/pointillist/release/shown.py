"""A release as Python prints it and as a notebook shows it."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

from pointillist.release.description import Description

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["release_as_html", "release_in_short"]

NOT_PRIVATE = "NOT PRIVATE: made with seeded noise. Do not publish it."


def release_in_short(about: Description, columns: int) -> str:
    """A release in one line: the method, the guarantee and the size.

    Args:
        about: what the release says about itself.
        columns: the number of columns.
    """
    privacy = about.privacy
    guarantee = f"epsilon={privacy.epsilon:g}, delta={privacy.delta:.3g}, relation={privacy.relation}"
    warning = "" if privacy.private else ", NOT PRIVATE"
    return f"Release(method={about.method.name}, {guarantee}, rows={about.rows:,}, columns={columns:,}{warning})"


def release_as_html(line: str, statement: str, rows: pa.Table, private: bool = True) -> str:
    """A release as a notebook shows it: what it is, the guarantee, and the first rows.

    Args:
        line: the release in one line.
        statement: the guarantee in words.
        rows: the first synthetic rows.
        private: whether it is; if not, that comes first.
    """
    words = "<br>".join(html.escape(one) for one in statement.splitlines())
    head = "".join(f'<th scope="col">{html.escape(name)}</th>' for name in rows.column_names)
    cells = [["" if one is None else html.escape(str(one)) for one in row.values()] for row in rows.to_pylist()]
    body = "".join(f"<tr>{''.join(f'<td>{one}</td>' for one in row)}</tr>" for row in cells)
    caption = f"<caption>The first {len(cells)} synthetic rows</caption>"
    table = f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    warning = "" if private else f"<p><strong style='color: #b3261e'>{NOT_PRIVATE}</strong></p>"
    guarantee = f"<details open><summary>What is guaranteed</summary><p>{words}</p></details>"
    rolled = f'<div style="overflow-x: auto">{table}</div>'
    return f"<div>{warning}<p><code>{html.escape(line)}</code></p>{guarantee}{rolled}</div>"
