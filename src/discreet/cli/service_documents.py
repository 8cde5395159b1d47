"""Reads what a service publishes: one document, or all releases, verified."""

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
"""Bytes that are read of one document."""


def is_address(source: str) -> bool:
    """Whether a source is a service and not a file."""
    return source.startswith(("http://", "https://"))


def address_of(url: str, path: str) -> str:
    """The address of a document, where only the service itself was named."""
    named = urlsplit(url).path.rstrip("/")  # a service may lie below a path of its proxy
    return url if named.endswith(path) else f"{url.rstrip('/')}{path}"


def fetch(url: str, what: str, scope: str) -> bytes:
    """The bytes at an address; a key is sent if the environment holds one."""
    from urllib.error import URLError
    from urllib.request import Request, urlopen

    key = os.environ.get("DISCREET_API_KEY")
    request = Request(url, headers={"Authorization": f"Bearer {key}"} if key else {})
    try:
        with urlopen(request, timeout=SECONDS) as answer:
            return bytes(answer.read(LARGEST))
    except (URLError, TimeoutError, OSError) as error:
        told = getattr(error, "code", None) or getattr(error, "reason", None) or error
        raise InvalidInput(
            f"service must answer with its {what}; {url} does not ({told}). Check the address, "
            f"and DISCREET_API_KEY for a key with the scope {scope}."
        ) from None


def fetch_object(url: str, what: str, scope: str) -> Mapping[str, Any]:
    """The JSON object at an address."""
    content = fetch(url, what, scope)
    try:
        document = json.loads(content)
    except ValueError:
        raise CorruptRelease(f"{what} must be JSON; {url} sends none. Check the address.") from None
    if not isinstance(document, dict):
        raise CorruptRelease(f"{what} must be a JSON object; {url} sends none. Check the address.")
    return document


def signed_documents(path: str) -> list[bytes] | None:
    """The published documents of a file, one per line; None where it holds something else."""
    from discreet.client.documents import FORMAT

    try:
        contents = Path(path).read_bytes().splitlines()
        known = bool(contents) and json.loads(contents[0]).get("format") == FORMAT
    except (OSError, ValueError, AttributeError):
        return None  # whoever reads it next says what is wrong
    return contents if known else None


def read_released(source: str) -> Released:
    """The releases of a file, of a file of signed documents, or of a service, verified."""
    contents = _published(source) if is_address(source) else signed_documents(source)
    if contents is None:
        return Released.load(source)
    from discreet.client.chain import Chain

    # Whether the key is the operator's, the reader must know; here it holds the chain together.
    return Chain(str(json.loads(contents[0]).get("key"))).extended(contents).released


def _published(url: str) -> list[bytes]:
    """The signed documents of a service, in order."""
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
