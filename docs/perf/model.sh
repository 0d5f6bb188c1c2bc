#!/usr/bin/env bash
# Predicts and measures the configurations that docs/perf/model.md has tables of, one after the other, each in less than a minute:
# docs/perf/model.sh [BINARY] [FOLDER] [PROBLEM]. BINARY: the command [target/release/meshweft]; PROBLEM: only the one that is named, as
# in "heat box:46". The machine is to do nothing else.
set -euo pipefail
cd "$(dirname "$0")/../.."
binary=${1:-target/release/meshweft} out=${2:-out/model} only=${3:-}
mkdir -p "$out"
XDG_CACHE_HOME=$(realpath "$out")/cache
export XDG_CACHE_HOME
# What follows the mesh are options: on the cores and a GPU beside them, be it software, in the order that suits it.
for problem in "heat box:46" "heat box:64" "spring box:46" "cloth sheet:100 --set touching=off" "cloth sheet:316 --set touching=off" "pagerank kronecker:16" "pagerank kronecker:18" "heat box:46 --backend hybrid --order color" \
    "spring box:46 --backend hybrid --order color" "cloth sheet:316 --set touching=off --backend hybrid --order color"; do
    [[ -z $only || $only == "$problem" ]] || continue
    read -r example mesh options <<<"$problem"
    echo "## $problem"
    # shellcheck disable=SC2086 # several options
    "$binary" plan "$example" --mesh "$mesh" $options --fresh --measure --out "$out/${problem// /-}" |
        tee "$out/${problem// /-}.txt"
done
