#!/usr/bin/env bash
# Everything there is to know of a GPU, in one call of about ten minutes: what it is, whether every example and order is right
# on it, and what updates cost from 10^5 to 10^8 vertices.
#
#   docs/perf/gpu.sh [BINARY] [FOLDER]
#
# BINARY: the command [target/release/meshweft]; a bare machine needs it and a Vulkan loader, nothing else.
# FOLDER: for what it writes [gpu-report]: doctor.txt, right.txt, bench.txt and bench.jsonl.
# SECONDS_LEFT: when to start nothing more [570]. ADAPTER: which GPU [the best].
set -uo pipefail
binary=${1:-target/release/meshweft}
folder=${2:-gpu-report}
limit=${SECONDS_LEFT:-570}
adapter=${ADAPTER:+--adapter $ADAPTER}
mkdir -p "$folder"
SECONDS=0

left() { echo $((limit - SECONDS)); }

echo "== doctor" && "$binary" doctor | tee "$folder/doctor.txt"

echo "== right: five steps of every example and order, each judged against 64 bits"
for case in "heat torus:48x24" "wave disk:24" "spring box:14" "cloth sheet:32"; do
    read -r example mesh <<<"$case"
    for order in color level-color color-level priority-dag blocked jacobi; do
        [ "$(left)" -gt 420 ] || break 2
        said=$(timeout 60 "$binary" run "$example" --mesh "$mesh" --order "$order" --steps 5 --backend gpu $adapter \
            --verify --no-pictures --quiet --out "$folder/run" 2>&1 | grep -E '^verified|^error')
        echo "$example $order: ${said:-no answer}"
    done
done | tee "$folder/right.txt"
rm -rf "$folder/run"

echo "== bench"
: >"$folder/bench.jsonl"
measure() { # example, mesh, more options
    [ "$(left)" -gt 20 ] || { echo "out of time before $*"; return; }
    local example=$1 mesh=$2
    shift 2
    if json=$(timeout "$(left)" "$binary" bench "$example" --mesh "$mesh" --backend gpu $adapter --trials 3 --json "$@" 2>"$folder/err"); then
        echo "$json" >>"$folder/bench.jsonl"
        field() { grep -o "\"$1\":[^,}]*" <<<"$json" | head -1 | cut -d: -f2; }
        printf '%-7s %-10s %-28s %8.3f ns an update  %7.1f GB/s of %7.1f  %5.1f dispatches a round  busy %s\n' "$example" "$mesh" \
            "$*" "$(field ns_per_update)" "$(field gb_per_s)" "$(field copy_gb_per_s)" "$(field dispatches_per_round)" \
            "$(field busy_share | cut -c1-5)"
    else
        echo "$example $mesh $*: $(tail -1 "$folder/err")"
    fi
}
{
    for size in 46 100 128; do
        for block in 256 512 1024 4096; do measure spring box:$size --order blocked:$block; done
        measure spring box:$size --order color
    done
    measure spring box:128 --order jacobi
    measure spring box:128 --order priority-dag
    measure spring box:128 --order level-color
    for block in 256 512 1024 4096; do measure heat box:128 --order blocked:$block; done
    measure heat box:128 --order color
    for block in 256 512 1024; do measure cloth sheet:512 --set touching=off --order blocked:$block; done
    measure cloth sheet:512 --set touching=off --order color
    measure spring box:216 --order blocked:512
    measure spring box:216 --order color
    measure wave sheet:2000 --order blocked:512
    measure spring box:464 --order blocked:512 --trials 1
} | tee "$folder/bench.txt"
rm -f "$folder/err"
echo "== done after $SECONDS s"
