#!/usr/bin/env python3
"""Compares `sqlitmus pack` and `unpack` with sqlite3 -A, tar, zip, mksquashfs and cp, on the same trees.

Two trees: 100,000 incompressible files of 8,000 to 12,000 bytes in folders of 1,000, and a source tree (--source, by
default the sources of the Rust crates that cargo has fetched, or else headers of the system). For each, every tool packs
it, in random order, --repeats times, and the median is printed, with the final sync apart: `syncfs` after the tool for
those that do not sync, and sqlitmus's own sync, which it reports. Then archives that can be unpacked are unpacked in the
same way, and random reads are compared by the example `random_reads` of the library, which takes turns in slices.

ext4 does not give the inodes of files that were removed less than some 35 seconds ago to new files, and searches long for
others. So nothing is removed while a tree is measured; what was made is removed after that, and then the script waits.
Missing tools are skipped, with a line that says so. Needs Python 3.8 or later.

Example:
  cargo build --release && cargo build --release -p sqlitmus-archive --examples
  scripts/compare-archivers.py --work /mnt/ssd

It writes only into a new directory of its own below --work, and removes that at the end.
"""

import argparse
import glob
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


def compare(tree, work, available, options):
    """Packs and unpacks with all tools, in random order; gives seconds by tool, and what they made."""
    order = random.Random(options.seed)
    packed = {tool[0]: [] for tool in available}
    synced = {tool[0]: [] for tool in available}
    unpacked = {tool[0]: [] for tool in available if tool[3] and shutil.which(tool[3][0])}
    sizes, archives = {}, {}
    for repeat in range(options.repeats):
        made = tempfile.mkdtemp(prefix=f"repeat-{repeat}-", dir=work)
        # What is not in memory any more costs the first that reads it.
        warm(tree)
        for tool in order.sample(available, len(available)):
            output = os.path.join(made, re.sub(r"\W+", "-", tool[0]) + (".zip" if "zip" in tool[0] else ""))
            seconds, seconds_synced = pack_one(tool, tree, output)
            packed[tool[0]].append(seconds)
            synced[tool[0]].append(seconds_synced)
            sizes[tool[0]] = size_of(output)
            archives[tool[0]] = output
        for tool in order.sample([tool for tool in available if tool[0] in unpacked], len(unpacked)):
            target = tempfile.mkdtemp(dir=made)
            sync()
            with open(archives[tool[0]], "rb") as file:
                while file.read(1 << 24):
                    pass
            words = [archives[tool[0]] if word == "IN" else word for word in tool[3]]
            unpacked[tool[0]].append(run(words, target)[0])
        print(f"  repeat {repeat + 1} of {options.repeats} done", file=sys.stderr)
        if repeat + 1 == options.repeats:
            read_randomly(tree, archives["sqlitmus pack"], options)
        shutil.rmtree(made)
        sync()
        if repeat + 1 < options.repeats:
            time.sleep(AFTER_REMOVAL_SECONDS)
    return packed, synced, unpacked, sizes


def read_randomly(tree, archive, options):
    if not os.path.exists(options.random_reads):
        print(f"skipped: random reads; {options.random_reads} is not built", file=sys.stderr)
        return
    words = [options.random_reads, tree, archive]
    print("\nRandom reads, warm:\n")
    sys.stdout.flush()
    for line in subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines():
        print("    " + line)


def table(title, results):
    packed, synced, unpacked, sizes = results
    print(f"\n{title}\n")
    print("| | packing, s | sync, s | unpacking, s | MB |")
    print("|---|---:|---:|---:|---:|")
    for name, times in packed.items():
        out = f"{statistics.median(unpacked[name]):.2f}" if unpacked.get(name) else "-"
        print(f"| {name} | {statistics.median(times):.2f} | {statistics.median(synced[name]):.2f} | {out} "
              f"| {sizes[name] / 1e6:,.0f} |")
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
    parser.add_argument("--without", action="append", default=[], help="a tool to leave out; may be repeated")
    parser.add_argument("--tree", choices=["both", "incompressible", "source"], default="both")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    options.sqlitmus = os.path.abspath(options.sqlitmus)
    if not os.path.exists(options.sqlitmus):
        sys.exit(f"error: {options.sqlitmus} is not built\nhint: cargo build --release")
    available = []
    for tool in tools(options.sqlitmus):
        if tool[0] in options.without:
            continue
        if shutil.which(tool[1]):
            available.append(tool)
        else:
            print(f"skipped: {tool[0]}; there is no {tool[1]} here", file=sys.stderr)
    work = tempfile.mkdtemp(prefix="compare-archivers-", dir=os.path.abspath(options.work))
    try:
        if options.tree != "source":
            tree = os.path.join(work, "incompressible")
            make_big(tree, options.count, options.seed)
            files, content = warm(tree)
            table(f"{files:,} incompressible files, {content / 1e6:,.0f} MB", compare(tree, work, available, options))
            shutil.rmtree(tree)
            if options.tree == "both":
                time.sleep(AFTER_REMOVAL_SECONDS)
        if options.tree != "incompressible":
            tree = os.path.join(work, "source")
            copy_source(options.source, tree, options.source_count)
            files, content = warm(tree)
            table(f"Source tree: {files:,} files, {content / 1e6:,.0f} MB", compare(tree, work, available, options))
    finally:
        shutil.rmtree(work)


if __name__ == "__main__":
    main()
