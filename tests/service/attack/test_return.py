"""A process that is killed while it gives slots back: each slot is still used once."""

import pytest

from service.attack.harness import context


@pytest.mark.parametrize("step", ["", "return:before-commit", "return:committed"])
def test_a_stop_that_is_cut_short_loses_slots_at_most(place_on_sqlite, step):
    place = place_on_sqlite(first_batch=64, window=60)
    made = []
    for number in range(2):
        with place.served(step=step if number == 0 else ""):
            for each in range(2):
                status, answer = place.post("/v1/decide", {"context": context(each)})
                assert (status, answer["stored"]) == (200, True)
                made.append(answer["decision"])
    with place.served():
        for each in made:
            assert place.post("/v1/observe", {"decision": each, "loss": 0.5}) == (
                200,
                {"stored": True},
            )
        taken = place.get("/v1/status")[1]["batches"][0]["taken"]
    with place.opened() as connection:
        slots = connection.execute("SELECT slot FROM records ORDER BY slot").fetchall()
        kept = connection.execute("SELECT taken FROM batches").fetchone()[0]
    assert len(set(slots)) == len(made) == 4
    assert kept <= taken < 64
    if step != "return:before-commit":
        assert kept == 4
