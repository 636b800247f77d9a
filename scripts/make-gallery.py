#!/usr/bin/env python3
"""Makes the pages of docs/gallery anew from the run files in it: one HTML page for each NAME.run, and for each
folder NAME of run files, which stand side by side.

    scripts/make-gallery.py [--program PATH] [NAME ...]

Nothing is measured. PATH is the sqlitmus to render with (default: target/release/sqlitmus, or what CARGO_TARGET_DIR says).
Without names all runs are rendered. Prints the size of each page; fails if a page is larger than 1.5 MB, or if a run file
names a directory of somebody's home.
"""

import argparse
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
GALLERY = ROOT / "docs" / "gallery"
LARGEST_PAGE_BYTES = 1_500_000


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    parser.add_argument("--program", type=pathlib.Path, default=target / "release" / "sqlitmus")
    parser.add_argument("names", nargs="*", metavar="NAME")
    arguments = parser.parse_args()
    if not arguments.program.is_file():
        sys.exit(f"{arguments.program} is not there\nhint: cargo build --release, or name another with --program")
    folders = [folder for folder in GALLERY.iterdir() if any(folder.glob("*.run"))]
    runs = sorted([*GALLERY.glob("*.run"), *folders])
    if arguments.names:
        unknown = set(arguments.names) - {run.stem for run in runs}
        if unknown:
            sys.exit(f"no run file in {GALLERY}: {', '.join(sorted(unknown))}")
        runs = [run for run in runs if run.stem in arguments.names]
    failed = False
    for run in runs:
        files = sorted(run.glob("*.run")) if run.is_dir() else [run]
        if any(b"/home/" in file.read_bytes() for file in files):
            print(f"{run.name} names a home directory: measure in /tmp and give --output there", file=sys.stderr)
            failed = True
            continue
        page = subprocess.run(
            [arguments.program, "report", run, "--format", "html"], check=True, stdout=subprocess.PIPE
        ).stdout
        run.with_suffix(".html").write_bytes(page)
        print(f"{run.stem + '.html':32} {len(page):>9,} bytes")
        if len(page) > LARGEST_PAGE_BYTES:
            print(f"{run.stem}.html is larger than {LARGEST_PAGE_BYTES:,} bytes", file=sys.stderr)
            failed = True
    sys.exit(failed)


if __name__ == "__main__":
    main()
