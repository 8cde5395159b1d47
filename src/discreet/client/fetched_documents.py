"""Published documents of a service or a file: one document, or all releases, verified."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from discreet.errors import CorruptRelease, InvalidInput
from discreet.releases.released import Released

SECONDS = 10
LARGEST = 2**26
"""Largest number of bytes of one document."""


def is_address(source: str) -> bool:
    """Return True if a source is the address of a service."""
    return source.startswith(("http://", "https://"))


def address_of(url: str, path: str) -> str:
    """Return the address of a document, from the address of its service."""
    named = urlsplit(url).path.rstrip("/")  # a service may lie below a path of its proxy
    return url if named.endswith(path) else f"{url.rstrip('/')}{path}"


def fetch(url: str, what: str, scope: str) -> bytes:
    """Return the bytes at an address; a key of the environment is sent."""
    from urllib.error import URLError
    from urllib.request import Request, urlopen

    key = os.environ.get("DISCREET_API_KEY")
    request = Request(url, headers={"Authorization": f"Bearer {key}"} if key else {})
    try:
        with urlopen(request, timeout=SECONDS) as answer:
            return bytes(answer.read(LARGEST))
    except (URLError, TimeoutError, OSError) as error:
        reason = getattr(error, "code", None) or getattr(error, "reason", None) or error
        raise InvalidInput(
            f"service must answer with its {what}; {url} does not ({reason}). Check the address, "
            f"and DISCREET_API_KEY for a key with the scope {scope}."
        ) from None


def fetch_object(url: str, what: str, scope: str) -> Mapping[str, Any]:
    """Return the JSON object at an address."""
    content = fetch(url, what, scope)
    try:
        document = json.loads(content)
    except ValueError:
        raise CorruptRelease(f"{what} must be JSON; {url} sends none. Check the address.") from None
    if not isinstance(document, dict):
        raise CorruptRelease(f"{what} must be a JSON object; {url} sends none. Check the address.")
    return document


def signed_documents(path: str) -> list[bytes] | None:
    """Return the published documents of a file, one per line; None for other files."""
    from discreet.client.documents import FORMAT

    try:
        contents = Path(path).read_bytes().splitlines()
        known = bool(contents) and json.loads(contents[0]).get("format") == FORMAT
    except (OSError, ValueError, AttributeError):
        return None  # the next reader reports the error
    return contents if known else None


def read_released(source: str) -> Released:
    """Return the releases of a file, of a file of signed documents, or of a service, verified."""
    contents = _published(source) if is_address(source) else signed_documents(source)
    if contents is None:
        return Released.load(source)
    from discreet.client.chain import Chain

    # The reader must know the operator's key; here it only links the chain.
    return Chain(str(json.loads(contents[0]).get("key"))).extended(contents).released


def _published(url: str) -> list[bytes]:
    """Return the signed documents of a service, in order."""
    list_of_all = address_of(url, "/v1/releases")
    listed = fetch_object(list_of_all, "releases", "release:read")
    try:
        numbers = [int(each["number"]) for each in listed["releases"]]
    except (LookupError, TypeError, ValueError):
        raise CorruptRelease(
            f"list of releases must have numbers; {list_of_all} sends none. Name the address of "
            "discreet serve, without a path."
        ) from None
    return [fetch(f"{list_of_all}/{number}", "releases", "release:read") for number in numbers]
