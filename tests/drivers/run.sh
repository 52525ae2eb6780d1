#!/usr/bin/env bash
# End to end: the built server with MongoDB's own drivers and shell. Installs what is missing, then runs every script.
#   SHEAF_BINARY=path   tests that binary instead of building one
#   SCRIPTS="node kill" runs some of the scripts
#   KILLS=200           how often kill.py and resume.py end the server
#   RESUMES=10000       how often resume.py resumes its change stream
set -euo pipefail
cd "$(dirname "$0")"
here=$PWD
root=$(cd ../.. && pwd)
venv=$root/.venv
scripts=${SCRIPTS:-node mongoose python_driver mongosh kill resume}

install() { # install PACKAGE…: Debian packages
  local sudo=""
  [ "$(id -u)" = 0 ] || sudo=sudo
  $sudo apt-get update -qq
  DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -qq "$@"
}

need() { # need COMMAND PACKAGE…: where a command is missing
  command -v "$1" >/dev/null && return
  shift
  install "$@"
}

need node nodejs
need npm npm
need python3 python3
node -e 'const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 20 || (a === 20 && b >= 19) ? 0 : 1)' || {
  echo "the drivers need Node.js 20.19 or later; $(node --version) is installed"
  exit 2
}

if ! cmp -s package-lock.json node_modules/.installed-lock; then
  npm ci --no-audit --no-fund --ignore-scripts
  cp package-lock.json node_modules/.installed-lock
fi
if ! cmp -s requirements.txt "$venv/.installed-requirements"; then
  if ! python3 -m venv "$venv"; then
    install python3-venv
    python3 -m venv --clear "$venv"
  fi
  "$venv/bin/pip" install --quiet --disable-pip-version-check -r requirements.txt
  cp requirements.txt "$venv/.installed-requirements"
fi

if [ -z "${SHEAF_BINARY:-}" ]; then
  (cd "$root" && cargo build --locked -p sheafdb)
  SHEAF_BINARY=${CARGO_TARGET_DIR:-$root/target}/debug/sheaf
fi
SHEAF_BINARY=$(realpath "$SHEAF_BINARY")
export SHEAF_BINARY PYTHONDONTWRITEBYTECODE=1

work=$(mktemp -d)
server=""
finish() {
  if [ -n "$server" ]; then kill -KILL "$server" 2>/dev/null || true; fi
  rm -rf "$work"
}
trap finish EXIT

port=$(node -e 'const s = require("net").createServer().listen(0, "127.0.0.1", () => { console.log(s.address().port); s.close(); })')
"$SHEAF_BINARY" serve --data "$work/data" --port "$port" >"$work/server.log" 2>&1 &
server=$!
export MONGODB_URI="mongodb://127.0.0.1:$port/?directConnection=true"
# mongosh keeps its settings and history in the home folder: not in the user's. It shall report to nobody.
mkdir -p "$work/home/.mongodb/mongosh"
echo '{"enableTelemetry":false}' >"$work/home/.mongodb/mongosh/config"

answers() { (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; }
for _ in $(seq 300); do
  answers && break
  kill -0 "$server" 2>/dev/null || break
  sleep 0.1
done
if ! answers; then
  echo "FAIL the server does not answer on port $port"
  cat "$work/server.log"
  echo "0 passed, 1 failed"
  exit 1
fi

passed=0
failed=0
run() { # run NAME COMMAND…: one script; its last line must be the tally
  local name=$1 status=0 last
  shift
  echo "== $name"
  timeout "${SCRIPT_LIMIT_S:-3600}" "$@" 2>&1 | tee "$work/$name.log" || status=$?
  last=$(tail -n 1 "$work/$name.log")
  if [[ $last =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed$ ]]; then
    passed=$((passed + BASH_REMATCH[1]))
    failed=$((failed + BASH_REMATCH[2]))
    if [ "$status" -ne 0 ] && [ "${BASH_REMATCH[2]}" = 0 ]; then
      echo "FAIL $name: exit status $status"
      failed=$((failed + 1))
    fi
  else
    echo "FAIL $name: did not finish (exit status $status)"
    failed=$((failed + 1))
  fi
}

for script in $scripts; do
  case $script in
    node | mongoose) run "$script" node "$script.mjs" ;;
    python_driver | kill | resume) run "$script" "$venv/bin/python" "$script.py" ;;
    mongosh) run "$script" env HOME="$work/home" "$here/node_modules/.bin/mongosh" --quiet "$MONGODB_URI" mongosh.js ;;
    *) echo "no script named $script"; exit 2 ;;
  esac
done

echo "== stopping"
kill -TERM "$server"
for _ in $(seq 100); do
  kill -0 "$server" 2>/dev/null || break
  sleep 0.1
done
if kill -0 "$server" 2>/dev/null; then
  echo "FAIL the server still runs 10 s after SIGTERM"
  failed=$((failed + 1))
else
  status=0
  wait "$server" || status=$?
  if [ "$status" = 0 ]; then
    echo "ok the server ends with 0 within 10 s of SIGTERM"
    passed=$((passed + 1))
  else
    echo "FAIL the server ended with $status after SIGTERM"
    failed=$((failed + 1))
  fi
fi
server=""
if [ "$failed" -gt 0 ]; then
  echo "== end of the server's log"
  tail -n 40 "$work/server.log"
fi

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
