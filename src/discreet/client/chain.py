"""Verified chain of documents: releases, changes of the actions, and the declared actions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from discreet.actions.available_actions import AvailableActions, available_actions
from discreet.client.documents import digest, verify
from discreet.design.schedule import Schedule
from discreet.errors import CorruptRelease, InvalidInput
from discreet.features.joint import Joint
from discreet.features.schema import Schema
from discreet.features.unit_ball import UnitBall
from discreet.plan.config import from_config
from discreet.plan.plan import FEATURES, Plan
from discreet.plan.registry import POLICIES
from discreet.policies import Policy
from discreet.policies.floored import Floored
from discreet.privacy.budget import Budget
from discreet.releases.canonical import digest_of
from discreet.releases.catalogue import ActionChange, Catalogue, following_change
from discreet.releases.policy_view import PolicyView
from discreet.releases.prior import prior_of
from discreet.releases.release import DecidingRelease, Release, following
from discreet.releases.released import Released
from discreet.types import JsonMapping, JsonObject


@dataclass(frozen=True, eq=False, repr=False)
class PublicActions:
    """The actions and features of a plan, read from its document without calibrating any noise."""

    config: JsonMapping

    control = None
    """A device learns from its ticket what the control plays."""

    @cached_property
    def digest(self) -> str:
        """The digest of the plan, the root of releases and of changes."""
        return digest_of(self.config)

    @cached_property
    def features(self) -> UnitBall | Schema | Joint:
        """The map from a context, or a context and an action, to features."""
        made: UnitBall | Schema | Joint
        made = from_config(FEATURES, self.config["features"], "plan.features")
        return made

    @cached_property
    def catalogue(self) -> Catalogue | None:
        """The items of the plan, where actions have features."""
        written = self.config.get("actions")
        if not isinstance(written, Mapping):
            return None
        made: Catalogue = from_config({"Catalogue": Catalogue, **FEATURES}, written, "plan.actions")
        return made

    @cached_property
    def actions(self) -> tuple[str, ...] | None:
        """The names of the actions, if they have names."""
        if self.catalogue is not None:
            return self.catalogue.ids
        names = self.config.get("actions")
        return None if names is None else tuple(names)

    @property
    def n_actions(self) -> int:
        return int(self.config["n_actions"])

    def refuse_senseless(self, change: ActionChange, before: Iterable[ActionChange]) -> None:
        """Refuse a change that adds what is in use, removes what is not, or has other features."""
        used = set(self.actions or ())
        for each in before:
            used = (used - set(each.removed)) | set(each.added)
        gone, new = set(change.removed), set(change.added)
        again = new & (used - gone if self.catalogue is not None else used)
        rows = None if change.rows is None else change.rows.shape
        shape = None if self.catalogue is None else (len(change.added), self.catalogue.schema.p)
        distinct = len(gone) == len(change.removed) and len(new) == len(change.added)
        placed = (change.batch is None) == (self.catalogue is not None)
        named = self.actions is not None and bool(gone | new)
        if again or gone - used or rows != shape or not (distinct and placed and named):
            raise CorruptRelease(
                f"change {change.number} of the actions must add new ones and remove those in use; "
                "it does not. Do not use it: ask its publisher."
            )


@dataclass(frozen=True, slots=True)
class Link:
    """One verified document, without its JSON: there may be thousands."""

    digest: str
    kind: str
    number: int
    epoch: int
    release: Release | DecidingRelease | None = field(default=None, repr=False)
    burned: int = 0
    change: ActionChange | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Chain:
    """Verified documents; a restore cuts the chain back, and continues from there."""

    key: str
    links: tuple[Link, ...] = ()
    genesis: JsonMapping = field(default_factory=dict, repr=False)
    declared: PublicActions = field(default=PublicActions({}), repr=False, compare=False)
    """The features and the actions that the genesis declares, read once for all longer chains."""

    @property
    def number(self) -> int:
        """The number of the newest document; −1 for a chain without any."""
        return self.links[-1].number if self.links else -1

    def extended(self, contents: Iterable[bytes]) -> Chain:
        """This chain with the published bytes of more documents."""
        chain = self
        for content in contents:
            document = verify(content, self.key)
            identity = document["kind"], document["number"], document["epoch"]
            add = chain._next if chain.links else chain._first
            chain = add(Link(digest(content), *identity), document)
        return chain

    def _first(self, link: Link, document: JsonMapping) -> Chain:
        if (link.kind, link.number, document["previous"]) != ("genesis", 0, None):
            raise CorruptRelease(
                f"chain must begin with document 0, a genesis; got number {link.number}, "
                f"a {link.kind}. Pass every document from number 0 on."
            )
        plan, unit = document["plan"], document["unit"]
        counts = [plan.get(name) for name in ("batches_per_user", "records_per_batch")]
        counted = all(type(count) is int and count >= 1 for count in counts)
        bounded = counted if unit == "user" else counts == [None, None]
        named = (unit, document["schema"]) == (plan["unit"], digest_of(plan["features"]))
        if not (bounded and named) or document["max_batches"] is not None:
            raise CorruptRelease(
                "genesis must name the unit and the schema of its plan, and bound what a user "
                "contributes by batches_per_user and records_per_batch, with the unit 'user' and "
                "no other; this one differs. The total cost of all releases is unknown: do not use "
                "it."
            )
        return replace(self, links=(link,), genesis=document, declared=PublicActions(plan))

    def _next(self, link: Link, document: JsonMapping) -> Chain:
        last, base = self.links[-1], self
        if link.kind == "restore":
            base = self.until(document["kept"]["number"])
            gap = link.number - last.number  # above 1: we never saw documents that were lost
            follows = (
                base.links[-1].digest == document["kept"]["digest"]
                and link.epoch > last.epoch
                and (gap > 1 or (gap == 1 and document["previous"] == last.digest))
            )
        else:
            if link.kind == "release":
                link = replace(link, release=self._next_release(document["release"]))
            elif link.kind == "actions":
                link = replace(link, change=self._next_change(document["change"]))
            elif link.kind == "burn":
                link = replace(link, burned=len(document["burned"]))
            position = (link.number, link.epoch, document["previous"])
            follows = position == (last.number + 1, last.epoch, last.digest)
        common = ("experiment", "unit", "schema")
        if not (follows and all(document[name] == self.genesis[name] for name in common)):
            raise CorruptRelease(
                f"document {link.number} must follow document {last.number}; it does not. "
                "A document is missing, doubled or of another experiment: fetch them again."
            )
        return replace(self, links=(*base.links, link))

    def _next_release(self, document: JsonMapping) -> Release:
        """The release of a document, which must follow the release before it."""
        before, root = self.releases, self.declared.digest
        previous = before[-1].digest if before else root
        fewest = len(before[-1].predictor.weights) if before else 0
        release = following(document, len(before) + 1, root, previous)
        if not self._schedule.allows(release.number, release.records, self._burned):
            raise CorruptRelease(
                f"release {release.number} must have the records of its batch, or fewer where the "
                f"plan has a clock; it has {release.records:,}. Do not use it: ask its publisher."
            )
        rows = len(release.predictor.weights)
        # A batch has the actions of the document that it opened after, and no fewer than batches
        # before it; one that was burned may have been the first with new ones.
        if rows not in self.deciding.possible_blocks or rows < fewest:
            raise CorruptRelease(
                f"release {release.number} must have weights for the actions of its batch; it has "
                f"{rows:,} blocks. A change of the actions is missing: fetch the documents again."
            )
        return release

    def _next_change(self, document: JsonMapping) -> ActionChange:
        """The change of a document, which must follow the change before it."""
        change = following_change(document, self.changes, self.declared.digest)
        if change.releases != len(self.releases):
            raise CorruptRelease(
                f"change {change.number} of the actions must stand after release "
                f"{change.releases}; it does not. Fetch the documents again."
            )
        self.declared.refuse_senseless(change, self.changes)
        return change

    @cached_property
    def _schedule(self) -> Schedule:
        return Schedule.of_plan(self.config)

    @property
    def _burned(self) -> int:
        """Batches burned since the last restore, which burned all that was under way."""
        restores = [index for index, link in enumerate(self.links) if link.kind == "restore"]
        return sum(link.burned for link in self.links[max(restores, default=0) :])

    @property
    def releases(self) -> tuple[Release | DecidingRelease, ...]:
        return tuple(link.release for link in self.links if link.release is not None)

    @cached_property
    def changes(self) -> tuple[ActionChange, ...]:
        return tuple(link.change for link in self.links if link.change is not None)

    def blocks_at(self, number: int) -> int:
        """The number of actions with separate weights in a batch that opens after a document."""
        return max(self.until(number).deciding.possible_blocks)

    def for_deciding(self) -> Chain:
        """This chain without what only the next fit reads, for a process that never fits."""
        decided = (
            DecidingRelease.of(link.release) if isinstance(link.release, Release) else link.release
            for link in self.links
        )
        pairs = zip(self.links, decided, strict=True)
        return replace(self, links=tuple(replace(link, release=each) for link, each in pairs))

    def until(self, number: int) -> Chain:
        """The chain as it was when that document was the newest."""
        for length, link in enumerate(self.links, start=1):
            if link.number == number:
                return replace(self, links=self.links[:length])
        raise CorruptRelease(
            f"document {number!r} must be in the chain; the chain lacks it. "
            "It was lost in a restore, or never published: fetch the documents again."
        )

    @property
    def config(self) -> JsonObject:
        return self.genesis["plan"]  # type: ignore[no-any-return]

    @property
    def budget(self) -> Budget:
        """The budget of all releases together for one unit."""
        budget = self.config["budget"]
        return Budget(float(budget["epsilon"]), float(budget["delta"]))

    @cached_property
    def available_actions(self) -> AvailableActions:
        """The actions that may be offered after the newest document."""
        return available_actions(self.declared, self.changes)

    @cached_property
    def policy(self) -> Policy:
        """The policy with its floor; only a prior needs the noise of the whole plan."""
        if self.config.get("prior") is not None:
            return Plan.from_config(self.config).played_policy
        made: Policy = from_config(POLICIES, self.config["policy"], "plan.policy")
        floor = self.config.get("floor")
        return made if floor is None else Floored(made, float(floor))

    @cached_property
    def released(self) -> Released:
        """Every release of the chain, whole: a fit goes on from it, and it can be saved."""
        view = self.deciding
        whole = tuple(each for each in view.items if isinstance(each, Release))
        if len(whole) < len(view.items):
            raise InvalidInput(
                "chain must hold whole releases; this one holds only what decisions read of them. "
                "Read the documents again."
            )
        prior = prior_of(view.plan)
        return Released(view.n_actions, view.schedule, whole, view.plan, view.changes, prior=prior)

    @cached_property
    def deciding(self) -> PolicyView:
        """The part of every release of the chain that a policy reads."""
        plan = self.config
        view = PolicyView(int(plan["n_actions"]), self._schedule, self.releases, plan, self.changes)
        _ = view.actions, view.outcome  # fail now, if at all
        return view
