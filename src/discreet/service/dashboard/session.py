"""Sessions: an encrypted, signed cookie, and the token that its forms must carry."""

from __future__ import annotations

import base64
import hmac
import json
import secrets
from dataclasses import astuple, dataclass

from cryptography.fernet import Fernet, InvalidToken

COOKIE = "discreet_session"
SECONDS = 8 * 3600
"""Seconds that a log-in lasts; logging out or revoking the key ends it immediately."""


@dataclass(frozen=True)
class Session:
    """The id of an API key, empty before the log-in, the token of this session's forms, and when
    it began by the database's clock."""

    key: str
    token: str
    began: float

    def issued(self, token: str) -> bool:
        """Return whether a form carries the token of this session; compared in constant time."""
        return hmac.compare_digest(self.token.encode(), token.encode())


class Sessions:
    """Writes and reads cookies; every worker can, since all workers have the vault's secret."""

    def __init__(self, mac: bytes) -> None:
        secret = hmac.digest(mac, b"sessions of the dashboard", "sha256")
        self._box = Fernet(base64.urlsafe_b64encode(secret))

    def begin(self, key: str, began: float) -> tuple[Session, str]:
        """A new session and its cookie."""
        session = Session(key, secrets.token_urlsafe(24), began)
        return session, self._box.encrypt(json.dumps(astuple(session)).encode()).decode()

    def read(self, cookie: str | None) -> Session | None:
        """The session of a valid cookie that is not too old; otherwise None."""
        try:
            return Session(*json.loads(self._box.decrypt((cookie or "").encode(), ttl=SECONDS)))
        except (InvalidToken, TypeError):  # altered, too old, or of an older version
            return None
