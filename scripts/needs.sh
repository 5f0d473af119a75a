#!/usr/bin/env bash
# What the tests need and this machine lacks: installs it and says so, else is silent.
#
# Programs come from apt (as root, or by sudo). Client libraries come from pip and npm and stay
# under the target folder; tests start them as target/clients/venv/bin/python and
# target/clients/node. The Rust toolchain is the one thing it only looks for.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Clients first, then the libraries that limit through them, then what those are mounted in.
PYTHON_PACKAGES=(
  redis==8.1.0
  limits==5.8.0 flask-limiter==4.1.1 pyrate-limiter==4.5.1 throttled-py==3.5.0
  redis-rate-limiters==0.5.0 django-ratelimit==4.1.0
  django-redis==7.0.0 django==5.2.19 flask==3.1.3
)
NODE_PACKAGES=(
  redis@6.3.1 ioredis@6.0.0
  rate-limiter-flexible@11.4.0 rate-limit-redis@6.0.1 express-rate-limit@8.7.5
  @fastify/rate-limit@11.2.0 bottleneck@2.19.5 @upstash/ratelimit@2.2.0 @upstash/redis@1.39.0
  ratelimiter@3.4.1 async-ratelimiter@1.6.10 redis-gcra@0.3.0 rolling-rate-limiter@0.4.2
  express@5.3.0 fastify@5.12.8
)
# Of other languages, what Debian has: a test of each limits with it.
DEBIAN_LIBRARIES=(
  ruby-redis ruby-rack-attack
  php-redis php-predis php-illuminate-redis php-symfony-rate-limiter php-symfony-cache
  libredis-perl golang-github-gomodule-redigo-dev
)
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
    etcd:etcd-server prometheus:prometheus openssl:openssl python3:python3 node:nodejs npm:npm \
    ruby:ruby php:php-cli perl:perl go:golang-go; do
    program=${row%%:*} package=${row#*:}
    have "$program" || missing+=("$package")
  done
  python3 -c 'import ensurepip, venv' 2>/dev/null || missing+=(python3-venv)
  for package in "${DEBIAN_LIBRARIES[@]}"; do
    ! have dpkg || dpkg -s "$package" >/dev/null 2>&1 || missing+=("$package")
  done
  [ "${#missing[@]}" = 0 ] && return 0
  have apt-get || fail "missing: ${missing[*]} (Debian's names), and there is no apt-get."
  as_root true || fail "missing: ${missing[*]}. Install them as root: apt-get install ${missing[*]}"
  say "installing from apt: ${missing[*]}"
  quietly "the package lists" as_root apt-get update
  quietly "${missing[*]}" as_root env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y --no-install-recommends "${missing[@]}"
}

client_libraries() {
  local packages=("${NODE_PACKAGES[@]}")
  local wanted="${PYTHON_PACKAGES[*]} ${NODE_PACKAGES[*]}"
  [ "$(cat "$clients/INSTALLED" 2>/dev/null)" = "$wanted" ] && return 0
  say "installing client libraries into $clients: $wanted"
  rm -rf "$clients"
  mkdir -p "$clients"
  quietly "a Python environment" python3 -m venv "$clients/venv"
  quietly "the Python libraries" \
    "$clients/venv/bin/pip" install --disable-pip-version-check "${PYTHON_PACKAGES[@]}"
  if [ "$(node -p 'process.versions.node.split(".")[0]')" -lt "$NODE_MAJOR_MIN" ]; then
    say "node is older than $NODE_MAJOR_MIN here; a newer one goes beside the clients"
    packages+=("node@$NODE_MAJOR_MIN")
  fi
  echo '{ "private": true }' > "$clients/package.json"
  quietly "the node libraries" npm install --prefix "$clients" --no-audit --no-fund "${packages[@]}"
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
