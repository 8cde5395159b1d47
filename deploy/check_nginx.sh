#!/bin/sh
# Serves an experiment below a path behind a real nginx, with the configuration of
# docs/reverse-proxy.md, and sees that everything works. NGINX_PROGRAM names nginx, DISCREET our command.
set -eu
NGINX_PROGRAM=${NGINX_PROGRAM:-nginx} DISCREET=${DISCREET:-discreet}
here=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d) && cd "$work"
port=$((20000 + $$ % 20000)) front=$((20001 + $$ % 20000))
trap 'kill $(cat nginx.pid service.pid 2>/dev/null) 2>/dev/null || true; rm -rf "$work"' EXIT
export DISCREET_PREFIX=/bandit DISCREET_PORT=$port XDG_STATE_HOME="$work/state"

key=$($DISCREET serve --init --json | sed 's/.*"admin_key": *"\([^"]*\)".*/\1/;t;d')
sed -i '1i sign_in_header = "X-Webauth-User"\nsign_in_proxies = ["127.0.0.1"]\nsign_in_role = "viewer"' experiment.toml
$DISCREET serve 2>service.log & echo $! >service.pid

# The blocks of the page, with our ports, users and without TLS.
sed -n '/^```nginx$/,/^```$/p' "$here/docs/reverse-proxy.md" | sed '/^```/d; /ssl_certificate/d
    s/listen 443 ssl/listen 127.0.0.1:'"$front"'/; s/127.0.0.1:8000/127.0.0.1:'"$port"'/
    s#/etc/nginx/dashboard.users#'"$work"'/users#' >site.conf
printf 'ada:{PLAIN}word\n' >users && chmod 711 "$work"  # nginx reads it as another user
mkdir -p temp logs
cat >nginx.conf <<EOF
pid $work/nginx.pid; error_log $work/error.log warn; worker_processes 1; daemon on;
events {}
http {
    access_log $work/access.log;
    client_body_temp_path temp/body; proxy_temp_path temp/proxy; fastcgi_temp_path temp/fastcgi;
    uwsgi_temp_path temp/uwsgi; scgi_temp_path temp/scgi;
    include $work/site.conf;
}
EOF
$NGINX_PROGRAM -p "$work" -e "$work/error.log" -c "$work/nginx.conf"

url="http://127.0.0.1:$front/bandit"
for _ in $(seq 100); do curl -sf "$url/readyz" >ready.json && break; sleep 0.3; done
ask() { curl -s -o answer -w '%{http_code}' -H "Authorization: Bearer $key" "$@"; }
expect() { test "$1" = "$2" || { echo "$3: expected $1, got $2: $(cat answer)" >&2; exit 1; }; }

body='{"context": {"hour": 9, "device": "phone"}}'
expect 200 "$(ask --json "$body" "$url/v1/decide")" decide
decision=$(sed 's/.*"decision":"\([^"]*\)".*/\1/' answer)
expect 200 "$(ask --json "{\"decision\": \"$decision\", \"loss\": 0.5}" "$url/v1/observe")" observe
expect 422 "$(ask --json '{"context": {}}' "$url/v1/decide")" 'a bad context'
head -c 300000 /dev/zero >large
expect 413 "$(ask -H 'Content-Type: application/json' --data-binary @large "$url/v1/decide")" 'a large body'
expect 404 "$(ask "$url/internal/metrics")" 'internal metrics'
expect 307 "$(ask "$url/")" 'the start'
expect 200 "$(ask -c jar "$url/ui/login")" 'the log-in page'
token=$(sed -n 's/.*name="token" value="\([^"]*\)".*/\1/p' answer | head -1)
expect 303 "$(ask -b jar -c jar --data-urlencode "token=$token" --data-urlencode "key=$key" "$url/ui/login")" 'log-in'
expect 200 "$(ask -b jar "$url/ui")" 'the dashboard'
grep -q 'href="/bandit/ui/batches"' answer
expect 200 "$(ask -b jar "$url/ui/static/dashboard.css")" 'its style'
curl -s -D headers -o /dev/null -H "Authorization: Bearer $key" --json "$body" "$url/v1/decide"
grep -qiE '^x-request-id: [0-9a-f]{32}' headers || { echo 'no request id came back' >&2; exit 1; }
# Several requests over one connection, and refused ones counted by the address that nginx names.
curl -s -o /dev/null -w '%{num_connects} %{http_code}\n' "$url/healthz" -o /dev/null "$url/healthz" | tail -1 | grep -q '^0 200'
# Single sign-on: who the proxy names is signed in, and a header of the browser is worth nothing.
visit() { curl -s -o answer -w '%{http_code}' "$@"; }
expect 303 "$(visit -H 'X-Webauth-User: ada' "$url/ui")" 'a forged header'
expect 401 "$(visit -H 'Host: dashboard.shop.example' -H 'X-Webauth-User: ada' "$url/ui")" 'no password'
expect 200 "$(visit -H 'Host: dashboard.shop.example' -u ada:word -H 'X-Webauth-User: root' "$url/ui")" 'single sign-on'
grep -q '>ada</a>, viewer' answer || { echo 'single sign-on named somebody else' >&2; exit 1; }
expect 403 "$(visit -H 'Host: dashboard.shop.example' -u ada:word "$url/ui/settings")" 'the role of the proxy'
DISCREET_API_KEY=$key $DISCREET release verify "$url" >/dev/null
test ! -s access.log || { echo 'nginx kept a log of requests' >&2; exit 1; }
echo "ok: $($NGINX_PROGRAM -v 2>&1)"
