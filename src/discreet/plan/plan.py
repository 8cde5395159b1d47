"""The whole public configuration of an experiment, frozen, with a digest, and in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from discreet.arrays.stacking import one_run, stack
from discreet.design.action_names import checked_names
from discreet.design.control import Control
from discreet.design.outcome import (
    OUTCOMES,
    UNIT_LOSS,
    Guardrail,
    Outcome,
    checked_guardrails,
    refuse_unknown_guardrails,
    unit_loss,
)
from discreet.design.schedule import Schedule
from discreet.errors import InvalidInput
from discreet.features.category import Category
from discreet.features.date import Date
from discreet.features.flag import Flag
from discreet.features.hashed import Hashed
from discreet.features.joint import Joint
from discreet.features.number import Number
from discreet.features.schema import Schema
from discreet.features.unit_ball import UnitBall
from discreet.oracles import Mechanism, Oracle, PooledRidge, Problem
from discreet.oracles.mechanisms.loss_sums import LossSums, fit_budget
from discreet.oracles.mechanisms.pooled_statistics import PooledStatistics
from discreet.plan.checks import (
    advise_unused_budget,
    refuse_what_does_not_fit,
    refuse_wrong_kinds,
)
from discreet.plan.config import Classes, build, fields_to_config, from_config
from discreet.plan.explanation import chosen_fields, explained
from discreet.plan.registry import ORACLES, POLICIES, refuse_unregistered
from discreet.policies import AdaptivePO, Policy
from discreet.policies.floored import Floored, FromPrior
from discreet.privacy import events
from discreet.privacy.budget import ONCE, USUAL, Budget, Participation
from discreet.privacy.ledger import Ledger, disjoint
from discreet.releases.canonical import digest_of
from discreet.releases.catalogue import Catalogue
from discreet.releases.prior import Prior
from discreet.releases.released import Released
from discreet.text import html_table
from discreet.types import JsonMapping, JsonObject, added_later
from discreet.validate import instance, whole

FORMAT = "discreet-plan/1"


def _by_name(*classes: type[Any]) -> Classes:
    return {each.__name__: each for each in classes}


FEATURES = _by_name(UnitBall, Schema, Joint, Number, Flag, Category, Hashed, Date)
BUDGETS, GUARDRAILS = _by_name(Budget), _by_name(Guardrail)
PARTS: Mapping[str, Classes] = {
    "features": FEATURES,
    "policy": POLICIES,
    "oracle": ORACLES,
    "budget": BUDGETS,
    "outcome": OUTCOMES,
    "prior": _by_name(Prior),
    "control": _by_name(Control),
    "guardrails": GUARDRAILS,
    "actions": {**_by_name(Catalogue), **FEATURES},
}
"""The classes that a part of a plan may be of; names of actions are words."""
GUARDRAILS_SHARE = 0.1

_problem = lru_cache(maxsize=1024, typed=True)(Problem)
"""Thousands of plans of a grid share a few problems."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Plan:
    """Complete public configuration of an experiment, fixed before the first person arrives.

    Problem and budget are enough: the default policy and oracle follow from these public numbers
    and need no tuning (``explain`` says what was chosen; docs/results/defaults.md how well it
    works). All arguments are named.

    Args:
        n_actions: How many actions there are, unless ``actions`` says it.
        actions: Their names, which then stand wherever people read or send an action; or a
            ``Catalogue`` of items with features: then one set of weights over joint features of
            context and action serves all of them, and ``Learner.decide(context, actions=…)`` may
            offer each request other items.
        features: How contexts become numbers: a ``Schema``, a ``UnitBall`` or a ``Joint``.
        budget: ε and δ for one unit.
        policy: What chooses actions.
        oracle: What fits batches.
        feedback: "bandit", or "full" where each record has all A losses.
        losses: "general", or "one_label" (full feedback with exactly one zero per row, which needs
            less noise).
        horizon: The number of rounds; None means no end.
        first_batch: Slots of batch 1.
        growth: How much longer each next batch is.
        longest_batch: Where batches stop growing.
        close_every: A time such as "7d": a batch closes at the latest so long after it opened, with
            the slots that were taken. Simulations have no clock, and fill every batch.
        half_life: After so many more a release counts half, in the pool and in the policy.
        missing_loss: Replaces the loss of an unanswered slot; None makes the slot void.
        outcome: What people report: ``Loss(low, high)`` or ``Reward(low, high)``.
        releases: "automatic" (at the first decision after a batch is complete) or "on_request"
            (only when ``release`` is called). A batch is complete when its window is over or
            ``close`` was called. Where releases are automatic and the unit is a decision, its last
            answer completes it too: the guarantee then takes who answered as public.
        unit: What ε protects: one "decision", or with "user" everything that one person
            contributes. ``Learner.decide(context, user=…)`` enforces it.
        batches_per_user: The most batches that a person enters, by default 4.
        records_per_batch: The most records of a person in a batch, by default 1.
        imported: Rows of a private log that ``Learner.import_log`` takes.
        prior: Public statistics to begin with (``prior_from_logs``).
        control: A ``Control(share, action)``: a public share of slots, or of people, that plays a
            declared action, so that ``lift`` can tell whether the policy helps.
        floor: A probability that no offered action falls below, unless 1/offered is less.
        guardrails: Up to three ``Guardrail`` objects: secondary outcomes with a comparison each.
        guardrails_share: The share of the budget that pays for them, by default 0.1.

    Raises:
        InvalidInput: Parts that do not fit each other, or a budget that the oracle cannot keep.

    >>> plan = Plan(n_actions=3, features=UnitBall(10), budget=Budget.none(),
    ...             policy=AdaptivePO(learning_rate=0.1, bonus=0.01), oracle=PooledRidge())
    >>> plan.digest[:8] == Plan.from_config(plan.to_config()).digest[:8]
    True
    """

    n_actions: int = None  # type: ignore[assignment]  # after construction it is a number
    actions: Sequence[str] | None = added_later(None)
    features: UnitBall | Schema | Joint
    budget: Budget
    policy: Policy = field(default_factory=AdaptivePO)
    oracle: Oracle = field(default_factory=PooledRidge)
    feedback: str = "bandit"
    losses: str = "general"
    horizon: int | None = None
    first_batch: int = 16
    growth: float = 1.5
    longest_batch: int | None = added_later(None)
    close_every: str | None = added_later(None)
    half_life: int | None = added_later(None)
    missing_loss: float | None = None
    outcome: Outcome = added_later(UNIT_LOSS)  # noqa: RUF009
    releases: str = "automatic"
    unit: str = "decision"
    batches_per_user: int | None = added_later(None)
    records_per_batch: int | None = added_later(None)
    imported: int | None = added_later(None)
    prior: Prior | None = added_later(None)  # noqa: RUF009
    control: Control | None = added_later(None)  # noqa: RUF009
    floor: float | None = added_later(None)
    guardrails: Sequence[Guardrail] | None = added_later(None)
    guardrails_share: float | None = added_later(None)

    def __post_init__(self) -> None:
        self._count_actions()
        refuse_wrong_kinds(self)
        usual: dict[str, float] = {}
        if self.unit == "user":
            usual = {"batches_per_user": USUAL.batches, "records_per_batch": USUAL.records}
        if self.guardrails is not None:
            object.__setattr__(self, "guardrails", checked_guardrails(self.guardrails))
            usual["guardrails_share"] = GUARDRAILS_SHARE
        for name, number in usual.items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, number)
        if self.missing_loss is not None:
            missing = unit_loss(self.missing_loss, "missing_loss", self.outcome)
            object.__setattr__(self, "missing_loss", missing)
        refuse_what_does_not_fit(self)

    def __repr__(self) -> str:
        """Return the fields that differ from the defaults; long parts are cut."""
        chosen = ", ".join(f"{name}={text}" for name, text in chosen_fields(self))
        return f"{type(self).__name__}({chosen})"

    def _repr_html_(self) -> str:
        facts = [("digest", self.digest[:12])] if not np.ndim(self.budget.epsilon) else []
        return html_table(type(self).__name__, [*facts, *chosen_fields(self)])

    def _count_actions(self) -> None:
        if isinstance(self.actions, Catalogue):
            object.__setattr__(self, "n_actions", len(self.actions))
            if isinstance(self.features, (UnitBall, Schema)):
                object.__setattr__(self, "features", Joint(self.features, self.actions.schema))
            return
        if self.actions is not None:
            names = checked_names(self.actions)
            object.__setattr__(self, "actions", names)
            if self.n_actions is None:
                object.__setattr__(self, "n_actions", len(names))
            elif self.n_actions != len(names):
                raise InvalidInput(
                    f"n_actions must be {len(names)}, the number of names in actions; "
                    f"got {self.n_actions!r}. Leave n_actions out."
                )
        elif self.n_actions is None:
            raise InvalidInput(
                "n_actions must be given, or actions; the plan has neither. "
                "Write n_actions=3, or actions=['none', 'mail', 'call']."
            )
        whole("n_actions", self.n_actions, 2, "Give at least 2; names go into actions=[…].")

    def refuse_unregistered(self) -> None:
        """Refuse a policy or an oracle whose class a document cannot name."""
        refuse_unregistered("policy", self.policy, POLICIES)
        refuse_unregistered("oracle", self.oracle, ORACLES)

    def explain(self) -> str:
        """Explain in words what was chosen and why."""
        return explained(self)

    @property
    def problem(self) -> Problem:
        """The public facts that the oracle is calibrated for."""
        radii = self.policy.uses_radii
        often = self.participation or ONCE
        sizes = self.blocks, self.features.p
        joint = self.catalogue is not None
        return _problem(*sizes, self.feedback, self.losses, radii, often, self.half_life, joint)

    @property
    def contexts(self) -> UnitBall | Schema:
        """The features of contexts, without those of actions."""
        return self.features.context if isinstance(self.features, Joint) else self.features

    @property
    def catalogue(self) -> Catalogue | None:
        """The items that the plan begins with, where actions have features."""
        return self.actions if isinstance(self.actions, Catalogue) else None

    @property
    def blocks(self) -> int:
        """The number of actions with separate weights; 1 with joint features."""
        return self.n_actions if self.catalogue is None else 1

    @cached_property
    def played_policy(self) -> Policy:
        """The policy, with the prior and the floor that the plan has."""
        policy = self.policy
        if self.prior is not None and self.pooling is not None:
            policy = FromPrior(policy, self.pooling.first_release(self.prior.statistics))
        return policy if self.floor is None else Floored(policy, self.floor)

    @property
    def participation(self) -> Participation | None:
        """Bounds on the contributions of one person; None where none are declared."""
        batches, records = self.batches_per_user, self.records_per_batch
        return None if batches is None or records is None else Participation(batches, records)

    @property
    def releases_on_last_answer(self) -> bool:
        """True if a batch is released as soon as all its slots are answered."""
        return self.releases == "automatic" and self.unit == "decision"

    @cached_property
    def mechanism(self) -> Mechanism:
        """The oracle, calibrated for the problem and the budget; in a stack, run by run."""
        if np.ndim(self.budget.epsilon):
            return stack([run.mechanism for run in self._runs])
        budget = self.budget
        if self.control is not None:
            budget = fit_budget(budget, self.control.budget_share + (self.guardrails_share or 0.0))
        made = self.oracle.calibrate(self.problem, budget)
        advise_unused_budget(self, made.event)
        return made

    @property
    def _runs(self) -> list[Plan]:
        """The plans of a stack."""
        return [one_run(self, run) for run in range(len(np.atleast_1d(self.budget.epsilon)))]

    @property
    def pooling(self) -> PooledStatistics | None:
        """The mechanism, where it pools the statistics of all releases; None for other ones."""
        return getattr(self.mechanism, "pooling", None)  # a user's mechanism may lack it

    @property
    def summable(self) -> bool:
        """True if the mechanism reads exact sums of rows, so that rows may lie in partitions."""
        return bool(getattr(self.mechanism, "summable", False))

    @cached_property
    def loss_sums(self) -> LossSums | None:
        """The sums of losses of policy and control; None without a control share."""
        if self.control is None:
            return None
        if np.ndim(self.budget.epsilon):
            return stack([run.loss_sums for run in self._runs])
        rails = [] if self.guardrail_sums is None else [self.guardrail_sums.event]
        before = events.compose(self._fit_event, *rails)
        return LossSums.of(before, self.budget, self.participation or ONCE)

    @cached_property
    def guardrail_sums(self) -> LossSums | None:
        """The sums of guardrails of policy and control; None without guardrails."""
        if self.guardrails is None or self.control is None:
            return None
        if np.ndim(self.budget.epsilon):
            return stack([run.guardrail_sums for run in self._runs])
        # Fits leave both shares, and the losses of both parts take theirs afterwards.
        left, often = fit_budget(self.budget, self.control.budget_share), self.participation or ONCE
        return LossSums.of(self._fit_event, left, often, len(self.guardrails))

    def reported_losses(self, value: object, guardrails: JsonMapping | None) -> list[float]:
        """Return one outcome and its guardrails as losses in [0, 1], NaN for ones not observed."""
        declared, given = self.guardrails or (), guardrails or {}
        refuse_unknown_guardrails(declared, guardrails)
        rails = [each.loss_of(given.get(each.name)) for each in declared]
        return [self.outcome.loss_of(value), *rails]

    @property
    def control_action(self) -> int | None:
        """The action that the control plays; None for actions at random."""
        if self.control is None:
            return None
        return self.control.action_index(self.n_actions, self.actions)

    @cached_property
    def event(self) -> events.Event:
        """The cost of a release for one record, of the policy or of the control."""
        # Privacy: a record is in the fit and in the sums of one part.
        # [docs/privacy/lift.md, "Parts of a batch"]
        sums = [each.event for each in (self.guardrail_sums, self.loss_sums) if each is not None]
        return events.compose(self._fit_event, *sums)

    @cached_property
    def _fit_event(self) -> events.Event:
        """The cost of a fit, with a remark where the oracle is not a built-in one."""
        event = self.mechanism.event
        instance("event of the mechanism", event, events.EVENTS)
        name = type(self.oracle).__name__
        # Privacy: the audits attack only the built-in oracles. The author of another oracle is
        # responsible for its event. [docs/extending.md, "What your own oracle promises"]
        return event if name in ORACLES.built_in else events.not_audited(event, name)

    @cached_property
    def schedule(self) -> Schedule:
        lengths = (self.first_batch, self.horizon, self.growth, self.longest_batch)
        return Schedule(*lengths, self.close_every, self.half_life, self.imported)

    def nothing_released(self) -> Released:
        """Return the releases before the first one: none, and the prior."""
        prior = None if self.prior is None else self.prior.statistics
        return Released(self.n_actions, self.schedule, plan=self.to_config(), prior=prior)

    def empty_ledger(self, budget: Budget | None = None, on_last_answer: bool = False) -> Ledger:
        """Return the ledger before the first charge; ``budget`` replaces that of the plan."""
        because = disjoint(control=self.control is not None, on_last_answer=on_last_answer)
        often = self.participation
        return Ledger(budget or self.budget, (), self.unit, because, participation=often)

    def to_config(self) -> JsonObject:
        """The plan as a mapping of words and whole numbers, fit for canonical JSON."""
        return {"format": FORMAT, **fields_to_config(self)}

    @classmethod
    def from_config(cls, document: JsonMapping) -> Plan:
        """The plan of a mapping, as from TOML or a released file; unknown keys are refused."""
        given = {name: value for name, value in document.items() if name != "format"}
        if document.get("format", FORMAT) != FORMAT:
            raise InvalidInput(
                f"plan.format must be {FORMAT!r}; got {document['format']!r}. "
                "Read it with the version of discreet that wrote it."
            )
        counts = (given.get("batches_per_user"), given.get("records_per_batch"))
        if given.get("unit") == "user" and None in counts and "format" in document:
            # Privacy: what was written without numbers was calibrated without these defaults.
            # [docs/privacy/users.md, "Claim"]
            raise InvalidInput(
                "plan.batches_per_user and plan.records_per_batch must be in a written plan with "
                "unit='user'; this one lacks them. Read it with the version that wrote it."
            )
        for name, registry in PARTS.items():
            part, where = given.get(name), f"plan.{name}"
            if name == "guardrails" and isinstance(part, (list, tuple)):
                listed = enumerate(part)
                given[name] = [from_config(registry, each, f"{where}[{i}]") for i, each in listed]
            elif part is not None and (name != "actions" or isinstance(part, Mapping)):
                given[name] = from_config(registry, part, where)
        return build(cls, given, "plan", {})

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the canonical configuration: the root of the release chain."""
        return digest_of(self.to_config())
