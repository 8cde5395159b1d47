"""Public sets in which people have several rows, as bandits whose losses are known for all actions.

- ``simulated``: people with tastes that no column shows; how often they come is log-normal.
- ``movielens``: MovieLens-100k [Harper and Konstan 2015]. A visit offers one film of each of four
  kinds, and the loss of an action is 1 − (rating − 1)/4 of the film that it shows. The earlier half
  of a person's ratings is their profile, the later half are the films to be offered, each kind in
  a random order; a person has as many visits as films of their largest kind, so films of smaller
  kinds come again. A context is the mean loss of each kind in the profile, the years of the four
  films, age and gender. People who rated no later film of one kind are left out.
- ``randhie``: the RAND Health Insurance Experiment [Newhouse 1993; Deb and Trivedi 2002]. A row is
  a person's year, and the class is the number of visits to a doctor: 0, 1–2, 3–5 or more. A context
  is coinsurance, income, age, sex, education, size of the family and health at enrolment.
- ``of_file``: a .csv file with an id of the person, a class and columns of numbers.

Ranges are declared beforehand, as a ``Schema`` would have them.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

Table = np.ndarray[Any, Any]


class People(NamedTuple):
    """Contexts (T, d) in the unit ball, losses (T, A), and whose row each is."""

    contexts: Table
    losses: Table
    users: Table


ACTIONS = 4
TASTE = 0.5
"""Share of a simulated person's own taste in what is best for them."""


def simulated(people: int, rows: int) -> People:
    """Four numbers of the person, the same in all rows, and four of the occasion."""
    rng = np.random.default_rng(0)
    often = rng.lognormal(0.0, 1.2, people)
    users = rng.choice(people, rows, p=often / often.sum())
    own = rng.normal(size=(people, 4))[users]
    contexts = np.hstack([own, rng.normal(size=(rows, 4))]) / math.sqrt(8)
    taste = rng.normal(size=(people, ACTIONS))[users]
    values = contexts @ rng.normal(size=(8, ACTIONS)) + TASTE * taste
    return People(contexts, _wrong(values.argmax(axis=1)), users)


def of_file(path: str, user: str, target: str) -> People:
    """Columns are scaled to [−1, 1] by their largest values."""
    import pandas as pd

    frame = pd.read_csv(path)
    labels = frame[target].astype("category").cat.codes.to_numpy()
    columns = frame.drop(columns=[user, target]).to_numpy(dtype=float)
    most = np.abs(columns).max(axis=0)
    return People(_in_ball(columns, -most, most), _wrong(labels), frame[user].to_numpy())


KINDS = (
    {"Horror", "Thriller", "Crime", "Mystery", "Film-Noir"},
    {"Action", "Adventure", "Sci-Fi", "War", "Western"},
    {"Children's", "Animation", "Musical", "Fantasy", "Comedy", "Romance"},
)
"""A film is of the first kind that it has a genre of, or of the fourth: drama and the rest."""
SHRINKING = 3.0
"""A mean of few ratings is drawn towards a loss of 0.35, as if so many more were there."""


def movielens(folder: str) -> People:
    """Of the files ml-100k.inter, .user and .item, tab separated, with typed headers."""
    ratings, people, films = (atomic_file(folder, kind) for kind in ("inter", "user", "item"))
    genres = films["class"].fillna("").str.split(" ").map(set)
    films["kind"] = [
        next((place for place, kind in enumerate(KINDS) if kind & own), len(KINDS))
        for own in genres
    ]
    years = {each: float(year) for each, year in _pairs(films, "release_year") if year == year}
    kinds, about = dict(_pairs(films, "kind")), people.set_index("user_id")
    rng, rows = np.random.default_rng(0), []
    in_time = ratings.sort_values(["user_id", "timestamp", "item_id"])
    for person, theirs in in_time.groupby("user_id"):
        kind = theirs["item_id"].map(kinds).to_numpy()
        loss = 1.0 - (theirs["rating"].to_numpy() - 1.0) / 4.0
        year = theirs["item_id"].map(years).fillna(1995.0).to_numpy()
        later = np.arange(len(theirs)) >= len(theirs) // 2
        offered = [rng.permutation(np.flatnonzero(later & (kind == a))) for a in range(ACTIONS)]
        if not all(map(len, offered)):
            continue
        visits = np.arange(max(map(len, offered)))
        films_of = np.stack([each[visits % len(each)] for each in offered], axis=1)
        past = [loss[~later & (kind == a)] for a in range(ACTIONS)]
        profile = [(each.sum() + SHRINKING * 0.35) / (len(each) + SHRINKING) for each in past]
        age, man = float(about.at[person, "age"]), about.at[person, "gender"] == "M"
        same = np.broadcast_to([*profile, age, man], (len(visits), ACTIONS + 2))
        rows.append((np.hstack([same, year[films_of]]), loss[films_of], [person] * len(visits)))
    columns, losses, users = (np.concatenate(each) for each in zip(*rows, strict=True))
    low = [*[0.0] * ACTIONS, 10.0, 0.0, *[1930.0] * ACTIONS]
    high = [*[0.7] * ACTIONS, 70.0, 1.0, *[2000.0] * ACTIONS]
    return People(_in_ball(columns, low, high), losses, users)


ENROLMENT = {
    "coins": (0, 100),
    "linc": (6, 11),
    "xage": (0, 65),
    "female": (0, 1),
    "educdec": (0, 25),
    "lfam": (0, 3),
    "mhi": (0, 100),
    "disea": (0, 40),
    "physlm": (0, 1),
    "xghindx": (0, 100),
}
"""Columns of a context and their ranges: coinsurance in %, log income, age, … health indices."""
VISITS = (1, 3, 6)
"""Where the classes of visits begin, after none."""


def randhie(path: str) -> People:
    """Of the file of the R package sampleSelection, as .csv."""
    import pandas as pd

    frame = pd.read_csv(path)
    columns = frame[list(ENROLMENT)]
    columns = columns.fillna(columns.median()).to_numpy(dtype=float)
    labels = np.digitize(frame["mdvis"], VISITS)
    low, high = zip(*ENROLMENT.values(), strict=True)
    return People(_in_ball(columns, low, high), _wrong(labels), frame["zper"].to_numpy())


def _wrong(labels: Table) -> Table:
    """Loss 0 for the right class and 1 for the others."""
    return (labels[:, None] != np.arange(labels.max() + 1)).astype(float)


def _in_ball(columns: Table, low: Any, high: Any) -> Table:
    """Each column to [−1, 1] by its range, what lies outside is cut; then into the unit ball."""
    low, high = np.asarray(low, dtype=float), np.asarray(high, dtype=float)
    half = np.where(high > low, (high - low) / 2, np.inf)
    unit = np.clip((columns - (low + high) / 2) / half, -1.0, 1.0)
    return unit / math.sqrt(columns.shape[1])


def atomic_file(folder: str, kind: str) -> Any:
    import pandas as pd

    frame = pd.read_csv(Path(folder) / f"ml-100k.{kind}", sep="\t")
    return frame.rename(columns=lambda title: title.partition(":")[0])


def _pairs(films: Any, column: str) -> Any:
    import pandas as pd

    values = pd.to_numeric(films[column], errors="coerce")
    return zip(films["item_id"], values, strict=True)
