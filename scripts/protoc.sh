#!/usr/bin/env bash
# The protobuf compiler for build scripts: the system's where it is whole, else protox, the
# pure-Rust one, which is built once into target/tools. So a fresh machine needs no package.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

if command -v protoc >/dev/null && [ -f /usr/include/google/protobuf/descriptor.proto ]; then
	exec protoc "$@"
fi

tools=${TOLLGATE_TOOLS:-$root/target/tools}
protox=$tools/bin/protox
if [ ! -x "$protox" ]; then
	mkdir -p "$tools"
	# Several build scripts may come here at once.
	exec 9>"$tools/lock"
	flock 9
	if [ ! -x "$protox" ]; then
		(
			# Inherited settings of the outer build would make it wait for that build's lock.
			unset $(compgen -e | grep -E '^(CARGO|RUST|TARGET$|HOST$|OUT_DIR$|PROFILE$|OPT_LEVEL$|DEBUG$|NUM_JOBS$)' | grep -vE '^(CARGO_HOME|RUSTUP_HOME|RUSTUP_TOOLCHAIN)$') || true
			# The caller's paths are relative to where it stands, which must not be left.
			cd /
			cargo install --quiet --locked protox --version 0.10.0 --features bin \
				--root "$tools" --target-dir "$tools/build" >&2
			rm -rf "$tools/build"
		)
	fi
fi
exec "$protox" "$@"
