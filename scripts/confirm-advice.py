#!/usr/bin/env python3
"""Does a second run of `sqlitmus advise` say what the first has said?

    scripts/confirm-advice.py [--sqlitmus target/release/sqlitmus] [--tries 20] [--work DIR] [DIR...]

A try runs the program twice on a directory, the second time with another seed: other files are sampled, in
another order. It holds if the two recommend the same (or each declares what the other recommends a tie, or the
answer is the same and both keep the files), and if the interval of the ratio of their results includes 1. Tries go
through the directories in turn; unless some are named, these are /usr/share/doc, /usr/share/icons, the sources of
crates that cargo has, and a folder of photos that is made, as far as they are there.

Stores, run files, made photos and the record, a line a try, are in --work. A series that was stopped goes on where
it was when the same command is given again; a try that was stopped in its middle begins anew. Two runs of less
than two minutes make a try, so that twenty of them take some 75 minutes.

Exit code 0: at least nine tries in ten hold, 18 of 20; 1: they do not; 130: stopped.
"""

import argparse
import json
import math
import pathlib
import random
import subprocess
import sys
import time

SHARE_TO_HOLD = 0.9
PHOTOS = 4_000
TREES = ["/usr/share/doc", "/usr/share/icons", "~/.cargo/registry/src"]


def advise(arguments, directory, seed):
    command = [arguments.sqlitmus, "advise", directory, "--seed", str(seed), "--json", "--quiet", "--snippet", "none"]
    command += ["--place", str(arguments.work)]
    if arguments.budget:
        command += ["--budget", arguments.budget]
    begun = time.monotonic()
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    took = time.monotonic() - begun
    if done.returncode == 130:
        raise KeyboardInterrupt
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


def made_photos(work):
    """A folder of pictures as cameras and their previews leave them: half small, half large, nothing to compress."""
    folder = work / "photos"
    done = work / "photos-are-made"
    if not done.exists():
        generator = random.Random(1)
        for number in range(PHOTOS):
            day = folder / f"2024-{number // 400 + 1:02}"
            day.mkdir(parents=True, exist_ok=True)
            median, suffix = ((9_000, "preview"), (180_000, "photo"))[number % 2]
            size = min(int(median * math.exp(generator.gauss(0, 0.5))), 4_000_000)
            (day / f"{number:05}-{suffix}.jpg").write_bytes(generator.randbytes(size))
        done.touch()
    return str(folder)


def trees(arguments):
    if arguments.directories:
        return arguments.directories
    known = [str(pathlib.Path(tree).expanduser()) for tree in TREES]
    found = [tree for tree in known if sum(1 for _ in zip(range(100), pathlib.Path(tree).rglob("*"))) == 100]
    return found + [made_photos(arguments.work)]


def line(number, tried):
    def words(run):
        if not run["interval"]:
            return f"{run['answer']}, no figures"
        return f"{run['database']} {run['ratio']:.2f} ({run['interval']['low']:.2f}-{run['interval']['high']:.2f})"

    one, other = tried["runs"]
    between = f"{tried['low']:.2f}-{tried['high']:.2f}" if "low" in tried else tried["why"]
    seconds = f"{one['seconds']:.0f}/{other['seconds']:.0f} s"
    verdict = "holds" if tried["holds"] else "DOES NOT HOLD"
    answers = one["answer"] if one["answer"] == other["answer"] else f"{one['answer']}/{other['answer']}"
    name = pathlib.Path(tried["directory"]).name
    return f"{number:>3} {name:<10} {answers:<12} {words(one):<42} {words(other):<42} {between:<11} {seconds:<10} {verdict}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directories", metavar="DIR", nargs="*")
    parser.add_argument("--sqlitmus", default="target/release/sqlitmus")
    parser.add_argument("--tries", type=int, default=20)
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path("target/confirm-advice"))
    parser.add_argument("--budget")
    arguments = parser.parse_args()
    arguments.work.mkdir(parents=True, exist_ok=True)
    record = arguments.work / "tries.jsonl"
    tries = [json.loads(text) for text in record.read_text().splitlines()] if record.exists() else []
    directories = trees(arguments)
    head = ("", "tree", "answer", "first run", "second run", "ratio", "took")
    print("{:>3} {:<10} {:<12} {:<42} {:<42} {:<11} {}".format(*head))
    for number, tried in enumerate(tries[: arguments.tries], 1):
        print(line(number, tried), flush=True)
    for number in range(len(tries), arguments.tries):
        directory = directories[number % len(directories)]
        one = advise(arguments, directory, 2 * number + 1)
        other = advise(arguments, directory, 2 * number + 2)
        tries.append({"directory": directory, "runs": [one, other], **judge(one, other)})
        with record.open("a") as lines:
            lines.write(json.dumps(tries[-1]) + "\n")
        print(line(number + 1, tries[-1]), flush=True)
    tries = tries[: arguments.tries]
    held = sum(tried["holds"] for tried in tries)
    wanted = math.ceil(SHARE_TO_HOLD * len(tries))
    slowest = max((run["seconds"] for tried in tries for run in tried["runs"]), default=0)
    print(f"{held} of {len(tries)} tries hold, {wanted} are wanted; the longest run took {slowest} s")
    return 0 if held >= wanted else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
