"""Much that comes at the page of a run, while the run goes on: it must end with the digest of one that nobody watches, and neither
memory nor threads may grow.

    python3 examples/view/tests/campaign.py target/release/meshweft [REQUESTS [PAGES]]

Requests, right and wrong ones, over connections that stay and that break off; garbage; pages that want frames and are gone in the middle
of one. Python alone, without packages. Docs: docs/perf/view.md.
"""

import base64
import json
import os
import random
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

RUN = ["run", "cloth", "--mesh", "sheet:64", "--no-pictures", "--quiet", "--checkpoint-every", "never", "--every", "1000000"]
AT_ONCE = 50
TALKERS = 3
# Beyond what the run has before the first request: frames of eight pages, and 64 connections with what they are sent.
MORE_BYTES = 64 << 20
FILES = ["", "view.css", "view.js", "plots.js", "message.js"]


def connect(place):
    connection = socket.create_connection(place, timeout=20)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def drop(connection):
    """Closes it at once, whatever is under way."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


class Counts:
    def __init__(self):
        self.lock = threading.Lock()
        self.all = {}

    def add(self, what, many=1):
        with self.lock:
            self.all[what] = self.all.get(what, 0) + many


def ask(place, token, seed, requests, counts):
    """So many requests, many on a connection before the first answer is read."""
    chance = random.Random(seed)
    host = "%s:%d" % place
    while requests > 0:
        many = min(AT_ONCE, requests)
        lines = []
        for i in range(many):
            kind = chance.randrange(6)
            path = f"/{token}/{chance.choice(FILES)}"
            head = f"Host: {host}\r\n"
            if kind == 1:
                path = "/" + "".join(chance.choices("0123456789abcdef", k=32)) + "/"
            elif kind == 2:
                head = "Host: evil.example\r\n"
            elif kind == 3:
                head += "Origin: http://evil.example\r\n"
            elif kind == 4:
                path = f"/{token}/live"
            if i == many - 1:
                head += "Connection: close\r\n"
            lines.append(f"GET {path} HTTP/1.1\r\n{head}\r\n")
        try:
            connection = connect(place)
            connection.sendall("".join(lines).encode())
            if chance.random() < 0.1:
                counts.add("requests without a reader", many)
                drop(connection)
                requests -= many
                continue
            answers = b"".join(iter(lambda: connection.recv(1 << 20), b""))
            connection.close()
            counts.add("answers", answers.count(b"HTTP/1.1 "))
            counts.add("connections that were not taken" if not answers else "connections")
            if answers:
                requests -= many
        except OSError:
            counts.add("connections that broke off")


def throw(place, token, seed, over, counts):
    """Garbage, as HTTP and as messages of a page."""
    chance = random.Random(seed)
    while not over.is_set():
        try:
            connection = connect(place)
            if chance.random() < 0.5:
                connection.sendall(b"GET " + chance.randbytes(chance.randrange(1, 3000)))
            else:
                upgrade(connection, place, token)
                connection.sendall(chance.randbytes(chance.randrange(1, 3000)))
            counts.add("pieces of garbage")
            drop(connection)
        except OSError:
            counts.add("connections that broke off")
        time.sleep(0.01)


def upgrade(connection, place, token):
    key = base64.b64encode(os.urandom(16)).decode()
    head = f"GET /{token}/live HTTP/1.1\r\nHost: %s:%d\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" % place
    connection.sendall(f"{head}Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n\r\n".encode())


def say(connection, words):
    text = json.dumps(words).encode()
    assert len(text) < 126
    connection.sendall(bytes([0x81, 0x80 | len(text)]) + bytes(4) + text)


def watch(place, token, seed, counts):
    """A page that asks for frames, and is gone in the middle of one."""
    chance = random.Random(seed)
    for _ in range(100):
        try:
            connection = connect(place)
            upgrade(connection, place, token)
            pauses = chance.random() < 0.2
            say(connection, {"ready": True, "field": 3, "metrics": True, "pause": pauses})
            # A run that is paused has one frame.
            read, some = 0, chance.randrange(100_000, 200_000 if pauses else 1_000_000)
            while read < some:
                piece = connection.recv(min(1 << 16, some - read))
                if not piece:
                    raise OSError("full")
                read += len(piece)
                say(connection, {"ready": True})
            drop(connection)
            counts.add("pages gone in a frame")
            return
        except OSError:
            # All places are taken by others.
            time.sleep(0.1)
    raise AssertionError("a page found no place")


def held(process):
    lines = open(f"/proc/{process}/status").read().splitlines()
    facts = dict(line.split(":", 1) for line in lines)
    return int(facts["VmRSS"].split()[0]) << 10, int(facts["Threads"])


def main():
    program = sys.argv[1]
    requests = int(sys.argv[2]) if len(sys.argv) > 2 else 100_000
    pages = int(sys.argv[3]) if len(sys.argv) > 3 else 50
    with tempfile.TemporaryDirectory() as folder:
        start = [program, *RUN, "--json", "--out"]
        run = subprocess.Popen([*start, f"{folder}/watched", "--steps", "1000000000", "--view"], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
        try:
            url = next(line.split()[1] for line in run.stderr if line.startswith("view: "))
            threading.Thread(target=run.stderr.read, daemon=True).start()
            host, token = url.removeprefix("http://").rstrip("/").split("/")
            place = (host.split(":")[0], int(host.split(":")[1]))
            time.sleep(2)
            first, counts, over = held(run.pid), Counts(), threading.Event()
            most, begun = first, time.monotonic()
            shares = [requests // TALKERS + (i < requests % TALKERS) for i in range(TALKERS)]
            work = [threading.Thread(target=ask, args=(place, token, i, share, counts)) for i, share in enumerate(shares)]
            work += [threading.Thread(target=lambda: [watch(place, token, 100 + i, counts) for i in range(pages)])]
            thrower = threading.Thread(target=throw, args=(place, token, 7, over, counts))
            for thread in [*work, thrower]:
                thread.start()
            while any(thread.is_alive() for thread in work):
                time.sleep(0.05)
                assert run.poll() is None, "the run has ended"
                most = tuple(map(max, most, held(run.pid)))
            over.set()
            thrower.join()
            seconds = time.monotonic() - begun
            time.sleep(1)
            last = held(run.pid)
            run.send_signal(signal.SIGINT)
            report = json.loads(run.communicate(timeout=60)[0])
        finally:
            run.kill()
        alone = subprocess.run([*start, f"{folder}/alone", "--steps", str(report["steps"])], capture_output=True, check=True)
        alone = json.loads(alone.stdout)
    print(f"{seconds:.0f} s, {report['steps']} steps, " + ", ".join(f"{many} {what}" for what, many in sorted(counts.all.items())))
    mib = [f"{each[0] / 2**20:.1f}" for each in (first, most, last)]
    print(f"memory {mib[0]} MiB before, {mib[1]} at most, {mib[2]} after; threads {first[1]}, {most[1]}, {last[1]}")
    print(f"digest {report['digest']}, alone {alone['digest']}")
    assert counts.all["pages gone in a frame"] == pages
    assert report["digest"] == alone["digest"] and report["changes"] == [], "the digest is another one"
    assert most[0] <= first[0] + MORE_BYTES, "memory has grown"
    assert most[1] == first[1] == last[1], "threads have come"
    print("ok")


main()
