#!/usr/bin/env python3
"""Carries packets between two network devices, each packet late by the same time: what a longer cable does.

    docs/perf/delay.py NAME NAME MILLISECONDS

Makes two devices of that name, which may then be moved into network namespaces, and runs until it is killed. Says on leaving how many
packets it carried, and the processor time that took. Needs root. For links.sh: the kernel need not have `tc netem`.
"""
import collections
import fcntl
import os
import select
import signal
import struct
import sys
import time

# From linux/if_tun.h: a device for IP packets, without a header in front of each.
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
LARGEST = 1 << 16


def device(name):
    tunnel = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(tunnel, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TUN | IFF_NO_PI))
    return tunnel


def main():
    first, second, delay = sys.argv[1], sys.argv[2], 1e-3 * float(sys.argv[3])
    ends = [device(first), device(second)]
    other = dict(zip(ends, reversed(ends)))
    # Packets are late by the same time, so those that came first are due first.
    late = collections.deque()
    count = 0

    def leave(*_):
        print(f"{count} packets, {time.process_time():.1f} s of processor time", file=sys.stderr)
        os._exit(0)

    signal.signal(signal.SIGTERM, leave)
    while True:
        wait = max(late[0][0] - time.monotonic(), 0) if late else None
        ready, _, _ = select.select(ends, [], [], wait)
        for end in ready:
            try:
                while True:
                    late.append((time.monotonic() + delay, other[end], os.read(end, LARGEST)))
            except BlockingIOError:
                pass
            except OSError:
                # Down, or on its way to another namespace.
                time.sleep(1e-3)
        now = time.monotonic()
        while late and late[0][0] <= now:
            _, end, packet = late.popleft()
            count += 1
            try:
                os.write(end, packet)
            except OSError:
                # A full or closed device loses packets, as links do.
                pass


main()
