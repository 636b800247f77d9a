#!/usr/bin/env python3
"""Compares `sqlitmus kvtest` with SQLite's own kvtest, in pairs of fresh processes.

Compiles the kvtest.c that it is given as SQLite's article "35% Faster Than The Filesystem" says,
with the SQLite that sqlitmus has built in; makes one dataset; then, for each thing that both can
do, runs the two one after the other, in random order, pair after pair, until the 95% interval of
the median ratio is narrow enough. Prints a Markdown table: a ratio below 1 means that sqlitmus
takes less time. Needs Python 3.8 or later, a C compiler, and nothing else.

Example:
  cargo build --release
  apt-get source --download-only sqlite3 && tar xf sqlite3_*.orig.tar.xz
  scripts/compare-kvtest.py sqlite3-*/test/kvtest.c --work /mnt/ssd

It writes only into a new directory of its own below --work, and removes that at the end.
"""

import argparse
import glob
import math
import os
import platform
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

# What the article compiles with; -lm is for newer versions of SQLite.
COMPILER_OPTIONS = ["-Os", "-I.", "-DSQLITE_DIRECT_OVERFLOW_READ"]
LIBRARIES = ["-ldl", "-lpthread", "-lm"]

# Before that many an interval of 95% from order statistics is not yet one, or just about.
FEWEST_PAIRS = 8
SIZES = ["--size", "10000", "--variance", "2000"]
LARGEST_FILE_BYTES = 12288


class Arm:
    """One thing that both programs do: its name, the words, and what is left of both."""

    def __init__(self, name, words, only_sqlitmus=(), unit="us per blob", kind="run"):
        self.name = name
        self.words = words
        self.only_sqlitmus = list(only_sqlitmus)
        self.unit = unit
        self.kind = kind
        self.most_pairs = None
        self.kvtest = []
        self.sqlitmus = []

    def log_ratios(self):
        pairs = zip(self.sqlitmus, self.kvtest)
        return [math.log(ours / theirs) for ours, theirs in pairs]

    def interval(self):
        """Median ratio, and its 95% interval from order statistics (binomial, p = 1/2): it takes
        no shape of the distribution for granted, and lone outliers do not move it."""
        ratios = sorted(self.log_ratios())
        count = len(ratios)
        tail, below = 0.0, -1
        while tail + math.comb(count, below + 1) / 2**count <= 0.025:
            below += 1
            tail += math.comb(count, below) / 2**count
        below = max(below, 0)
        low, high = ratios[below], ratios[count - 1 - below]
        return tuple(math.exp(value) for value in (statistics.median(ratios), low, high))

    def is_narrow(self, width):
        if len(self.kvtest) < FEWEST_PAIRS:
            return False
        _, low, high = self.interval()
        return math.sqrt(high / low) <= 1 + width / 100


def arms(count, updates):
    """All that is compared. For directories both sides are told the highest key, because kvtest
    would otherwise read keys 1 to 1000 only; writing to files is compared --as-kvtest, because
    sqlitmus otherwise writes them in place."""
    reads = ["--count", str(count), "--max-id", str(count), "--random"]
    writes = ["--count", str(updates), "--max-id", str(count), "--random", "--update"]
    wal = writes + ["--jmode", "wal", "--nocheckpoint"]
    unsafe = writes + ["--jmode", "off", "--nosync"]
    return [
        Arm("read, SQL", ["run", "read.db"] + reads),
        Arm("read, blob API", ["run", "read.db"] + reads + ["--blob-api"]),
        Arm("read, mmap and blob API", ["run", "read.db"] + reads + ["--mmap", "10GB", "--blob-api"]),
        Arm("read, files, flat", ["run", "flat"] + reads),
        Arm("read, files, tree", ["run", "tree"] + reads),
        Arm("update, WAL", ["run", "update.db"] + wal),
        Arm("update, WAL, --as-kvtest", ["run", "update.db"] + wal, ["--as-kvtest"]),
        Arm("update, no journal, no sync", ["run", "update.db"] + unsafe),
        Arm("update, no journal, no sync, --as-kvtest", ["run", "update.db"] + unsafe, ["--as-kvtest"]),
        Arm("update, WAL, blob API", ["run", "update.db"] + wal + ["--blob-api"]),
        Arm("update, files, flat, --as-kvtest", ["run", "update-flat"] + writes, ["--as-kvtest"]),
        Arm("update, files, tree, --as-kvtest", ["run", "update-tree"] + writes, ["--as-kvtest"]),
        Arm("init", ["init", "NEW", "--count", str(count)] + SIZES, unit="s", kind="new"),
        Arm("export, flat", ["export", "read.db", "NEW"], unit="s", kind="new"),
        Arm("export, tree", ["export", "read.db", "NEW", "--tree"], unit="s", kind="new"),
    ]


class Comparison:
    """The two programs, and the directory in which they run."""

    def __init__(self, work, kvtest, sqlitmus, options):
        self.work = work
        self.programs = {"kvtest": [kvtest], "sqlitmus": [sqlitmus, "kvtest"]}
        self.options = options
        self.random = random.Random(options.seed)
        self.made = 0

    def run(self, side, words):
        command = self.programs[side] + words
        done = subprocess.run(command, cwd=self.work, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if done.returncode != 0:
            sys.exit(f"error: {' '.join(command)}\n{done.stdout}{done.stderr}")
        return done.stdout

    def prepare(self, wanted):
        """One dataset, and copies of it for whatever is overwritten."""
        count = str(self.options.count)
        told = f"making {count} blobs in a database, in files and in copies to overwrite"
        say(told)
        self.run("sqlitmus", ["init", "read.db", "--count", count] + SIZES)
        for name in ["flat", "tree", "update-flat", "update-tree"]:
            if any(name in arm.words for arm in wanted):
                tree = ["--tree"] if name.endswith("tree") else []
                self.run("sqlitmus", ["export", "read.db", name] + tree)
        if any("update.db" in arm.words for arm in wanted):
            shutil.copyfile(os.path.join(self.work, "read.db"), os.path.join(self.work, "update.db"))
        os.sync()

    def measure_once(self, arm, side):
        words = arm.words + (arm.only_sqlitmus if side == "sqlitmus" else [])
        if arm.kind == "new":
            return self.time_process(words, side)
        if "--update" in words:
            # What the run before has left to be written is not this run's business.
            os.sync()
        output = self.run(side, words)
        return float(re.search(r"^Microseconds per BLOB \w+: ([\d.]+)", output, re.M).group(1))

    def time_process(self, words, side):
        """Seconds of a whole process that makes something. Databases are removed at once.
        Directories stay to the end: ext4 without a journal skips inodes deleted in the last
        minutes one by one, so that the export after a removal takes ten times as long."""
        self.made += 1
        name = f"new-{self.made}"
        words = [name if word == "NEW" else word for word in words]
        os.sync()
        start = time.perf_counter()
        self.run(side, words)
        seconds = time.perf_counter() - start
        path = os.path.join(self.work, name)
        if os.path.isfile(path):
            os.remove(path)
        return seconds

    def measure(self, arm):
        """Pairs in random order until the interval is narrow. The first pair warms caches and
        does not count; where something is made there is nothing to warm."""
        if arm.kind == "run":
            for side in self.programs:
                self.measure_once(arm, side)
        while len(arm.kvtest) < arm.most_pairs and not arm.is_narrow(self.options.width):
            for side in self.random.sample(["kvtest", "sqlitmus"], 2):
                getattr(arm, side).append(self.measure_once(arm, side))
            ratio = arm.sqlitmus[-1] / arm.kvtest[-1]
            say(f"{arm.name}: pair {len(arm.kvtest)} of at most {arm.most_pairs}, ratio {ratio:.3f}")


def limit_pairs(wanted, options, work):
    """Exports stay to the end, so the space decides how many there can be: half of it."""
    exports = [arm for arm in wanted if arm.words[0] == "export"]
    space = os.statvfs(work)
    blob_bytes = options.count * (LARGEST_FILE_BYTES + 64)
    fitting = space.f_bavail * space.f_frsize // 2 // blob_bytes
    if space.f_files:
        fitting = min(fitting, space.f_favail // 2 // int(options.count * 1.02 + 2))
    for arm in wanted:
        arm.most_pairs = options.pairs
        if arm in exports:
            arm.most_pairs = min(options.pairs, fitting // len(exports) // 2)
            if arm.most_pairs < FEWEST_PAIRS:
                say(f"{arm.name}: space for {arm.most_pairs} pairs only")


def table(measured):
    lines = [
        "| what | unit | kvtest | sqlitmus kvtest | ratio | 95% interval | pairs |",
        "|---|---|---:|---:|---:|---|---:|",
    ]
    for arm in measured:
        pairs = len(arm.kvtest)
        if not pairs:
            lines.append(f"| {arm.name} | {arm.unit} | - | - | - | no space | 0 |")
            continue
        ratio, low, high = arm.interval()
        interval = f"{low:.3f} to {high:.3f}" if pairs >= FEWEST_PAIRS else "too few pairs"
        theirs, ours = statistics.median(arm.kvtest), statistics.median(arm.sqlitmus)
        lines.append(
            f"| {arm.name} | {arm.unit} | {theirs:.3f} | {ours:.3f} | {ratio:.3f} "
            f"| {interval} | {pairs} |"
        )
    return "\n".join(lines)


def say(text):
    print(text, file=sys.stderr, flush=True)


def version_of_header(directory):
    try:
        with open(os.path.join(directory, "sqlite3.h"), encoding="utf-8") as header:
            return re.search(r'#define SQLITE_VERSION\s+"([^"]+)"', header.read()).group(1)
    except (OSError, AttributeError):
        return None


def amalgamation(options, version):
    """The directory with the sqlite3.c and sqlite3.h of the version that sqlitmus has."""
    if options.sqlite:
        candidates = [options.sqlite]
    else:
        cargo = os.environ.get("CARGO_HOME", os.path.expanduser("~/.cargo"))
        candidates = glob.glob(os.path.join(cargo, "registry/src/*/libsqlite3-sys-*/sqlite3"))
    for directory in candidates:
        has_source = os.path.isfile(os.path.join(directory, "sqlite3.c"))
        if has_source and version_of_header(directory) == version:
            return directory
    found = ", ".join(f"{directory} ({version_of_header(directory)})" for directory in candidates)
    sys.exit(
        f"error: no sqlite3.c and sqlite3.h of version {version} found; looked at: {found or 'nothing'}\n"
        "hint: name the directory they are in: --sqlite DIR"
    )


def version_of_sqlitmus(sqlitmus, work):
    def run(*words):
        command = [sqlitmus, "kvtest", *words]
        done = subprocess.run(command, cwd=work, stdout=subprocess.PIPE, text=True, check=True)
        return done.stdout

    run("init", "version.db", "--count", "1")
    return re.search(r"^SQLite version: (\S+)", run("run", "version.db", "--count", "1"), re.M).group(1)


def compile_kvtest(source, directory, work):
    shutil.copyfile(source, os.path.join(work, "kvtest.c"))
    for name in ["sqlite3.c", "sqlite3.h"]:
        shutil.copyfile(os.path.join(directory, name), os.path.join(work, name))
    compiler = os.environ.get("CC", "gcc")
    command = [compiler, *COMPILER_OPTIONS, "kvtest.c", "sqlite3.c", "-o", "kvtest", *LIBRARIES]
    say(" ".join(command))
    subprocess.run(command, cwd=work, check=True, stderr=subprocess.DEVNULL)
    return os.path.join(work, "kvtest"), " ".join(command)


def machine(work):
    """The processor, the kernel and the filesystem, as far as they can be told."""
    processor = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as information:
            processor = re.search(r"^model name\s*:\s*(.+)$", information.read(), re.M).group(1)
    except (OSError, AttributeError):
        pass
    filesystem = "unknown filesystem"
    try:
        with open("/proc/self/mounts", encoding="utf-8") as mounts:
            fields = [line.split() for line in mounts]
        device = os.stat(work).st_dev
        here = [line for line in fields if os.path.exists(line[1]) and os.stat(line[1]).st_dev == device]
        filesystem = f"{here[-1][2]} on {here[-1][0]}"
    except (OSError, IndexError):
        pass
    return f"{processor}, {os.cpu_count()} cores | {filesystem} | {platform.system()} {platform.release()}"


def options_of_call():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    default = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../target/release/sqlitmus")
    parser.add_argument("kvtest_c", metavar="KVTEST.C", help="source of kvtest: test/kvtest.c of SQLite's source tree")
    parser.add_argument("--sqlite", metavar="DIR", help="where sqlite3.c and sqlite3.h are [found in Cargo's registry]")
    parser.add_argument("--sqlitmus", metavar="FILE", default=os.path.normpath(default), help="the program to compare [target/release/sqlitmus]")
    parser.add_argument("--work", metavar="DIR", default=".", help="directory whose disk is used [.]")
    parser.add_argument("--count", type=int, default=100_000, metavar="N", help="blobs, 8,000 to 12,000 bytes each [100000]")
    parser.add_argument("--updates", type=int, metavar="N", help="overwrites in a run [a tenth of the blobs]")
    parser.add_argument("--pairs", type=int, default=60, metavar="N", help="pairs of runs, at the most [60]")
    parser.add_argument("--width", type=float, default=1.5, metavar="PERCENT", help="stop when the interval is no wider than plus or minus this [1.5]")
    parser.add_argument("--only", metavar="TEXT", action="append", help="only what has this in its name; may be repeated")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of the random order [1]")
    options = parser.parse_args()
    options.updates = options.updates or max(options.count // 10, 1)
    for path, hint in [
        (options.kvtest_c, "Debian's source package of sqlite3 holds it as test/kvtest.c"),
        (options.sqlitmus, "build it: cargo build --release"),
        (options.work, "make the directory, or name another one"),
    ]:
        if not os.path.exists(path):
            sys.exit(f"error: there is no {path}\nhint: {hint}")
    if min(options.count, options.pairs) < 1:
        sys.exit("error: --count and --pairs must be at least 1")
    options.sqlitmus = os.path.abspath(options.sqlitmus)
    return options


def main():
    options = options_of_call()
    everything = arms(options.count, options.updates)
    only = options.only or [""]
    wanted = [arm for arm in everything if any(text in arm.name for text in only)]
    if not wanted:
        names = "; ".join(arm.name for arm in everything)
        sys.exit(f"error: nothing has {' or '.join(only)} in its name\nhint: the names are: {names}")
    work = tempfile.mkdtemp(prefix="compare-kvtest-", dir=os.path.abspath(options.work))
    try:
        version = version_of_sqlitmus(options.sqlitmus, work)
        kvtest, command = compile_kvtest(options.kvtest_c, amalgamation(options, version), work)
        comparison = Comparison(work, kvtest, options.sqlitmus, options)
        comparison.prepare(wanted)
        limit_pairs(wanted, options, work)
        for arm in wanted:
            comparison.measure(arm)
        print(f"{machine(work)} | SQLite {version}")
        print(f"{options.count:,} blobs of 8-12 kB, {options.updates:,} overwrites | `{command}`")
        print()
        print(table(wanted))
    finally:
        say("removing what was made")
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
