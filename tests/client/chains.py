"""Made-up chains of signed documents: exact numbers, so that their bytes are the same anywhere."""

import json
from dataclasses import replace

import numpy as np

import discreet as dc
from discreet.client import documents
from discreet.releases.canonical import canonical
from discreet.releases.release import Gram, Predictor, Release, publishable
from discreet.releases.statistics import PartLosses, Statistics

PRIVATE_KEY, OTHER_KEY = bytes(range(32)), bytes(range(1, 33))
KEY = documents.public_key(PRIVATE_KEY)
BALL = dc.UnitBall(3)
SCHEMA = dc.Schema(
    [
        dc.Number("age", 0, 100),
        dc.Number("visits", 0, 7.5, clip=True),
        dc.Category("device", ["phone", "desk"]),
        dc.Category("naïve ☃ 😀\x7f", ["été", '\n"\\/'], other=True),
    ]
)


def plan(policy, *, features=BALL, n_actions=3, first_batch=1, growth=1.5, **named):
    oracle = dc.Logistic() if policy.needs_bounded_losses else dc.Ridge()
    return dc.Plan(
        n_actions=n_actions,
        features=features,
        policy=policy,
        oracle=oracle,
        first_batch=first_batch,
        growth=growth,
        budget=dc.Budget.none(),
        **named,
    )


def released(
    of,
    count,
    *,
    link="identity",
    grams=None,
    ties=False,
    pooled=False,
    parts=False,
    seed=0,
    told=None,
    blocks=None,
    signal=None,
):
    """So many releases for a plan, with weights and Grams that are whole multiples of 2⁻²⁰.

    ``told`` are their records, where these are not the slots of their batches; ``blocks`` how many
    actions each has, where some joined. With ``signal`` = (λ, e) each release has statistics, and
    the newest that λ and errors of actions from e on; those before have others.
    """
    rng = np.random.default_rng(seed)
    p = of.features.p
    history = of.nothing_released()
    for number in range(1, count + 1):
        records = told[number - 1] if told else of.schedule.length(number)
        A = blocks[number - 1] if blocks else of.blocks
        weights = _exact(rng, (A, p)) + (0.0 if link == "logistic" else np.eye(p)[0])
        if ties:  # two actions exactly alike, one nearly
            weights = weights[:1] + np.eye(p)[0] * np.array([0.0, 2.0**-9, 0.0])[:, None]
        previous = history.latest.digest if history.latest else of.digest
        gram = _gram(rng, grams, A, p, records) if grams else None
        made = Release(number, records, Predictor(weights, link), gram, plan_digest=of.digest)
        if pooled or signal:
            sums_of = _gram(rng, "block", A, p, records).values
            sums = Statistics(sums_of, _exact(rng, (A, p)), records, 2.5)
            matrices = {name: _exact(rng, (p, p)) for name in ("matrix", "following")}
            more = {"outcome_sums": _exact(rng, 2 + 2 * A)}
            if signal:
                clear, error = signal if number == count else (0.5, 0.375)
                errors = error * (1.0 + rng.permutation(A) / 4)
                more["signal"] = np.array([clear, *errors])
            made = replace(made, statistics=replace(sums, **matrices, **more))
        if parts:
            made = replace(made, part_losses=PartLosses(_exact(rng, (2, 2)), 2.5))
        history = history.add(publishable(replace(made, previous=previous)))
    return history


def _exact(rng, shape):
    return rng.integers(-(2**20), 2**20, size=shape) / 2**20


def _gram(rng, form, A, p, records):
    """Symmetric, sometimes far from definite: the repair must agree as well."""
    size, blocks = (A * p, 1) if form == "dense" else (p, A if form == "block" else 1)
    half = _exact(rng, (blocks, size, size))
    noise = (half + half.swapaxes(-1, -2)) * (3.0 if form == "indefinite" else 1.0)
    values = noise + records * 0.25 * np.eye(size) * (form != "indefinite")
    return Gram(values[0] if form == "dense" else values, form == "dense", 0.5)


def chain(of, history, experiment="shop"):
    """The signed documents of a plan, its releases and changes of its actions."""
    signed = [sign(documents.genesis(of, experiment, KEY))]
    for count, release in enumerate([None, *history.items]):
        if release is not None:
            signed.append(sign(documents.release_document(signed[-1], release)))
        for change in history.changes:
            if change.releases == count:
                signed.append(sign(documents.actions_document(signed[-1], change)))
    return signed


def sign(document, key=PRIVATE_KEY):
    return documents.sign(document, key)


def histories():
    """Chains that hold: name -> documents, the number in force, how many releases it stands for."""
    of = plan(dc.SquareCB(), features=dc.UnitBall(1), n_actions=2)
    long, short = chain(of, released(of, 5)), chain(of, released(of, 3))
    head = documents.digest(long[5])
    restored = sign(
        documents.restore_document(short[3], epoch=2, number=6, previous=head, burned=[4])
    )
    other = released(of, 4, seed=1).items[3]  # new people in a batch of the same length
    fourth = replace(other, previous=released(of, 3).latest.digest)
    after = sign(documents.release_document(restored, fourth))
    again = documents.digest(after)
    twice = sign(
        documents.restore_document(short[2], epoch=3, number=8, previous=again, burned=[9])
    )
    burnt = sign(documents.burn_document(short[3], [4]))
    later = released(of, 4, told=[1, 2, 3, 8]).items[3]  # batch 5, which was under way as well
    with_later = sign(documents.release_document(burnt, later))
    timed = plan(dc.SquareCB(), features=dc.UnitBall(1), n_actions=2, close_every="7d")
    return {
        "genesis alone": (short[:1], 0, 0),
        "burn": ([*short, burnt, sign(documents.release_document(burnt, fourth))], 5, 4),
        "burn, then a later batch": ([*short, burnt, with_later], 5, 4),
        "a clock": (chain(timed, released(timed, 4, told=[1, 1, 3, 4])), 4, 4),
        "restore, all seen": ([*long, restored, after], 7, 4),
        "restore, some seen": ([*long[:5], restored, after], 7, 4),
        "restore, lost ones never seen": ([*short, restored, after], 7, 4),
        "restore twice": ([*short, restored, after, twice], 8, 2),
    }


def user_genesis(of, batches, records=1, unit="user"):
    """Document 0 of a service for users, with whatever its plan says of them."""
    document = documents.genesis(of, "shop", KEY)
    often = {"batches_per_user": batches, "records_per_batch": records}
    return {**document, "unit": unit, "plan": {**document["plan"], "unit": unit, **often}}


def budgets():
    """Chains that promise a budget: unit -> documents, ε and δ of all releases for one unit, and
    how often it contributes."""
    budget = dc.Budget(0.25, 1e-6)
    of = dc.Plan(n_actions=2, features=dc.UnitBall(1), budget=budget)
    often = {"unit": "user", "batches_per_user": 4, "records_per_batch": 2}
    plans = {"decision": of, "user": replace(of, **often)}
    return {
        unit: (
            chain(each, each.nothing_released()),
            budget.epsilon,
            budget.delta,
            each.participation and each.participation.to_json(),
        )
        for unit, each in plans.items()
    }


def broken():
    """Chains of documents that must be refused, most of them with good signatures."""
    of = plan(dc.SquareCB(), features=dc.UnitBall(1), n_actions=2)
    good, other = chain(of, released(of, 3)), chain(of, released(of, 3), experiment="other")

    def last(**changes):
        document = documents.verify(good[3], KEY)
        return [*good[:3], resigned({**document, **changes})]

    def restore(**changes):
        made = documents.restore_document(
            good[2], epoch=2, number=4, previous=documents.digest(good[3]), burned=[]
        )
        return [*good, resigned({**made, **changes})]

    timed = plan(dc.SquareCB(), features=dc.UnitBall(1), n_actions=2, close_every="7d")
    burnt = sign(documents.burn_document(good[2], [3]))

    def third(records):
        return resigned(documents.release_document(burnt, released(of, 3, told=records).items[2]))

    text = good[3].decode()
    kept = {"number": 2, "digest": documents.digest(good[1])}
    return {
        "empty": [],
        "fewer records than slots": chain(of, released(of, 3, told=[1, 2, 2])),
        "more records than slots": chain(of, released(of, 3, told=[1, 2, 4])),
        "a clock, and more records than slots": chain(timed, released(timed, 3, told=[1, 2, 4])),
        "a clock, and no record": chain(timed, released(timed, 3, told=[1, 2, 0])),
        "one burned, records of no batch": [*good[:3], burnt, third([1, 2, 4])],
        "one burned, records of a later batch": [*good[:3], burnt, third([1, 2, 8])],
        "no genesis": good[1:],
        "two geneses": [good[0], *good],
        "one missing": [*good[:2], good[3]],
        "one doubled": [*good, good[3]],
        "reordered": [good[0], good[2], good[1], good[3]],
        "of another experiment": [*good[:3], other[3]],
        "release of another experiment, linked here": last(experiment="other"),
        "another unit": last(unit="user"),
        "another schema": last(schema="0" * 64),
        "another epoch": last(epoch=2),
        "another number": last(number=4),
        "another previous": last(previous="0" * 64),
        "another format": last(format="discreet-signed-release/2"),
        "signed by another key": [*good[:3], resigned(documents.verify(good[3], KEY), OTHER_KEY)],
        "not signed": [*good[:3], canonical(documents.verify(good[3], KEY))],
        "signature of another document": [*good[:3], _with_signature_of(good[3], good[2])],
        "blank inside": [*good[:3], text.replace('":', '": ', 1).encode()],
        "blank behind": [*good[:3], good[3] + b" "],
        "a key twice": [*good[:3], text.replace("{", '{"epoch":1,', 1).encode()],
        "number spelt 3.0": [*good[:3], text.replace('"number":3', '"number":3.0').encode()],
        "cut short": [*good[:3], good[3][:-1]],
        "nothing": [*good[:3], b""],
        "not an object": [*good[:3], b"[1]"],
        "deep": [*good[:3], b"[" * 5_000],
        "restore in the same epoch": restore(epoch=1),
        "restore of an old number": restore(number=3),
        "restore that follows another document": restore(previous="0" * 64),
        "restore that keeps another document": restore(kept=kept),
        "restore that keeps an unknown number": restore(kept={**kept, "number": 17}),
        "a budget divided by batches": [resigned({**user_genesis(of, 3), "max_batches": 3})],
        "counts without users": [resigned(user_genesis(of, 3, unit="decision"))],
        "users in the plan alone": [resigned({**user_genesis(of, 3), "unit": "decision"})],
        "users without a number of batches": [resigned(user_genesis(of, None))],
        "users without a number of records": [resigned(user_genesis(of, 3, None))],
        "users in no batch": [resigned(user_genesis(of, 0))],
        "users in batches that are no number": [resigned(user_genesis(of, "3"))],
        "genesis in the middle": [*good, resigned({**documents.verify(good[0], KEY), "number": 4})],
    }


def resigned(document, key=PRIVATE_KEY):
    """Signed without the checks of ``documents.sign``: what only the key's owner could do."""
    return canonical({**document, "signature": documents.signature(canonical(document), key)})


def _with_signature_of(content, other):
    signature = json.loads(other)["signature"]
    return canonical({**json.loads(content), "signature": signature})
