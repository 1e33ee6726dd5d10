#!/usr/bin/env python3
"""soak.py BUILD MINUTES - run the random tests of a build with new seeds until the time is over.
soak.py BUILD --once TEST SEED [TIMES] - run one of them once, as a failing run was.

Random are the tests that CTest knows with the label `random`, and those of kills.  Each run gets a
seed of its own and more cases than usual.  A failure does not end the soak: its output goes to
BUILD/soak, and the inputs that failed are printed as lines for tests/data/known.txt.  The last lines
are a summary; the exit status is 1 if anything failed, or if a soak of an hour or more did fewer
redistributions than it must.
"""
import collections
import json
import os
import re
import secrets
import signal
import subprocess
import sys
import threading
import time

TIMES = 3  # as many cases as usual
KILLS = 1000  # in each run of a test that kills ranks
LONGEST_S = 1800  # of one run
HOUR_MIN = {"simulated": 100_000, "real": 5_000}  # redistributions in an hour or more
KNOWN_LINE = re.compile(r"^(weft (?:sim|redistribute) .*|dtensor_sim .*|fuzz fuzz_.*)$", re.M)
COUNTS = {  # what a test's "N pairs" or cases are
    "simulated": re.compile(r"^test_redistribute_simulated$"),
    "real": re.compile(r"^test_redistribute_ranks$|redistribute_(\d+|outside)$"),
}


class Test:
    def __init__(self, listed):
        properties = {p["name"]: p["value"] for p in listed.get("properties", [])}
        self.name = listed["name"]
        self.command = listed.get("command", [])
        self.folder = properties.get("WORKING_DIRECTORY")
        self.environment = dict(e.split("=", 1) for e in properties.get("ENVIRONMENT", []))
        self.skip_code = properties.get("SKIP_RETURN_CODE", 77)
        self.kills = "kill" in self.name
        self.random = "random" in properties.get("LABELS", []) or self.kills
        self.running = False
        self.runs = self.cases = 0

    def prepare(self, seed, times):
        """The command and the environment of a run, with TIMES as many cases as usual."""
        environment = dict(os.environ, **self.environment)
        environment.update(WEFT_TEST_SEED=str(seed), WEFT_TEST_KILLS=str(KILLS),
                           WEFT_TEST_TIMES=str(times))
        command = list(self.command)
        if len(command) > 1 and command[1] == "conform":
            command += ["--seed", str(seed)]
        return command, environment


def list_tests(build):
    listed = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"],
                            check=True, capture_output=True, text=True).stdout
    return [t for t in map(Test, json.loads(listed)["tests"]) if t.random and t.command]


def run_once(test, seed, times):
    """The exit code, None for a run that was ended, and the output."""
    command, environment = test.prepare(seed, times)
    process = subprocess.Popen(command, env=environment, cwd=test.folder, text=True,
                               errors="replace", stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               start_new_session=True)
    try:
        output, _ = process.communicate(timeout=LONGEST_S)
        return process.returncode, output
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        return None, output


def known_lines(name, seed, times, output):
    """The failing run, and the inputs that it printed, as lines for tests/data/known.txt."""
    lines = [f"seed {name} {seed} {times}"] + KNOWN_LINE.findall(output)
    return list(dict.fromkeys(lines))


class Soak:
    def __init__(self, build, minutes):
        self.build, self.minutes = build, minutes
        self.tests = list_tests(build)
        self.begun = time.monotonic()
        self.deadline = self.begun + 60 * minutes
        self.lock = threading.Lock()
        self.failures, self.skipped = [], set()
        self.totals = collections.Counter()
        os.makedirs(os.path.join(build, "soak"), exist_ok=True)

    def next_test(self):
        """That has run least, and does not run now; None when the time is over."""
        with self.lock:
            idle = [t for t in self.tests if not t.running and t.name not in self.skipped]
            if time.monotonic() >= self.deadline or not idle:
                return None
            test = min(idle, key=lambda t: t.runs)
            test.running = True
            test.runs += 1
            return test

    def note(self, test, seed, code, output):
        with self.lock:
            test.running = False
            if code == test.skip_code:
                self.skipped.add(test.name)
                return
            self.totals["runs"] += 1
            cases = sum(int(n) for n in re.findall(r"^cases: (\d+)$", output, re.M))
            test.cases += cases
            self.totals["cases"] += cases
            for kind, pattern in COUNTS.items():
                if pattern.search(test.name) and code == 0:
                    self.totals[kind] += cases
            if code != 0:
                self.fail(test, seed, code, output)

    def fail(self, test, seed, code, output):
        lines = known_lines(test.name, seed, TIMES, output)
        path = os.path.join(self.build, "soak", f"{test.name}-{seed}.txt")
        with open(path, "w") as file:
            file.write(output)
        why = "ran too long" if code is None else f"ended with {code}"
        print(f"FAILED: {test.name} with WEFT_TEST_SEED={seed} {why}; its output is in {path}")
        print("\n".join("    " + line for line in output.splitlines()[-30:]))
        print("for tests/data/known.txt:")
        print("\n".join(lines), flush=True)
        self.failures.append((test.name, seed, lines))

    def work(self):
        while (test := self.next_test()) is not None:
            seed = secrets.randbits(48)
            self.note(test, seed, *run_once(test, seed, TIMES))

    def run(self, workers):
        threads = [threading.Thread(target=self.work) for _ in range(workers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def short_of(self):
        """What a soak of an hour did too little of."""
        if self.minutes < 60:
            return []
        return [f"{self.totals[kind]} {kind} redistributions, fewer than {least}"
                for kind, least in HOUR_MIN.items() if self.totals[kind] < least]

    def summarize(self):
        minutes = (time.monotonic() - self.begun) / 60
        print(f"\nsoak: {len(self.tests)} random tests, {minutes:.1f} minutes")
        for test in sorted(self.tests, key=lambda t: t.name):
            print(f"  {test.name:44} {test.runs:5} runs  {test.cases:9} cases")
        if self.skipped:
            print("skipped:", ", ".join(sorted(self.skipped)))
        if self.failures:
            print("for tests/data/known.txt:")
            for _, _, lines in self.failures:
                print("\n".join(lines))
            print("seeds of failures:", ", ".join(f"{name}={seed}" for name, seed, _ in self.failures))
        for sentence in self.short_of():
            print("soak:", sentence)
        print(f"soak: {self.totals['simulated']} simulated and {self.totals['real']} real "
              f"redistributions, {self.totals['cases']} cases in all")
        print(f"{self.totals['runs'] - len(self.failures)} passed, {len(self.failures)} failed")


def replay(build, name, seed, times="1"):
    found = [t for t in list_tests(build) if t.name == name]
    if not found:
        sys.exit(f"soak: {name} is not a random test of {build}")
    code, output = run_once(found[0], int(seed), int(times))
    print(output)
    if code != 0:
        print("for tests/data/known.txt:", *known_lines(name, seed, times, output), sep="\n")
    sys.exit(0 if code == 0 else 1)


def main():
    if sys.argv[2:3] == ["--once"] and len(sys.argv) in (5, 6):
        replay(sys.argv[1], *sys.argv[3:])
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    soak = Soak(sys.argv[1], float(sys.argv[2]))
    if not soak.tests:
        sys.exit("soak: the build has no random tests")
    soak.run(int(os.environ.get("JOBS") or len(os.sched_getaffinity(0))))
    soak.summarize()
    sys.exit(1 if soak.failures or soak.short_of() else 0)


if __name__ == "__main__":
    main()
