"""Pages on which an experiment is set up: draft of columns, errors by field, forecast, views.

Whether values are allowed is decided by the library alone; its errors are shown at the field that
they name.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from starlette.responses import Response

from discreet.data.files import pasted_columns
from discreet.design.control import Control
from discreet.design.outcome import OUTCOMES
from discreet.errors import DiscreetError, InvalidInput
from discreet.features.schema_file import NO_FEATURE, OF_PEOPLE, schema_of, schema_text, suggestions
from discreet.plan.config import build, from_config
from discreet.plan.noise_forecast import sample_sizes
from discreet.plan.plan import BUDGETS, FEATURES, GUARDRAILS, Plan
from discreet.privacy.accounting import person_event
from discreet.privacy.attacker import attacker, hundredths, odds_text
from discreet.privacy.budget import ONCE
from discreet.service.dashboard.experiment_form import (
    ROWS,
    SIMPLE,
    Edit,
    Fields,
    share_of,
    shown,
    table_at,
    tables_in,
    value_of,
)
from discreet.service.dashboard.page_frame import OWNERS, READERS, PageRequest
from discreet.service.experiment_file import FORM_EXAMPLE, rewritten
from discreet.service.runtime.hosted_experiments import CreationReply, HostedExperiments
from discreet.service.settings import experiment_name
from discreet.simulate.plan_forecast import forecast_sentences
from discreet.text import parse_toml
from discreet.types import JsonObject

EXPECTED = ("per_day", "mean", "difference")
"""Fields of the forecast, which are not settings of the experiment."""
RETURN = f"{NO_FEATURE} If people return, protect one person below, and send it as the user."
PLACES = {
    **{name: name for name in (*SIMPLE, "n_actions", "actions", "items", "unit", "share")},
    "experiment": "name",
    "action": "control_action",
    "control": "share",
    "guardrails": "guardrails",
    "budget_share": "guardrails_share",
    **dict.fromkeys(("reward", "loss", "outcome", "range"), "outcome"),
    **dict.fromkeys(("fields", "features", "schema", "products"), "columns"),
}
"""Words that an error begins with, and the field that they mean."""


def arranged(fields: Fields, do: str) -> Fields:
    """Return the rows of a list after a button that moves a row up or removes it."""
    found = re.fullmatch(rf"(up|remove)-({'|'.join(ROWS)})-(\d{{1,4}})", do)
    if found is None:
        return fields
    made, place = dict(fields), int(found[3])
    for name in ROWS[found[2]]:
        row = list(fields.get(name, ()))
        if place < len(row):
            each = row.pop(place)
            if found[1] == "up":
                row.insert(max(0, place - 1), each)
        made[name] = row
    return made


@dataclass(frozen=True)
class Draft:
    """Columns that a sample suggests, the reason for each, and those that should be left out."""

    columns: list[JsonObject]
    reasons: dict[str, str]
    left_out: dict[str, str]


def drafted(sample: str, known: Sequence[Mapping[str, object]]) -> Draft:
    """Suggest columns from pasted rows, which are forgotten; ``known`` columns stay as they are.

    Privacy: the rows may be of people. They are read in memory, and nothing but the suggestion
    leaves this function. [docs/many-experiments.md, "Set up an experiment"]
    """
    found, names = suggestions(pasted_columns(sample)), {each.get("name") for each in known}
    new = [each for each in found if each.name not in names]
    usable = [each for each in new if each.field is not None]
    if not usable and not known:
        schema_of(found)  # says that there is none
    text = schema_text(schema_of(usable)) if usable else "fields = []"
    left = [each for each in new if each.field is None]
    return Draft(
        parse_toml(text, "sample", "schema")["fields"],
        {each.name: each.reason for each in usable},
        {each.name: RETURN if each.reason == OF_PEOPLE else each.reason for each in left},
    )


def place_of(message: str) -> str:
    """Return the field that an error of the library is about; empty for one about the whole."""
    words = reversed(re.findall(r"\w+", message.partition(" must ")[0]))
    return next((PLACES[word] for word in words if word in PLACES), "")


def problems(document: JsonObject, check: Callable[[], object]) -> dict[str, str]:
    """Return the errors of the library by field; ``check`` reads the whole file."""
    plan, found = table_at(document, "plan"), dict[str, str]()
    checks: list[tuple[str, Callable[[], object]]] = [
        ("name", partial(experiment_name, str(document.get("experiment", ""))))
    ]
    for group, classes, rows in (
        ("col", FEATURES, table_at(plan, "features").get("fields")),
        ("item", FEATURES, table_at(plan, "actions", "schema").get("fields")),
        ("rail", GUARDRAILS, plan.get("guardrails")),
    ):
        what, usual = ("guardrail", {"kind": "Guardrail"}) if group == "rail" else ("column", {})
        for number, row in enumerate(tables_in(rows)):
            read = partial(from_config, classes, usual | row, what)
            checks.append((f"{group}-{number}", read))
    if budget := table_at(plan, "budget"):
        read = partial(from_config, BUDGETS, {"kind": "Budget", **budget}, "plan.budget")
        checks.append(("", read))
    if outcome := table_at(plan, "outcome"):
        checks.append(("outcome", partial(from_config, OUTCOMES, outcome, "plan.outcome")))
    if control := table_at(plan, "control"):
        checks.append(("", partial(build, Control, control, "control", {})))
    for place, attempt in [*checks, ("whole", check)]:
        if place == "whole" and found:
            break
        try:
            attempt()
        except DiscreetError as error:
            text = str(error)
            found.setdefault(place_of(text) if place in ("", "whole") else place, text)
    return found


@dataclass(frozen=True)
class Outlook:
    """Meaning of ε, and the forecast of a plan, in sentences; ``problems`` by field."""

    privacy: str = ""
    sentences: tuple[str, ...] = ()
    problems: dict[str, str] = field(default_factory=dict)


def outlook(plan: Plan, fields: Fields, clicks: bool) -> Outlook:
    """Return the forecast for expected traffic; ``clicks`` have means in per cent."""
    outcome = plan.outcome
    given: dict[str, Any] = {
        "per_day": 1_000.0,
        "mean": 0.1 if clicks else (outcome.low + outcome.high) / 2,
        "difference": (outcome.high - outcome.low) / 100,
    }
    for name in EXPECTED:
        if text := fields.get(name, [""])[0].strip():
            given[name] = share_of(text) if clicks and name != "per_day" else value_of(text)
    best = attacker(person_event(plan.event, plan.participation or ONCE))
    privacy = odds_text("user", hundredths(best.success, best.exact), exact=best.exact)
    try:
        epsilons = [plan.budget.epsilon]
        sizes = sample_sizes(plan, given["mean"], None, given["difference"], epsilons=epsilons)
        return Outlook(privacy, tuple(forecast_sentences(plan, sizes, given["per_day"])))
    except InvalidInput as error:
        first = str(error).split()[0]
        place = {"decisions": "per_day", "difference": "difference"}.get(first, "mean")
        return Outlook(privacy, problems={place: str(error)})


@dataclass
class Setup:
    """Everything that the page of a new experiment shows; only ``text`` is ever stored."""

    text: str
    view: str = "form"
    document: JsonObject = field(default_factory=dict)
    edit: Edit = field(default_factory=lambda: Edit({}, {}))
    draft: Draft | None = None
    sample: str = ""
    outlook: Outlook | None = None
    problems: dict[str, str] = field(default_factory=dict)


class SetupViews:
    """The page of a new experiment: a form and its file, with a forecast beside them."""

    def __init__(
        self,
        hosted: HostedExperiments,
        listed: Callable[[PageRequest, CreationReply], Awaitable[Response]],
    ) -> None:
        self._hosted, self._listed = hosted, listed

    async def new(self, page: PageRequest) -> Response:
        """Show the form, or do what its button says; only "create" stores anything."""
        if page.request.method == "GET":
            given = page.given("from")
            if given:
                page.permit(READERS, page.role_at(given))
            text = await asyncio.to_thread(self._hosted.copied, given) if given else FORM_EXAMPLE
            fields = {"toml": [text], "view": ["file"]}
            return self._page(page, await asyncio.to_thread(self._read, fields, "form"))
        do = page.given("do")
        setup = await asyncio.to_thread(self._read, page.fields, do or "check")
        if do != "create" or setup.problems:
            return self._page(page, setup, 422 if do == "create" else 200)
        try:
            made = await self._hosted.create(_name(setup), setup.text, page.by)
        except DiscreetError as error:  # somebody took the name, or the storage refuses it
            setup.problems[place_of(str(error))] = str(error)
            return self._page(page, setup, 422)
        if not page.may(OWNERS):  # the key has all rights of an owner
            made["admin_key"] = ""
        return await self._listed(page, made)

    async def again(self, page: PageRequest, message: str, code: int) -> Response:
        """Show what was typed after a failure, with its message; nothing is done."""
        setup = await asyncio.to_thread(self._read, page.fields, "")
        setup.problems[""] = message
        return self._page(page, setup, code)

    def _read(self, fields: Fields, do: str) -> Setup:
        """Return the page after a button; without one, exactly what was typed."""
        given = {name: fields.get(name, [""])[0] for name in ("toml", "view", "sample")}
        setup = Setup(given["toml"].replace("\r\n", "\n"), given["view"], sample=given["sample"])
        try:
            setup.document = parse_toml(setup.text, "the text", "experiment")
        except InvalidInput as error:
            setup.view, setup.problems = "file", {"file": str(error)}
            return setup
        if setup.view != "file":
            setup.edit = Edit(setup.document, arranged(fields, do))
            setup.problems |= setup.edit.problems
            setup.document = setup.edit.document
            if do.removeprefix("add-") in setup.edit.blank:
                setup.edit.blank[do.removeprefix("add-")] += 1
        if do == "sample":
            self._draft(setup)
        setup.text = rewritten(setup.text, setup.document)
        if do in ("file", "form") and not setup.problems:
            setup.view = do
        if do in ("create", "check") or (do == "file" and setup.view == "file"):
            check = partial(self._hosted.checked, _name(setup), setup.text)
            setup.problems = problems(setup.document, check) | setup.problems
        if do:
            with suppress(DiscreetError):
                clicks = shown(setup.document)["outcome"] == "click"
                setup.outlook = outlook(self._hosted.plan_of(setup.text), fields, clicks)
                setup.problems |= setup.outlook.problems if do == "check" else {}
        return setup

    @staticmethod
    def _draft(setup: Setup) -> None:
        plan = setup.document.setdefault("plan", {})
        old = table_at(plan, "features")
        known = tables_in(old.get("fields"))
        try:
            setup.draft = drafted(setup.sample, known)
        except InvalidInput as error:
            setup.problems["sample"] = str(error)
            return
        setup.sample = ""
        if setup.draft.columns:
            kept = dict(old) if old.get("kind", "Schema") == "Schema" else {}
            fields = {"fields": known + setup.draft.columns}
            plan["features"] = {"kind": "Schema"} | kept | fields

    @staticmethod
    def _page(page: PageRequest, setup: Setup, code: int = 200) -> Response:
        return page.render(
            "setup.html",
            code,
            setup=setup,
            form=shown(setup.document) | setup.edit.texts,
            problems=setup.problems,
            blank=setup.edit.blank,
            expected={name: page.given(name) for name in EXPECTED},
            copied=page.given("from"),
        )


def _name(setup: Setup) -> str:
    return str(setup.document.get("experiment", ""))
