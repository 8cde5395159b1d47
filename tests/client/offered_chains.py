"""Made-up chains whose actions have features, join and leave, and what requests are offered."""

from dataclasses import replace

import discreet as dc
from client.chains import BALL, chain, documents, plan, released, resigned, sign
from discreet.actions.available_actions import changed_actions

GENRES = dc.Schema(
    [dc.Number("year", 1900, 2000), dc.Category("genre", ["drama", "crime"]), dc.Hashed("id", 3)]
)
FILMS = dc.Catalogue(
    GENRES,
    {
        "M": {"year": 1931, "genre": "crime"},
        "Persona": {"year": 1966, "genre": "drama"},
        "Heat ☃": {"year": 1995, "genre": "crime"},
    },
)
POINTS = dc.Catalogue(dc.UnitBall(2), {"a": [0.5, 0.25], "b": [-1.0, 4.0]})
NEW = {"id": "Metropolis", "year": 1927, "genre": "drama"}
PAIRS = [(0, "year"), (2, "genre")]
POLICIES = {
    "Uniform": (dc.Uniform(), {}),
    "Greedy": (dc.Greedy(), {}),
    "SquareCB": (dc.SquareCB(scale=16.0), {}),
    "FastCB": (dc.FastCB(), {"link": "logistic"}),
    "VanillaPO": (dc.VanillaPO(scale=8.0, error_bound=0.5), {}),
    "BonusPO": (dc.BonusPO(error_bound=9.0), {"link": "clip"}),
    "ReplayBonusPO": (dc.ReplayBonusPO(), {"link": "clip"}),
    "LinUCB": (dc.LinUCB(2.0), {"grams": "dense"}),
    "RegCB": (dc.RegCB(0.2), {"grams": "block"}),
    "AdaptivePO": (dc.AdaptivePO(), {"link": "clip", "signal": (0.375, 0.25)}),
    "AdaCB": (dc.AdaCB(0.3), {"grams": "indefinite"}),
}
INTERACTIONS = ["all", 7, PAIRS, "none"]
OF_FILMS = [
    None,
    ["Persona", "M"],
    ["Metropolis"],
    ["M", {**NEW, "id": "new"}, "Persona"],
    [NEW | {"id": "x"}],
]
NO_FILMS = [
    [],
    ["M", "M"],
    ["Heat ☃"],
    [{"id": "M", "year": 1931, "genre": "crime"}],
    [{"id": "x", "year": 2001, "genre": "crime"}],
    [{"id": "x", "year": 1999}],
    [{"id": " x", "year": 1999, "genre": "crime"}],
    [{"year": 1999, "genre": "crime"}],
    [7],
    "M",
]
OF_NAMES = [None, ["visit", "mail"], ["call"], ["visit", "none", "call"]]
NO_NAMES = [[], ["mail", "mail"], ["Mail"], ["write"], [1], "mail"]
NAMES = ["none", "mail", "write", "call"]


def offer_cases():
    """name -> plan, history, offers, offers that are refused."""
    cases = {}
    for place, (name, (policy, drawn)) in enumerate(POLICIES.items()):
        floor = {"floor": 0.05} if place % 3 == 0 else {}
        joint = dc.Joint(BALL, GENRES, INTERACTIONS[place % 4])
        of = plan(policy, features=joint, n_actions=None, actions=FILMS, **floor)
        cases[f"items, {name}"] = (of, _films(of, drawn, place), OF_FILMS, NO_FILMS)
        of = plan(policy, n_actions=None, actions=NAMES, **floor)
        cases[f"blocks, {name}"] = (of, _names(of, drawn, place), OF_NAMES, NO_NAMES)
    points = plan(dc.SquareCB(), n_actions=None, actions=POINTS, floor=0.9)
    own = [None, ["b"], ["a", {"id": "c", "features": [0.5, 0.5]}]]
    bad = [[{"id": "c", "features": [0.5]}], [{"id": "a", "features": [0.5, 0.5]}]]
    cases["items of numbers"] = (points, released(points, 2), own, bad)
    numbers = plan(dc.SquareCB(), n_actions=4)
    cases["numbers"] = (numbers, released(numbers, 2), [None, [3, 1], [2]], [[4], ["1"], [1, 1]])
    return cases


def _films(of, drawn, seed):
    """An item joins before the first release, another one leaves between two."""
    drawn = {"pooled" if name == "signal" else name: value for name, value in drawn.items()}
    history = released(of, 3, **drawn, seed=seed)  # catalogues have no signal
    history = _changed(of, history, 0, add=[NEW])
    return _changed(of, history, 2, remove=["Heat ☃"])


def _names(of, drawn, seed):
    """A block joins after one release, another one leaves, and one joins after the last."""
    history = released(of, 3, **drawn, seed=seed, blocks=[4, 4, 5])
    history = _changed(of, history, 1, add=["visit"], remove=["write"])
    return _changed(of, history, 3, add=["late"])


def _changed(of, history, releases, add=(), remove=()):
    """A history with one change more, after so many releases."""
    before = replace(history, items=history.items[:releases])
    return history.changed(changed_actions(of, before, add, remove, releases + 2))


def broken_changes():
    """Chains with changes that must be refused, with good signatures."""
    of = plan(dc.SquareCB(), features=dc.UnitBall(1), n_actions=None, actions=["a", "b"])
    history = released(of, 2, blocks=[2, 3])
    good = chain(of, _changed(of, _changed(of, history, 1, add=["c"]), 2, remove=["a"]))
    change = documents.verify(good[2], documents.json.loads(good[0])["key"])

    def altered(**parts):
        return [*good[:2], resigned({**change, "change": {**change["change"], **parts}})]

    unlinked = sign(documents.release_document(good[1], history.latest))
    second = documents.json.loads(good[4])
    second["change"]["previous"] = of.digest
    films = plan(dc.SquareCB(), features=dc.UnitBall(1), n_actions=None, actions=POINTS)
    joined = _changed(films, released(films, 1), 1, add={"c": [0.5, 0.5]})
    item = documents.json.loads(chain(films, joined)[2])["change"]

    def of_items(**parts):
        signed = chain(films, released(films, 1))
        changed = {**item, "plan": films.digest, "previous": films.digest, **parts}
        made = {**documents.actions_document(signed[-1], joined.changes[0]), "change": changed}
        return [*signed, resigned(made)]

    return {
        "a change is missing": [*good[:2], unlinked],
        "a change is reordered": [good[0], good[2], good[1], *good[3:]],
        "a change that adds what is there": altered(added=["b"]),
        "a change that adds twice": altered(added=["c", "c"]),
        "a change that removes what is not there": altered(removed=["z"]),
        "a change of nothing": altered(added=[]),
        "a change of another number": altered(number=2),
        "a change after other releases": altered(releases=0),
        "a change of another plan": altered(plan="0" * 64),
        "a change that follows another": altered(previous="0" * 64),
        "a change of blocks with features": altered(rows=item["rows"]),
        "a change of blocks without a batch": altered(batch=None),
        "a second change that follows another": [*good[:4], resigned(second)],
        "an item without features": of_items(rows=None),
        "an item in a batch": of_items(batch=2),
        "an item with other features": of_items(rows={**item["rows"], "shape": [3, 1]}),
        "fewer blocks than before": chain(
            of, _changed(of, released(of, 3, blocks=[2, 3, 2]), 1, add=["c"])
        ),
        "more blocks than actions": chain(of, released(of, 2, blocks=[2, 3])),
    }
