#!/usr/bin/env bash
# Predicts and measures the configurations that docs/perf/model.md has tables of, one after the other, in a few minutes:
# docs/perf/model.sh [BINARY] [FOLDER]. BINARY: the command [target/release/meshweft]. The machine is to do nothing else.
set -euo pipefail
cd "$(dirname "$0")/../.."
binary=${1:-target/release/meshweft} out=${2:-out/model}
mkdir -p "$out"
XDG_CACHE_HOME=$(realpath "$out")/cache
export XDG_CACHE_HOME
for problem in "heat box:22" "heat box:46" "heat box:100" "spring box:22" "spring box:46" "spring box:100" "cloth sheet:100" \
    "cloth sheet:316" "pagerank kronecker:16"; do
    read -r example mesh <<<"$problem"
    echo "## $example, $mesh"
    "$binary" plan "$example" --mesh "$mesh" --fresh --measure --out "$out/$example-$mesh" | tee "$out/$example-$mesh.txt"
done
