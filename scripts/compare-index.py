#!/usr/bin/env python3
"""Compares `sqlitmus index` with updatedb of plocate, and with its own walk, in pairs.

    scripts/compare-index.py [--tree /usr] [--place DIR] [--pairs 15] [--program target/release/sqlitmus]

Every pair runs both sides once, in random order, warm: one untimed turn of both goes before. Times are those
of whole processes, on the clock. Printed are the medians of both sides and the median of the ratios of the
pairs with its 95% interval (by the order statistics of the pairs; with fewer than 6 there is none).

    new          a new index against a new database of updatedb (-U TREE -o FILE)
    again        a second index of the unchanged tree against updatedb with its old database
    walk         a second index of the unchanged tree against --walk-only: the walk that looks at all and writes nothing
    insert       the rows that the best way inserts in a second of time in SQLite, on tmpfs (/dev/shm), with one
                 thread that walks, so that on two cores the one that writes has its own
    naive        rows a second of the published way in --seconds seconds, against the best way's, on --place

The script writes only into a temporary folder in --place, and one in /dev/shm.
"""

import argparse
import json
import math
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time


def run(words):
    started = time.perf_counter()
    done = subprocess.run(words, capture_output=True, text=True)
    seconds = time.perf_counter() - started
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)} failed: {done.stderr.strip()}")
    return seconds, done.stdout


def remove(path):
    for suffix in ("", "-journal"):
        if os.path.exists(path + suffix):
            os.unlink(path + suffix)


def interval(values):
    """The 95% interval of the median from order statistics, or None."""
    ordered, count = sorted(values), len(values)
    below, rank = 0.0, 0
    while rank < count // 2:
        below += math.comb(count, rank) / 2**count
        if below > 0.025:
            break
        rank += 1
    return (ordered[rank - 1], ordered[count - rank]) if rank > 0 else None


def show(what, ours, theirs):
    ratios = [one / other for one, other in zip(ours, theirs)]
    spread = interval(ratios)
    spread = f"{spread[0]:.3f} to {spread[1]:.3f}" if spread else "too few pairs"
    print(f"| {what} | {statistics.median(ours):.3f} | {statistics.median(theirs):.3f} "
          f"| {statistics.median(ratios):.3f} | {spread} | {len(ours)} |", flush=True)


def pairs(count, one, other):
    one(), other()
    ours, theirs = [], []
    for _ in range(count):
        turns = [(one, ours), (other, theirs)]
        random.shuffle(turns)
        for side, times in turns:
            times.append(side())
    return ours, theirs


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tree", default="/usr")
    parser.add_argument("--place", default=tempfile.gettempdir())
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--program", default="target/release/sqlitmus")
    parser.add_argument("--only", choices=["new", "again", "walk", "insert", "naive"], action="append")
    arguments = parser.parse_args()
    random.seed(1)
    program, tree = os.path.abspath(arguments.program), os.path.abspath(arguments.tree)
    wanted = arguments.only or ["new", "again", "walk", "insert", "naive"]
    if {"new", "again"} & set(wanted) and not shutil.which("updatedb"):
        print("updatedb is not installed (Debian: apt-get install plocate): left out", file=sys.stderr)
        wanted = [what for what in wanted if what not in ("new", "again")]

    with tempfile.TemporaryDirectory(dir=arguments.place, prefix="compare-index-") as place:
        index, locate = os.path.join(place, "index.db"), os.path.join(place, "plocate.db")

        def sqlitmus():
            return run([program, "index", tree, "--into", index, "--quiet"])[0]

        def updatedb():
            return run(["updatedb", "-U", tree, "-o", locate])[0]

        def new(path, work):
            def fresh():
                remove(path)
                return work()
            return fresh

        def walk():
            return run([program, "index", tree, "--walk-only", "--quiet"])[0]

        print("| what | sqlitmus index, s | the other, s | ratio | 95% interval | pairs |")
        print("|---|---:|---:|---:|---|---:|")
        if "new" in wanted:
            show("new, against updatedb", *pairs(arguments.pairs, new(index, sqlitmus), new(locate, updatedb)))
        if "again" in wanted:
            show("again, against updatedb", *pairs(arguments.pairs, sqlitmus, updatedb))
        if "walk" in wanted:
            sqlitmus()
            show("again, against the walk alone", *pairs(arguments.pairs, sqlitmus, walk))
            rows = json.loads(run([program, "index", tree, "--into", index, "--quiet", "--json"])[1])["written"]["rows"]
            print(f"\nrows written by the last of them: {rows}")
        if "insert" in wanted:
            insert(program, tree, arguments.pairs)
        if "naive" in wanted:
            naive(program, tree, place, arguments.seconds)


def insert(program, tree, times):
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="compare-index-") as memory:
        path, wall, processor = os.path.join(memory, "index.db"), [], []
        for _ in range(times):
            remove(path)
            # One thread that walks leaves a core to the one that writes.
            words = ["--into", path, "--quiet", "--json", "--threads", "1"]
            found = json.loads(run([program, "index", tree] + words)[1])
            rows = found["written"]["entries_added"] + found["written"]["folders_added"]
            wall.append(rows / found["sql_ns"] * 1e9)
            processor.append(rows / found["sql_cpu_ns"] * 1e9)
        print(f"\ninsert, tmpfs: {rows} rows, median of {times}: {statistics.median(wall):,.0f} rows a second of sqlTime, "
              f"{statistics.median(processor):,.0f} of its processor time")


def naive(program, tree, place, seconds):
    slow, fast = os.path.join(place, "naive.db"), os.path.join(place, "best.db")
    words = [program, "index", tree, "--quiet", "--json"]
    found = json.loads(run(words + ["--into", slow, "--naive", "--seconds", str(seconds)])[1])
    rows, elapsed = found["written"]["entries_added"], found["elapsed_ns"] / 1e9
    print(f"\nnaive: {rows} rows in {elapsed:.2f} s, {rows / elapsed:,.0f} a second"
          + ("" if found["complete"] else f" (stopped)"))
    found = json.loads(run(words + ["--into", fast])[1])
    best, took = found["written"]["entries_added"], found["elapsed_ns"] / 1e9
    print(f"best:  {best} rows in {took:.2f} s, {best / took:,.0f} a second: "
          f"{best / took / (rows / elapsed):,.0f} times as many")


if __name__ == "__main__":
    main()
