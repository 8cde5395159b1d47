"""Log-in, log-out and keys."""

from __future__ import annotations

from starlette.responses import Response

from discreet.errors import ServiceError
from discreet.service.dashboard.page_frame import (
    COOKIE,
    LOG_IN,
    READERS,
    PageRequest,
    Sessions,
    set_cookie,
)
from discreet.service.runtime.service import Service
from discreet.service.storage import api_keys
from discreet.service.storage.api_keys import SCOPES

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


async def log_in(page: PageRequest, _service: Service) -> Response:
    """A form for a key; a key with the scope audit or admin opens a session."""
    after = _page_of(page.given("next"))
    if page.request.method == "GET":
        return page.render("login.html", message="", after=after)
    refusal = "The key must be valid, with scope audit or admin; this key is invalid or lacks it."
    return await session_begun(page, READERS, after or "/ui", "login.html", refusal, after=after)


async def session_begun(
    page: PageRequest, scopes: tuple[str, ...], to: str, form: str, refusal: str, **values: str
) -> Response:
    """Begin a session for a key with one of the scopes; show the form again for other keys."""
    access, request = page.access, page.request
    try:
        key = api_keys.bearer(access.keys, f"Bearer {page.given('key')}")
        api_keys.permit(key, scopes)
    except ServiceError as error:
        peer = request.client.host if request.client else ""
        refused = access.refusals.count(error, dict(request.headers.raw), peer)
        return page.render(form, refused.status or 401, message=refusal, **values)
    access.log.event("logged in", by=key.id)
    # A new session: a session that someone prepared before the log-in must not gain rights.
    _, cookie = Sessions(access.session_secret).begin(key.id, await access.now())
    response = page.to(to)
    set_cookie(page, response, cookie)
    return response


def _page_of(text: str) -> str:
    """Return the page that a link led to before the log-in; empty for other addresses."""
    ours = text.startswith(("/ui?", "/ui/")) and text.isascii() and text.isprintable()
    return text if ours and len(text) <= LONGEST else ""


async def log_out(page: PageRequest, _service: Service | None = None) -> Response:
    """Afterwards copies of the cookie are worthless, and so are other sessions of this key."""
    await page.access.end_sessions(page.session.key)
    response = page.to(LOG_IN)
    response.delete_cookie(COOKIE, path=f"{page.root}/ui", httponly=True, samesite="strict")
    return response


async def keys(page: PageRequest, service: Service) -> Response:
    """All keys; the form creates one, and only this answer shows its text."""
    made = None
    if page.request.method == "POST":
        label = page.given("label")[:200]
        lasts = page.given("expires_in").strip() or None
        made = await service.create_key(page.fields.get("scope", []), label, lasts, by=page.by)
    shown = [key.shown() for key in await service.list_keys()]
    return page.render("keys.html", keys=shown[::-1], scopes=SCOPES, words=WORDS, made=made)


async def revoke(page: PageRequest, service: Service) -> Response:
    await service.revoke_key(page.given("id"), page.by)
    return page.to("/ui/keys")
