"""``discreet label``: one page that explains the guarantee of an experiment."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from discreet.audit.ledger_verification import checked, read
from discreet.cli import command_line as cli
from discreet.client import label as labels
from discreet.errors import InvalidInput
from discreet.releases.canonical import canonical
from discreet.text import guarantee_text
from discreet.validate import usable


@cli.command(
    "label",
    cli.flag("source SOURCE", "a file, or the address of a service"),
    cli.flag("--out NAME", "NAME.html and NAME.json", "label"),
    cli.flag("--key FILE", "the private key that signs the document"),
    cli.flag("--audit FILE", "output of discreet audit --json"),
    cli.flag("--facts FILE", "TOML: operator, contact, data held"),
    cli.flag("--registry", "write NAME.yaml for a registry"),
)
def label(args: cli.Args) -> cli.Answer:
    """Write all files, or none after an error."""
    name = args.out.removesuffix(".html").removesuffix(".json")
    kinds = ("html", "json", "yaml") if args.registry else ("html", "json")
    files = {kind: f"{name}.{kind}" for kind in kinds}
    given = {Path(p).resolve() for p in (args.source, args.key, args.audit, args.facts) if p}
    for path in files.values():
        if Path(path).resolve() in given:
            raise InvalidInput(
                f"out must be another name; {path} is a file that is read. Choose a new name."
            )
    source = read(args.source)
    ledger, facts = checked(source, args.source), labels.read_facts(args.facts)
    document = labels.label_document(
        ledger,
        {"kind": source.kind, **source.about},
        made=datetime.now(UTC).date().isoformat(),
        audit=labels.read_audit(args.audit) if args.audit else None,
        facts=facts,
    )
    content = labels.signed(document, _key(args.key)) if args.key else canonical(document)
    page = labels.label_page(document)  # before anything is written
    if args.registry:
        cli.write(files["yaml"], labels.registry_entry(document, ledger, facts.registry))
    cli.write(files["json"], content + b"\n")
    cli.write(files["html"], page)
    spent = guarantee_text(float(document["epsilon"]), float(document["delta"]))
    lines = [
        f"{spent} for one {document['unit']}: {document['neighbours']}",
        document["attacker"]["sentence"],
        f"wrote {' and '.join(files.values())}, {'signed' if args.key else 'not signed'}",
    ]
    return cli.Answer({**document, "files": files}, lines)


def _key(path: str) -> bytes:
    """Return the 32 bytes of a signing key of a vault."""
    with usable(path, "key file must be readable", "Name the file signing.key of a vault."):
        return Path(path).read_bytes()
