#!/bin/sh
# Builds cotter if need be and runs it, in the caller's folder, with all arguments.
set -e
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
cargo build --release --locked --quiet --manifest-path "$here/Cargo.toml" </dev/null >&2
exec "${CARGO_TARGET_DIR:-$here/target}/release/cotter" "$@"
