#!/usr/bin/env bash
# How updates scale over threads of one process and over processes that talk through QUIC on this machine's loopback: strong scaling
# of three examples, then weak scaling, in one call.
#
#   docs/perf/scaling.sh [BINARY] [FOLDER]
#
# BINARY: the command [target/release/meshweft]. FOLDER: for scaling.txt and scaling.jsonl [scaling-report].
# COUNTS: how many processes or threads ["1 2 4 8"]. SECONDS_LEFT: when to start nothing more [570]. TRIALS: of each [3].
set -uo pipefail
binary=${1:-target/release/meshweft}
folder=${2:-scaling-report}
counts=${COUNTS:-1 2 4 8}
limit=${SECONDS_LEFT:-570}
mkdir -p "$folder"
: >"$folder/scaling.jsonl"
SECONDS=0

measure() { # example, mesh, steps a trial, options of where it runs
    local example=$1 mesh=$2 steps=$3 left=$((limit - SECONDS))
    shift 3
    [ "$left" -gt 20 ] || { echo "out of time before $example $mesh $*"; return; }
    if json=$(timeout "$left" "$binary" bench "$example" --mesh "$mesh" --steps "$steps" --trials "${TRIALS:-3}" --no-probe --json "$@" 2>"$folder/err"); then
        echo "$json" | sed "s/^{/{\"where\":\"$*\",/" >>"$folder/scaling.jsonl"
        field() { grep -o "\"$1\":[^,}]*" <<<"$json" | head -1 | cut -d: -f2; }
        printf '%-7s %-10s %-32s %8.3f ns an update (%.3f to %.3f)  digest %.8s\n' "$example" "$mesh" "$*" "$(field ns_per_update)" \
            "$(field ns_per_update_min)" "$(field ns_per_update_max)" "$(field digest | tr -d '"')"
    else
        echo "$example $mesh $*: $(tail -1 "$folder/err")"
    fi
}

{
    for case in "cloth sheet:512 5 --set=touching=off" "heat box:128 5" "spring box:128 40"; do
        read -r example mesh steps set <<<"$case"
        for count in $counts; do
            measure "$example" "$mesh" "$steps" $set --threads "$count"
            measure "$example" "$mesh" "$steps" $set --processes "$count" --threads 1
        done
    done
    echo "weak scaling: 2 million vertices a process"
    for case in "1 128" "2 161" "4 203" "8 256"; do
        read -r count edge <<<"$case"
        case " $counts " in *" $count "*) ;; *) continue ;; esac
        measure spring "box:$edge" 20 --threads "$count"
        measure spring "box:$edge" 20 --processes "$count" --threads 1
    done
} | tee "$folder/scaling.txt"
rm -f "$folder/err"
echo "done after $SECONDS s"
