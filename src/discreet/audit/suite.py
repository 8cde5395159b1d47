"""The audit of everything that ships: which questions, at which error rate, in which order."""

from __future__ import annotations

import itertools
import os
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from typing import Any

import discreet
from discreet.audit import (
    event_coverage,
    gaussian,
    neighbouring_runs,
    noise_law,
    objective,
    people,
    proof_facts,
    published_documents,
    rival_audits,
)
from discreet.audit.black_box import black_box, which_life
from discreet.audit.entropy import entropy_alone
from discreet.audit.finding import FAILS, WEAK, Finding, worst
from discreet.audit.neighbouring_runs import SCENARIOS
from discreet.audit.noise_sources import FAST
from discreet.audit.rival_audits import ADASSP, RIVALS, RivalSubject
from discreet.audit.subjects import DEFAULT_PLAN, JOINT, MECHANISMS, Subject, subjects
from discreet.text import duration, epsilon_text
from discreet.types import JsonMapping, JsonObject

FALSE_ALARM = 1e-4
"""The largest probability that an audit of correct code reports anything but "holds"."""
PARTS = ("exact", "noise", "black box", "transcript")
_TWO_SIDED = 2
"""A measured bound makes two statements: not above the claim, and not without power."""
AUDITED = (*MECHANISMS, *RIVALS, ADASSP)
"""The shipped mechanisms, and the rivals that they are compared with."""


@dataclass(frozen=True)
class Effort:
    """The effort: values of ε, runs of a learner, far draws."""

    epsilons: tuple[float, ...]
    runs: tuple[tuple[float, int], ...]
    draws: int = 300_000


QUICK = Effort((2.0,), ((8.0, 200),))
FULL = Effort((1.0, 2.0, 4.0, 8.0), ((8.0, 1000), (4.0, 1000)), draws=1_000_000)
MANY_DRAWS = 1_000_000
"""Draws for the tails of samplers that take a microsecond; OpenDP's takes twenty times as long."""


@dataclass(frozen=True)
class Check:
    """One question about a subject: ``ask(subject, …)``.

    The answer is computed, or follows from so many ``statements`` that are tested, each at the
    error rate that is the next argument.
    """

    part: str
    ask: Callable[..., Finding]
    subject: Any
    statements: int = 0

    def finding(self, alpha: float, **options: Any) -> Finding:
        """Return the answer, with tests at this error rate."""
        return self.ask(self.subject, *[alpha] * bool(self.statements), **options)

    @property
    def name(self) -> str:
        """The name of the question's function."""
        function = self.ask.func if isinstance(self.ask, partial) else self.ask
        return str(function.__name__)


def checks(
    effort: Effort, mechanisms: Sequence[str] = AUDITED, parts: Sequence[str] = PARTS
) -> list[Check]:
    """All checks, in the order of the report."""
    listed: list[Check] = []
    named = [each for each in mechanisms if each not in (*RIVALS, ADASSP)]
    for subject in subjects(named, effort.epsilons):
        listed += [*_exact(subject), *_noise(subject, effort)]
        # Ridge meets both samplers: the exact one with bandit feedback, and in the default plan.
        fast = subject.mechanism in ("ridge-pooled", *_AFTER_A_PAST)
        fast |= subject.mechanism == "ridge-structured" and subject.feedback == "full"
        attack = partial(black_box, noise=FAST) if fast else black_box
        attacks = [attack, *[which_life] * (subject.mechanism == DEFAULT_PLAN)]
        listed += [Check("black box", each, subject, _TWO_SIDED) for each in attacks]
    for epsilon, rival in itertools.product(effort.epsilons, (*RIVALS, ADASSP)):
        if rival in mechanisms:
            listed += _rival(RivalSubject(rival, epsilon))
    played = [scenario for scenario in SCENARIOS if scenario.mechanism in mechanisms]
    for (epsilon, runs), scenario in itertools.product(effort.runs, played):
        enters = partial(neighbouring_runs.enters_once, epsilon=epsilon)
        whole = partial(neighbouring_runs.transcript, epsilon=epsilon, trials=runs)
        listed.append(Check("transcript", enters, scenario))
        listed.append(Check("transcript", whole, scenario, _TWO_SIDED))
    return [check for check in listed if check.part in parts]


def _rival(subject: RivalSubject) -> list[Check]:
    if subject.mechanism == "rival-coded":
        return [Check("exact", rival_audits.crowds, subject)]
    if subject.mechanism == ADASSP:
        return [Check("exact", rival_audits.adassp_move, subject)]
    exact = [rival_audits.exact_move]
    exact += [rival_audits.amplification] * (subject.mechanism == "rival-shuffled")
    attack = Check("black box", rival_audits.black_box_rival, subject, _TWO_SIDED)
    return [*(Check("exact", each, subject) for each in exact), attack]


def _exact(subject: Subject) -> list[Check]:
    mechanism, ridge = subject.mechanism, subject.ridge
    logistic, default = mechanism.startswith("logistic"), mechanism == DEFAULT_PLAN
    questions: list[tuple[Callable[..., Finding], bool]] = [
        (proof_facts.calibration, True),
        (event_coverage.covered, True),
        # The documents of ridge-joint are those of ridge-stretched.
        (published_documents.public_alike, mechanism != JOINT),
        (published_documents.tells_no_more, mechanism != JOINT),
        (proof_facts.isometry, ridge),
        (proof_facts.hostile, ridge),
        (proof_facts.blocks, subject.with_gram),
        (proof_facts.exact_sums, ridge and mechanism != "ridge-paper"),  # which sums floats
        (proof_facts.rows_as_published, mechanism in _AFTER_A_PAST),
        (proof_facts.exact_choice, mechanism == "finite"),
        (objective.exact_gaussian_objective, mechanism == "logistic-gaussian"),
        (objective.exact_pure, logistic and mechanism != "logistic-gaussian"),
        (objective.certificate, logistic),
        (event_coverage.exact_parts, default),
        (event_coverage.exact_guardrails, default),
        (people.one_row_each, default and people.installed()),
        (gaussian.exact_gaussian, ridge),
        (gaussian.exact_gram, logistic and mechanism != "logistic-gamma"),
    ]
    return [Check("exact", ask, subject) for ask, applies in questions if applies]


def _noise(subject: Subject, effort: Effort) -> list[Check]:
    mechanism, bandit = subject.mechanism, subject.feedback == "bandit"

    def law(ask: Callable[..., Finding], **options: Any) -> Check:
        statements = noise_law.STATEMENTS[ask.__name__]
        return Check("noise", partial(ask, **options), subject, statements)

    alone = Check("noise", entropy_alone, subject)
    if mechanism == "finite":
        return [alone, law(noise_law.choice)]
    if mechanism in _AFTER_A_PAST:  # they draw as ridge-pooled and the default plan do
        return [law(noise_law.scale_and_shape), *[law(noise_law.grid)] * bandit]
    on_grid = mechanism in ("ridge-structured", "ridge-pooled")
    questions = [noise_law.scale_and_shape, noise_law.independence, *[noise_law.grid] * on_grid]
    samplers: list[dict[str, Any]] = [{}, *[{"noise": FAST}] * on_grid]
    listed = [law(ask, **how) for how in samplers for ask in questions]
    if not bandit:  # what is drawn is the same as with bandit feedback
        return listed
    listed.append(alone)
    if mechanism in _TAILS:
        count = effort.draws if mechanism == DEFAULT_PLAN else MANY_DRAWS
        listed.append(law(noise_law.tails, count=count))
    if mechanism == "ridge-pooled":
        listed.append(law(noise_law.tails, count=MANY_DRAWS, noise=FAST))
        listed.append(Check("noise", partial(entropy_alone, noise=FAST), subject))
    return listed


_AFTER_A_PAST = ("ridge-stretched", JOINT)
"""Subjects with a public past, whose matrix lets rows attain the bound."""
_TAILS = ("ridge-paper", "logistic-gamma", "logistic-gaussian", DEFAULT_PLAN)
"""One mechanism for each law: floating normals, balls, normals of an objective, exact integers."""


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
    """Processes share the cores: with several threads each, they would wait for each other."""
    for library in ("OMP", "OPENBLAS", "MKL"):  # for what is loaded later
        os.environ[f"{library}_NUM_THREADS"] = "1"
    if find_spec("threadpoolctl") is not None:  # an extra; for what is loaded already
        from threadpoolctl import threadpool_limits

        threadpool_limits(1)


def _answer(check: Check, alpha: float) -> Finding:
    """The finding of a check; a question that ends in an exception fails."""
    try:
        return check.finding(alpha)
    except Exception as error:
        text = f"the question ended in an error: {type(error).__name__}: {error}"
        question = check.name.replace("_", " ")
        return Finding(check.part, check.subject.name, question, FAILS, text)


FORMAT = "discreet-audit/1"
SHOWN = {"black box": "Single releases", "transcript": "Whole runs of a learner"}


def audit_document(
    listed: Sequence[Check],
    findings: Sequence[Finding],
    effort: Effort,
    mechanisms: Sequence[str],
    command: str,
    seconds: float,
) -> JsonObject:
    """Return verdict, summary and findings of an audit, with its error rates."""
    alpha = error_rate(listed)
    statements = sum(check.statements for check in listed)
    levels = ", ".join(epsilon_text(each) for each in effort.epsilons)
    return {
        "format": FORMAT,
        "version": discreet.__version__,
        "command": command,
        "verdict": worst({each.verdict for each in findings}),
        "summary": _summary(findings),
        "subtitle": f"{len(findings)} questions about {', '.join(mechanisms)} at ε = {levels}",
        "error": (
            f"{statements} statistical statements, each wrong with probability at most "
            f'{alpha:.1e}: if all code is correct, an audit says anything but "holds" at most '
            f"once in {1 / FALSE_ALARM:,.0f} runs, by a union bound. A claim that is refuted was "
            f"refuted at {alpha:.1e}. Computed answers have no such error."
        ),
        "statements": statements,
        "alpha": alpha,
        "false_alarm": FALSE_ALARM,
        "seconds": seconds,
        "findings": [each.to_json() for each in findings],
        "duration": duration(round(seconds)),
    }


def _summary(findings: Sequence[Finding]) -> str:
    failed, weak = (sum(f.verdict == verdict for f in findings) for verdict in (FAILS, WEAK))
    if failed:
        return (
            f"{failed} of {len(findings)} claims FAIL. Do not release anything with these "
            "mechanisms before the cause is known."
        )
    if weak:
        return (
            f"No claim fails, but {weak} of {len(findings)} answers are weak: an attack showed "
            "much less than it should, so the attack may be broken, or there is more noise than "
            "declared."
        )
    return f"All {len(findings)} claims hold, and every attack showed what it could."


def audit_page(document: JsonMapping, findings: Sequence[Finding]) -> str:
    """One self-contained HTML file, light and dark, for screens, phones and paper."""
    from discreet.client.pages import rendered  # needs Jinja, which is in some of the extras

    exact = {(each.subject, each.level): each.exact for each in findings if each.exact is not None}
    bounds = {title: defaultdict[str, list[Finding]](list) for title in SHOWN.values()}
    for each in findings:
        if each.part in SHOWN and each.measured is not None:
            row = each.question if each.part == "transcript" else each.subject
            about = each.subject, each.level
            known = exact.get(about) if each.exact is None else each.exact
            bounds[SHOWN[each.part]][row].append(replace(each, exact=known))
    parts = {each.part: [f for f in findings if f.part == each.part] for each in findings}
    functions = {"epsilon_text": epsilon_text, "place": _place}
    shown = {"bounds": bounds, "parts": parts, **functions}
    return rendered("discreet.audit", "audit.html", **document, **shown)


def _place(value: float, claim: float) -> float:
    """The place of a value in the picture, where a claim has 80 points."""
    return round(80.0 * min(value / claim, 2.5), 1)
