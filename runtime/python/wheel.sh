#!/usr/bin/env bash
# A wheel for any x86-64 machine with Linux, at the full speed of each: it holds the extension module for three levels of processors, and
# `import meshweft` loads the best. Builds the workspace three times, some minutes each.
#
#   runtime/python/wheel.sh [FOLDER]      FOLDER: where the wheel goes [target/wheels]
#
# Needs `pip install maturin wheel`. The wheel runs where the C library is as new as here.
set -euo pipefail
cd "$(dirname "$0")/../.."
out=$(realpath -m "${1:-target/wheels}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for level in v2 v3 v4; do
    RUSTFLAGS="-C target-cpu=x86-64-$level" maturin build --release --manifest-path runtime/python/Cargo.toml \
        --target-dir "target/wheel-$level" --out "$work/$level"
done
python3 -m wheel unpack --dest "$work/all" "$work"/v2/*.whl
for level in v3 v4; do
    python3 -m wheel unpack --dest "$work/$level/open" "$work/$level"/*.whl
    folder=$(echo "$work"/all/*/meshweft)/_levels/$level
    mkdir -p "$folder"
    cp "$work/$level"/open/*/meshweft/_meshweft.abi3.so "$folder/"
done
mkdir -p "$out"
python3 -m wheel pack --dest-dir "$out" "$work"/all/*
