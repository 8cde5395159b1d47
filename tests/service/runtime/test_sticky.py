"""Sticky decisions: the same person is shown the same action until a release changes the policy."""

import math
from collections import Counter

import numpy as np
import pytest
from scipy.stats import binom

from discreet.errors import InvalidInput
from discreet.service.runtime.requests import sticky_draw
from discreet.service.secrets.vault import Vault

HERE = [0.3, -0.2]
KEY = bytes(32)
USERS = {"unit": "user", "batches_per_user": 3, "records_per_batch": 2}


@pytest.fixture
def database():
    """A file: the rule is not the database's."""
    return "discreet.db"


def test_a_draw_is_fixed_by_key_text_and_release():
    drawn = sticky_draw(KEY, "ann", 3)
    assert drawn == sticky_draw(KEY, "ann", 3)
    others = [
        sticky_draw(bytes(31) + b"\1", "ann", 3),
        sticky_draw(KEY, "ann", 4),
        sticky_draw(KEY, "Ann", 3),
    ]
    assert len({drawn, *others}) == 4
    assert len({*drawn}) == 2
    assert sticky_draw(KEY, None, 3) is None


def test_draws_are_uniform():
    rows = np.array([sticky_draw(KEY, f"person {n}", 1) for n in range(20_000)])
    assert rows.min() >= 0.0
    assert rows.max() < 1.0
    # Kolmogorov's distance of 20,000 uniforms exceeds 0.023 once in 10⁹ runs; the key is fixed.
    for column in rows.T:
        assert np.abs(np.sort(column) - np.arange(20_000) / 20_000).max() < 0.023
    assert abs(np.corrcoef(rows.T)[0, 1]) < 6 / math.sqrt(20_000)


def test_the_key_has_a_label_of_its_own(tmp_path):
    vault = Vault(tmp_path / "vault")
    vault.create()
    keys = {vault.signing, vault.mac, vault.people, vault.control, vault.draws}
    assert len(keys) == 5
    assert Vault(tmp_path / "vault").draws == vault.draws


@pytest.mark.parametrize(
    ("journal", "unit"), [("observe", {}), ("decide", USERS)], ids=["decision", "user"]
)
def test_the_same_person_is_shown_the_same(settings, play, unit, journal):
    async def scenario(service):
        def ask(name):
            user = {"user": name} if unit else {}
            return service.decisions.decide("caller", HERE, sticky=name, **user)

        # Keys and draws are real: 24 of three actions are all alike once in 3²³ (1e11) runs.
        shown = {name: (await ask(name)).action for name in map(str, range(24))}
        assert {name: (await ask(name)).action for name in shown} == shown
        assert len(set(shown.values())) > 1
        user = {"user": "0"} if unit else {}
        anew = [(await service.decisions.decide("caller", HERE, **user)).action for _ in range(24)]
        assert len(set(anew)) > 1

    play(settings(plan={"first_batch": 256}, window=60, journal=journal, **unit), scenario)


def test_chances_stay_those_of_the_policy(settings, play):
    """Before the first release each of three actions has a third."""

    async def scenario(service):
        draws, serving = service.state.vault.draws, service.state.serving
        played = [
            await serving.action(0, np.array(HERE), False, sticky_draw(draws, f"p{n}", 0))
            for n in range(3000)
        ]
        # The key is real: binomial tails of 1e-11 for each of three actions.
        low, high = binom.ppf([1e-11, 1 - 1e-11], 3000, 1 / 3)
        assert all(low <= Counter(played)[action] <= high for action in range(3))

    play(settings(), scenario)


def test_a_ticket_carries_the_draw_and_the_device_decides_as_the_service(settings, play):
    async def scenario(service):
        for name in map(str, range(12)):
            ticket = await service.decisions.ticket(sticky=name)
            assert ticket.u == sticky_draw(service.state.vault.draws, name, ticket.release)
            decision = await service.decisions.decide("caller", HERE, sticky=name)
            here = service.state.serving.at(ticket.release)
            plan = service.settings.plan
            policy, features = plan.played_policy, plan.features.map([HERE])
            assert policy.sample(here, features, np.array([ticket.u]))[0] == decision.action
        assert (await service.decisions.ticket()).u is None

    play(settings(plan={"first_batch": 64}, window=60), scenario)


def test_the_control_is_sticky_too(settings, play):
    control = {"control": {"share": 0.5}, "first_batch": 64}

    async def scenario(service):
        for name in map(str, range(8)):
            tickets = [await service.decisions.ticket(name, name) for _ in range(3)]
            assert len({each.action for each in tickets}) == 1

    play(settings(plan=control, window=60, **USERS), scenario)


def test_nothing_of_the_text_is_stored(settings, play, tmp_path):
    async def scenario(service):
        for _ in range(3):
            await service.decisions.decide("caller", HERE, sticky="somebody-to-look-for")
            await service.decisions.ticket(sticky="somebody-to-look-for")

    play(settings(window=60), scenario)
    kept = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert kept
    assert not [1 for content in kept if b"somebody-to-look-for" in content]


def test_over_http(server, written):
    folder, key = written(window=60)
    service = server(folder)
    ask = {"context": HERE, "sticky": "ann"}
    answers = [service.call("POST", "/v1/decide", ask, key)[1]["action"] for _ in range(4)]
    assert len(set(answers)) == 1
    status, ticket, _ = service.call("POST", "/v1/tickets", {"sticky": "ann"}, key)
    assert status == 200
    assert len(ticket["u"]) == 2
    for wrong in ("", "x" * 257, 3):
        assert service.call("POST", "/v1/decide", ask | {"sticky": wrong}, key)[0] == 422


def test_a_user_is_named_by_the_field_of_users_alone(settings, play):
    """``sticky`` names nobody: with the unit user it does not replace ``user``."""

    async def scenario(service):
        with pytest.raises(InvalidInput, match="user must be given"):
            await service.decisions.decide("caller", HERE, sticky="ann")

    play(settings(**USERS), scenario)


def test_release_and_text_do_not_run_into_each_other():
    """Person 1x at release 1 is not person x at release 11, whose draw would be known."""
    for text, release in (("1x", 1), ("0", 1), ("", 111)):
        for other in (1, 11, 111, 10):
            joined = f"{release}{text}"
            rest = joined.removeprefix(str(other))
            if rest != joined and (rest, other) != (text, release):
                assert sticky_draw(KEY, rest, other) != sticky_draw(KEY, text, release)
