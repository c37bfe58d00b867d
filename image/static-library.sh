#!/bin/sh
# Says what is missing where there is no C library to link a static binary of this target with. With musl, Rust
# brings it or the linker names what it misses.
set -eu
case $1 in *-gnu) ;; *) exit 0 ;; esac
test -e "$(cc -print-file-name=libc.a)" && exit 0
echo "make static: there is no libc.a to link with: install libc6-dev (Debian, Ubuntu) or glibc-static (Fedora)" >&2
exit 1
