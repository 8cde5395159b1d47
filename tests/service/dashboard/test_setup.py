"""The form of a new experiment and its file are two views of one thing; nothing else is stored."""

import asyncio
import copy
import re
import tomllib
from contextlib import asynccontextmanager
from html import unescape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet import Budget, Plan, UnitBall
from discreet.service.dashboard import experiment_form
from discreet.service.dashboard.experiment_form import Edit, shown
from discreet.service.dashboard.server_pages import Setup, arranged
from discreet.service.experiment_file import EXPERIMENT_EXAMPLE, FORM_EXAMPLE, rewritten
from discreet.service.runtime.hosted_experiments import HostedExperiments
from discreet.service.settings import Settings
from service.hosting import Folder, hosting

COLUMNS = """
[plan.features]
kind = "Schema"
squares = false
products = [["age", "device"]]
fields = [
  { kind = "Number", name = "age", low = 1, high = 120.5, log = true, stand_in = 40 },  # years
  { kind = "Category", name = "device", values = ["phone", "desk, large"], indicator = true },
  { kind = "Category", name = "stars", values = [1, 2, 3], other = true },
  { kind = "Hashed", name = "town", width = 32 },
  { kind = "Date", name = "at", parts = ["month"] },
  { kind = "Flag", name = "member" },
]
[plan.budget]
epsilon = 4          # more than usual
delta = 1e-05
"""
FILES = {
    "example": EXPERIMENT_EXAMPLE,
    "people": f"""experiment = "people"  # whose?
unit = "user"
batches_per_user = 3
lease = 8
[plan]
n_actions = 4
growth = 2.0
outcome = {{ kind = "Loss", low = -1, high = 3, clip = true }}
control = {{ share = 0.07, action = 2, budget_share = 0.2 }}
policy = {{ kind = "AdaptivePO" }}
{COLUMNS}""",
    "names": f"""experiment = "names"
question = "Which one? \\"A\\" < B"
[plan]
actions = ["none", "mail", "call"]
outcome = {{ kind = "Reward", low = 0, high = 50 }}
control = {{ share = 0.25, action = 1 }}
longest_batch = 4096
close_every = "7d"
guardrails = [{{ limit = 0.02, name = "complaints", high = 1.0 }}]  # watched
{COLUMNS}""",
    "catalogue": """experiment = "films"
[plan]
budget = { epsilon = 1.0, delta = 1e-6 }
features = { kind = "UnitBall", dimension = 2 }
[plan.actions]
items = [{ id = "M", year = 1931, colour = false }, { id = "Heat", year = 1995, colour = true }]
[plan.actions.schema]
kind = "Schema"
fields = [
  { kind = "Number", name = "year", low = 1900, high = 2030 }, { kind = "Flag", name = "colour" },
]
""",
}
SAMPLE = "device,age,email\n" + "".join(
    f"{'phone' if i % 2 else 'desk'},{20 + i * i % 37},zz-marker-{i}@example.org\n"
    for i in range(30)
)


INPUT = re.compile(r"<(input|textarea|select|option)\b([^>]*)>([^<]*)")


def fields_of(page):
    """The texts that a browser would send with the last form of a page."""
    fields, select = {}, ""
    form = page.text.rpartition("<form")[2].partition("</form>")[0]
    for tag, attributes, text in INPUT.findall(form):
        found = re.findall(r'([\w-]+)(?:="([^"]*)")?', attributes)
        given = {name: unescape(value) for name, value in found}
        if tag == "select":
            select = given["name"]
        elif tag == "textarea":
            text = unescape(text).removeprefix("\n").replace("\n", "\r\n")
            fields.setdefault(given["name"], []).append(text)
        elif {"checked", "selected"} & {*given} or (
            tag == "input" and given.get("type") != "radio"
        ):
            fields.setdefault(given.get("name", select), []).append(given.get("value", ""))
    return fields


def sent(page, **changes):
    """The form of a page after somebody typed; ``None`` leaves a field out."""
    fields = fields_of(page) | changes
    return {name: value for name, value in fields.items() if value is not None}


def file_of(page):
    return fields_of(page)["toml"][0].replace("\r\n", "\n")


def wrong(page):
    found = re.findall(r'class="wrong" id="wrong-([\w-]*)" role="alert">(.*?)</p>', page.text)
    return {place: unescape(text) for place, text in found}


@pytest.fixture
def folder(tmp_path):
    return Folder(tmp_path / "server", [])


@asynccontextmanager
async def visiting(folder):
    async with hosting(folder) as (asking, hosted):
        await asking.log_in(folder.key)
        yield asking, hosted


async def opened(asking, text):
    """The form of a text, by way of the file view."""
    return await asking.send("/ui/new", view="file", toml=text, do="form")


FILLED = {
    "name": "greeting",
    "question": "Which greeting <i>helps</i>?",
    "action": ["none", "mail", "call"],
    "col_name": ["age"],
    "col_kind": ["Number"],
    "col_low": ["0"],
    "col_high": ["120"],
    "col_was": [""],
    "col_missing": ["refused"],
    "control_action": "none",
}


async def test_a_file_comes_back_from_the_form_byte_by_byte(folder):
    async with visiting(folder) as (asking, _):
        for name, text in FILES.items():
            form = await opened(asking, text)
            assert file_of(form) == text, name
            back = await asking.send("/ui/new", **sent(form, do="file"))
            assert 'id="toml"' in back.text
            assert file_of(back) == text, name


@pytest.mark.parametrize(
    ("name", "typed", "keys", "value"),
    [
        ("epsilon", "0.5", ("plan", "budget", "epsilon"), 0.5),
        ("question", "", ("question",), None),
        ("share", "30", ("plan", "control", "share"), 0.3),
        ("control_action", "call", ("plan", "control", "action"), "call"),
        ("window", "6h", ("window",), "6h"),
        ("first_batch", "many", ("plan", "first_batch"), "many"),
        ("outcome", "click", ("plan", "outcome"), {"kind": "Reward", "low": 0, "high": 1}),
        ("high", "60", ("plan", "outcome"), {"kind": "Reward", "low": 0, "high": 60}),
        ("unit", "user", ("unit",), "user"),
        ("action", ["none", " mail ", ""], ("plan", "actions"), ["none", "mail"]),
        ("guardrails_share", "20", ("plan", "guardrails_share"), 0.2),
        ("rail_name", [], ("plan", "guardrails"), None),
    ],
)
def test_one_change_of_the_form_changes_one_value_of_the_file(name, typed, keys, value):
    document = tomllib.loads(FILES["names"])
    fields = {name: typed if isinstance(typed, list) else [typed]}
    made = Edit(document, fields).document
    expected = copy.deepcopy(document)
    *tables, last = keys
    inner = expected
    for key in tables:
        inner = inner[key]
    inner.pop(last, None)
    if value is not None:
        inner[last] = value
    assert made == expected
    text = rewritten(FILES["names"], made)
    assert tomllib.loads(text) == expected
    assert "# years" in text, "comments are kept"


def rails(**columns):
    """Fields of the rows of guardrails; what is not named has its default."""
    rows = len(columns["name"])
    usual = {"was": "", "low": "0", "high": "1", "worse": "higher", "limit": "0"}
    columns = {key: [text] * rows for key, text in usual.items()} | columns
    return {f"rail_{key}": texts for key, texts in columns.items()}


def test_guardrails_of_the_form_are_those_of_the_file():
    document = tomllib.loads(FILES["names"])
    names, was = ["complaints", "minutes", ""], ["0", "", ""]
    fields = rails(was=was, name=names, high=["1", "60", "1"], limit=["0.02", "0", "0"])
    made = Edit(document, fields | {"rail_worse": ["higher", "lower", "higher"]})
    minutes = {"name": "minutes", "high": 60, "worse": "lower"}
    assert made.document["plan"].pop("guardrails") == [*document["plan"]["guardrails"], minutes]
    assert made.blank["rail"] == 1
    del document["plan"]["guardrails"]
    assert made.document == document
    assert "guardrails" not in Edit(document, rails(name=[""])).document["plan"]


WORD = st.text(st.characters(codec="utf-8", exclude_characters="\r"), max_size=12)
ROW = st.fixed_dictionaries(
    {
        "name": WORD,
        "kind": st.sampled_from([*experiment_form.KEYS, "Nonsense", ""]),
        "low": st.sampled_from(["", "0", "-1.5", "1e400", "x"]),
        "high": st.sampled_from(["", "5", "nan"]),
        "values": WORD,
        "was": st.sampled_from(["", "0", "1", "7", "x"]),
        "missing": st.sampled_from(["refused", "indicator", "stand_in"]),
    }
)


@given(
    st.sampled_from([*FILES.values(), FORM_EXAMPLE, "", 'plan = "x"\n']),
    st.lists(ROW, max_size=3),
    st.dictionaries(
        st.sampled_from([*experiment_form.SIMPLE, "share", "low", "items", "n_actions"]), WORD
    ),
    st.sampled_from(["names", "items", "count"]),
)
def test_whatever_is_typed_is_in_the_file_and_shown_again(text, rows, simple, kind):
    """The file of a form is TOML, and the form of that file shows what was typed."""
    fields = {name: [value] for name, value in simple.items()} | {"actions_kind": [kind]}
    for key in ("name", "kind", "low", "high", "values", "was", "missing"):
        fields[f"col_{key}"] = [row[key] for row in rows]
    made = Edit(tomllib.loads(text), fields)
    again = shown(tomllib.loads(rewritten(text, made.document)))
    for name in experiment_form.SIMPLE:
        numeric = isinstance(experiment_form.value_of(simple.get(name, "").strip()), (int, float))
        of_user = name in experiment_form.OF_USER and again["unit"] != "user"
        if name in simple and not numeric and not of_user:
            assert again[name] == simple[name].strip(), name
    named = [row["name"].strip() for row in rows if row["name"].strip()]
    assert [each["name"] for each in again["col"] if each["name"]] == named or not rows


def test_the_control_stays_the_same_action_when_actions_move():
    document = tomllib.loads(FILES["names"])  # the control is action 1, "mail"
    moved = Edit(document, {"action": ["mail", "none", "call"]}).document
    assert moved["plan"]["control"]["action"] == "mail"
    renamed = Edit(document, {"action": ["none", "letter", "call"]}).document
    assert renamed["plan"]["control"]["action"] == 1
    same = Edit(document, {"action": ["none", "mail", "call"]}).document
    assert same == document


def test_rows_move_and_leave():
    fields = {"action": ["a", "b", "c"], "col_name": ["x", "y"], "col_low": ["1", "2"]}
    assert arranged(fields, "up-action-2")["action"] == ["a", "c", "b"]
    assert arranged(fields, "up-action-0")["action"] == ["a", "b", "c"]
    gone = arranged(fields, "remove-col-0")
    assert (gone["col_name"], gone["col_low"]) == (["y"], ["2"])
    for button in ("remove-col-9", "remove-x-1", "check"):
        assert arranged(fields, button)["col_name"] == ["x", "y"]


async def test_from_an_empty_form_to_an_experiment_that_decides(folder):
    async with visiting(folder) as (asking, _):
        page = await asking.get("/ui/new")
        assert "appears when actions and columns are complete" in page.text
        page = await asking.send("/ui/new", **sent(page, **FILLED, do="add-action"))
        assert wrong(page) == {}
        assert fields_of(page)["action"] == ["none", "mail", "call", ""]
        stated = re.search(r'id="forecast".*?</section>', page.text, re.S)[0]
        assert re.search(r"your data are in it \d+ times in 100; a coin gives 50", stated)
        assert "until a difference of 1 percentage point" in stated
        assert "personal choices begin to help after about" in stated
        slower = await asking.send("/ui/new", **sent(page, do="check", per_day="10"))
        assert stated not in slower.text, "the forecast follows the expected traffic"
        shown_file = file_of(slower)
        made = await asking.send("/ui/new", **sent(slower, do="create"))
        key = re.search(r"dk_[\w-]+", made.text)[0]
        assert folder.file("greeting", "experiment.toml").read_text() == shown_file
        body = {"context": {"age": 41}}
        path = "/v1/experiments/greeting/decide"
        status, answer = await asking.call("POST", path, key, body)
        assert (status, answer["stored"]) == (200, True)
        assert "Which greeting &lt;i&gt;helps&lt;/i&gt;?" in (await asking.get("/ui")).text
        changes = await asking.call("GET", "/v1/experiments/greeting/changes", key)
        begun = next(each for each in changes[1]["changes"] if each["what"] == "begun")
        assert begun["by"] == folder.key.split("_")[1], "the history names who began it"
    settings = Settings.read(folder.file("greeting", "experiment.toml"))
    assert settings.question == FILLED["question"]
    async with visiting(folder) as (asking, hosted):  # after a restart
        assert hosted.served["greeting"].service.settings.question == FILLED["question"]
        assert "greeting" in (await asking.get("/ui")).text


ERRORS = [
    ({"name": "Not Good"}, "name", "small letters"),
    ({"epsilon": "1,5"}, "epsilon", "number"),
    ({"delta": "2"}, "delta", "[0, 1)"),
    ({"action": ["only"]}, "actions", "two or more"),
    ({"share": "120"}, "share", "below 1"),
    ({"control_action": "other"}, "control_action", "an action of the plan"),
    ({"longest_batch": "3"}, "longest_batch", "in [64"),
    ({"close_every": "soon"}, "close_every", "with a unit"),
    ({"unit": "user", "batches_per_user": "x"}, "batches_per_user", "whole number"),
    ({"outcome": "reward", "low": "5", "high": "1"}, "outcome", "low < high"),
    ({"col_high": ["-5"]}, "col-0", "low < high"),
    ({"col_name": ["age"] * 2, "col_kind": ["Flag"] * 2}, "columns", "distinct names"),
    ({"actions_kind": "items", "items": "id,year\nM"}, "items", "line 2"),
    ({"actions_kind": "count", "n_actions": "1"}, "n_actions", "at least 2"),
    (rails(name=["ok", "m"], low=["0", "5"]), "rail-1", "low < high"),
    (rails(name=["a", "b", "c", "d"]), "guardrails", "one to 3"),
    (rails(name=["a"]) | {"guardrails_share": "0"}, "guardrails_share", "positive"),
]
"""What is typed, the field that is wrong, and a part of the message."""


async def test_errors_of_the_library_stand_at_their_field(folder):
    async with visiting(folder) as (asking, hosted):
        page = await asking.get("/ui/new")
        for changes, place, stated in ERRORS:
            refused = await asking.send("/ui/new", **sent(page, **FILLED | changes, do="create"))
            assert refused.status == 422
            assert stated in wrong(refused)[place], wrong(refused)
            kept = fields_of(refused)
            for name, value in changes.items():
                texts = value if isinstance(value, list) else [value]
                if name not in ("control_action", "rail_was"):
                    shown_again = [each.strip().replace("\r\n", "\n") for each in kept[name]]
                    assert shown_again[: len(texts)] == texts, name
        assert hosted.served == {}


async def test_errors_of_the_forecast_stand_at_their_field(folder):
    async with visiting(folder) as (asking, _):
        first = await asking.get("/ui/new")
        for place, text in (("per_day", "0"), ("mean", "101"), ("difference", "1e999")):
            typed = sent(first, **FILLED, **{place: text}, do="check")
            page = await asking.send("/ui/new", **typed)
            assert place in wrong(page)
            assert "a coin gives 50" in page.text, "what ε means does not depend on it"
            assert fields_of(page)[place] == [text]
        made = await asking.send("/ui/new", **sent(page, do="create"))
        assert "dk_" in made.text, "a forecast is no setting"


def test_the_mean_of_an_amount_is_no_percentage():
    fields = {"mean": ["0.2"], "difference": ["0.1"], "per_day": ["1e-300"]}
    plan = Plan(n_actions=2, features=UnitBall(2), budget=Budget(4.0, 1e-6))  # losses in [0, 1]
    for kind, points in (("Loss", "10"), ("Reward", "0.1")):
        outcome = {"kind": kind, "low": 0, "high": 1}
        setup = Setup("", document={"plan": {"outcome": outcome}})
        setup.foresee(plan, fields)
        assert f"a difference of {points} percentage points" in setup.forecast[0]


async def test_a_text_that_is_no_toml_stays_as_it_was_typed(folder):
    async with visiting(folder) as (asking, _):
        typed = "window = \n<b>& é"
        for do in ("form", "check", "create"):
            page = await asking.send("/ui/new", view="file", toml=typed, do=do)
            assert file_of(page) == typed
            assert "must be TOML" in page.text
        page = await asking.send("/ui/new", view="file", toml=FILES["names"] + "x = 1", do="create")
        assert page.status == 422
        assert file_of(page).endswith("x = 1")


async def test_what_was_typed_survives_every_failure(folder, monkeypatch):
    async def full(*_):
        raise OSError("disk full")

    async with visiting(folder) as (asking, hosted):

        def kept(reply, status):
            assert (reply.status, hosted.served) == (status, {})
            fields = fields_of(reply)
            assert fields["question"] == [FILLED["question"]]
            return fields

        page = await asking.get("/ui/new")
        typed = sent(page, **FILLED, do="create")
        kept(await asking.ask("POST", "/ui/new", typed | {"token": "foreign"}), 403)
        with monkeypatch.context() as patch:
            patch.setattr(HostedExperiments, "create", full)
            kept(await asking.send("/ui/new", **typed), 503)
        items = "id,year\n" + f"{'x' * 1000},1931\n" * 300
        large = await asking.send("/ui/new", **typed | {"actions_kind": "items", "items": items})
        assert kept(large, 413)["items"][0].replace("\r\n", "\n").strip() == items.strip()
        await asking.send("/ui/logout")
        signed_out = await asking.ask("POST", "/ui/new", typed | {"sample": SAMPLE})
        assert "zz-marker" not in signed_out.text
        fields = kept(signed_out, 401)
        await asking.log_in(folder.key)
        again = await asking.ask("POST", "/ui/new", fields)
        kept(again, 403)
        assert (await asking.send("/ui/new", **sent(again, do="create"))).status == 200
        assert "greeting" in hosted.served


async def test_only_the_key_of_the_server_opens_it(folder):
    folder.add("a")
    async with hosting(folder) as (asking, _):
        assert (await asking.get("/ui/new")).headers["location"] == "/ui/login"
        assert (await asking.log_in(folder.keys["a"])).status == 401
        assert (await asking.get("/ui/new?from=a")).status == 303
        await asking.log_in(folder.key)
        assert (await asking.get("/ui/new?from=a")).status == 200
        for name in ("none", "../a", "a/../a", ".."):
            assert (await asking.get(f"/ui/new?from={name}")).status == 404


async def test_a_file_on_the_server_is_not_read(folder, tmp_path):
    (tmp_path / "items.csv").write_text("id,year,colour\nzz-marker,1931,1\nb,1995,0\n")
    text = FILES["catalogue"].replace(
        re.search(r"items = .*", FILES["catalogue"])[0], f'items = "{tmp_path}/items.csv"'
    )
    async with visiting(folder) as (asking, _):
        written_out = await opened(asking, FILES["catalogue"])
        assert "personal choices begin to help" in written_out.text
        for do in ("form", "check", "create"):
            page = await asking.send("/ui/new", view="file", toml=text, do=do)
            assert "zz-marker" not in page.text
            assert "The forecast appears when" in page.text, "nothing was computed from it"
            assert page.status == 200 or "must be left out" in page.text


async def test_a_sample_is_used_and_neither_stored_nor_logged(folder, capfd):
    async with visiting(folder) as (asking, hosted):
        page = await asking.get("/ui/new")
        typed = sent(page, **FILLED, sample=SAMPLE, do="sample")
        page = await asking.send("/ui/new", **typed)
        assert "zz-marker" not in page.text, "used once, it is not sent back"
        text = unescape(page.text)
        assert "<b>email</b>: It identifies people" in text
        names = fields_of(page)["col_name"]
        assert names == ["age", "device"], "a column that was there stays as it was"
        assert fields_of(page)["col_high"][0] == "120"
        odd = SAMPLE + "phone,41\n"
        refused = await asking.send("/ui/new", **sent(page, sample=odd, do="sample"))
        assert "must have 3 columns" in wrong(refused)["sample"]
        assert "zz-marker" not in wrong(refused)["sample"]
        assert fields_of(refused)["sample"][0].replace("\r\n", "\n") == odd
        made = await asking.send("/ui/new", **sent(refused, do="create"))
        assert "dk_" in made.text
        assert "greeting" in hosted.served
    logged = "".join(capfd.readouterr())
    assert "experiment created" in logged
    assert "zz-marker" not in logged
    files = [path for path in folder.path.parent.rglob("*") if path.is_file()]
    assert len(files) > 5
    assert [path for path in files if b"zz-marker" in path.read_bytes()] == []


def test_a_sample_in_json_lines():
    setup = Setup("", sample='{"a": [1]}')
    setup.draft()
    assert ("must" in setup.problems["sample"], setup.sample) == (True, '{"a": [1]}')
    rows = [f'{{"age": {20 + i * i % 37}, "paid": {["true", "false"][i % 2]}}}' for i in range(30)]
    setup = Setup("", sample="\n".join([*rows, '{"paid": null, "age": 1e999}']))
    setup.draft()
    columns = setup.document["plan"]["features"]["fields"]
    assert {each["name"]: each["kind"] for each in columns} == {"age": "Number", "paid": "Flag"}
    assert all(each["indicator"] for each in columns), "both are missing once"


async def test_duplicate_and_archive(folder):
    text = FILES["names"].replace('experiment = "names"', 'database = "discreet.db"')
    folder.keys["first"] = folder.held.new("first", text).admin_key
    body = {"context": {"at": "2026-01-01", "device": "phone", "stars": 1, "town": "B"}}
    body["context"] |= {"member": True, "age": 3}
    base = "/v1/experiments/first"

    async with visiting(folder) as (asking, _):
        key = folder.keys["first"]
        form = await asking.get("/ui/new?from=first")
        assert fields_of(form)["name"] == ["first-2"]
        assert "database" not in file_of(form)
        assert "# years" in file_of(form)
        assert (await asking.send("/ui/new", **sent(form, do="create"))).status == 200
        document = await asking.get(f"{base}/releases/0", authorization=f"Bearer {key}")
        reply = await asking.send("/ui/change", name="first", what="archive", typed="first")
        assert reply.status == 303
        page = await asking.get("/ui")
        assert re.search(r'id="archived".*?/v1/experiments/first/ui', page.text, re.S)
        assert "Pause first-2" in page.text
        assert 'id="name-first"' not in page.text
        form = await asking.get("/ui/new?from=first")
        assert fields_of(form)["name"] == ["first-3"]
        listed = (await asking.call("GET", "/v1/experiments", folder.key))[1]
        assert listed["archived"] == ["first"]
        document = document.text
    async with visiting(folder) as (asking, hosted):
        key = folder.keys["first"]
        for path in ("decide", "tickets", "observe", "activate", "admin/mode", "admin/keys"):
            status, answer = await asking.call("POST", f"{base}/{path}", key, body)
            assert (status, answer["error"]["code"]) == (410, "archived"), path
        head = {"authorization": f"Bearer {key}"}
        assert (await asking.get(f"{base}/releases/0", **head)).text == document
        for path in ("ledger", "schema", "status", "changes"):
            assert (await asking.get(f"{base}/{path}", **head)).status == 200
        changes = (await asking.call("GET", f"{base}/changes", key))[1]["changes"]
        author = folder.key.split("_")[1]
        assert [(each["what"], each["by"]) for each in changes[:2]] == [
            ("archived", author),
            ("mode changed", author),
        ]
        assert (await asking.get(f"{base}/releases/0")).status == 401
        await asking.get(f"{base}/ui/login")
        await asking.ask("POST", f"{base}/ui/login", {"token": asking.token, "key": key})
        page = (await asking.get(f"{base}/ui")).text
        assert "This experiment is archived" in page
        assert "/ui/settings" not in page
        assert (await asking.call("GET", "/v1/experiments/nobody/schema", key))[0] == 404
        assert [*hosted.archived] == ["first"]
        # While a server shows it, it can be taken back; the server lets it go.
        name = await asyncio.to_thread(folder.held.adopt, folder.path / "archive/first")
        await hosted.look()
        assert (name, hosted.archived) == ("first", {})
        status, answer = await asking.call("POST", f"{base}/decide", key, body)
        assert (status, answer["stored"]) == (200, False)


async def test_an_archived_experiment_that_cannot_be_opened_stops_no_other(folder):
    for name in ("a", "b"):
        folder.add(name)
    folder.held.archive("a")
    folder.path.joinpath("archive/a/experiment.toml").write_text("window = ")
    async with visiting(folder) as (asking, _):
        status, answer = await asking.call("GET", "/v1/experiments/a/schema", folder.keys["a"])
        assert (status, answer["error"]["code"]) == (503, "not_ready")
        assert (await asking.decide("b", folder.keys["b"]))[0] == 200
