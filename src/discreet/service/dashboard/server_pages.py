"""Pages of a server: its list of experiments, changes to them, and the form of a new one.

Whether values are allowed is decided by the library alone; its errors are shown at the field that
they name.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
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
from discreet.service.dashboard import experiment_form as form
from discreet.service.dashboard.experiment_form import Edit, Fields, table_at, tables_in
from discreet.service.dashboard.experiment_summary import Summary, summary
from discreet.service.dashboard.page_frame import ADMIN, HOME, OWNERS, READERS, ServerPage
from discreet.service.experiment_file import FORM_EXAMPLE, rewritten
from discreet.service.runtime.hosted_experiments import CreationReply, HostedExperiments
from discreet.service.runtime.service import Service
from discreet.service.settings import experiment_name
from discreet.service.storage.database import safe_name
from discreet.simulate.plan_forecast import forecast_sentences
from discreet.text import parse_toml
from discreet.types import JsonObject
from discreet.validate import one_of

PATIENCE = 2.0
"""Seconds that the list waits for the figures of one experiment; it shows the others without it."""
EXPECTED = ("per_day", "mean", "difference")
"""Fields of the forecast, which are not settings of the experiment."""
RETURN = f"{NO_FEATURE} If people return, protect one person below, and send it as the user."
FIELD_OF = {
    **{name: name for name in (*form.SIMPLE, "n_actions", "actions", "items", "unit", "share")},
    "experiment": "name",
    "action": "control_action",
    "control": "share",
    "guardrails": "guardrails",
    "budget_share": "guardrails_share",
    **dict.fromkeys(("reward", "loss", "outcome", "range"), "outcome"),
    **dict.fromkeys(("fields", "features", "schema", "products"), "columns"),
}
"""Words that an error begins with, and the field that they mean."""


async def experiments(page: ServerPage, made: CreationReply | None = None) -> Response:
    """List all experiments; the answer to a creation shows the new admin key, once."""
    hosted = page.site
    found = [each for each in await hosted.listed() if page.may(READERS, each["name"])]
    names = {each["name"] for each in found}
    services = {name: each for name, each in hosted.serving().items() if name in names}
    archived = await asyncio.to_thread(hosted.folder.archived)
    summaries = await asyncio.gather(*map(_summary, services.values()))
    return page.render(
        "server_list.html",
        experiments=found,
        changeable={name for name in names if page.may(ADMIN, name)},
        summaries=dict(zip(services, summaries, strict=True)),
        now=time.time(),
        made=made,
        archived=[name for name in archived if page.may(READERS, name)],
    )


async def _summary(service: Service) -> Summary | None:
    """Return the summary, or None if it cannot be read now; the others are listed all the same."""
    try:
        return await asyncio.wait_for(summary(service), PATIENCE)
    except Exception as error:
        service.state.log.failure("request failed", kind=safe_name(error), route="/ui", status=503)
        return None


async def change(page: ServerPage) -> Response:
    """Pause, resume, end or archive; what cannot be undone is confirmed by typing the name."""
    name, what, hosted = page.given("name"), page.given("what"), page.site
    page.permit(ADMIN, page.role_at(name))
    if what in ("end", "archive") and page.given("typed").strip() != name:
        raise InvalidInput(
            "name must be typed to confirm; it differs. Nothing was changed: type it again."
        )
    changes = {"pause": hosted.pause, "resume": hosted.resume, "end": hosted.end}
    if what == "archive":
        await hosted.archive(name, page.given("burn") == "burn", page.by)
    else:
        await changes[one_of("what", what, changes)](name, page.by)
    return page.redirect(HOME)


def arranged(fields: Fields, do: str) -> Fields:
    """Return the rows of a list after a button that moves a row up or removes it."""
    found = re.fullmatch(rf"(up|remove)-({'|'.join(form.ROWS)})-(\d{{1,4}})", do)
    if found is None:
        return fields
    made, number = dict(fields), int(found[3])
    for name in form.ROWS[found[2]]:
        row = list(fields.get(name, ()))
        if number < len(row):
            each = row.pop(number)
            if found[1] == "up":
                row.insert(max(0, number - 1), each)
        made[name] = row
    return made


def field_of(message: str) -> str:
    """Return the field that an error of the library is about; empty for one about the whole."""
    words = reversed(re.findall(r"\w+", message.partition(" must ")[0]))
    return next((FIELD_OF[word] for word in words if word in FIELD_OF), "")


def problems(document: JsonObject, check: Callable[[], object]) -> dict[str, str]:
    """Return the errors of the library by field; ``check`` reads the whole file."""
    found: dict[str, str] = {}

    def attempt(name: str, read: Callable[..., object], *given: object) -> None:
        try:
            read(*given)
        except DiscreetError as error:
            found.setdefault(name or field_of(str(error)), str(error))

    plan = table_at(document, "plan")
    attempt("name", experiment_name, str(document.get("experiment", "")))
    columns = tables_in(table_at(plan, "features").get("fields"))
    for number, row in enumerate(columns):
        attempt(f"col-{number}", from_config, FEATURES, row, "column")
    columns = tables_in(table_at(plan, "actions", "schema").get("fields"))
    for number, row in enumerate(columns):
        attempt(f"item-{number}", from_config, FEATURES, row, "column")
    for number, row in enumerate(tables_in(plan.get("guardrails"))):
        guardrail = {"kind": "Guardrail"} | row
        attempt(f"rail-{number}", from_config, GUARDRAILS, guardrail, "guardrail")
    if budget := table_at(plan, "budget"):
        attempt("", from_config, BUDGETS, {"kind": "Budget", **budget}, "plan.budget")
    if outcome := table_at(plan, "outcome"):
        attempt("outcome", from_config, OUTCOMES, outcome, "plan.outcome")
    if control := table_at(plan, "control"):
        attempt("", build, Control, control, "control", {})
    if not found:
        attempt("", check)
    return found


@dataclass
class Setup:
    """Everything that the page of a new experiment shows; only ``text`` is ever stored."""

    text: str
    view: str = "form"
    sample: str = ""
    document: JsonObject = field(default_factory=dict)
    edit: Edit = field(default_factory=lambda: Edit({}, {}))
    problems: dict[str, str] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    """Why the sample suggests a column."""
    left_out: dict[str, str] = field(default_factory=dict)
    """Columns of the sample that should be left out, and why."""
    privacy: str = ""
    forecast: list[str] = field(default_factory=list)
    unforeseen: dict[str, str] = field(default_factory=dict)
    """Errors of the expected traffic by field."""

    @property
    def name(self) -> str:
        return str(self.document.get("experiment", ""))

    def draft(self) -> None:
        """Add the columns that the pasted rows suggest; known columns stay as they are.

        Privacy: the rows may be of people. They are read in memory and forgotten; nothing but the
        suggestion stays. [docs/many-experiments.md, "Set up an experiment"]
        """
        plan = self.document.setdefault("plan", {})
        features = table_at(plan, "features")
        known = tables_in(features.get("fields"))
        names = {each.get("name") for each in known}
        try:
            found = suggestions(pasted_columns(self.sample))
            new = [each for each in found if each.name not in names]
            usable = [each for each in new if each.field is not None]
            if not usable and not known:
                schema_of(found)  # raises, since there is none
            text = schema_text(schema_of(usable)) if usable else "fields = []"
            columns = parse_toml(text, "sample", "schema")["fields"]
        except InvalidInput as error:
            self.problems["sample"] = str(error)
            return
        self.sample = ""
        self.reasons = {each.name: each.reason for each in usable}
        for each in new:
            if each.field is None:
                self.left_out[each.name] = RETURN if each.reason == OF_PEOPLE else each.reason
        if columns:
            old = dict(features) if features.get("kind", "Schema") == "Schema" else {}
            plan["features"] = {"kind": "Schema"} | old | {"fields": known + columns}

    def foresee(self, plan: Plan, fields: Fields) -> None:
        """Add the meaning of ε, and the forecast for the expected traffic."""
        outcome = plan.outcome
        clicks = form.shown(self.document)["outcome"] == "click"  # their means are in per cent
        given: dict[str, Any] = {
            "per_day": 1_000.0,
            "mean": 0.1 if clicks else (outcome.low + outcome.high) / 2,
            "difference": (outcome.high - outcome.low) / 100,
        }
        for name in EXPECTED:
            if text := fields.get(name, [""])[0].strip():
                given[name] = (
                    form.share_of(text) if clicks and name != "per_day" else form.value_of(text)
                )
        best = attacker(person_event(plan.event, plan.participation or ONCE))
        right = hundredths(best.success, best.exact)
        self.privacy = odds_text("user", right, exact=best.exact)
        try:
            epsilons = [plan.budget.epsilon]
            sizes = sample_sizes(plan, given["mean"], None, given["difference"], epsilons=epsilons)
            self.forecast = [*forecast_sentences(plan, sizes, given["per_day"])]
        except InvalidInput as error:
            first = str(error).split()[0]
            name = {"decisions": "per_day", "difference": "difference"}.get(first, "mean")
            self.unforeseen = {name: str(error)}


async def new(page: ServerPage) -> Response:
    """Show the form, or act on its button; only "create" stores anything."""
    hosted = page.site
    if page.request.method == "GET":
        given = page.given("from")
        if given:
            page.permit(READERS, page.role_at(given))
        text = await asyncio.to_thread(hosted.copied, given) if given else FORM_EXAMPLE
        fields = {"toml": [text], "view": ["file"]}
        return _form(page, await asyncio.to_thread(read_setup, hosted, fields, "form"))
    do = page.given("do")
    setup = await asyncio.to_thread(read_setup, hosted, page.fields, do or "check")
    if do != "create" or setup.problems:
        return _form(page, setup, 422 if do == "create" else 200)
    try:
        made = await hosted.create(setup.name, setup.text, page.by)
    except DiscreetError as error:  # somebody took the name, or the storage refuses it
        setup.problems[field_of(str(error))] = str(error)
        return _form(page, setup, 422)
    if not page.may(OWNERS):  # the key has all rights of an owner
        made["admin_key"] = ""
    return await experiments(page, made)


async def new_again(page: ServerPage, message: str, code: int) -> Response:
    """Show what was typed after a failure, with its message; nothing is done."""
    setup = await asyncio.to_thread(read_setup, page.site, page.fields, "")
    setup.problems[""] = message
    return _form(page, setup, code)


def read_setup(hosted: HostedExperiments, fields: Fields, do: str) -> Setup:
    """Return the page after a button; without one, exactly what was typed."""
    text, view, sample = (fields.get(name, [""])[0] for name in ("toml", "view", "sample"))
    setup = Setup(text.replace("\r\n", "\n"), view, sample)
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
        setup.draft()
    setup.text = rewritten(setup.text, setup.document)
    if do in ("file", "form") and not setup.problems:
        setup.view = do
    if do in ("create", "check") or (do == "file" and setup.view == "file"):
        found = problems(setup.document, lambda: hosted.checked(setup.name, setup.text))
        setup.problems = found | setup.problems
    if do:
        with suppress(DiscreetError):
            setup.foresee(hosted.plan_of(setup.text), fields)
    if do == "check":
        setup.problems |= setup.unforeseen
    return setup


def _form(page: ServerPage, setup: Setup, code: int = 200) -> Response:
    return page.render(
        "setup.html",
        code,
        setup=setup,
        form=form.shown(setup.document) | setup.edit.texts,
        problems=setup.problems,
        blank=setup.edit.blank,
        expected={name: page.given(name) for name in EXPECTED},
        copied=page.given("from"),
    )
