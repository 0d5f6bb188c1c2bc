#!/usr/bin/env python3
"""What a flood of packets costs a run: two processes on this machine, whose sockets others on it send to.

    docs/perf/floods.py [BINARY]        [target/release/meshweft]

Three floods in turn, each from source addresses all over 127.0.0.0/8, at every socket of the run: bytes without sense; the first packet of
a true handshake, as a worker sends it, at a hundred a second; and the same as fast as the garbage. Nobody ever answers. Progress is the rate
at which files of the run appear, before, during and after. Needs Linux, two cores, and takes about two minutes.
"""
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BINARY = str(Path(sys.argv[1] if len(sys.argv) > 1 else "target/release/meshweft").resolve())
SECONDS, EVERY = 8.0, 10
RUN = ["run", "spring", "--mesh", "box:64", "--steps", "1000000", "--every", str(EVERY), "--no-pictures", "--quiet"]


def first_packet(folder):
    """What a worker says first: taken from one whose driver is gone."""
    token = folder / "token"
    probe = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    probe.bind(("127.0.0.1", 0))
    address = probe.getsockname()
    probe.close()
    driver = subprocess.Popen([BINARY, "run", "heat", "--mesh", "torus:12x6", "--steps", "1", "--workers", "1", "--listen",
                               "%s:%d" % address, "--token", str(token), "--quiet", "--no-pictures", "--out", str(folder / "x")],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not (token.exists() and token.stat().st_size):
        time.sleep(0.05)
    driver.kill()
    driver.wait()
    ear = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    ear.bind(address)
    worker = subprocess.Popen([BINARY, "worker", "--join", str(token)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    packet = ear.recv(65536)
    worker.kill()
    worker.wait()
    return packet


def sockets(process):
    """Ports on which a process and its children take packets, and who they are."""
    processes = [process] + [int(p) for t in Path(f"/proc/{process}/task").iterdir() for p in (t / "children").read_text().split()]
    inodes = set()
    for p in processes:
        for f in Path(f"/proc/{p}/fd").iterdir():
            found = re.match(r"socket:\[(\d+)\]", os.readlink(f))
            if found:
                inodes.add(found[1])
    ports = []
    for table in ("/proc/net/udp", "/proc/net/udp6"):
        for line in Path(table).read_text().splitlines()[1:]:
            words = line.split()
            if words[9] in inodes:
                ports.append(int(words[1].rsplit(":", 1)[1], 16))
    return processes, ports


def resident(processes):
    """MiB of all of them."""
    text = "".join(Path(f"/proc/{p}/status").read_text() for p in processes)
    return sum(map(int, re.findall(r"VmRSS:\s+(\d+)", text))) / 1024


def flood(ports, make, rate, seconds):
    """Sends packets and tells how many went out."""
    froms = []
    for _ in range(500):
        one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        one.bind((f"127.{random.randrange(256)}.{random.randrange(256)}.{random.randrange(1, 255)}", 0))
        one.setblocking(False)
        froms.append(one)
    start, count = time.monotonic(), 0
    while (now := time.monotonic() - start) < seconds:
        while count < now * rate:
            try:
                random.choice(froms).sendto(make(), ("127.0.0.1", random.choice(ports)))
            except OSError:
                # Nobody takes more at the moment.
                pass
            count += 1
        time.sleep(1e-3)
    for one in froms:
        one.close()
    return count


def progress(out, since, until):
    """Steps a second between two times: by the files that were written."""
    times = sorted(f.stat().st_mtime for f in out.glob("*.vtu"))
    inside = [t for t in times if since <= t < until]
    return EVERY * (len(inside) - 1) / (inside[-1] - inside[0]) if len(inside) > 2 else 0.0


def main():
    junk = os.urandom(1 << 20)

    def garbage():
        length, start = random.randrange(20, 1200), random.randrange(1 << 19)
        return junk[start:start + length]

    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        hello = first_packet(folder)
        for name, make, rate in [("garbage", garbage, 20_000), ("first packets, 100 a second", lambda: hello, 100),
                                 ("first packets", lambda: hello, 20_000)]:
            out = folder / name.replace(" ", "-")
            run = subprocess.Popen([BINARY, *RUN, "--processes", "2", "--threads", "1", "--out", str(out)],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            while not out.exists() or len(list(out.glob("*.vtu"))) < 3:
                if run.poll() is not None:
                    sys.exit(run.stderr.read().decode())
                time.sleep(0.1)
            processes, ports = sockets(run.pid)
            marks, sizes = [time.time()], [resident(processes)]
            time.sleep(SECONDS)
            marks.append(time.time())
            count = flood(ports, make, rate, SECONDS)
            marks.append(time.time())
            sizes.append(resident(processes))
            time.sleep(5)
            marks.append(time.time())
            time.sleep(SECONDS)
            marks.append(time.time())
            assert run.poll() is None, f"{name}: the run ended: {run.stderr.read().decode()}"
            before, during, _, after = (progress(out, a, b) for a, b in zip(marks, marks[1:]))
            run.send_signal(signal.SIGINT)
            run.wait()
            shutil.rmtree(out)
            print(f"{name}: {count / SECONDS:.0f} packets a second at {len(ports)} sockets; steps a second: {before:.1f} before, {during:.1f} during "
                  f"({100 * during / before:.0f} %), {after:.1f} five seconds after ({100 * after / before:.0f} %); memory {sizes[0]:.0f} MiB, "
                  f"then {sizes[1]:.0f} MiB", flush=True)


main()
