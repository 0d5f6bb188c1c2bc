#!/usr/bin/env python3
"""Kills and freezes workers and drivers of runs at random moments, and compares what comes out with a run that nothing happened to.

    docs/reliability/kills.py [--seed N] [--workers N] CASE=TRIALS ...

cases:
    kill      one worker, at any moment of the run
    early     one worker, within the first 80 ms: while it joins and gets its share
    again     one worker, and another one within 300 ms: while the run begins again
    pair      two workers at once
    all       all workers at once
    freeze1   SIGSTOP of one worker for 1 s; freeze10, freeze60
    stopped   SIGSTOP of one worker within the first 80 ms, for good
    asleep    SIGSTOP of the driver for 30 s, as of a laptop that closes
    clock     one worker, right after the clock of all jumped by up to 23 hours, forth or back; needs a C compiler
    driver    the driver, which `meshweft resume` then goes on from
    power     driver and workers at once, likewise; while a checkpoint is being written, as often as not

Prints a line for each case: trials, those with the right digest, the longest time. Exit code 1 if one was wrong. Needs Linux and a
release build.
"""
import argparse, json, os, random, re, shutil, signal, subprocess, sys, tempfile, time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAM = os.path.join(ROOT, "target", "release", "meshweft")
RUN = ["run", "cloth", "--mesh", "sheet:32", "--no-pictures", "--every", "100000", "--quiet", "--json"]


def children(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            return [int(word) for word in file.read().split()]
    except OSError:
        return []


def send(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def jump_clocks(folder):
    """What has programs look at a clock that jumps as the file says that it returns too."""
    library, offset = os.path.join(folder, "clock.so"), os.path.join(folder, "offset")
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "clock.c")
    if not os.path.exists(library):
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
    with open(offset, "w") as file:
        file.write("0")
    return {"LD_PRELOAD": library, "CLOCK_JUMP": offset}, offset


def start(out, steps, workers, more=(), environment={}):
    words = [PROGRAM, *RUN, "--steps", str(steps), "--out", out, "--processes", str(workers), "--threads", "1", *more]
    pipe = subprocess.PIPE
    return subprocess.Popen(words, stdout=pipe, stderr=pipe, stdin=subprocess.DEVNULL, env={**os.environ, **environment})


def wait_for_workers(driver, workers):
    while len(found := children(driver.pid)) < workers:
        if driver.poll() is not None:
            return []
        time.sleep(0.001)
    return found


def told(driver, most):
    try:
        out, err = driver.communicate(timeout=most)
    except subprocess.TimeoutExpired:
        for pid in [*children(driver.pid), driver.pid]:
            send(pid, signal.SIGKILL)
        return None, "it hangs"
    err = err.decode(errors="replace")
    return (json.loads(out)["digest"] if driver.returncode == 0 else None), f"exit code {driver.returncode}: {err[-600:]}"


def resumed(out, workers):
    """Goes on with a run whose driver is gone; begins it if there is no checkpoint yet."""
    words = [PROGRAM, "resume", out, "--quiet", "--json", "--processes", str(workers), "--threads", "1"]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)


def trial(case, chance, folder, steps, span, workers):
    out = os.path.join(folder, "out")
    shutil.rmtree(out, ignore_errors=True)
    ends = case in ("driver", "power")
    environment, offset = jump_clocks(folder) if case == "clock" else ({}, None)
    driver = start(out, steps, workers, ["--checkpoint-every", "0.05s"] if ends else [], environment)
    if not wait_for_workers(driver, workers):
        return told(driver, 60)
    if case in ("early", "stopped"):
        time.sleep(chance.uniform(0, 0.08))
    elif not ends:
        # Every other driver sleeps while its workers join.
        time.sleep(chance.uniform(0, 0.03 if case == "asleep" and chance.random() < 0.5 else span))
    frozen = []
    pids = children(driver.pid)
    if case == "clock":
        with open(offset, "w") as file:
            file.write(str(int(chance.uniform(-23, 23) * 3600)))
    if case in ("kill", "early", "again", "clock"):
        for pid in chance.sample(pids, min(1, len(pids))):
            send(pid, signal.SIGKILL)
        if case == "again":
            time.sleep(chance.uniform(0, 0.3))
            for pid in chance.sample(children(driver.pid), 1) if children(driver.pid) else []:
                send(pid, signal.SIGKILL)
    elif case in ("pair", "all"):
        for pid in pids if case == "all" else chance.sample(pids, min(2, len(pids))):
            send(pid, signal.SIGKILL)
    elif case == "stopped":
        for pid in chance.sample(pids, min(1, len(pids))):
            send(pid, signal.SIGSTOP)
    elif case == "asleep":
        send(driver.pid, signal.SIGSTOP)
        time.sleep(30)
        send(driver.pid, signal.SIGCONT)
    elif case.startswith("freeze"):
        if pids:
            frozen = [chance.choice(pids)]
            send(frozen[0], signal.SIGSTOP)
            time.sleep(float(case[6:]))
            send(frozen[0], signal.SIGCONT)
    elif ends:
        checkpoint = os.path.join(out, "checkpoint")
        writing = lambda: any(n.endswith(".partial") for n in os.listdir(checkpoint))
        whole = lambda: any(re.fullmatch(r"epoch-\d{20}", n) for n in os.listdir(checkpoint))
        begun = time.time()
        while driver.poll() is None and not (os.path.isdir(checkpoint) and whole()):
            time.sleep(0.001)
        time.sleep(chance.uniform(0, span))
        if chance.random() < 0.5:
            while driver.poll() is None and time.time() < begun + 2 * span and not writing():
                pass
        gone = [driver.pid, *(children(driver.pid) if case == "power" else [])]
        for pid in gone:
            send(pid, signal.SIGKILL)
        driver.communicate()
        if driver.returncode == 0:
            return None, "it ended before it was killed"
        driver = resumed(out, chance.choice([1, 2, 3]))
    return told(driver, 300)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3, help="how long the run takes, about")
    parser.add_argument("cases", nargs="+", metavar="CASE=TRIALS")
    arguments = parser.parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "whole")
        steps, span = 500, 0.0
        while span < arguments.seconds:
            steps = int(steps * max(2.0, min(10.0, arguments.seconds / max(span, 0.1)))) if span else steps
            begun = time.time()
            expected, why = told(start(out, steps, arguments.workers), 300)
            span = time.time() - begun
            assert expected, why
        print(f"{steps} steps in {span:.1f} s, digest {expected[:16]}", flush=True)
        for word in arguments.cases:
            case, count = word.split("=")
            right, longest = 0, 0.0
            for i in range(int(count)):
                chance = random.Random(f"{arguments.seed} {case} {i}")
                begun = time.time()
                digest, why = trial(case, chance, folder, steps, span, arguments.workers)
                if digest is None and why == "it ended before it was killed":
                    digest = expected
                longest = max(longest, time.time() - begun)
                if digest == expected:
                    right += 1
                else:
                    print(f"{case} {i}: {digest} {why}", flush=True)
            wrong += int(count) - right
            print(f"{case:9} {right} of {count} right, {longest:.1f} s at most", flush=True)
    left = subprocess.run(["pgrep", "-fc", PROGRAM], capture_output=True, text=True).stdout.strip()
    print(f"{left} processes left")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
