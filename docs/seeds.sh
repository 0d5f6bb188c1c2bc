#!/usr/bin/env bash
# Redoes the tables and plots of docs/seeds/tables.md on this machine, and puts them there: docs/seeds.sh [BINARY] [PART...].
# BINARY: the command [target/release/meshweft]. PART: border, lists, search, times, shares, plans [all]. Some ten minutes; the machine is to
# do nothing else. Links of 1 Gbit/s and 100 Mbit/s need root, ip and tc, for a network namespace whose loopback a token bucket
# limits, and are left out without. Where there is no other GPU a software one is taken, with a core of its own.
set -euo pipefail
cd "$(dirname "$0")/.."
binary=$(realpath "${1:-target/release/meshweft}")
parts=("${@:2}")
[ ${#parts[@]} -gt 0 ] || parts=(border lists search times shares plans)
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
export XDG_CACHE_HOME=$out/cache LP_NUM_THREADS=1

study() { "$binary" bench --study "$1" --out docs/seeds; }

times() { # the same table on each link, with a column for the link
    local link rate head=
    for link in "none loopback as it is" "1gbit 1 Gbit/s" "100mbit 100 Mbit/s"; do
        rate=${link%% *} link=${link#* }
        if [ "$rate" = none ]; then
            study times >"$out/link"
        else
            unshare -n bash -c "ip link set lo up && tc qdisc add dev lo root tbf rate $rate burst 64kb latency 200ms &&
                '$binary' bench --study times --out docs/seeds" >"$out/link" || { echo "left out: $rate" >&2; continue; }
        fi
        [ -n "$head" ] || sed -n '1s/^/| link /p; 2s/^/|---/p' "$out/link"
        head=done
        sed -n "3,\$s#^|#| $link |#p" "$out/link"
    done
    echo
}

for part in "${parts[@]}"; do
    if [ "$part" = times ]; then times; else study "$part"; fi >"$out/$part"
    # Between <!-- part --> and <!-- end -->, whatever was there before.
    awk -v part="$part" -v file="$out/$part" '
        /^<!-- end -->$/ { inside = 0 }
        !inside { print }
        $0 == "<!-- " part " -->" { inside = 1; while ((getline line < file) > 0) print line }
    ' docs/seeds/tables.md >"$out/page"
    cp "$out/page" docs/seeds/tables.md
done
echo "done after $SECONDS s" >&2
