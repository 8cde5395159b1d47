"""Billboard: verify what a service published, and evaluate its policy locally."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from discreet.actions.offers import AllActions, Offers, request_offers
from discreet.client.chain import Chain
from discreet.client.documents import FORMAT, checked_public_key, digest
from discreet.client.recomputation import recompute
from discreet.client.transport import Transport, as_json
from discreet.errors import CorruptRelease, InvalidInput, ServiceError
from discreet.privacy.budget import Budget
from discreet.releases.released import Released
from discreet.types import JsonMapping


class Billboard:
    """The policy of a service, evaluated where the context is: the context is not sent.

    ``source`` is the address of a service, or the published bytes of all documents in order.
    ``public_key`` comes from the operator, not from the same place as the documents.
    """

    def __init__(
        self,
        source: str | Iterable[bytes],
        public_key: str,
        *,
        key: str | None = None,
        timeout: float = 10.0,
        retries: int = 3,
    ) -> None:
        self._nothing = Chain(checked_public_key(public_key))
        self._contents: dict[str, bytes] = {}
        self._seen: dict[int, str] = {}
        self._transport: Transport | None = None
        if isinstance(source, str):
            self._transport = Transport(source, key, timeout=timeout, retries=retries)
            self.refresh()
        else:
            self._adopt(list(source), None)

    def refresh(self) -> int:
        """Fetch and verify what is new; the number of the document that is now in force."""
        if self._transport is None:
            raise InvalidInput(
                "billboard must have an address to refresh; it was made from documents. "
                "Make a new one from the newer documents."
            )
        entries, current = _listed(as_json(self._transport.get("/v1/releases")))
        contents = [  # ``Chain`` verifies them
            self._contents.get(expected) or self._transport.get(f"/v1/releases/{number}")
            for number, expected in entries
        ]
        self._adopt(contents, current)
        return self.number

    def _adopt(self, contents: list[bytes], current: int | None) -> None:
        """Use a new chain if all of it is valid; otherwise change nothing."""
        if not contents:
            raise CorruptRelease(
                "documents must begin with a genesis; the list is empty. Fetch them again."
            )
        chain = self._nothing.extended(contents)
        for link in chain.links:
            if self._seen.get(link.number, link.digest) != link.digest:
                raise CorruptRelease(
                    f"document {link.number} must never change; it differs from the one seen "
                    "before. The service shows two histories: ask its operator."
                )
        in_force = chain if current is None else chain.until(current)
        _ = in_force.released, in_force.policy, in_force.available_actions  # fail now, if at all
        self._chain, self._in_force, self._views = chain, in_force, {in_force.number: in_force}
        self._contents = {digest(content): content for content in contents}
        self._seen |= {link.number: link.digest for link in chain.links}

    @property
    def number(self) -> int:
        """The number of the document in force; 0 while nothing is released."""
        return self._in_force.number

    @property
    def released(self) -> Released:
        """The releases that the policy in force reads, with the plan."""
        return self._in_force.released

    @property
    def actions(self) -> tuple[Any, ...]:
        """Values of ``sample`` in the order of ``probabilities``: names, or numbers."""
        return tuple(self._in_force.available_actions.places)

    @property
    def budget(self) -> Budget:
        """The budget of all releases together for one unit, as the genesis declares it."""
        return self._chain.budget

    @property
    def documents(self) -> tuple[bytes, ...]:
        """The published bytes, in order: enough for another billboard."""
        return tuple(self._contents.values())

    def recompute(self) -> dict[int, list[str]]:
        """Recompute the releases in force from their statistics; the parts that were compared."""
        return recompute(self.released)

    def probabilities(
        self, contexts: Any, *, actions: Any = None, release: int | None = None
    ) -> Any:
        """Probability of each action: (A,) for one context, (n, A) for many.

        ``actions`` is what is offered, as in ``Learner.decide``: probabilities come in its order,
        as a list of arrays where contexts are offered different numbers of actions. ``release``
        selects another document than the one in force: the one that a ticket names.
        """
        chain, _, offers, single = self._offered(contexts, actions, release)
        rows = offers.chances(chain.policy, chain.released, None)
        if single:
            return np.asarray(rows[0])
        return np.asarray(rows) if len({len(row) for row in rows}) == 1 else rows

    def sample(
        self, contexts: Any, u: Any = None, *, actions: Any = None, release: int | None = None
    ) -> Any:
        """An action for one context, (n,) for many; fixed by ``u`` (2,) or (n, 2) in [0, 1).

        It is a name where the plan has names, else a number. ``actions`` is what is offered.
        """
        chain, count, offers, single = self._offered(contexts, actions, release)
        # Privacy: an ordinary generator is enough, since privacy holds for every fixed draw.
        # [docs/privacy/transcript.md, "Action draws"]
        drawn = np.random.default_rng().random((count, 2)) if u is None else u
        uniforms = np.asarray(drawn, dtype=np.float64).reshape(count, 2)
        names, _ = offers.named(offers.sample(chain.policy, chain.released, uniforms))
        return names.tolist()[0] if single else names

    def _offered(
        self, contexts: Any, actions: Any, release: int | None
    ) -> tuple[Chain, int, AllActions | Offers, bool]:
        """The chain, the number of contexts, what each is offered, and if there is only one."""
        number = self.number if release is None else release
        if number not in self._views:  # decoded once
            self._views[number] = self._chain.until(number)
        chain = self._views[number]
        mapping = chain.declared.features
        features, single = mapping.map(contexts), mapping.is_single(contexts)
        available = chain.available_actions
        offers = request_offers(chain.declared, available, features, actions, single=single)
        return chain, len(features), offers, single


SECONDS = 10
"""Timeout of a request for documents."""


def is_address(source: str) -> bool:
    """Return True if a source is the address of a service."""
    return source.startswith(("http://", "https://"))


def fetch(url: str, path: str, scope: str) -> bytes:
    """Return the body of a path of a service; ``url`` may end with the path of a list.

    The key in the environment variable DISCREET_API_KEY is sent.
    """
    service = re.sub("(/v1/(releases|ledger))?/?$", "", url)
    transport = Transport(service, os.environ.get("DISCREET_API_KEY"), timeout=SECONDS, retries=0)
    try:
        return transport.get(path)
    except ServiceError as error:
        raise InvalidInput(
            f"service must answer GET {path}; {url} does not ({error.status or 'no answer'}). "
            f"Check the address, and DISCREET_API_KEY for a key with the scope {scope}."
        ) from None


def fetch_object(url: str, path: str, scope: str) -> JsonMapping:
    """Return the JSON object of a path of a service."""
    content = fetch(url, path, scope)
    with suppress(ValueError):
        document = json.loads(content)
        if isinstance(document, dict):
            return document
    raise CorruptRelease(f"{path} must be a JSON object; {url} sends none. Check the address.")


def signed_documents(path: str) -> list[bytes] | None:
    """Return the published documents of a file, one per line; None for other files."""
    try:
        contents = Path(path).read_bytes().splitlines()
        known = bool(contents) and json.loads(contents[0]).get("format") == FORMAT
    except (OSError, ValueError, AttributeError):
        return None  # the next reader reports the error
    return contents if known else None


def read_released(source: str) -> Released:
    """Return the releases of a file, of a file of signed documents, or of a service, verified."""
    contents = signed_documents(source) if not is_address(source) else _published(source)
    if contents is None:
        return Released.load(source)
    # The reader must know the operator's key; here it only links the chain.
    return Chain(str(json.loads(contents[0]).get("key"))).extended(contents).released


def _published(url: str) -> list[bytes]:
    """Return the signed documents of a service, in order."""
    entries, _ = _listed(fetch_object(url, "/v1/releases", "release:read"))
    return [fetch(url, f"/v1/releases/{number}", "release:read") for number, _ in entries]


def _listed(answer: Any) -> tuple[list[tuple[int, str]], int]:
    """Return number and digest of each listed document, and the number of the one in force."""
    try:
        entries = [(int(each["number"]), str(each["digest"])) for each in answer["releases"]]
        return entries, int(answer["current"])
    except (LookupError, TypeError, ValueError):
        raise CorruptRelease(
            "list of releases must have numbers and digests; this answer has not. "
            "Name the address of discreet serve, without a path."
        ) from None
