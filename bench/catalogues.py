"""Films for people: joint features beside blocks, popularity and the best films of all.

    python bench/catalogues.py --movielens FOLDER [--seeds 10] [--epsilon 1 4 8 inf] [--quick]

MovieLens-100k [Harper and Konstan 2015], the files ml-100k.inter, .user and .item. A round is a
person and ten films that they rated, a rating in one round only; the loss of a film is
1 − (rating − 1)/4. Contexts are age and gender. What films are, by features declared beforehand:

- ``popularity, year``: the logarithm of how often a film was rated, which is taken to be public, as
  the rival "most popular" takes it, and its year;
- ``… and genres``: 19 flags more;
- ``year and genres``: the same without popularity;
- ``… and id``: the id in 64 hashed slots more, a small effect of each film;
- ``blocks``: weights of their own for each of 1,682 films, and no features of films.

"best films" always shows the film with the best mean rating in hindsight, "most popular" the one
that was rated most often. Behind ± is the standard error over seeds. With ``per user`` at most one
round of a person counts in each of four batches. Noise is seeded: it protects nobody.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

import discreet as dc
from discreet.simulate import engine
from discreet.simulate.labelled_data import played_offers
from discreet.simulate.played_batches import context_free_offer_losses
from people_sets import atomic_file

OFFERED = 10
PERSON = dc.Schema([dc.Number("age", 10, 70), dc.Flag("man")], squares=False)
YEAR, POPULARITY = dc.Number("year", 1930, 2000), dc.Number("popularity", 0, 7)


@dataclass(frozen=True)
class Films:
    """Rounds: contexts, offers (T, 10) and their losses, who came; and what films are."""

    contexts: list[dict[str, Any]]
    offers: np.ndarray[Any, Any]
    losses: np.ndarray[Any, Any]
    people: np.ndarray[Any, Any]
    about: dict[str, dict[str, Any]]
    genres: tuple[str, ...]

    @cached_property
    def most_popular(self) -> float:
        rated = np.vectorize(lambda film: self.about[film]["popularity"])(self.offers)
        return float(self.losses[np.arange(len(rated)), rated.argmax(axis=1)].mean())


def films_of(folder: str, seed: int = 0) -> Films:
    ratings, people, films = (atomic_file(folder, kind) for kind in ("inter", "user", "item"))
    rng, rounds = np.random.default_rng(seed), []
    for _, theirs in ratings.groupby("user_id"):
        order = rng.permutation(theirs.index.to_numpy())
        rounds += [order[k : k + OFFERED] for k in range(0, len(order) - OFFERED + 1, OFFERED)]
    rows = np.array(rounds)
    who = people.set_index("user_id").loc[ratings["user_id"].to_numpy()[rows[:, 0]]]
    contexts = [
        {"age": float(np.clip(age, 10, 70)), "man": gender == "M"}
        for age, gender in zip(who["age"], who["gender"], strict=True)
    ]
    genres = sorted({genre for each in films["class"].fillna("") for genre in each.split()})
    counts = ratings["item_id"].value_counts()
    about = {}
    for film, year, kinds in zip(
        *(films[c] for c in ("item_id", "release_year", "class")), strict=True
    ):
        number = float(year) if str(year).replace(".", "").isdigit() else 1995.0
        about[str(film)] = {
            "year": float(np.clip(number, 1930, 2000)),
            "popularity": math.log(counts.get(film, 1)),
            **{genre: genre in str(kinds).split() for genre in genres},
        }
    offers = ratings["item_id"].to_numpy()[rows].astype(str)
    losses = 1.0 - (ratings["rating"].to_numpy()[rows] - 1.0) / 4.0
    return Films(contexts, offers, losses, who.index.to_numpy(), about, tuple(genres))


def catalogue(films: Films, genres: bool, slots: int, *, popularity: bool = True) -> dc.Catalogue:
    fields: list[Any] = [YEAR, POPULARITY] if popularity else [YEAR]
    fields += [dc.Flag(genre) for genre in films.genres] if genres else []
    fields += [dc.Hashed("id", slots)] if slots else []
    named = {field.name for field in fields}
    items = {
        film: {name: value for name, value in each.items() if name in named}
        for film, each in films.about.items()
    }
    return dc.Catalogue(dc.Schema(fields), items)


def plans_of(films: Films) -> dict[str, dc.Plan]:
    small, wide = catalogue(films, False, 0), catalogue(films, True, 0)
    ids = catalogue(films, False, 64)

    def joint(items: dc.Catalogue, interactions: Any) -> dc.Plan:
        features = dc.Joint(PERSON, items.schema, interactions)
        return dc.Plan(actions=items, features=features, budget=dc.Budget.none())

    return {
        "popularity, year": joint(small, "none"),
        "popularity, year, products": joint(small, "all"),
        "popularity, year and genres": joint(wide, "none"),
        "popularity, year, genres, 16 products": joint(wide, 16),
        "popularity, year and id": joint(ids, "none"),
        "year and genres": joint(catalogue(films, True, 0, popularity=False), "none"),
        "blocks": dc.Plan(actions=list(films.about), features=PERSON, budget=dc.Budget.none()),
    }


def mean_losses(
    films: Films, plan: dc.Plan, epsilons: Sequence[float], seeds: int, *, users: bool
) -> np.ndarray[Any, Any]:
    """Losses of whole runs: (epsilons, seeds)."""
    unit = {"unit": "user"} if users else {}
    budgets = [dc.Budget(e, 1e-5) if math.isfinite(e) else dc.Budget.none() for e in epsilons]
    plans = [replace(plan, budget=budget, **unit) for budget in budgets]
    features = plan.features.map(films.contexts)
    played, truth = played_offers(plan, features, films.offers, None, films.losses)
    people = films.people.tolist() if users else None
    return engine.run(plans, played, truth, list(range(seeds)), users=people)[:, :, -1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--movielens", required=True, metavar="FOLDER")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0, 4.0, 8.0, math.inf])
    parser.add_argument("--plan", nargs="+", help="some of the plans")
    args = parser.parse_args()
    films = films_of(args.movielens)
    plan = plans_of(films)["popularity, year"]
    played, truth = played_offers(
        plan, plan.features.map(films.contexts), films.offers, None, films.losses
    )
    best, uniform = context_free_offer_losses(played, truth)
    print(f"{len(truth):,} rounds; uniform {uniform:.3f}, most popular {films.most_popular:.3f}, "
          f"best films in hindsight {best:.3f}")  # fmt: skip
    for users in (False, True):
        print(f"\n| {'per user' if users else 'per rating'} | p |", end="")
        print("".join(f" ε = {epsilon:g} |" for epsilon in args.epsilon))
        for name, plan in plans_of(films).items():
            if args.plan and name not in args.plan:
                continue
            found = mean_losses(films, plan, args.epsilon, args.seeds, users=users)
            error = found.std(axis=1, ddof=1) / math.sqrt(args.seeds)
            cells = " | ".join(
                f"{m:.3f} ± {e:.3f}" for m, e in zip(found.mean(1), error, strict=True)
            )
            print(f"| {name} | {plan.features.p} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
