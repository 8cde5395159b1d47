"""Learn from made-up readers of a bookshop and build a static site that personalises itself.

    python examples/billboard/publish.py site
    python -m http.server --directory site 8000

The folder holds the page, the JavaScript client, the public key and the signed releases. Any web
server can serve it: nothing of a visitor is ever sent back.
"""

import shutil
import sys
from pathlib import Path

import numpy as np

import discreet as dc
from discreet.client import documents

HERE = Path(__file__).parent
FILES = [HERE / "index.html", HERE / "page.js", HERE.parents[1] / "clients" / "js" / "discreet.js"]
INTERESTS = ["fiction", "science", "cooking"]
PLAN = dc.Plan(
    n_actions=3,  # the shelves of page.js, in order
    features=dc.Schema(
        [
            dc.Number("hour", 0, 24),
            dc.Number("visits", 0, 20, clip=True),
            dc.Category("interest", INTERESTS),
        ]
    ),
    policy=dc.SquareCB(scale=2.0, exponent=0.4),
    budget=dc.Budget(epsilon=2.0, delta=1e-5),
    unit="decision",
)


def play(people: int, seed: int) -> dc.Released:
    """Decide for readers who click on what they like: a click is loss 0, none is loss 1."""
    rng = np.random.default_rng(seed)  # the world; privacy noise never has a seed
    learner = dc.Learner(PLAN)
    for _ in range(people):
        taste = int(rng.integers(3))
        reader = {
            "hour": float(rng.uniform(0, 24)),
            "visits": float(rng.integers(21)),
            "interest": INTERESTS[taste],
        }
        decision = learner.decide(reader)
        evening = 0.3 * (decision.action == 0 and reader["hour"] > 18)
        likes = (0.65 if decision.action == taste else 0.15) + evening
        learner.observe(decision.id, loss=float(rng.random() > likes))
    return learner.released


def build(folder: Path, people: int = 8192, seed: int = 0) -> None:
    """Everything that the site needs, in one folder."""
    private_key = documents.new_private_key()  # a service keeps it; here it is used once
    public_key = documents.public_key(private_key)
    signed = [documents.sign(documents.genesis(PLAN, "bookshop", public_key), private_key)]
    for release in play(people, seed).items:
        signed.append(documents.sign(documents.release_document(signed[-1], release), private_key))
    folder.mkdir(parents=True, exist_ok=True)
    for file in FILES:
        shutil.copy(file, folder)
    (folder / "key.js").write_text(f'export const PUBLIC_KEY = "{public_key}";\n')
    (folder / "releases.jsonl").write_bytes(b"\n".join(signed) + b"\n")


if __name__ == "__main__":
    build(Path(sys.argv[1] if len(sys.argv) > 1 else "site"))
