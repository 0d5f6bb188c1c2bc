#!/usr/bin/env python3
"""Lets a run go on for long, kills a worker of it every now and then, and watches what the driver holds.

    docs/reliability/soak.py [--minutes N] [--workers N] [--every SECONDS]

Prints memory, threads and open files of the driver, as medians of the second and the last eighth of the time, and whether the
digest is that of one process for as many steps. Exit code 1 if it is not, or if the driver grew by more than a tenth. Needs Linux
and a release build.
"""
import argparse, json, os, random, signal, statistics, subprocess, sys, tempfile, time

from kills import PROGRAM, children, send

RUN = [PROGRAM, "run", "cloth", "--mesh", "sheet:64", "--no-pictures", "--every", "1000000", "--quiet", "--json"]


def held(pid):
    with open(f"/proc/{pid}/status") as file:
        status = dict(line.split(":", 1) for line in file)
    return int(status["VmRSS"].split()[0]), int(status["Threads"]), len(os.listdir(f"/proc/{pid}/fd"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--every", type=float, default=30, help="seconds from one kill to the next")
    arguments = parser.parse_args()
    chance, samples, kills = random.Random(1), [], 0
    with tempfile.TemporaryDirectory() as folder:
        words = [*RUN, "--steps", "100000000", "--out", os.path.join(folder, "long"), "--processes", str(arguments.workers)]
        words += ["--threads", "1", "--checkpoint-every", "5s"]
        driver = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=open(os.path.join(folder, "said"), "w"), stdin=subprocess.DEVNULL)
        begun = last_kill = time.time()
        while time.time() < begun + 60 * arguments.minutes and driver.poll() is None:
            time.sleep(1)
            if time.time() > last_kill + arguments.every and (workers := children(driver.pid)):
                send(chance.choice(workers), signal.SIGKILL)
                kills, last_kill = kills + 1, time.time()
            if driver.poll() is None:
                samples.append(held(driver.pid))
        if driver.poll() is not None:
            with open(os.path.join(folder, "said")) as file:
                sys.exit(f"it ended by itself after {time.time() - begun:.0f} s and {kills} kills: {file.read()[-2000:]}")
        send(driver.pid, signal.SIGTERM)
        told = json.loads(driver.communicate()[0])
        steps = told["steps"]
        words = [*RUN, "--steps", str(steps), "--out", os.path.join(folder, "short"), "--checkpoint-every", "never"]
        expected = json.loads(subprocess.run(words, capture_output=True, check=True).stdout)
    right = told["digest"] == expected["digest"]
    eighth = len(samples) // 8
    of = lambda part: [statistics.median(sample[i] for sample in part) for i in range(3)]
    early, late = of(samples[eighth : 2 * eighth]), of(samples[-eighth:])
    print(f"{arguments.minutes:g} minutes, {steps} steps, {kills} kills, digest {'right' if right else 'WRONG'}")
    for name, before, after in zip(("memory, kB", "threads", "open files"), early, late):
        print(f"{name:11} {before:g} -> {after:g}")
    return not right or any(after > 1.1 * before + 1 for before, after in zip(early, late))


if __name__ == "__main__":
    sys.exit(main())
