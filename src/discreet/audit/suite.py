"""The audit of everything that ships: which questions, at which error rate, in which order."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any

from discreet.audit import noise_law
from discreet.audit.black_box import black_box
from discreet.audit.entropy import entropy_alone
from discreet.audit.event_coverage import covered, exact_guardrails, exact_parts
from discreet.audit.finding import FAILS, Finding
from discreet.audit.gaussian import exact_gaussian, exact_gram
from discreet.audit.neighbouring_runs import SCENARIOS, enters_once, transcript
from discreet.audit.objective import certificate, exact_gaussian_objective, exact_pure
from discreet.audit.people import installed, one_row_each, which_life
from discreet.audit.proof_facts import (
    blocks,
    calibration,
    exact_choice,
    exact_sums,
    hostile,
    isometry,
    rows_as_published,
)
from discreet.audit.published_documents import public_alike, tells_no_more
from discreet.audit.rival_audits import (
    ADASSP,
    RIVALS,
    AdaSSPSubject,
    RivalSubject,
    adassp_move,
    amplification,
    black_box_rival,
    crowds,
    exact_move,
)
from discreet.audit.subjects import DEFAULT_PLAN, JOINT, MECHANISMS, Subject, subjects
from discreet.privacy.noise import SecureNoise

FORMAT = "discreet-audit/1"
FALSE_ALARM = 1e-4
"""The largest probability that an audit of correct code reports anything but "holds"."""
PARTS = ("exact", "noise", "black box", "transcript")
_FAST: dict[str, Any] = {"noise": SecureNoise(fast=True), "name": ", fast sampler"}
_TWO_SIDED = 2
"""A measured bound makes two statements: not above the claim, and not without power."""


AUDITED = (*MECHANISMS, *RIVALS, ADASSP)
"""The shipped mechanisms, and the rivals that they are compared with."""


@dataclass(frozen=True)
class Effort:
    """The effort: values of ε, starts of the optimiser, runs of a learner, far draws."""

    epsilons: tuple[float, ...]
    starts: int
    runs: tuple[tuple[float, int], ...]
    draws: int = 300_000


QUICK = Effort((2.0,), 1, ((8.0, 200),))
FULL = Effort((1.0, 2.0, 4.0, 8.0), 3, ((8.0, 1000), (4.0, 1000)), draws=1_000_000)
MANY_DRAWS = 1_000_000
"""Draws for the tails of samplers that take a microsecond; OpenDP's takes twenty times as long."""


@dataclass(frozen=True)
class Check:
    """One question: ``ask(alpha)`` answers it with ``statements`` tests at that error rate."""

    part: str
    ask: Callable[[float], Finding]
    statements: int = 0


def checks(
    effort: Effort, mechanisms: Sequence[str] = AUDITED, parts: Sequence[str] = PARTS
) -> list[Check]:
    """All checks, in the order of the report."""
    listed: list[Check] = []
    named = [each for each in mechanisms if each not in (*RIVALS, ADASSP)]
    for subject in subjects(named, effort.epsilons):
        listed += [*_exact(subject, effort), *_noise(subject, effort)]
        # Ridge meets both samplers: the exact one with bandit feedback, and in the default plan.
        fast = subject.mechanism in ("ridge-pooled", *_AFTER_A_PAST)
        fast |= subject.mechanism == "ridge-structured" and subject.feedback == "full"
        attacks: list[Callable[..., Finding]] = [partial(black_box, **_FAST if fast else {})]
        attacks += [which_life] * (subject.mechanism == DEFAULT_PLAN)
        listed += [Check("black box", partial(each, subject), _TWO_SIDED) for each in attacks]
    for epsilon, rival in itertools.product(effort.epsilons, RIVALS):
        if rival in mechanisms:
            listed += _rival(RivalSubject(rival, epsilon))
    if ADASSP in mechanisms:
        listed += [_certain("exact", adassp_move, AdaSSPSubject(each)) for each in effort.epsilons]
    played = [scenario for scenario in SCENARIOS if scenario.mechanism in mechanisms]
    for (epsilon, runs), scenario in itertools.product(effort.runs, played):
        whole = partial(transcript, scenario, epsilon, runs)
        listed.append(_certain("transcript", enters_once, scenario, epsilon))
        listed.append(Check("transcript", whole, _TWO_SIDED))
    return [check for check in listed if check.part in parts]


def _rival(subject: RivalSubject) -> list[Check]:
    if subject.mechanism == "rival-coded":
        return [_certain("exact", crowds, subject)]
    asked = [exact_move, *[amplification] * (subject.mechanism == "rival-shuffled")]
    attack = Check("black box", partial(black_box_rival, subject), _TWO_SIDED)
    return [*(_certain("exact", each, subject) for each in asked), attack]


def _exact(subject: Subject, effort: Effort) -> list[Check]:
    mechanism, ridge = subject.mechanism, subject.ridge
    objective, default = mechanism.startswith("logistic"), mechanism == DEFAULT_PLAN
    asked: dict[Callable[..., Finding], bool] = {
        calibration: True,
        covered: True,
        public_alike: mechanism != JOINT,  # whose documents are those of ridge-stretched
        tells_no_more: mechanism != JOINT,
        isometry: ridge,
        hostile: ridge,
        blocks: subject.with_gram,
        exact_sums: ridge and mechanism != "ridge-paper",  # which sums floats
        rows_as_published: mechanism in _AFTER_A_PAST,
        exact_choice: mechanism == "finite",
        exact_gaussian_objective: mechanism == "logistic-gaussian",
        exact_pure: objective and mechanism != "logistic-gaussian",
        certificate: objective,
        exact_parts: default,
        exact_guardrails: default,
        one_row_each: default and installed(),
    }
    searches = {exact_gaussian: ridge, exact_gram: objective and mechanism != "logistic-gamma"}
    return [
        *(_certain("exact", each, subject) for each, asks in asked.items() if asks),
        *(
            _certain("exact", each, subject, effort.starts)
            for each, asks in searches.items()
            if asks
        ),
    ]


def _noise(subject: Subject, effort: Effort) -> list[Check]:
    mechanism, bandit = subject.mechanism, subject.feedback == "bandit"
    alone = partial(_certain, "noise", entropy_alone, subject)
    if mechanism == "finite":
        return [alone(), _law(noise_law.choice, subject)]
    if mechanism in _AFTER_A_PAST:  # they draw as ridge-pooled and the default plan do
        questions = [noise_law.scale_and_shape, *[noise_law.grid] * bandit]
        return [_law(ask, subject) for ask in questions]
    on_grid = mechanism in ("ridge-structured", "ridge-pooled")
    questions = [noise_law.scale_and_shape, noise_law.independence, *[noise_law.grid] * on_grid]
    samplers: list[dict[str, Any]] = [{}, *[_FAST] * on_grid]
    listed = [_law(ask, subject, **how) for how in samplers for ask in questions]
    if not bandit:  # what is drawn is the same as with bandit feedback
        return listed
    listed.append(alone())
    if mechanism in _TAILS:
        count = effort.draws if mechanism == DEFAULT_PLAN else MANY_DRAWS
        listed.append(_law(noise_law.tails, subject, count=count))
    if mechanism == "ridge-pooled":
        listed += [_law(noise_law.tails, subject, count=MANY_DRAWS, **_FAST), alone(**_FAST)]
    return listed


_AFTER_A_PAST = ("ridge-stretched", JOINT)
"""Subjects with a public past, whose matrix lets rows attain the bound."""
_TAILS = ("ridge-paper", "logistic-gamma", "logistic-gaussian", DEFAULT_PLAN)
"""One mechanism for each law: floating normals, balls, normals of an objective, exact integers."""


def _law(ask: Callable[..., Finding], subject: Subject, **options: Any) -> Check:
    statements = noise_law.STATEMENTS[ask.__name__]
    return Check("noise", partial(ask, subject, **options), statements)


def _certain(part: str, ask: Callable[..., Finding], *about: Any, **options: Any) -> Check:
    return Check(part, _Certain(partial(ask, *about, **options)))


@dataclass(frozen=True)
class _Certain:
    """A question whose answer is computed, not sampled: the error rate is not used."""

    answer: Callable[[], Finding]

    def __call__(self, alpha: float) -> Finding:  # noqa: ARG002
        return self.answer()


def error_rate(listed: Sequence[Check]) -> float:
    """The error rate of each statement: by a union bound all together err with FALSE_ALARM."""
    return FALSE_ALARM / max(1, sum(check.statements for check in listed))


def answers(
    listed: Sequence[Check], jobs: int = 0, progress: Callable[[int, Finding], None] | None = None
) -> list[Finding]:
    """One finding per check, in order; several processes share the work.

    ``progress`` gets the number of finished checks and the newest finding.
    """
    alpha, found = error_rate(listed), dict[int, Finding]()

    def keep(place: int, finding: Finding) -> None:
        found[place] = finding
        if progress is not None:
            progress(len(found), finding)

    jobs = jobs or min(len(listed), os.cpu_count() or 1)
    if jobs <= 1:
        for place, check in enumerate(listed):
            keep(place, _answer(check, alpha))
    else:
        with ProcessPoolExecutor(jobs, initializer=_one_thread) as pool:
            # The longest come first, so that no process is left with one at the end.
            order = sorted(range(len(listed)), key=lambda place: -PARTS.index(listed[place].part))
            waiting = {pool.submit(_answer, listed[place], alpha): place for place in order}
            for done in as_completed(waiting):
                keep(waiting[done], done.result())
    return [found[place] for place in range(len(listed))]


def _one_thread() -> None:
    """Processes share out the cores: with threads of their own they would wait for each other."""
    for library in ("OMP", "OPENBLAS", "MKL"):  # for what is loaded later
        os.environ[f"{library}_NUM_THREADS"] = "1"
    if find_spec("threadpoolctl") is not None:  # an extra; for what is loaded already
        from threadpoolctl import threadpool_limits

        threadpool_limits(1)


def _answer(check: Check, alpha: float) -> Finding:
    """The finding of a check; a question that ends in an exception fails."""
    try:
        return check.ask(alpha)
    except Exception as error:
        call: Any = check.ask.answer if isinstance(check.ask, _Certain) else check.ask
        about = call.args[0]
        return Finding(
            check.part,
            about.name,
            call.func.__name__.replace("_", " "),
            FAILS,
            f"the question ended in an error: {type(error).__name__}: {error}",
        )
