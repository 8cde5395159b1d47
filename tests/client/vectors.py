"""What the clients in other languages must agree with; run as a script, it writes the file."""

import itertools
import json
from pathlib import Path

import numpy as np

import discreet as dc
from client.chains import BALL, KEY, SCHEMA, broken, budgets, chain, histories, plan, released
from client.offered_chains import broken_changes, offer_cases
from discreet.client import Billboard
from discreet.design.action_names import action_name
from discreet.plan.config import from_config
from discreet.plan.plan import FEATURES
from discreet.releases.canonical import canonical

FILE = Path(__file__).parents[2] / "clients" / "js" / "vectors.json"
KNOWN = json.loads(FILE.read_text())
"""The file as it is. Contexts, schemas and texts are written there alone; what the core makes of
them is computed again."""
PEOPLE, ROWS = KNOWN["features"]["Schema"][0], KNOWN["features"]["UnitBall"][0]
DRAWS = np.array(KNOWN["draws"])

NAMES = ("none", "mail", "appeler ☎")
RADII = ["block", "shared", "dense", "indefinite"]
CASES = {
    "nothing released": (dc.SquareCB(), {}, 0),
    "nothing released, VanillaPO": (dc.VanillaPO(), {}, 0),
    "Uniform": (dc.Uniform(), {}, 2),
    "Greedy": (dc.Greedy(), {}, 3),
    "Greedy, logistic": (dc.Greedy(), {"link": "logistic"}, 1),
    "Greedy, ties": (dc.Greedy(), {"ties": True}, 1),
    "SquareCB, ties": (dc.SquareCB(), {"ties": True}, 2),
    "SquareCB": (dc.SquareCB(scale=16.0), {}, 4),
    "SquareCB, clip": (dc.SquareCB(scale=0.1, exponent=0.3), {"link": "clip"}, 2),
    "FastCB, logistic": (dc.FastCB(scale=10.0), {"link": "logistic"}, 3),
    "FastCB, clip": (dc.FastCB(scale=0.5, exponent=0.25), {"link": "clip"}, 3),
    "VanillaPO, one": (dc.VanillaPO(scale=2.0), {}, 1),
    "VanillaPO, short": (dc.VanillaPO(scale=8.0), {}, 4),
    "VanillaPO, panels": (dc.VanillaPO(scale=512.0), {"first_batch": 37, "growth": 2.0}, 5),
    "VanillaPO, slow": (dc.VanillaPO(scale=64.0), {"first_batch": 16, "growth": 1.3}, 9),
    "VanillaPO, longest": (dc.VanillaPO(scale=64.0), {"first_batch": 2**22}, 1),
    "VanillaPO, longest reached": (
        dc.VanillaPO(scale=64.0),
        {"first_batch": 16, "longest_batch": 40},
        6,
    ),
    "VanillaPO, after an import": (
        dc.VanillaPO(scale=64.0),
        {"first_batch": 16, "imported": 300},
        3,
    ),
    "VanillaPO, previous": (dc.VanillaPO(rollout="previous"), {"first_batch": 100}, 3),
    "BonusPO": (dc.BonusPO(error_bound=9.0, rate_scale=4.0, bonus_scale=0.05), {}, 6),
    "BonusPO, logistic": (dc.BonusPO(), {"link": "logistic", "first_batch": 50}, 2),
    "ReplayBonusPO": (dc.ReplayBonusPO(learning_rate=0.1), {}, 6),
    "the default": (dc.AdaptivePO(), {"link": "clip", "signal": (0.25, 0.1875)}, 6),
    "the default, contexts unclear": (dc.AdaptivePO(), {"link": "clip", "signal": (0.0, 0.5)}, 6),
    "the default, contexts clear": (dc.AdaptivePO(), {"link": "clip", "signal": (1.0, 0.5)}, 6),
    "the default, one release": (dc.AdaptivePO(), {"signal": (0.75, 2.0**-20)}, 1),
    "the default, nothing released": (dc.AdaptivePO(), {}, 0),
    "the default, no signal": (dc.AdaptivePO(), {"link": "clip", "pooled": True}, 4),
    "AdaptivePO": (
        dc.AdaptivePO(learning_rate=0.1, bonus=0.1, scale=2.5),
        {"signal": (0.5, 0.25), "first_batch": 2_000},
        5,
    ),
    "the default, with a half-life": (
        dc.AdaptivePO(),
        {"link": "clip", "longest_batch": 3, "half_life": 2, "signal": (0.375, 0.25)},
        14,
    ),
    "SquareCB, with a half-life": (dc.SquareCB(), {"longest_batch": 2, "half_life": 1}, 9),
    "LinUCB, with a half-life": (dc.LinUCB(0.25), {"grams": "block", "half_life": 3}, 5),
    "ReplayBonusPO, logistic": (
        dc.ReplayBonusPO(learning_rate=1.0, bonus=0.1),
        {"link": "logistic", "first_batch": 3},
        4,
    ),
    **{f"LinUCB, {form}": (dc.LinUCB(width=0.25), {"grams": form}, 3) for form in RADII},
    **{f"RegCB, {form}": (dc.RegCB(width=0.2), {"grams": form}, 2) for form in RADII},
    **{f"AdaCB, {form}": (dc.AdaCB(width=0.3), {"grams": form}, 2) for form in RADII},
    **{
        f"{kind.__name__}, indefinite, width {width:g}": (kind(width), {"grams": "indefinite"}, 4)
        for kind, width in itertools.product((dc.LinUCB, dc.RegCB, dc.AdaCB), (0.02, 0.1, 1.0))
    },
    "LinUCB, logistic": (dc.LinUCB(width=0.1), {"grams": "block", "link": "logistic"}, 1),
    "two actions": (dc.SquareCB(), {"n_actions": 2}, 2),
    "eleven actions": (dc.AdaptivePO(), {"n_actions": 11, "signal": (0.5, 0.25)}, 3),
    "named actions": (dc.VanillaPO(scale=8.0), {"actions": NAMES, "outcome": dc.Reward(0, 50)}, 3),
    "named actions, nothing released": (dc.SquareCB(), {"actions": NAMES}, 0),
    "a control share": (
        dc.AdaptivePO(),
        {"control": dc.Control(0.25, 1), "first_batch": 16, "signal": (0.5, 0.25), "parts": True},
        3,
    ),
}


def case(name, policy, options, count):
    """Documents, contexts, and what the core makes of them."""
    of_plan = ("n_actions", "actions", "outcome", "first_batch", "growth")
    of_plan += ("longest_batch", "half_life", "imported", "control")
    places = {key: options[key] for key in of_plan if key in options}
    drawn = {key: value for key, value in options.items() if key not in places}
    person = len(name) % 2 == 1  # about half of the cases with named features
    of = plan(policy, features=SCHEMA if person else BALL, **places)
    history = released(of, count, **drawn, seed=len(name))
    contexts = PEOPLE if person else ROWS
    features = of.features.map(contexts)
    each = np.repeat(features, len(DRAWS), axis=0)
    actions = of.policy.sample(history, each, np.tile(DRAWS, (len(contexts), 1)))
    return {
        "name": name,
        "documents": texts(chain(of, history)),
        "contexts": contexts,
        "probabilities": of.policy.probabilities(history, features).tolist(),
        "actions": action_name(of, actions.reshape(len(contexts), -1)).tolist(),
    }


def offer_case(name, of, history, offers, refused):
    """Documents, offers to one context each, and what the core makes of them."""
    documents, contexts = chain(of, history), [ROWS[place % len(ROWS)] for place in range(9)]
    board, made = Billboard(documents, KEY), []
    for context, offer in zip(contexts, offers, strict=False):
        sampled = [board.sample(context, u, actions=offer) for u in DRAWS]
        chances = board.probabilities(context, actions=offer)
        made.append(
            {
                "context": context,
                "actions": offer,
                "probabilities": chances.tolist(),
                "sampled": sampled,
            }
        )
    known = list(board.actions)
    return {
        "name": name,
        "documents": texts(documents),
        "known": known,
        "offers": made,
        "refused": refused,
    }


def vectors():
    """Everything in the file."""
    return {
        "key": KEY,
        "draws": DRAWS.tolist(),
        "cases": [case(name, *parts) for name, parts in CASES.items()],
        "offers": [offer_case(name, *parts) for name, parts in offer_cases().items()],
        "histories": [
            {"name": name, "documents": texts(documents), "number": number, "releases": count}
            for name, (documents, number, count) in histories().items()
        ],
        "budgets": [
            {
                "unit": unit,
                "documents": texts(documents),
                "epsilon": epsilon,
                "delta": delta,
                "participation": often,
            }
            for unit, (documents, epsilon, delta, often) in budgets().items()
        ],
        "broken": [
            {"name": name, "documents": texts(documents)}
            for name, documents in [*broken().items(), *broken_changes().items()]
        ],
        "canonical": [[text, canonical(text).decode()] for text, _ in KNOWN["canonical"]],
        "features": {
            kind: [contexts, features.map(contexts).tolist(), refused]
            for (kind, (contexts, _, refused)), features in zip(
                KNOWN["features"].items(), (BALL, SCHEMA), strict=True
            )
        },
        "schemas": [
            each | {"expected": schema_of(each).map(each["contexts"]).tolist()}
            for each in KNOWN["schemas"]
        ],
    }


def schema_of(case):
    """The schema of a case of columns."""
    return from_config(FEATURES, case["features"], "features")


def texts(documents):
    return [document.decode() for document in documents]


def written(content):
    """The text of the file: one part a line."""
    lines = [f"{json.dumps(name)}: {json.dumps(part)}" for name, part in content.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    FILE.write_text(written(vectors()))
