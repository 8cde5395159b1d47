"""Tables as CSV and as HTML."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Sequence


def csv_text(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Numbers with all their digits; what is not known is empty."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(["" if _unknown(value) else value for value in row] for row in rows)
    return buffer.getvalue()


def _unknown(value: object) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def html_table(
    caption: str,
    head: Sequence[str],
    rows: Iterable[Sequence[str]],
    kind: str = "",
    above: Sequence[tuple[str, int]] = (),
) -> str:
    """Cells are HTML already; the first of a row is its heading. A wide table scrolls alone.

    ``above`` is a first line of headings, each with the number of columns that it spans.
    """
    spans = "".join(f'<th colspan="{width}">{cell}</th>' for cell, width in above)
    first = f'<tr class="spans">{spans}</tr>' if spans else ""
    heads = "".join(f'<th scope="col">{cell}</th>' for cell in head)
    body = "\n".join(
        f'<tr><th scope="row">{first}</th>{"".join(f"<td>{cell}</td>" for cell in rest)}</tr>'
        for first, *rest in rows
    )
    told = f"<figcaption>{caption}</figcaption>" if caption else ""
    return (
        f'<figure class="{kind}">{told}<div class="wide"><table><thead>{first}<tr>{heads}</tr>'
        f"</thead><tbody>\n{body}\n</tbody></table></div></figure>"
    )


def number(value: float, form: str = ".3f") -> str:
    """A number for people, with a true minus sign; a dash where there is none."""
    return format(value, form).replace("-", "−") if math.isfinite(value) else "–"
