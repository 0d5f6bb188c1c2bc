#!/usr/bin/env bash
# The long campaigns in full; `cargo test` runs the first cases of each.
#
#   docs/perf/campaign.sh [SEEDS]        [10000]
#
# Every case: a random graph, order, list of steps, number of hosts and partition, compared with the serial oracle bit for bit. Once with
# hosts that pass messages through memory, once in a simulated network that delays messages, and loses and sends them again (each seed twice,
# the traces compared), once with a host that crashes or a link that is cut. Then every example under every order on a GPU and on hosts with
# GPUs, of which `cargo test` tries every third; and as many random scenes of cloth that touches itself, each state by an exact test of whether
# anything has passed through anything, the same of what tears, and a tenth as many random graphs whose elements come and go,
# or move their corners. The last figures stand in docs/reliability/README.md.
set -euo pipefail
cd "$(dirname "$0")/../.."
export SEEDS=${1:-10000}
SECONDS=0
cargo test --release -p meshweft --lib cluster::tests -- --nocapture
echo "$SEEDS seeds of each after $SECONDS s"
EVERY_CASE=1 cargo test --release -p meshweft-tests --test root -- to_exact_arithmetic_as_the_oracle extreme_meshes_run_on_a_gpu
echo "every case of GPUs after $SECONDS s"
MESHWEFT_GRAPHS=$((SEEDS / 10)) cargo test --release -p meshweft --lib -- elements_that_come_and_go elements_are_projected
MESHWEFT_SCENES=$SEEDS cargo test --release -p meshweft-tests --test root -- random_scenes random_tears random_breaks
echo "random graphs and scenes after $SECONDS s"
