#!/usr/bin/env bash
# Two hosts on links of several speeds: two network namespaces of this machine, joined by a pair of virtual Ethernet devices whose rate
# a token bucket limits. One worker of one thread in each, the driver beside the first. Needs root, ip and tc; for delays Python, too.
#
#   docs/perf/links.sh [BINARY] [FOLDER]
#
# BINARY: the command [target/release/meshweft]. FOLDER: for links.txt [links-report]. RATES: of the link, as tc writes them, or none
# ["none 1gbit 100mbit"]. CASES: example, mesh, steps, a setting ["heat box:100 20;spring box:100 40;cloth sheet:512 5 touching=off"].
# COMPRESS: ["auto never"]. DELAY: ms that each packet takes one way; delay.py then carries them, which takes some of the cores [none].
set -uo pipefail
binary=$(realpath "${1:-target/release/meshweft}")
folder=${2:-links-report}
mkdir -p "$folder"
one=mw-a$$ two=mw-b$$
clean() { [ -n "${carrier:-}" ] && kill $carrier && wait $carrier; ip netns del $one 2>/dev/null; ip netns del $two 2>/dev/null; }
trap clean EXIT
ip netns add $one && ip netns add $two || exit 1
if [ -n "${DELAY:-}" ]; then
    "$(dirname "$0")/delay.py" va$$ vb$$ "$DELAY" & carrier=$!
    until ip link show vb$$ >/dev/null 2>&1; do sleep 0.05; done
    ip link set va$$ netns $one && ip link set vb$$ netns $two || exit 1
else
    ip link add va$$ netns $one type veth peer name vb$$ netns $two
fi
for side in "$one va$$ 10.77.0.1" "$two vb$$ 10.77.0.2"; do
    read -r space device address <<<"$side"
    ip -n "$space" link set lo up
    ip -n "$space" address add "$address/24" dev "$device"
    ip -n "$space" link set "$device" up
done

limit() { # rate
    for side in "$one va$$" "$two vb$$"; do
        read -r space device <<<"$side"
        ip netns exec "$space" tc qdisc del dev "$device" root 2>/dev/null
        [ "$1" = none ] || ip netns exec "$space" tc qdisc add dev "$device" root tbf rate "$1" burst 128kb latency 20ms
    done
}

measure() { # example, mesh, steps, rate, how values are packed, more options
    local token=$folder/token
    rm -f "$token"
    ip netns exec $one "$binary" run "$1" --mesh "$2" --steps "$3" --every "$3" --workers 2 --threads 1 --compress "$5" --listen 10.77.0.1:7700 \
        --token "$token" --quiet --no-pictures --out "$folder/out" --json "${@:6}" >"$folder/run.json" 2>"$folder/err" &
    local driver=$!
    until [ -s "$token" ] || ! kill -0 $driver 2>/dev/null; do sleep 0.05; done
    for space in $one $two; do ip netns exec "$space" "$binary" worker --join "$token" >/dev/null 2>>"$folder/err" & done
    wait $driver || { echo "$* failed: $(grep -m1 error "$folder/err")"; wait; return; }
    wait
    python3 - "$folder/run.json" "$@" <<'PYTHON'
import json, sys
run = json.load(open(sys.argv[1]))
hosts, rounds = run["hosts"], max(run["rounds"], 1)
sent = sum(host["bytes_a_round"] for host in hosts) / len(hosts)
values, packed = (sum(host[key] for host in hosts) for key in ("value_bytes", "value_bytes_sent"))
share = f", values packed to {100 * packed / values:.0f} %" if packed < values else ""
# Without what the driver does before and after.
walked = max((host["updating_s"] + host["waiting_s"]) / host["threads"] for host in hosts)
print(f"{' '.join(sys.argv[2:]):40} {1e3 * walked / rounds:8.3f} ms a round  speed-up {run['speed_up']['measured']:.2f}"
      f"  {sent / 1e3:.0f} kB a round and host{share}  digest {run['digest'][:8]}")
PYTHON
}

for rate in ${RATES:-none 1gbit 100mbit}; do
    limit "$rate"
    IFS=';' read -ra cases <<<"${CASES:-heat box:100 20;spring box:100 40;cloth sheet:512 5 touching=off}"
    for case in "${cases[@]}"; do
        read -r example mesh steps set <<<"$case"
        for compress in ${COMPRESS:-auto never}; do measure "$example" "$mesh" "$steps" "$rate" "$compress" ${set:+--set "$set"}; done
    done
done | tee "$folder/links.txt"
rm -rf "$folder/out" "$folder/run.json" "$folder/token"
