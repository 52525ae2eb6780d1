#!/usr/bin/env bash
# The served OpenAPI description against the served API: schemathesis calls every route with what the description allows and
# with what it forbids. Installs it where it is missing.
#   SHEAF_BINARY=path  tests that binary instead of building one
#   EXAMPLES=10        random cases for each route
#   SECONDS_AT_MOST=60 when it stops looking for more
set -euo pipefail
cd "$(dirname "$0")"
root=$(cd ../.. && pwd)
venv=$root/.venv-http
work=$(mktemp -d)
server=""
trap '[ -z "$server" ] || kill "$server" 2>/dev/null || true; wait 2>/dev/null || true; rm -rf "$work"' EXIT

if ! cmp -s requirements.txt "$venv/.installed-requirements"; then
  python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet --requirement requirements.txt
  cp requirements.txt "$venv/.installed-requirements"
fi
if [ -z "${SHEAF_BINARY:-}" ]; then
  (cd "$root" && cargo build --locked -p sheafdb)
  SHEAF_BINARY=$root/target/debug/sheaf
fi

operator=$("$SHEAF_BINARY" token issue --store "$work/data" --subject ops --role operator,moderator)
"$SHEAF_BINARY" serve --data "$work/data" --port 0 --http-port 0 --http-rate 0 --log-level info 2>"$work/log" &
server=$!
for _ in $(seq 100); do
  base=$(grep -o 'http://[0-9.:]*' "$work/log" | head -1 || true)
  [ -n "$base" ] && break
  sleep 0.2
done
[ -n "$base" ] || { cat "$work/log"; echo "the server did not start"; exit 1; }

call() { # call METHOD PATH BODY TOKEN
  curl --silent --show-error --fail-with-body --request "$1" "$base$2" --data "$3" \
    --header "authorization: Bearer $4" --header "content-type: application/json" --header "idempotency-key: $RANDOM-$1-$2"
}
field() { python3 -c 'import json, sys; print(json.load(sys.stdin)[sys.argv[1]])' "$1"; }

# One caller who is everything: a user of the network, a buyer, and the shop's staff.
subject=$(call POST /v1/users '{"username": "caller"}' "$operator" | field id)
roles='["buyer", "merchant", "operator", "user", "moderator", "author", "collector"]'
token=$(call POST /v1/tokens "{\"subject\": \"$subject\", \"roles\": $roles}" "$operator" | field secret)
call POST /v1/buyers "{\"id\": \"$subject\", \"username\": \"caller\", \"defaultAddress\": {\"city\": \"Lyon\"}}" "$token" >/dev/null
call POST /v1/products '{"id": "lamp", "name": "Desk lamp", "price": {"amountMinor": 4900, "currency": "EUR"}}' "$token" >/dev/null
call POST /v1/products/lamp/skus '{"id": "lamp-brass", "priceMinor": 4900, "quantity": 100000}' "$token" >/dev/null
call PUT /v1/servers/lamp '{"host": "lamp", "region": "north"}' "$token" >/dev/null

# Left out: live streams, which have no end; and the check that valid input is never refused, since a description can't
# say that an order's SKU must exist. One worker: CPython 3.11's parser, which the tool uses, fails on two threads.
PYTHONUNBUFFERED=1 "$venv/bin/schemathesis" run "$base/openapi.json" \
  --header "Authorization: Bearer $token" --exclude-path-regex '/(events|updates)$' --phases examples,coverage,fuzzing \
  --checks all --exclude-checks positive_data_acceptance,negative_data_rejection \
  --max-examples "${EXAMPLES:-10}" --workers 1 --request-timeout 10 --seed 1 --no-color \
  --report-dir "$work/report" --max-time "${SECONDS_AT_MOST:-60}" --continue-on-failure
kill -0 "$server" || { tail -50 "$work/log"; echo "the server went away"; exit 1; }
if grep -E "panic|ERROR" "$work/log"; then echo "the server failed"; exit 1; fi
