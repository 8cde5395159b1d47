"""``discreet report``: one page with results, lift and guarantee of an experiment."""

from __future__ import annotations

from datetime import UTC, datetime

from discreet.audit.ledger_verification import checked, read
from discreet.cli import command_line as cli
from discreet.client.billboard import read_released
from discreet.client.label import label_document, label_page
from discreet.lab.report.figures import write_files
from discreet.lab.report.release_report import release_report
from discreet.privacy.events import NonPrivate
from discreet.privacy.ledger import Ledger
from discreet.text import guarantee_text


@cli.command(
    "report",
    cli.flag("source SOURCE", "releases, or the address of a service"),
    cli.flag("--out DIR", "folder (default: report)", "report"),
)
def report(args: cli.Args) -> cli.Answer:
    """Write all files, or none after an error."""
    released, source = read_released(args.source), read(args.source)
    made = datetime.now(UTC).date().isoformat()
    # Releases of an evaluation have seeded noise and exceed any budget: the page says so.
    simulated = any(isinstance(item.event, NonPrivate) for item in released.items)
    ledger = Ledger.from_json(source.ledger) if simulated else checked(source, args.source)
    label = label_document(ledger, {"kind": source.kind, **source.about}, made=made)
    document, page = release_report(released, label, "label.html")
    files: dict[str, str | bytes] = {
        "index.html": page,
        "label.html": label_page(label),
        "report.json": cli.as_json(document) + "\n",
    }
    document["files"] = write_files(args.out, files)
    found = document["lift"]
    spent = guarantee_text(float(document["epsilon"]), float(document["delta"]))
    lines = [
        f"{document['releases']} releases from {document['records']:,} records",
        *([] if found is None else [found["text"], f"So {found['verdict']}."]),
        f"{spent} for one {document['unit']}",
        *(f"written to {file}" for file in document["files"]),
    ]
    return cli.Answer(document, lines)
