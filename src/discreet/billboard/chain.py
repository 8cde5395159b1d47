"""A verified chain of documents, and the releases that it stands for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from discreet.billboard.documents import digest, verify
from discreet.config import from_config
from discreet.encoding import digest_of
from discreet.errors import CorruptRelease
from discreet.features import UnitBall
from discreet.plan import FEATURES, POLICIES
from discreet.policies import Policy
from discreet.release import Release, following
from discreet.released import Released
from discreet.schedule import Doubling
from discreet.schema import Schema


@dataclass(frozen=True)
class Link:
    """One verified document and the digest of its published bytes.

    The release of a document is kept as what a policy reads: as JSON it takes thirty times the
    memory.
    """

    digest: str
    document: dict[str, Any] = field(repr=False)
    release: Release | None = field(default=None, repr=False)

    @property
    def number(self) -> int:
        return int(self.document["number"])


@dataclass(frozen=True)
class Chain:
    """Documents from the genesis on, each verified before it is added.

    A restore cuts the chain back to what the restored service kept, and goes on from there.
    """

    key: str
    links: tuple[Link, ...] = ()

    @property
    def number(self) -> int:
        """The number of the newest document."""
        return self.links[-1].number

    def extended(self, contents: Iterable[bytes]) -> Chain:
        """This chain with the published bytes of more documents."""
        chain = self
        for content in contents:
            chain = chain._with(Link(digest(content), verify(content, self.key)))
        return chain

    def _with(self, link: Link) -> Chain:
        if self.links:
            return self._after_others(link)
        document = link.document
        begins = (document["kind"], document["number"], document["previous"])
        if begins != ("genesis", 0, None):
            raise CorruptRelease(
                f"chain must begin with document 0, a genesis; got number {document['number']}, "
                f"a {document['kind']}. Pass every document from number 0 on."
            )
        plan = document["plan"]
        if (document["unit"], document["schema"]) != (plan["unit"], digest_of(plan["features"])):
            raise CorruptRelease(
                "genesis must name the unit and the schema of its plan; it does not. "
                "Read it with the version of discreet that wrote it."
            )
        return replace(self, links=(link,))

    def _after_others(self, link: Link) -> Chain:
        document, last, root = link.document, self.links[-1], self.links[0].document
        if document["kind"] == "restore":
            kept = self.until(document["kept"]["number"])
            gap = document["number"] - last.number  # above 1: some were lost before we saw them
            follows = (
                kept.links[-1].digest == document["kept"]["digest"]
                and document["epoch"] > last.document["epoch"]
                and (gap > 1 or (gap == 1 and document["previous"] == last.digest))
            )
        else:
            kept = self
            if document["kind"] == "release":
                link = self._understood(link)
            place = (document["number"], document["epoch"], document["previous"])
            follows = place == (last.number + 1, last.document["epoch"], last.digest)
        same = all(document[name] == root[name] for name in ("experiment", "unit", "schema"))
        if not (follows and same):
            raise CorruptRelease(
                f"document {document['number']} must follow document {last.number}; it does not. "
                "One is missing, doubled or of another experiment: fetch them again."
            )
        return replace(self, links=(*kept.links, link))

    def _understood(self, link: Link) -> Link:
        """The link with its release, which must follow the one before in the core's chain too."""
        rest = dict(link.document)
        before, root = self.released.items, digest_of(self.config)
        previous = before[-1].digest if before else root
        release = following(rest.pop("release"), len(before) + 1, root, previous)
        return Link(link.digest, rest, release)

    def until(self, number: int) -> Chain:
        """The chain as it was when that document was the newest."""
        for place, link in enumerate(self.links, start=1):
            if link.number == number:
                return replace(self, links=self.links[:place])
        raise CorruptRelease(
            f"document {number!r} must be in the chain; it is not. "
            "It was lost in a restore, or never published: fetch them again."
        )

    @property
    def config(self) -> dict[str, Any]:
        """The plan of the genesis, as a mapping."""
        plan: dict[str, Any] = self.links[0].document["plan"]
        return plan

    @cached_property
    def features(self) -> UnitBall | Schema:
        """How a context becomes features."""
        made: UnitBall | Schema = from_config(FEATURES, self.config["features"], "plan.features")
        return made

    @cached_property
    def policy(self) -> Policy:
        """The rule; the whole plan is not built, since only a learner needs its noise."""
        made: Policy = from_config(POLICIES, self.config["policy"], "plan.policy")
        return made

    @cached_property
    def released(self) -> Released:
        """What a policy sees: every release of the chain."""
        plan = self.config
        return Released(
            int(plan["n_actions"]),
            Doubling(int(plan["first_batch"]), plan["horizon"]),
            tuple(link.release for link in self.links if link.release is not None),
            plan,
        )
