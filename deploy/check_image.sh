#!/bin/sh
# Does what deploy/Dockerfile and the entry point of its image do, by the same steps, in a clean
# folder and without a container: build an environment from the files that .dockerignore lets in,
# begin an experiment as a user would, serve it from a read-only copy, decide, stop; then the same with
# a folder of experiments.
# PYTHON names a Python 3.11 to 3.13; WHEELS may name a folder of wheels for machines without a network.
set -eu
PYTHON=${PYTHON:-python3}
here=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
step=begin
trap 'code=$?; test $code -eq 0 || { echo "failed ($code): $step" >&2; tail -n 5 "$work/log" >&2 || true; }; test ! -f "$work/pid" || kill "$(cat "$work/pid")" 2>/dev/null || true; chmod -R u+w "$work"; rm -rf "$work"' EXIT

# The context of the build: what .dockerignore lets in, and no more.
mkdir -p "$work/source"
sed -n 's/^!//p' "$here/.dockerignore" | while read -r name; do cp -R "$here/$name" "$work/source/"; done
find "$work/source" -name __pycache__ -type d -prune -exec rm -rf {} +

# The RUN lines of the first stage, with our paths.
step="install"
"$PYTHON" -m venv "$work/opt"
grep -q "install --no-cache-dir --no-compile --constraint requirements-dev.lock '.\[serve,postgres\]'" "$here/deploy/Dockerfile"
cd "$work/source"
"$work/opt/bin/pip" install --quiet --disable-pip-version-check --no-compile ${WHEELS:+--find-links "$WHEELS"} \
    --constraint requirements-dev.lock '.[serve,postgres]'
rm -rf "$work/source"
chmod -R a-w "$work/opt"  # the root of the image is read-only

step="begin and serve an experiment"
# The second stage: folders of a user, and the environment of the image.
install -d -m 0700 "$work/data" "$work/anchor"
cd "$work/data"
port=$((20000 + $$ % 20000))
printf 'discreet.db' >"$work/database_url"
run="env -i PATH=$work/opt/bin:/usr/bin:/bin PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 HOME=$work/data
    DISCREET_HOST=127.0.0.1 DISCREET_PORT=$port DISCREET_ANCHOR=$work/anchor/anchor.jsonl
    DISCREET_DATABASE_URL_FILE=$work/database_url"
key=$($run discreet serve --init --json | sed 's/.*"admin_key": *"\([^"]*\)".*/\1/;t;d')
test -n "$key" || { echo "serve --init --json prints no admin_key" >&2; exit 1; }
$run discreet serve 2>"$work/log" & echo $! >"$work/pid"
health="import os, urllib.request as u; u.urlopen(f\"http://127.0.0.1:{os.environ.get('DISCREET_PORT', '8000')}/readyz\", timeout=2)"
for _ in $(seq 100); do $run python -c "$health" 2>/dev/null && break; sleep 0.3; done
curl -sf -H "Authorization: Bearer $key" --json '{"context": {"hour": 9, "device": "phone"}}' \
    "http://127.0.0.1:$port/v1/decide" | grep -q '"stored":true'
$run discreet backup "$work/data/copies/first.db"
kill -TERM "$(cat "$work/pid")" && wait "$(cat "$work/pid")"; rm "$work/pid"
grep -q '"event": "stopped"' "$work/log"

# The same image with a folder of experiments.
step="begin and serve a folder of experiments"
run="${run%DISCREET_ANCHOR=*} DISCREET_ANCHOR="
mkdir "$work/data/many"
printf 'anchors = "%s"\n' "$work/anchor" >"$work/data/many/server.toml"
$run discreet serve --folder many --init >/dev/null
key=$($run discreet experiment new welcome --folder many --json | sed 's/.*"admin_key": *"\([^"]*\)".*/\1/;t;d')
test -n "$key" || { echo "experiment new --json prints no admin_key" >&2; exit 1; }
$run discreet serve --folder many 2>"$work/log" & echo $! >"$work/pid"
for _ in $(seq 100); do $run python -c "$health" 2>/dev/null && break; sleep 0.3; done
curl -sf -H "Authorization: Bearer $key" --json '{"context": {"hour": 9, "device": "phone"}}' \
    "http://127.0.0.1:$port/v1/experiments/welcome/decide" | grep -q '"stored":true'
test -f "$work/anchor/welcome/anchor.jsonl"
$run discreet backup --folder many "$work/data/copies/many"
test -f "$work/data/copies/many/welcome.db"
kill -TERM "$(cat "$work/pid")" && wait "$(cat "$work/pid")"; rm "$work/pid"
step="find files that others may read"
test "$(find "$work/data" "$work/anchor" -type f -perm /077 ! -name experiment.toml ! -name server.toml | wc -l)" -eq 0
echo "ok: $($run discreet --version | head -1)"
