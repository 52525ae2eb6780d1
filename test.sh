#!/usr/bin/env bash
# Installs what the tests need where it is missing, then runs everything. FAST=1 leaves out the end-to-end tests.
set -euo pipefail
cd "$(dirname "$0")"

step() { printf '\n== %s\n' "$*"; }

need() { # need COMMAND PACKAGE…: a Debian package where a command is missing
  command -v "$1" >/dev/null && return
  shift
  step "installing $*"
  local sudo=""
  [ "$(id -u)" = 0 ] || sudo=sudo
  $sudo apt-get update -qq
  DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -qq "$@"
}

need cc build-essential
need redis-server redis-server

step "format"
cargo fmt --all --check

step "lints"
cargo clippy --workspace --all-targets --locked -- -D warnings

step "tests"
cargo test --workspace --locked

step "documentation"
RUSTDOCFLAGS="-D warnings -A rustdoc::private_intra_doc_links" cargo doc --workspace --no-deps --locked --document-private-items

if [ -z "${FAST:-}" ]; then
  step "end to end"
  ./tests/drivers/run.sh
  ./tests/http/run.sh
fi

step "all passed"
