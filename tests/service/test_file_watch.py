"""An experiment file and the files that it names are watched: edits are told by key."""

from discreet.service.experiment_file import ExperimentFile
from discreet.service.settings import Settings

EXPERIMENT = """
experiment = "films"
[plan]
budget = { epsilon = 8.0, delta = 1e-5 }
features = { kind = "UnitBall", dimension = 1 }
[plan.actions]
items = "items.csv"
[plan.actions.schema]
kind = "Schema"
fields = [ { kind = "Number", name = "year", low = 1930, high = 2030 } ]
"""
ITEMS = "id,year\na,1950\nb,1990\n"


class Told:
    def __init__(self):
        self.lines = []

    def event(self, name, **fields):
        self.lines.append((name, fields))


def test_edited_items_are_told_and_told_off_again(tmp_path):
    path, items = tmp_path / "experiment.toml", tmp_path / "items.csv"
    path.write_text(EXPERIMENT)
    items.write_text(ITEMS)
    told = Told()
    watch = ExperimentFile(path, Settings.read(path), told)
    watch.look()
    assert told.lines == []
    items.write_text(ITEMS.replace("1950", "1951"))
    watch.look()
    watch.look()
    assert told.lines == [("experiment file differs", {"keys": ["plan.actions.items"]})]
    items.write_text(ITEMS)
    watch.look()
    assert told.lines[-1] == ("experiment file as served", {})
    items.unlink()
    watch.look()
    assert told.lines[-1] == ("experiment file unreadable", {})
