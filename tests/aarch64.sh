#!/usr/bin/env bash
# The digests on record, on another architecture [C5]: builds the tests for aarch64 and runs them on this machine, each instruction
# translated by qemu. Fails where a digest is not the one on record.
#
#   tests/aarch64.sh [FILTER]...        [digests_are_those_on_record]
#
# FILTER: names of tests, or parts of them. Without GPUs and link-time optimization, which change no bit and take minutes to build.
#
# Installs what is missing, on Debian and its kin: qemu-user, which runs the tests; gcc-aarch64-linux-gnu, which links them and compiles the
# C of `ring`; libc6-dev-arm64-cross, the C library of both; and by rustup the standard library for that target.
set -euo pipefail
cd "$(dirname "$0")/.."

target=aarch64-unknown-linux-gnu
system=/usr/aarch64-linux-gnu # where Debian puts the loader and the C library

has() { command -v "$1" >/dev/null; }
if ! has qemu-aarch64 || ! has aarch64-linux-gnu-gcc || [ ! -e $system/include/stdio.h ]; then
    sudo=$([ "$(id -u)" = 0 ] || echo sudo)
    $sudo apt-get update -qq
    $sudo apt-get install -qq -y --no-install-recommends qemu-user gcc-aarch64-linux-gnu libc6-dev-arm64-cross
fi
rustup target add $target

# `target-cpu=native` of .cargo/config.toml would be the CPU of this machine.
export RUSTFLAGS="-C target-cpu=generic" CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc CC_aarch64_unknown_linux_gnu=aarch64-linux-gnu-gcc
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64 -L $system"
said=$(mktemp)
trap 'rm -f "$said"' EXIT
cargo test --release -p meshweft-tests --no-default-features --target $target --target-dir target/aarch64 --test root \
    -- "${@:-digests_are_those_on_record}" 2>&1 | tee "$said"
# A filter that fits no test passes all of none.
grep -Eq '^test result: ok\. [1-9]' "$said"
