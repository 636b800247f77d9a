#!/usr/bin/env python3
"""Does a second run of `sqlitmus advise` say what the first has said?

    scripts/confirm-advice.py --sqlitmus target/release/sqlitmus [--tries 20] [--record FILE] DIR...

A try runs the program twice on a directory, the second time with another seed: other files are sampled, in
another order. It holds if the two recommend the same (or each declares what the other recommends a tie, or the
answer is the same and both keep the files), and if the interval of the ratio of their results includes 1. Tries go
through the directories in turn. Every run's figures are appended to the record, so that a stopped series goes on.
Exit code 0: at least nine tries in ten hold.
"""

import argparse
import json
import math
import pathlib
import subprocess
import sys
import time

SHARE_TO_HOLD = 0.9


def advise(arguments, directory, seed):
    command = [arguments.sqlitmus, "advise", directory, "--seed", str(seed), "--json", "--quiet", "--snippet", "none"]
    if arguments.place:
        command += ["--place", arguments.place]
    if arguments.budget:
        command += ["--budget", arguments.budget]
    begun = time.monotonic()
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    took = time.monotonic() - begun
    if done.returncode not in (0, 3, 4):
        sys.exit(f"{' '.join(command)}: exit code {done.returncode}")
    found = json.loads(done.stdout)["recommendation"]
    database = found["database"] or {}
    composed = database.get("composed") or {}
    return {
        "answer": found["answer"],
        "database": database.get("name"),
        "tie": found["tie"],
        "ratio": composed.get("ratio"),
        "interval": composed.get("interval"),
        "rounds": found["rounds"],
        "seconds": round(took, 1),
    }


def ratio_interval(one, other):
    """The ratio of two independent results: the squares of the half widths of the logarithms add up."""

    def half(run):
        return math.log(run["interval"]["high"] / run["interval"]["low"]) / 2

    middle = math.log(one["ratio"] / other["ratio"])
    reach = math.hypot(half(one), half(other))
    return math.exp(middle - reach), math.exp(middle + reach)


def same_store(one, other):
    if one["answer"] == other["answer"] == "keep-files" or one["database"] == other["database"]:
        return True
    return one["tie"] == other["database"] or other["tie"] == one["database"]


def judge(one, other):
    if not (one["interval"] and other["interval"]):
        return {"holds": False, "why": "a run has no interval"}
    low, high = ratio_interval(one, other)
    same = same_store(one, other)
    return {"holds": same and low <= 1 <= high, "same": same, "low": round(low, 3), "high": round(high, 3)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directories", metavar="DIR", nargs="+")
    parser.add_argument("--sqlitmus", default="sqlitmus")
    parser.add_argument("--tries", type=int, default=20)
    parser.add_argument("--place")
    parser.add_argument("--budget")
    parser.add_argument("--record", type=pathlib.Path)
    arguments = parser.parse_args()
    tries = []
    if arguments.record and arguments.record.exists():
        tries = [json.loads(line) for line in arguments.record.read_text().splitlines()]
    for number in range(len(tries), arguments.tries):
        directory = arguments.directories[number % len(arguments.directories)]
        one = advise(arguments, directory, 2 * number + 1)
        other = advise(arguments, directory, 2 * number + 2)
        tried = {"directory": directory, "runs": [one, other], **judge(one, other)}
        tries.append(tried)
        if arguments.record:
            with arguments.record.open("a") as record:
                record.write(json.dumps(tried) + "\n")
        print(json.dumps(tried), flush=True)
    held = sum(tried["holds"] for tried in tries)
    slowest = max(run["seconds"] for tried in tries for run in tried["runs"])
    print(f"{held} of {len(tries)} tries hold; the longest run took {slowest} s")
    return 0 if held >= SHARE_TO_HOLD * len(tries) else 1


if __name__ == "__main__":
    sys.exit(main())
