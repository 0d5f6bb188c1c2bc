#!/usr/bin/env bash
# An archive of the command for machines with Linux and the architecture of this one, to be unpacked over /usr/local or ~/.local: program,
# completions, manual pages. For x86-64 it has the program once for each level of processor, and a launcher (launcher.sh) that starts the
# best: the width of the registers is chosen when kernels are compiled (docs/perf/decisions/levels.md). Builds everything once a level.
#
#   examples/release/archive.sh [FOLDER]      FOLDER: where the archive goes [target/archive]
#
# LEVELS="v3" builds some levels alone. The program runs where the C library is as new as here; the Dockerfile beside this builds it with an
# older one. Not linked statically, as it could then not load the Vulkan loader, by which it reaches GPUs.
set -euo pipefail
cd "$(dirname "$0")/../.."
out=$(realpath -m "${1:-target/archive}")

system=$(uname -m)-unknown-linux-gnu
version=$(cargo pkgid -p meshweft-examples)
name=meshweft-${version##*[#@]}-$(uname -m)-linux
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tree=$work/$name
mkdir -p "$tree/bin"

# Builds the program for a processor, into a file. With `--target`, so that what runs at build time is built once for all levels. Kernels
# for every width, so that hosts of different levels share a run.
build() {
    RUSTFLAGS="-C target-cpu=$1" cargo build --locked --profile dist -p meshweft-examples --bin meshweft --features all-widths --target "$system"
    install -D -s "${CARGO_TARGET_DIR:-target}/$system/dist/meshweft" "$2"
}

case $system in
x86_64-*)
    for level in ${LEVELS:-v2 v3 v4}; do build "x86-64-$level" "$tree/lib/meshweft/$level/meshweft"; done
    install examples/release/launcher.sh "$tree/bin/meshweft"
    ;;
*) build generic "$tree/bin/meshweft" ;;
esac

# Where shells and `man` look for them.
share=$tree/share
mkdir -p "$share/bash-completion/completions" "$share/zsh/site-functions" "$share/fish/vendor_completions.d"
"$tree/bin/meshweft" completions bash >"$share/bash-completion/completions/meshweft"
"$tree/bin/meshweft" completions zsh >"$share/zsh/site-functions/_meshweft"
"$tree/bin/meshweft" completions fish >"$share/fish/vendor_completions.d/meshweft.fish"
"$tree/bin/meshweft" man --out "$share/man/man1" >"$work/said"
install -D -m 644 -t "$share/doc/meshweft" LICENSE-APACHE LICENSE-MIT README.md docs/CHANGELOG.md

# The same bytes from the same binaries, whoever packs them, and when.
mkdir -p "$out"
tar -C "$work" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@${SOURCE_DATE_EPOCH:-0}" -c "$name" | gzip -9n >"$out/$name.tar.gz"
(cd "$out" && sha256sum "$name.tar.gz" >"$name.tar.gz.sha256")
echo "wrote $out/$name.tar.gz"
