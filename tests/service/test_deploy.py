"""The files of deploy/ name what exists."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import discreet as dc
from discreet.cli.main import main
from discreet.service.experiment_file import VARIABLES
from discreet.service.metrics import GAUGES

DEPLOY = Path(__file__).parents[2] / "deploy"
METRICS = {f"discreet_{name}" for name in GAUGES} | {
    "discreet_errors_total",
    *(f"discreet_request_seconds_{part}" for part in ("bucket", "count", "sum")),
}
FILES = [path for path in DEPLOY.rglob("*") if path.is_file()]


@pytest.mark.parametrize("name", ["grafana/discreet.json", "prometheus/alerts.yaml"])
def test_figures_that_are_shown_or_watched_exist(name):
    text = (DEPLOY / name).read_text()
    if name.endswith("json"):
        panels = json.loads(text)["panels"]
        assert len({panel["id"] for panel in panels}) == len(panels)
        text = " ".join(target["expr"] for panel in panels for target in panel["targets"])
    named = set(re.findall(r"discreet_\w+", text))
    assert len(named) >= 6
    assert named <= METRICS
    assert not re.search("observe|activate", text)  # they would tell who answered


def test_every_variable_of_these_files_is_read():
    text = "".join(path.read_text() for path in FILES)
    assert not re.search(r"://\w+:(?!%s@)[^@\s/]+@", text), "no password is in a file"
    named = {name.removesuffix("_FILE") for name in re.findall(r"DISCREET_[A-Z_]+", text)}
    assert named - {"DISCREET_API_KEY"} <= set(VARIABLES)
    assert "DISCREET_DATABASE_URL" in named


def test_the_readme_lists_every_file_and_the_chart_the_version():
    chart = (DEPLOY / "helm/Chart.yaml").read_text()
    assert f'\nversion: {dc.__version__}\nappVersion: "{dc.__version__}"\n' in chart
    listed = (DEPLOY / "README.md").read_text()
    for path in FILES:
        place = path.relative_to(DEPLOY)
        whole = place.parts[0] == "helm" and "(helm/Chart.yaml)" in listed
        assert str(place) in listed or whole or place.name == "README.md"


def test_the_check_of_the_image_finds_the_keys_that_commands_print(tmp_path, capsys, monkeypatch):
    """With an empty key it would end at the first decision, without a word."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    text = (DEPLOY / "check_image.sh").read_text()
    found = re.findall(r"^key=\$\(\$run discreet (.*?) \| sed '(.*)'\)$", text, re.MULTILINE)
    assert [words.split()[0] for words, _ in found] == ["serve", "experiment"]
    assert main(["serve", "--folder", "many", "--init"]) == 0
    capsys.readouterr()
    for words, program in found:
        assert main(words.split()) == 0
        reported = capsys.readouterr().out
        key = subprocess.run(
            ["sed", program], input=reported, capture_output=True, text=True, check=True
        ).stdout
        assert key.startswith("dk_"), words
    assert text.count('test -n "$key" || {') == len(found)


def test_git_ignores_the_secrets_of_the_compose_file():
    text = (DEPLOY / "compose.yaml").read_text()
    made = re.search(r"mkdir -p ([\w ]+) &&", text)[1].split()
    assert made == ["secrets", "data"]
    ignored = (DEPLOY.parent / ".gitignore").read_text().splitlines()
    assert {f"/deploy/{name}/" for name in made} <= set(ignored)


def test_every_panel_shows_the_chosen_experiments():
    """All of them include a server of one, whose figures have no such label."""
    board = json.loads((DEPLOY / "grafana/discreet.json").read_text())
    (variable,) = [each for each in board["templating"]["list"] if each["name"] == "experiment"]
    assert (variable["includeAll"], variable["allValue"]) == (True, ".*")
    shown = [target for panel in board["panels"] for target in panel["targets"]]
    for text in [each["expr"] for each in (*shown, *board["annotations"]["list"])]:
        assert text.count("discreet_") == text.count('experiment=~"$experiment"') > 0
    assert all(each["legendFormat"].startswith("{{experiment}}") for each in shown)
    # The time of the next release is 0 while none waits, which is 1970.
    due = [each["expr"] for each in shown if "due" in each["expr"]]
    assert due
    assert all(re.search(r"due_timestamp_seconds\{[^}]*\} > 0\)", each) for each in due)


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool must be installed")
def test_alerts_see_a_burst_within_one_scrape():
    done = shell("promtool", "test", "rules", "alerts_test.yaml", folder=DEPLOY / "prometheus")
    assert done.returncode == 0, done.stdout + done.stderr


def program(tmp_path, monkeypatch, *folders):
    """Put discreet, and a clock that is a minute later at each look, into the PATH."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for name, text in (
        ("discreet", f'exec {sys.executable} -m discreet.cli.main "$@"'),
        (
            "date",
            f"echo >> {tmp_path}/looks; printf '2026-05-01-03%02d00' $(wc -l < {tmp_path}/looks)",
        ),
    ):
        (programs / name).write_text(f"#!/bin/sh\n{text}\n")
        (programs / name).chmod(0o700)
    monkeypatch.setenv("PATH", ":".join([str(programs), *folders, os.environ["PATH"]]))
    return programs


def shell(*words, folder, **variables):
    return subprocess.run(
        words, cwd=folder, capture_output=True, text=True, env={**os.environ, **variables}
    )


def unit(name):
    """The lines of a unit, by key; the last of each."""
    text = (DEPLOY / "systemd" / name).read_text()
    return dict(re.findall(r"^(\w+)=(.*)$", text, re.MULTILINE))


def test_the_recipe_of_the_unit_begins_a_service_whose_anchor_is_in_its_state_folder(
    tmp_path, monkeypatch
):
    programs = program(tmp_path, monkeypatch)
    state, folder = tmp_path / "state", tmp_path / "welcome"
    folder.mkdir()
    lines = (DEPLOY / "systemd/discreet@.service").read_text().splitlines()
    (begin,) = [line for line in lines if line.endswith("serve --init")]
    prefix, _, command = begin.partition(" -- ")
    assert prefix.split()[1:] == ["runuser", "-u", unit("discreet@.service")["User"]]
    (place,) = re.findall(r"XDG_STATE_HOME=(\S+)", command)
    assert place == f"/var/lib/{unit('discreet@.service')['StateDirectory']}"
    assert place in unit("discreet@.service")["ReadWritePaths"].split()
    assert f"XDG_STATE_HOME={place}" in unit("discreet@.service")["Environment"].split()
    command = command.replace(place, str(state)).replace("/srv/discreet/venv/bin", str(programs))
    done = shell("/bin/sh", "-c", command, folder=folder)
    assert done.returncode == 0, done.stderr
    assert "dk_" in done.stdout
    assert list(state.rglob("*.jsonl"))
    files = re.findall(
        r"^AssertPathExists=\|/srv/discreet/%i/(\S+)$", "\n".join(lines), re.MULTILINE
    )
    assert [(folder / name).is_file() for name in files] == [True, False]


@pytest.mark.parametrize("file", ["experiment.toml", "server.toml"])
def test_backups_are_kept_and_the_last_good_one_is_never_deleted(file, tmp_path, monkeypatch):
    """By the script; tests/service/test_commands.py has the commands that it runs."""
    programs, folder, copies = program(tmp_path, monkeypatch), tmp_path / "welcome", tmp_path / "c"
    stub = f'#!/bin/sh\nfor last; do :; done\ntest -f {file} && echo "$@" > "$last"\n'
    (programs / "discreet").write_text(stub)
    folder.mkdir()
    (folder / file).touch()

    def back_up(keep):
        script = str(DEPLOY / "systemd/discreet-backup")
        done = shell(script, str(copies), folder=folder, KEEP=keep)
        return done, sorted(path.name for path in copies.iterdir()) if copies.exists() else []

    for wrong in ("0", "-1", "all", "01"):
        done, listed = back_up(wrong)
        assert (done.returncode, listed) == (2, [])
        assert f"KEEP must be a whole number from 1; got {wrong}." in done.stderr
    for _ in range(3):
        done, listed = back_up("2")
        assert done.returncode == 0, done.stderr
    assert listed == ["2026-05-01-030200.backup", "2026-05-01-030300.backup"]
    newest = copies / listed[-1]
    flags = "--folder . " * (file == "server.toml")
    assert newest.read_text() == f"backup {flags}{newest.with_suffix('.part')}\n"
    assert newest.stat().st_mode & 0o077 == 0
    ahead = "2027-01-01-000000.backup"  # of a clock that was wrong
    for name in ("note.txt", "2026-05-01-0.part", ahead):
        (copies / name).touch()
    (folder / file).rename(tmp_path / "away")
    done, left = back_up("1")
    assert done.returncode != 0
    assert set(listed) < set(left)
    (tmp_path / "away").rename(folder / file)
    assert back_up("1")[1] == ["2026-05-01-030500.backup", "note.txt"]


def test_the_unit_that_backs_up_makes_its_folder_and_may_write_it():
    found = unit("discreet-backup@.service")
    assert found["ExecStartPre"].startswith("+/usr/bin/install ")
    place = found["ExecStartPre"].split()[-1]
    assert found["ExecStart"].split()[1] == f"{place}/%i"
    assert f"-{place}" in found["ReadWritePaths"].split()


@pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="systemd-analyze must be installed"
)
def test_systemd_accepts_the_units(tmp_path):
    for path in (DEPLOY / "systemd").glob("*@.*"):
        text = re.sub(
            r"/(srv|usr/local)/\S+/discreet(-backup)?(?= )", "/bin/true", path.read_text()
        )
        (tmp_path / path.name.replace("@", "@welcome")).write_text(text)
    units = sorted(path.name for path in tmp_path.iterdir())
    assert len(units) == 3
    done = shell("systemd-analyze", "verify", "--man=no", *units, folder=tmp_path)
    assert (done.returncode, "welcome" in done.stderr) == (0, False), done.stderr


def rendered(*flags):
    """The objects of the chart by kind, or what helm says against them."""
    yaml = pytest.importorskip("yaml")
    done = shell("helm", "template", "shop", "helm", *flags, folder=DEPLOY)
    if done.returncode:
        return done.stderr
    found = {}
    for each in yaml.safe_load_all(done.stdout):
        found.setdefault(each["kind"], []).append(each)
    return found


POSTGRES = ("--set", "database.existingSecret=pg")
SHARED = (*POSTGRES, "--set", "replicas=3,workers=2,persistence.accessMode=ReadWriteMany")
needs_helm = pytest.mark.skipif(shutil.which("helm") is None, reason="helm must be installed")


@needs_helm
@pytest.mark.parametrize(
    ("flags", "args", "replicas", "strategy"),
    [
        ((), ["serve", "--workers", "1"], 1, "Recreate"),
        (SHARED, ["serve", "--workers", "2"], 3, "RollingUpdate"),
        (("--set", "folder=true"), ["serve", "--folder", "/data", "--workers", "1"], 1, "Recreate"),
        ((*SHARED, "--set", "init=true"), None, 1, "RollingUpdate"),
    ],
)
def test_the_chart_is_accepted_by_helm_and_serves_each_kind(flags, args, replicas, strategy):
    assert shell("helm", "lint", "--strict", "helm", *flags, folder=DEPLOY).returncode == 0
    found = rendered(*flags)
    ((deployment,), (service,)) = found["Deployment"], found["Service"]
    spec, pod = deployment["spec"], deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert (spec["replicas"], spec["strategy"]["type"]) == (replicas, strategy)
    assert container.get("args") == args
    asked = {name: container[name]["httpGet"]["path"] for name in container if "Probe" in name}
    probes = {"startupProbe": "/healthz", "livenessProbe": "/healthz", "readinessProbe": "/readyz"}
    assert asked == (probes if args else {})
    assert service["spec"]["selector"].items() <= spec["template"]["metadata"]["labels"].items()
    # As in the image: a user without rights, a read-only root, two volumes and memory.
    assert pod["securityContext"]["runAsUser"] == pod["securityContext"]["fsGroup"] == 10001
    assert pod["securityContext"]["fsGroupChangePolicy"] == "OnRootMismatch"
    assert container["securityContext"]["readOnlyRootFilesystem"]
    mounts = {each["mountPath"] for each in container["volumeMounts"]}
    assert mounts - {"/run/secrets/discreet"} == {"/data", "/anchor", "/tmp"}
    claims = {each["metadata"]["name"]: each for each in found["PersistentVolumeClaim"]}
    assert set(claims) == {"shop-data", "shop-anchor"}
    for each in claims.values():
        assert each["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"
    named = {each["name"]: each["value"] for each in container["env"]}
    assert ("DISCREET_DATABASE_URL_FILE" in named) == ("pg" in str(pod["volumes"]))
    assert (named.get("DISCREET_ANCHOR") == "") == ("folder=true" in flags)


@needs_helm
@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ("replicas=2", "must be 1 with SQLite"),
        ("replicas=2,database.existingSecret=pg", "accessMode must be ReadWriteMany"),
        (
            "folder=true,replicas=2,database.existingSecret=pg,persistence.accessMode=ReadWriteMany",
            "replicas must be 1 with folder",
        ),
        ("database.existingSecret=pg,database.url=postgresql://h/d", "got both"),
        ("replica=1", "replica"),
        ("database.url=mysql://h/d", "database.url"),
        ("ingress.enabled=true", "ingress.host must be"),
        ("serviceMonitor.enabled=true", "serviceMonitor.keySecret must name"),
    ],
)
def test_the_chart_refuses_what_would_not_serve(flags, words):
    found = rendered("--set", flags)
    assert isinstance(found, str)
    assert words in found


@needs_helm
def test_the_chart_has_what_is_optional():
    found = rendered(
        *("--set", "ingress.enabled=true,ingress.host=shop.example,ingress.tlsSecret=tls"),
        *("--set", "serviceMonitor.enabled=true,serviceMonitor.keySecret=audit"),
        *("--set", 'database.url=postgresql://h/d,config=experiment = "shop"\nwindow = 2\n'),
    )
    assert found["Ingress"][0]["spec"]["rules"][0]["host"] == "shop.example"
    (endpoint,) = found["ServiceMonitor"][0]["spec"]["endpoints"]
    assert endpoint["authorization"]["credentials"] == {"name": "audit", "key": "key"}
    assert found["Secret"][0]["stringData"] == {"database_url": "postgresql://h/d"}
    assert found["ConfigMap"][0]["data"] == {"experiment.toml": 'experiment = "shop"\nwindow = 2\n'}
    assert "postgresql://" not in json.dumps(found["Deployment"])
