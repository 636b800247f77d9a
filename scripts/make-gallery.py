#!/usr/bin/env python3
"""Refreshes everything that is made of the run files in docs/gallery, in one command.

    scripts/make-gallery.py [NAME ...]      all of it, or the pages of these runs
    scripts/make-gallery.py --check         changes nothing; fails if a run file may not be published as it is

1. Run files are made fit to be published, where they are not (scripts/published_run.py says what that changes). A file that
   would still name somebody's paths is refused, and stays as it is.
2. One page for each NAME.run, and for each folder NAME of run files, which stand side by side.
3. docs/report.png: the first screen of article.html, taken by headless Chromium.
4. The answer in README.md: parts of what `sqlitmus report docs/gallery/article.run` prints.
5. The table of runs in docs/gallery/README.md.

Nothing is measured. Fails if a page is larger than 1.5 MB.
"""

import argparse
import datetime
import json
import os
import pathlib
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile

import published_run

ROOT = pathlib.Path(__file__).resolve().parent.parent
LARGEST_PAGE_BYTES = 1_500_000

# The run that README.md shows.
SHOWN = "article"

# Paragraphs of the answer that README.md leaves out, by how they begin.
LEFT_OUT_OF_README = ("Overwrite one blob, nothing", "Read one blob of", "Disk space", "What was kept")

# The line that ends the legend; what follows it is for whoever plans the next run.
LAST_OF_LEGEND = "no published figures"

# Pixels of the picture before it is enlarged for sharp screens: the first screen, down to the legend of its chart.
PICTURE = (1160, 738)


def main():
    arguments = parsed()
    gallery = arguments.gallery.resolve()
    folders = [folder for folder in gallery.iterdir() if folder.is_dir() and any(folder.glob("*.run"))]
    runs = sorted([*gallery.glob("*.run"), *folders])
    if arguments.names:
        unknown = set(arguments.names) - {run.stem for run in runs}
        if unknown:
            sys.exit(f"no run file in {gallery}: {', '.join(sorted(unknown))}")
        runs = [run for run in runs if run.stem in arguments.names]
    refused = [file for run in runs for file in files_of(run) if not is_fit(file, run.stem, arguments.check)]
    if refused:
        names = ", ".join(str(file.relative_to(gallery)) for file in refused)
        sys.exit(f"not published: {names}\nhint: measure again in a directory of /tmp, with --output there")
    if arguments.check:
        print(f"{sum(len(files_of(run)) for run in runs)} run files may be published")
        return
    if not arguments.program.is_file():
        sys.exit(f"{arguments.program} is not there\nhint: cargo build --release, or name another with --program")
    failed = [run.stem for run in runs if not made_page(arguments.program, run)]
    if not arguments.names:
        list_in_index(gallery / "README.md", runs)
    if any(run.stem == SHOWN for run in runs) and gallery == ROOT / "docs" / "gallery":
        take_picture(gallery / f"{SHOWN}.html", ROOT / "docs" / "report.png", arguments.chromium)
        show_in_readme(arguments.program, gallery / f"{SHOWN}.run", ROOT / "README.md")
    if failed:
        sys.exit(f"not as it should be: {', '.join(failed)}")


def parsed():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    parser.add_argument("--program", type=pathlib.Path, default=target / "release" / "sqlitmus", help="to render with")
    parser.add_argument("--gallery", type=pathlib.Path, default=ROOT / "docs" / "gallery", help="folder of the run files")
    parser.add_argument("--chromium", default="chromium", help="browser that takes the picture")
    parser.add_argument("--check", action="store_true", help="change nothing; may the run files be published?")
    parser.add_argument("names", nargs="*", metavar="NAME", help="of runs; without, all")
    return parser.parse_args()


def files_of(run):
    return sorted(run.glob("*.run")) if run.is_dir() else [run]


def is_fit(file, name, only_check):
    """Whether a run file may be published; makes it so, unless this is only a check."""
    try:
        found = published_run.problems(file)
        if not found:
            return True
        if only_check:
            print(f"{file.name}: {'; '.join(found)}", file=sys.stderr)
            return False
        draft = file.with_suffix(".run-draft")
        published_run.publish(file, draft, name)
        draft.replace(file)
        print(f"{file.name:32} made general: {'; '.join(found)}")
        return True
    except (published_run.NotPublishable, sqlite3.Error) as error:
        print(f"{file.name}: {error}", file=sys.stderr)
        return False


def made_page(program, run):
    page = subprocess.run([program, "report", run, "--format", "html"], check=True, stdout=subprocess.PIPE).stdout
    run.with_suffix(".html").write_bytes(page)
    print(f"{run.stem + '.html':32} {len(page):>9,} bytes")
    return len(page) <= LARGEST_PAGE_BYTES


def list_in_index(index, runs):
    """Puts a row for each run between the two marks of the gallery's own page."""
    begin, end = "<!-- runs: scripts/make-gallery.py -->\n", "<!-- end of the runs -->"
    text = index.read_text() if index.is_file() else ""
    if begin not in text or end not in text:
        print(f"{index} has no place for the table of runs: {begin.strip()} ... {end}", file=sys.stderr)
        return
    lines = ["| question | made by | page | run file | machine |", "|---|---|---|---|---|"]
    lines += [row_of(run) for run in runs]
    before, rest = text.split(begin, 1)
    index.write_text(before + begin + "\n".join(lines) + "\n" + end + rest.split(end, 1)[1])


def row_of(run):
    head, facts = said_by(files_of(run)[0])
    question = json.loads(head["plan"]).get("question") or "What do commits survive?"
    command = head["command_line"].replace(" --quiet", "")
    link = f"[{run.name}/]({run.name})" if run.is_dir() else f"[{run.name}]({run.name})"
    gigabytes = int(facts.get("memory_total_bytes", 0)) / 1e9
    place = "filesystems in images" if "--loopback" in command else facts.get("place_description", "")
    machine = f"{facts.get('cpu_model', '')}, {facts.get('cpu_logical_cores', '')} cores, {gigabytes:.0f} GB; {place}"
    machine += f"; {facts.get('kernel', '')}; {head['started_utc'][:10]}"
    cells = [question, f"`{command}`", f"[{run.stem}.html]({run.stem}.html)", link, machine]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def said_by(file):
    """The row of `run` and the facts of a run file."""
    database = sqlite3.connect(f"file:{file}?mode=ro&immutable=1", uri=True)
    database.row_factory = sqlite3.Row
    head = dict(database.execute("SELECT * FROM run").fetchone())
    facts = {row["name"]: row["value"] for row in database.execute("SELECT name, value FROM environment")}
    database.close()
    return head, facts


def take_picture(page, picture, chromium):
    browser = shutil.which(chromium)
    if browser is None:
        print(f"{picture.name} stays as it is: there is no {chromium} (--chromium names another)", file=sys.stderr)
        return
    with tempfile.TemporaryDirectory() as profile:
        command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run"]
        command += [f"--user-data-dir={profile}", "--blink-settings=preferredColorScheme=1"]
        command += [f"--window-size={PICTURE[0]},{PICTURE[1]}", f"--screenshot={picture}", page.as_uri()]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    print(f"{picture.name:32} {picture.stat().st_size:>9,} bytes")


def show_in_readme(program, run, readme):
    """Puts the answer between the two marks of README.md."""
    begin, end = "<!-- answer: scripts/make-gallery.py -->\n", "<!-- end of the answer -->"
    text = readme.read_text()
    if begin not in text or end not in text:
        sys.exit(f"{readme} has no place for the answer: {begin.strip()} ... {end}")
    printed = subprocess.run([program, "report", run], check=True, stdout=subprocess.PIPE, text=True).stdout
    head, _ = said_by(run)
    seconds = (moment(head["finished_utc"]) - moment(head["started_utc"])).total_seconds()
    sentence = (
        f"Parts of what `sqlitmus measure` found on a virtual machine with two cores, in {seconds:.0f} seconds "
        f"({head['started_utc'][:10]};\n`sqlitmus report docs/gallery/{run.name}` prints all of it):\n"
    )
    before, rest = text.split(begin, 1)
    after = rest.split(end, 1)[1]
    readme.write_text(f"{before}{begin}{sentence}\n```\n{excerpt(printed)}\n```\n{end}{after}")


def moment(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))


def excerpt(printed):
    """Of a printed report the paragraphs that the README has room for; of the legend what explains them."""
    kept = []
    for paragraph in printed.strip("\n").split("\n\n"):
        if paragraph.startswith(LEFT_OUT_OF_README):
            continue
        lines = paragraph.split("\n")
        ends = [number for number, line in enumerate(lines) if LAST_OF_LEGEND in line]
        if ends and re.match(r"us: ", lines[0]):
            lines = lines[: ends[0] + 1]
        kept.append("\n".join(lines))
    return "\n\n".join(kept)


if __name__ == "__main__":
    main()
