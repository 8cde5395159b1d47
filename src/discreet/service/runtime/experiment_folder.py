"""Folder of experiments: create, list, pause, end, archive and adopt them; files and rows only.

A server that runs on the folder notices changes. It does not serve an experiment while its folder
contains the file ``not-served``: the experiment is being created, moved or archived.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from discreet.client.documents import public_key
from discreet.errors import DiscreetError, InvalidInput, StateClaimed
from discreet.service.experiment_file import (
    EXPERIMENT_EXAMPLE,
    FOLDER_EXAMPLE,
    from_environment,
    named_files,
)
from discreet.service.runtime import lifecycle
from discreet.service.runtime.lifecycle import close_down, refuse_under_way
from discreet.service.secrets.vault import Vault
from discreet.service.settings import (
    ARCHIVE,
    ENDED,
    EXPERIMENT_FILE,
    NOT_SERVED,
    SERVED,
    STORING,
    ServerSettings,
    Settings,
    experiment_name,
    read_experiment_file,
    schema_name,
)
from discreet.service.storage.api_keys import DATABASE
from discreet.service.storage.batches import under_way
from discreet.service.storage.database import (
    Connection,
    Database,
    create_tables,
    step,
    storage_errors,
)
from discreet.service.storage.locations import POINTER, anchor_of, open_database, put_anchor
from discreet.service.storage.sqlite import Sqlite


def check_movable(settings: Settings, file: Path, server: ServerSettings) -> None:
    """Refuse an experiment that would not find its database, vault or anchor after the move."""
    if server.database and not settings.postgres:
        raise InvalidInput(
            "experiment must have a PostgreSQL database for this server; it has SQLite. Adopt it "
            "into a folder whose server.toml names no database."
        )
    elsewhere = {"database", "vault", "anchor"} & from_environment(os.environ).keys()
    if elsewhere and not settings.archived:  # where the environment has no effect
        raise InvalidInput(
            f"{', '.join(sorted(elsewhere))} must be in the experiment file to be adopted; the "
            "environment has it. Write it into the file, and unset DISCREET_…."
        )
    database = None if settings.postgres else settings.database
    for name in filter(None, (settings.vault, settings.anchor, database)):
        inside = settings.place(name).resolve().is_relative_to(file.parent)
        if inside == Path(name).is_absolute():
            raise InvalidInput(
                f"paths must still be right after the move; {name!r} is not. Write a path inside "
                "the folder relative to the file, and any other in full."
            )


def moved(settings: Settings, file: Path, place: Path) -> None:
    """Move the folder of an experiment, and correct the absolute path of an anchor inside it."""
    pointer, folder = settings.place(settings.vault) / POINTER, file.parent
    place.parent.mkdir(mode=0o700, exist_ok=True)
    mark = folder / NOT_SERVED  # until the move is complete
    mark.touch()
    try:
        folder.rename(place)
    except OSError as error:
        mark.unlink()
        other = "it is on another disk" if error.errno == errno.EXDEV else error.strerror
        raise InvalidInput(
            f"folder must be movable to {place}; {folder} is not ({other}). Nothing was changed: "
            "stop what uses it, move it to the disk of the server, and adopt it from there."
        ) from None
    if file.name != EXPERIMENT_FILE:
        (place / file.name).rename(place / EXPERIMENT_FILE)
    pointer = place / pointer.relative_to(folder) if pointer.is_relative_to(folder) else pointer
    if pointer.is_file():
        anchor = Path(pointer.read_text(encoding="utf-8").strip())
        if anchor.is_relative_to(folder):
            pointer.write_text(f"{place / anchor.relative_to(folder)}\n", encoding="utf-8")
    (place / NOT_SERVED).unlink()


STOP_PATIENCE = 30.0
"""Seconds that a server has to stop serving an experiment."""
_TITLE = re.compile(r"^experiment\s*=.*$", re.MULTILINE)


@dataclass(frozen=True)
class CreatedExperiment:
    """New experiment: its admin key, shown once, and the key that verifies its releases."""

    name: str
    admin_key: str
    public_key: str
    anchor: str


@dataclass(frozen=True)
class ListedExperiment:
    """Entry of a list of experiments; ``wrong`` is why it cannot be read or started."""

    name: str
    mode: str
    documents: int = 0
    under_way: int = 0
    wrong: str = ""


def begin_experiment(settings: Settings, anchor: str | None, by: str = "") -> CreatedExperiment:
    """Create the database, the vault and the anchor of a new experiment."""
    vault = Vault(settings.place(settings.vault))
    with storage_errors(open_database(settings)):
        lifecycle.check_new(settings)
        vault.create()
        put = put_anchor(settings, anchor)
        key = lifecycle.begin(settings, by)
    return CreatedExperiment(settings.experiment, key, public_key(vault.signing), str(put))


def write_and_begin(path: Path, anchor: str | None) -> tuple[Settings, CreatedExperiment]:
    """Begin the experiment of a file; an example is written where the file does not exist."""
    if path.exists():
        settings = Settings.read(path)
    else:
        settings = Settings.of_text(EXPERIMENT_EXAMPLE, path)
        with storage_errors(open_database(settings)):
            lifecycle.check_new(settings)
        path.write_text(EXPERIMENT_EXAMPLE, encoding="utf-8")
    return settings, begin_experiment(settings, anchor)


def back_up(database: Database, target: Path) -> None:
    """Copy a database to a new file."""
    with storage_errors(database):
        try:
            database.back_up(target)
        except FileExistsError:
            raise InvalidInput(
                f"backup must be a new file; {target} exists. Choose another name."
            ) from None


class ExperimentFolder:
    """Experiments of one server."""

    def __init__(self, path: str | Path) -> None:
        self.server = ServerSettings.read(path)
        self.path = self.server.folder

    def names(self) -> list[str]:
        """Return the names of the served experiments, sorted."""
        return self._names(SERVED)

    def _names(self, kind: str) -> list[str]:
        return sorted(
            file.parent.name
            for file in (self.path / kind).glob(f"*/{EXPERIMENT_FILE}")
            if not (file.parent / NOT_SERVED).exists()
        )

    def file(self, name: str) -> Path:
        """Return the file of an experiment in this folder."""
        path = self.path / SERVED / name / EXPERIMENT_FILE
        if not path.is_file():
            raise InvalidInput(
                f"experiment must be one of this folder; there is no {name!r}. "
                "discreet experiment list names them."
            )
        return path

    def archived_file(self, name: str) -> Path | None:
        """Return the file of an archived experiment; None if there is none, or it is moved."""
        with suppress(InvalidInput):
            place = self.path / ARCHIVE / experiment_name(name)
            if (place / EXPERIMENT_FILE).is_file() and not (place / NOT_SERVED).exists():
                return place / EXPERIMENT_FILE
        return None

    def checked(self, name: str, text: str) -> Settings:
        """Return the settings of a new experiment; refuse what ``new`` would refuse."""
        return Settings.of_text(text, self._free_place(name) / EXPERIMENT_FILE)

    def new(
        self, name: str, text: str | None = None, source: Path | None = None, by: str = ""
    ) -> CreatedExperiment:
        """Create an experiment from the text of a file; a server serves it a second later.

        With the path of that file, files in its folder that it names are copied too. ``by`` is the
        author in the history of the experiment.
        """
        place = self._free_place(name)
        title = f'experiment = "{name}"'
        text = FOLDER_EXAMPLE if text is None else text
        text = _TITLE.sub(title, text, count=1) if _TITLE.search(text) else f"{title}\n{text}"
        place.mkdir(mode=0o700, parents=True)
        try:
            (place / NOT_SERVED).touch()
            step("new:marked")
            for each in named_files(source) if source else ():
                if source and each.is_relative_to(source.parent):  # others have absolute paths
                    copy = place / each.relative_to(source.parent)
                    copy.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(each, copy)
            (place / EXPERIMENT_FILE).write_text(text, encoding="utf-8")
            begun = self._begin(name, place, by)
        except BaseException:
            shutil.rmtree(place)  # nothing was ever stored in it
            raise
        step("new:begun")
        (place / NOT_SERVED).unlink()
        step("new:served")
        return begun

    def _begin(self, name: str, place: Path, by: str) -> CreatedExperiment:
        settings, server = Settings.read(place / EXPERIMENT_FILE), self.server
        if server.database and settings.database == server.schema(name):
            own = open_database(settings)  # first: it says what must be installed
            from discreet.service.storage.postgres import Postgres

            whole = Postgres(server.database)
            with storage_errors(own), closing(whole.connect()) as connection:
                # Letters, digits and hyphens only, so that it can stand in a statement.
                schema = schema_name(experiment_name(name))
                connection.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")
        named = server.anchors and str(self.path / server.anchors / name / "anchor.jsonl")
        return begin_experiment(settings, named, by)

    def back_up(self, target: Path) -> tuple[dict[str, Path], Path]:
        """Copy every experiment, by its name, and the keys of the server."""
        files = {}
        for name in self.names():
            settings = Settings.read(self.file(name))
            files[name] = target / f"{name}.{'dump' if settings.postgres else 'db'}"
            back_up(open_database(settings), files[name])
        keys = target / DATABASE
        back_up(Sqlite(self.path / DATABASE), keys)
        return files, keys

    def _free_place(self, name: str) -> Path:
        for kind in (SERVED, ARCHIVE):
            if (self.path / kind / experiment_name(name)).exists():
                raise InvalidInput(
                    f"name must be new; {self.path / kind / name} exists. Choose another name."
                )
        return self.path / SERVED / name

    def listed(self) -> list[ListedExperiment]:
        """Return every experiment with mode, number of documents and batches under way."""
        files = (self.path / SERVED).glob(f"*/{EXPERIMENT_FILE}")
        return [self._facts(file.parent.name) for file in sorted(files)]

    def _facts(self, name: str) -> ListedExperiment:
        mark = self.path / SERVED / name / NOT_SERVED
        if mark.exists():
            wrong = f"it is being created or moved; if no command does that, delete {mark}"
            return ListedExperiment(name, "not served", wrong=wrong)
        try:
            with self._opened(name) as (settings, database, connection):
                mode = connection.execute("SELECT mode FROM experiment").fetchone()[0]
                count = connection.execute("SELECT count(*) FROM documents").fetchone()[0]
                wrong = ""
                try:
                    Vault(settings.place(settings.vault)).check()
                    lifecycle.check(settings, database, connection, anchor_of(settings))
                except DiscreetError as error:  # a server would not serve it
                    wrong = str(error)
                return ListedExperiment(name, mode, int(count), len(under_way(connection)), wrong)
        except (DiscreetError, TypeError) as error:
            wrong = str(error) if isinstance(error, DiscreetError) else "it has not begun"
            return ListedExperiment(name, "broken", wrong=wrong)

    def archived(self) -> list[str]:
        """Return the names of archived experiments, sorted."""
        return self._names(ARCHIVE)

    def pause(self, name: str) -> None:
        """Serve decisions without storing them, until ``resume``."""
        self._set_mode(name, "frozen")

    def resume(self, name: str) -> None:
        """Continue in the mode of the file, or online."""
        self._set_mode(name, None)

    def end(self, name: str) -> None:
        """End an experiment permanently; batches that wait are still released."""
        self._set_mode(name, ENDED)

    def _set_mode(self, name: str, mode: str | None) -> None:
        with (
            self._opened(name) as (settings, database, connection),
            database.transaction(connection),
        ):
            lifecycle.change_mode(database, connection, mode or resumed(settings))

    def archive(
        self, name: str, *, burn: bool = False, patience: float = STOP_PATIENCE, by: str = ""
    ) -> Path:
        """End an experiment and move its folder to the archive; ``burn`` gives up waiting rows.

        What it published stays readable at its address.
        """
        file = self.file(name)
        with self._opened(name) as (settings, database, connection):
            if not burn:
                refuse_under_way(connection)
            with database.transaction(connection):
                lifecycle.change_mode(database, connection, ENDED, by)
        mark, target = file.parent / NOT_SERVED, self.path / ARCHIVE / name
        mark.touch()
        step("archive:marked")
        try:
            vault = Vault(settings.place(settings.vault))
            with vault.unserved(patience), database.guard():
                close_down(settings, burn_waiting=burn, by=by)
                step("archive:closed")
                target.parent.mkdir(mode=0o700, exist_ok=True)
                mark.unlink()  # the archive shows it; until it is there, the lock refuses servers
                file.parent.rename(target)
                step("archive:moved")
        finally:
            mark.unlink(missing_ok=True)
        return target

    @contextmanager
    def _opened(self, name: str) -> Iterator[tuple[Settings, Database, Connection]]:
        settings = Settings.read(self.file(name))
        database = open_database(settings)
        if not settings.postgres and not settings.place(settings.database).is_file():
            raise StateClaimed(
                f"database of {name!r} must exist; {settings.place(settings.database)} does not. "
                "Put it back, or remove the folder of the experiment."
            )
        with storage_errors(database), closing(database.connect()) as connection:
            create_tables(database, connection)
            yield settings, database, connection

    def adopt(self, path: str | Path, name: str | None = None) -> str:
        """Move a folder with a single experiment into this folder."""
        given = Path(path).resolve()
        file = given / EXPERIMENT_FILE if given.is_dir() else given
        settings = Settings.of_text(read_experiment_file(file), file)
        if name is None:
            name = re.sub(r"[^a-z0-9]+", "-", settings.experiment.lower()).strip("-")
        if given.is_relative_to(self.path / ARCHIVE):  # from the archive, under the same name
            name, place = file.parent.name, self.path / SERVED / file.parent.name
        else:
            place = self._free_place(name)
        check_movable(settings, file, self.server)
        vault, database = Vault(settings.place(settings.vault)), open_database(settings)
        mark, patience = file.parent / NOT_SERVED, 0.0
        if settings.archived:  # a server that shows it lets it go
            mark.touch()
            patience = STOP_PATIENCE
        try:
            with storage_errors(database), vault.unserved(patience), database.guard():
                with closing(database.connect()) as connection:
                    lifecycle.check_stored(settings, database, connection, anchor_of(settings))
                moved(settings, file, place)
        finally:
            if settings.archived:
                mark.unlink(missing_ok=True)
        return name


def resumed(settings: Settings) -> str:
    """Return the mode after a pause: that of the file, or online."""
    return settings.mode if settings.mode in STORING else "online"
