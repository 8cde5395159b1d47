"""Log-in, log-out and keys."""

from __future__ import annotations

from starlette.responses import Response

from discreet.errors import ServiceError
from discreet.service.storage import api_keys
from discreet.service.storage.api_keys import SCOPES
from discreet.service.ui.page_frame import LOG_IN, READERS, Asked, set_cookie
from discreet.service.ui.session import COOKIE, Sessions

WORDS = {
    "decide": "ask for decisions",
    "observe": "report what came of them",
    "ticket": "let a device decide by itself",
    "release:read": "read releases",
    "audit": "look at these pages",
    "admin": "do everything",
}
"""What a scope lets a key do."""
LONGEST = 4096
"""Characters of a link that is kept while somebody logs in."""


async def log_in(asked: Asked) -> Response:
    """A form for a key; a key with the scope audit or admin opens a session."""
    after = _page_of(asked.given("next"))
    if asked.request.method == "GET":
        return asked.page("login.html", message="", after=after)
    said = "The key must be valid, with scope audit or admin; this key is invalid or lacks it."
    return await session_begun(asked, READERS, after or "/ui", "login.html", said, after=after)


async def session_begun(
    asked: Asked, scopes: tuple[str, ...], to: str, form: str, refusal: str, **values: str
) -> Response:
    """Lead whoever sent a key with one of the scopes to a page; show others the form again."""
    state, request = asked.service.state, asked.request
    try:
        key = api_keys.bearer(state.keys, f"Bearer {asked.given('key')}")
        api_keys.permit(key, scopes)
    except ServiceError as error:
        peer = request.client.host if request.client else ""
        refused = asked.refusals.count(error, dict(request.headers.raw), peer)
        return asked.page(form, refused.status or 401, message=refusal, **values)
    state.log.event("logged in", by=key.id)
    # A new session: a session that someone prepared before the log-in must not gain rights.
    now = await state.read(lambda c: c.execute(f"SELECT {state.database.now}").fetchone()[0])
    _, cookie = Sessions(state.vault.mac).begin(key.id, float(now))
    response = asked.to(to)
    set_cookie(asked, response, cookie)
    return response


def _page_of(text: str) -> str:
    """The page that a link led to before the log-in; nothing for what is no page of ours."""
    ours = text.startswith(("/ui?", "/ui/")) and text.isascii() and text.isprintable()
    return text if ours and len(text) <= LONGEST else ""


async def log_out(asked: Asked) -> Response:
    """Afterwards copies of the cookie are worthless, and so are other sessions of this key."""
    await asked.service.end_sessions(asked.session.key)
    response = asked.to(LOG_IN)
    response.delete_cookie(COOKIE, path=f"{asked.root}/ui", httponly=True, samesite="strict")
    return response


async def keys(asked: Asked) -> Response:
    """All keys; the form creates one, and only this answer shows its text."""
    made = None
    if asked.request.method == "POST":
        label = asked.given("label")[:200]
        lasts = asked.given("expires_in").strip() or None
        made = await asked.service.create_key(
            asked.fields.get("scope", []), label, lasts, by=asked.by
        )
    shown = [key.shown() for key in await asked.service.list_keys()]
    return asked.page("keys.html", keys=shown[::-1], scopes=SCOPES, words=WORDS, made=made)


async def revoke(asked: Asked) -> Response:
    await asked.service.revoke_key(asked.given("id"), asked.by)
    return asked.to("/ui/keys")
