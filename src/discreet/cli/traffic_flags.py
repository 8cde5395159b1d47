"""The flags of ``simulate-traffic``."""

from __future__ import annotations

from typing import Any

TEXT = """\
Requests leave at the given rate, however long answers take. The loss of an action is 0 where it is
the label of the row, else 1. Late losses arrive after --late-by seconds: the window of the service
unless said. Without --key the environment's DISCREET_API_KEY is used. Exit code 1 if a request
failed; 410, for a loss that came too late, is no failure.

example:
  discreet simulate-traffic --url http://127.0.0.1:8000 --key dk_… --data linear \\
      --rate 200 --rows 5000 --late 0.05 --missing 0.1 --duplicates 0.02
"""


def traffic_commands(command: Any, commands: Any) -> None:
    """``simulate-traffic``."""
    parser = command(
        commands,
        "simulate-traffic",
        "traffic.traffic",
        "play labelled data against a service",
        TEXT,
    )
    add = parser.add_argument
    add("--url", required=True, metavar="URL", help="where discreet serve listens")
    add("--key", metavar="KEY", help="an API key with the scopes decide and observe")
    add("--data", required=True, metavar="NAME|FILE", help="as for discreet run: linear, fried, …")
    add("--rate", type=float, default=100.0, metavar="R", help="decisions a second (default: 100)")
    add("--rows", type=int, metavar="N", help="how many rows are played (default: all)")
    add("--late", type=float, default=0.0, metavar="SHARE", help="of losses that arrive late")
    add("--late-by", type=float, metavar="SECONDS", help="how late (default: the window)")
    add("--missing", type=float, default=0.0, metavar="SHARE", help="of losses that never come")
    add("--duplicates", type=float, default=0.0, metavar="SHARE", help="of losses sent twice")
    add("--seed", type=int, default=0, metavar="N", help="who is late, silent or doubled")
