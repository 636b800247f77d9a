#!/usr/bin/env python3
"""Compares `sqlitmus pack` and `unpack` with sqlite3 -A, tar, zip, mksquashfs and cp, on the same trees.

Two trees: 100,000 incompressible files of 8,000 to 12,000 bytes in folders of 1,000, and a source tree (--source, by
default the sources of the Rust crates that cargo has fetched, or else headers of the system). For each, in every repeat,
every tool packs it once, in random order, and then those archives that can be unpacked are unpacked, in random order.
Printed are medians, the least and the most, with the final sync apart: a sync after the tool for those that do not sync,
and sqlitmus's own sync, which it reports; then ratios of two tools within a repeat. Random reads are compared by the
example `random_reads` of the library, which takes turns in slices, after the last repeat.

With --record FILE every measurement is kept as a line of JSON, and the tables are made of all that the file holds. So
several short calls make one comparison, and a call can leave out tools that take long (--without, --only).

ext4 does not give the inodes of files that were removed less than some 35 seconds ago to new files, and searches long for
others. So nothing is removed while a tree is measured; what was made is removed after that, and then the script waits.
Missing tools are skipped, with a line that says so. Needs Python 3.8 or later.

Example:
  cargo build --release && cargo build --release -p sqlitmus-archive --examples
  scripts/compare-archivers.py --work /mnt/ssd --record archivers.jsonl

It writes only into a new directory of its own below --work, and removes that at the end.
"""

import argparse
import glob
import json
import os
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

AFTER_REMOVAL_SECONDS = 40

# Step, what is said of it, and which two tools are divided.
RATIOS = [
    ("pack", "sqlite3 -Ac / sqlitmus pack", "sqlite3 -Ac", "sqlitmus pack"),
    ("pack", "sqlitmus pack / tar c", "sqlitmus pack", "tar c"),
    ("unpack", "sqlitmus unpack / tar x", "sqlitmus pack", "tar c"),
]


def tools(sqlitmus):
    """Name, program, how it packs the current directory into OUT, and how it unpacks IN into the current directory.
    None: it cannot, or it is the tree itself."""
    return [
        ("sqlitmus pack", sqlitmus, [sqlitmus, "pack", ".", "OUT"], [sqlitmus, "unpack", "IN", "--into", "."]),
        ("sqlitmus pack --compress auto", sqlitmus, [sqlitmus, "pack", ".", "OUT", "--compress", "auto"], None),
        ("sqlite3 -Ac", "sqlite3", ["sqlite3", "OUT", "-Ac", "NAMES"], ["sqlite3", "IN", "-Ax"]),
        ("tar c", "tar", ["tar", "cf", "OUT", "."], ["tar", "xf", "IN"]),
        ("zip -r", "zip", ["zip", "-q", "-r", "OUT", "."], ["unzip", "-q", "IN"]),
        ("mksquashfs", "mksquashfs", ["mksquashfs", ".", "OUT", "-quiet", "-no-progress"], None),
        ("cp -r", "cp", ["cp", "-r", ".", "OUT"], None),
    ]


def make_big(path, count, seed):
    """Incompressible files, 1,000 in a folder."""
    source = random.Random(seed)
    for number in range(count):
        folder = f"{path}/{number // 1000:03d}"
        if number % 1000 == 0:
            os.makedirs(folder)
        with open(f"{folder}/{number:06d}.bin", "wb") as file:
            file.write(os.urandom(source.randint(8000, 12000)))


def copy_source(source, path, count):
    """The first `count` regular files of a tree, in sorted order, with their folders."""
    copied = 0
    for folder, folders, files in os.walk(source):
        folders.sort()
        for name in sorted(files):
            origin = os.path.join(folder, name)
            if copied == count:
                return copied
            if os.path.isfile(origin) and not os.path.islink(origin):
                target = os.path.join(path, os.path.relpath(origin, source))
                os.makedirs(os.path.dirname(target), exist_ok=True)
                shutil.copyfile(origin, target)
                copied += 1
    return copied


def warm(path):
    """Reads everything once, so that no tool pays for the first reading."""
    files = 0
    content = 0
    for folder, _, names in os.walk(path):
        for name in names:
            with open(os.path.join(folder, name), "rb") as file:
                content += len(file.read())
            files += 1
    return files, content


def run(words, folder):
    """Seconds that a command takes; its standard error."""
    begin = time.monotonic()
    done = subprocess.run(words, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    elapsed = time.monotonic() - begin
    if done.returncode != 0:
        sys.exit(f"error: {' '.join(words[:6])}: {done.stderr}")
    return elapsed, done.stderr


def sync():
    begin = time.monotonic()
    os.sync()
    return time.monotonic() - begin


def reported_seconds(text, word):
    """A duration from the line that sqlitmus prints."""
    found = re.search(word + r" in ([\d.]+) ?(ns|us|ms|s|min)\b", text)
    if not found:
        sys.exit(f"error: no `{word} in` in: {text}")
    return float(found.group(1)) * {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1, "min": 60}[found.group(2)]


def size_of(path):
    if os.path.isfile(path):
        return os.path.getsize(path)
    words = ["du", "-s", "--block-size=1", path]
    return int(subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True).stdout.split()[0])


def pack_one(tool, tree, output):
    """Seconds of packing, seconds of syncing."""
    name, _, words, _ = tool
    names = sorted(os.listdir(tree))
    words = [output if word == "OUT" else word for word in words]
    if "NAMES" in words:
        words = words[:-1] + names
    sync()
    elapsed, text = run(words, tree)
    if name.startswith("sqlitmus"):
        synced = reported_seconds(text, "synced")
        return elapsed - synced, synced
    return elapsed, sync()


def fill_cache(path):
    """Reads an archive, so that it is in memory."""
    with open(path, "rb") as file:
        while file.read(1 << 24):
            pass


class Record:
    """Measurements of this call, and of earlier ones if they were kept in a file."""

    def __init__(self, path):
        self.path = path
        self.lines = []
        if path and os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                self.lines = [json.loads(line) for line in file]

    def add(self, **line):
        self.lines.append(line)
        if self.path:
            with open(self.path, "a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")

    def of(self, title, step):
        """Lines of a step, by tool, and then by repeat."""
        found = {}
        for line in self.lines:
            if line["tree"] == title and line["step"] == step:
                found.setdefault(line["tool"], {})[line["repeat"]] = line
        return found

    def next_repeat(self, title):
        return 1 + max((line["repeat"] for line in self.lines if line["tree"] == title), default=0)


def compare(title, tree, work, available, options, record):
    """Packs and unpacks with all tools, in random order, as often as asked for."""
    for done in range(options.repeats):
        repeat = record.next_repeat(title)
        order = random.Random(f"{options.seed} {title} {repeat}")
        made = tempfile.mkdtemp(prefix=f"repeat-{repeat}-", dir=work)
        archives = {}
        # What is not in memory any more costs the first that reads it.
        warm(tree)
        for tool in order.sample(available, len(available)):
            output = os.path.join(made, re.sub(r"\W+", "-", tool[0]) + (".zip" if "zip" in tool[0] else ""))
            seconds, synced = pack_one(tool, tree, output)
            archives[tool[0]] = output
            record.add(tree=title, repeat=repeat, step="pack", tool=tool[0], seconds=seconds, sync=synced,
                       bytes=size_of(output))
        unpacking = [tool for tool in available if tool[3] and shutil.which(tool[3][0])]
        for tool in order.sample(unpacking, len(unpacking)):
            target = tempfile.mkdtemp(dir=made)
            sync()
            fill_cache(archives[tool[0]])
            words = [archives[tool[0]] if word == "IN" else word for word in tool[3]]
            seconds, _ = run(words, target)
            record.add(tree=title, repeat=repeat, step="unpack", tool=tool[0], seconds=seconds, sync=sync())
        print(f"  {title}: repeat {repeat} done", file=sys.stderr)
        is_last = done + 1 == options.repeats
        if is_last and options.reads and "sqlitmus pack" in archives:
            read_randomly(tree, archives["sqlitmus pack"], options)
        shutil.rmtree(made)
        sync()
        if not is_last:
            time.sleep(AFTER_REMOVAL_SECONDS)


def read_randomly(tree, archive, options):
    if not os.path.exists(options.random_reads):
        print(f"skipped: random reads; {options.random_reads} is not built", file=sys.stderr)
        return
    words = [options.random_reads, tree, archive]
    print("\nRandom reads, warm:\n")
    sys.stdout.flush()
    for line in subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines():
        print("    " + line)


def spread(values):
    """The median, and the least and the most if there are several."""
    text = f"{statistics.median(values):.2f}"
    return f"{text} ({min(values):.2f} to {max(values):.2f})" if len(values) > 1 else text


def table(title, description, record):
    packed, unpacked = record.of(title, "pack"), record.of(title, "unpack")
    print(f"\n{description}\n")
    print("| | packing, s | sync, s | unpacking, s | repeats | MB |")
    print("|---|---:|---:|---:|---:|---:|")
    for name, lines in packed.items():
        lines = list(lines.values())
        taken_out = [line["seconds"] for line in unpacked.get(name, {}).values()]
        print(f"| `{name}` | {spread([line['seconds'] for line in lines])} "
              f"| {statistics.median([line['sync'] for line in lines]):.2f} "
              f"| {spread(taken_out) if taken_out else '-'} | {len(lines)} | {lines[-1]['bytes'] / 1e6:,.0f} |")
    print("\nRatios within a repeat, median (least to most):\n")
    for step, found, one, other in RATIOS:
        lines = record.of(title, step)
        pairs = lines.get(one, {}).keys() & lines.get(other, {}).keys()
        if pairs:
            ratios = [lines[one][repeat]["seconds"] / lines[other][repeat]["seconds"] for repeat in pairs]
            print(f"    {found}: {spread(ratios)}, {len(ratios)} repeats")
    sys.stdout.flush()


def default_source():
    found = sorted(glob.glob(os.path.expanduser("~/.cargo/registry/src/*")))
    return found[0] if found else "/usr/include"


def main():
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    built = os.path.join(os.environ.get("CARGO_TARGET_DIR", os.path.join(here, "target")), "release")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--work", default=".", help="where to write (default: here)")
    parser.add_argument("--sqlitmus", default=os.path.join(built, "sqlitmus"))
    parser.add_argument("--random-reads", default=os.path.join(built, "examples", "random_reads"))
    parser.add_argument("--source", default=default_source(), help="tree whose files are the second tree")
    parser.add_argument("--count", type=int, default=100_000, help="files of the first tree")
    parser.add_argument("--source-count", type=int, default=20_000, help="files of the second tree, at the most")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--record", help="file that measurements are added to, and that tables are made of")
    parser.add_argument("--without", action="append", default=[], help="a tool to leave out; may be repeated")
    parser.add_argument("--only", action="append", default=[], help="a tool to measure, and no other; may be repeated")
    parser.add_argument("--no-reads", dest="reads", action="store_false", help="do not compare random reads")
    parser.add_argument("--tree", choices=["both", "incompressible", "source"], default="both")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    options.sqlitmus = os.path.abspath(options.sqlitmus)
    if not os.path.exists(options.sqlitmus):
        sys.exit(f"error: {options.sqlitmus} is not built\nhint: cargo build --release")
    available = []
    for tool in tools(options.sqlitmus):
        if tool[0] in options.without or (options.only and tool[0] not in options.only):
            continue
        if shutil.which(tool[1]):
            available.append(tool)
        else:
            print(f"skipped: {tool[0]}; there is no {tool[1]} here", file=sys.stderr)
    record = Record(options.record)
    work = tempfile.mkdtemp(prefix="compare-archivers-", dir=os.path.abspath(options.work))
    try:
        if options.tree != "source":
            tree = os.path.join(work, "incompressible")
            make_big(tree, options.count, options.seed)
            files, content = warm(tree)
            compare("incompressible", tree, work, available, options, record)
            table("incompressible", f"{files:,} incompressible files, {content / 1e6:,.0f} MB", record)
            shutil.rmtree(tree)
            if options.tree == "both":
                time.sleep(AFTER_REMOVAL_SECONDS)
        if options.tree != "incompressible":
            tree = os.path.join(work, "source")
            copy_source(options.source, tree, options.source_count)
            files, content = warm(tree)
            compare("source", tree, work, available, options, record)
            table("source", f"Source tree: {files:,} files, {content / 1e6:,.0f} MB", record)
    finally:
        shutil.rmtree(work)


if __name__ == "__main__":
    main()
