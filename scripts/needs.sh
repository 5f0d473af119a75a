#!/usr/bin/env bash
# What the tests need and this machine lacks: installs it and says so, else is silent.
#
# Programs come from apt (as root, or by sudo). Client libraries come from pip and npm and stay
# under the target folder; tests start them as target/clients/venv/bin/python and
# target/clients/node. The Rust toolchain is the one thing it only looks for.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

REDIS_PY=8.1.0
NODE_REDIS=6.3.1
IOREDIS=6.0.0
NODE_MAJOR_MIN=20 # what the two node clients ask for; Debian 12 has 18

clients="${CARGO_TARGET_DIR:-target}/clients"

say() { printf 'needs: %s\n' "$*"; }
fail() { printf 'needs: %s\n' "$*" >&2; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"
  elif have sudo; then sudo "$@"
  else return 1
  fi
}

# Runs a command that installs something; its words are shown only when it fails.
quietly() { # quietly WHAT COMMAND...
  local what=$1 log; shift
  log=$(mktemp)
  if ! "$@" >"$log" 2>&1; then
    cat "$log" >&2
    rm -f "$log"
    fail "could not install $what: '$*' failed. Install it by hand and try again."
  fi
  rm -f "$log"
}

apt_packages() {
  local missing=()
  local row program package
  for row in cc:build-essential redis-server:redis-server redis-cli:redis-tools \
    etcd:etcd-server python3:python3 node:nodejs npm:npm; do
    program=${row%%:*} package=${row#*:}
    have "$program" || missing+=("$package")
  done
  python3 -c 'import ensurepip, venv' 2>/dev/null || missing+=(python3-venv)
  [ "${#missing[@]}" = 0 ] && return 0
  have apt-get || fail "missing: ${missing[*]} (Debian's names), and there is no apt-get."
  as_root true || fail "missing: ${missing[*]}. Install them as root: apt-get install ${missing[*]}"
  say "installing from apt: ${missing[*]}"
  quietly "the package lists" as_root apt-get update
  quietly "${missing[*]}" as_root env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y --no-install-recommends "${missing[@]}"
}

client_libraries() {
  local wanted packages=("redis@$NODE_REDIS" "ioredis@$IOREDIS")
  wanted="redis-py $REDIS_PY, node-redis $NODE_REDIS, ioredis $IOREDIS"
  [ "$(cat "$clients/INSTALLED" 2>/dev/null)" = "$wanted" ] && return 0
  say "installing client libraries into $clients: $wanted"
  rm -rf "$clients"
  mkdir -p "$clients"
  quietly "a Python environment" python3 -m venv "$clients/venv"
  quietly "redis-py" "$clients/venv/bin/pip" install --disable-pip-version-check "redis==$REDIS_PY"
  if [ "$(node -p 'process.versions.node.split(".")[0]')" -lt "$NODE_MAJOR_MIN" ]; then
    say "node is older than $NODE_MAJOR_MIN here; a newer one goes beside the clients"
    packages+=("node@$NODE_MAJOR_MIN")
  fi
  echo '{ "private": true }' > "$clients/package.json"
  quietly "the node clients" npm install --prefix "$clients" --no-audit --no-fund "${packages[@]}"
  if [ -x "$clients/node_modules/.bin/node" ]; then
    ln -s node_modules/.bin/node "$clients/node"
  else
    ln -s "$(node -p process.execPath)" "$clients/node"
  fi
  # Last, so that a run which was cut short begins again.
  echo "$wanted" > "$clients/INSTALLED"
}

rust_min=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
have cargo || fail "there is no cargo. Install Rust $rust_min or later: https://rustup.rs"
apt_packages
client_libraries
