"""What a run file may say of the machine before it is published, for make-gallery.py.

Speeds, plans and settings stay as they are, byte for byte. Only facts about the machine are made general: a kernel
keeps its version and loses the suffix of whoever built it, mount options lose those that say something about one
installation, the place that was measured is called /tmp/NAME, and libraries built for a run lie in /opt/sqlitmus. What
is left is searched: a file that still names a path outside of what every system has is not published.
"""

import json
import pathlib
import re
import shutil
import sqlite3

# Where paths may point: what every system has, and what is there for the time of a measurement.
PUBLIC_ROOTS = ("/tmp", "/usr", "/dev", "/place", "/sys", "/proc", "/opt/sqlitmus")

# Libraries that `cargo xtask workers` has built lie in somebody's target directory.
BUILT_LIBRARIES = re.compile(r"/[^\s\"]*(?=/sqlite-builds/)")

# Mount options that say how a filesystem works; others (identities, quotas, names) are of one installation.
PUBLIC_MOUNT_OPTIONS = re.compile(
    r"(rw|ro|relatime|noatime|strictatime|nodiratime|lazytime|sync|async|dirsync|discard(=async|=sync)?|nodiscard"
    r"|inode64|inode32|noquota|logbufs=\d+|logbsize=\w+|space_cache(=v2)?|subvolid=5|subvol=/|nodatacow|nodatasum"
    r"|compress(-force)?=[\w:]+|ssd|nossd|barrier(=\d)?|nobarrier|data=\w+|noauto_da_alloc|auto_da_alloc=\d"
    r"|commit=\d+|journal_checksum|journal_async_commit|delalloc|nodelalloc|errors=[\w-]+|size=\w+|flushoncommit)"
)

# An absolute path in a text. A slash behind a letter or a digit is a unit (`1,000/s`) or a choice (`and/or`).
PATH = re.compile(r"(?<![\w./~:<-])(/[\w.@+~-]+(?:/[\w.@+~-]+)*)")


# Texts in which paths are made general, by table.
REWRITTEN = {
    "trial": {"reason"},
    "cut": {"failure", "open_error", "read_error", "integrity_error"},
    "read_back": {"settings"},
}


class NotPublishable(Exception):
    """Why a run file is not published, in a sentence."""


def problems(path):
    """What a run file says that may not be published: sentences; none if it may be."""
    found = []
    with _open(path) as database:
        facts = dict(database.execute("SELECT name, value FROM environment"))
        if facts.get("kernel", "") != _kernel(facts.get("kernel", "")):
            found.append(f"its kernel is called {facts['kernel']}")
        if facts.get("mount_options", "") != _mount_options(facts.get("mount_options", "")):
            found.append(f"its mount options are {facts['mount_options']}")
        # Of a durability run.
        if _has_table(database, "filesystem"):
            for name, options in database.execute("SELECT name, mount_options FROM filesystem"):
                if options and options != _mount_options(options):
                    found.append(f"its {name} is mounted with {options}")
        for where, text in _texts(database):
            for private in sorted(set(_private_paths(text))):
                found.append(f"{where} names {private}")
    found.extend(f"its bytes hold {private}" for private in _private_bytes(path))
    return list(dict.fromkeys(found))


def publish(source, target, name):
    """Writes to `target` what of the run file `source` may be published; the place becomes /tmp/`name`.

    `source` stays as it is. `NotPublishable` if something is left that may not be published; then there is no `target`.
    """
    shutil.copyfile(source, target)
    try:
        _generalise(target, name)
        left = problems(target)
        if left:
            raise NotPublishable("; ".join(left))
        if _measured(source) != _measured(target):
            raise NotPublishable("what was measured would change")
    except BaseException:
        pathlib.Path(target).unlink()
        raise


def _generalise(path, name):
    database = sqlite3.connect(path)
    # No page keeps what was deleted, and nothing stays in a log beside the file.
    database.execute("PRAGMA journal_mode = DELETE")
    database.execute("PRAGMA secure_delete = ON")
    place = database.execute("SELECT place FROM run").fetchone()[0]
    for position, fact, value in database.execute("SELECT position, name, value FROM environment").fetchall():
        value = {"kernel": _kernel, "mount_options": _mount_options}.get(fact, str)(value)
        value = _with_public_place(value, place, name)
        database.execute("UPDATE environment SET value = ? WHERE position = ?", (value, position))
    command, run_place = database.execute("SELECT command_line, place FROM run").fetchone()
    # Where the run file was written, and through which path the program was called, is nobody's business.
    command = re.sub(r" --output[ =]\S+", "", command)
    command = re.sub(r"^\S*/(?=sqlitmus\b)", "", command)
    database.execute(
        "UPDATE run SET command_line = ?, place = ?",
        (_with_public_place(command, place, name), _with_public_place(run_place, place, name)),
    )
    if _has_table(database, "filesystem"):
        for kind, options in database.execute("SELECT name, mount_options FROM filesystem").fetchall():
            database.execute("UPDATE filesystem SET mount_options = ? WHERE name = ?", (_mount_options(options), kind))
    for table in REWRITTEN:
        if _has_table(database, table):
            _rewrite_texts(database, table, place, name)
    database.commit()
    database.execute("VACUUM")
    database.close()


def _rewrite_texts(database, table, place, name):
    """Reasons of failures may name files in the place, and settings in force the file of a library."""
    columns = [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
    for column in REWRITTEN[table] & set(columns):
        rows = database.execute(f"SELECT rowid, {column} FROM {table} WHERE {column} IS NOT NULL").fetchall()
        for row, text in rows:
            changed = _with_public_place(BUILT_LIBRARIES.sub("/opt/sqlitmus", text), place, name)
            if changed != text:
                database.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (changed, row))


def _kernel(text):
    """`Linux 6.18.44-build-7` without what follows its version."""
    found = re.match(r"[A-Za-z]+ \d+(\.\d+)*", text)
    return found.group() if found else text


def _mount_options(text):
    return ",".join(option for option in text.split(",") if PUBLIC_MOUNT_OPTIONS.fullmatch(option))


def _with_public_place(text, place, name):
    """A text in which a place that is not public is called /tmp/NAME."""
    # Of a filesystem in an image, the folder that the image is in.
    root = place.split("/.sqlitmus/")[0]
    if root in ("", "/") or _is_public(root):
        return text
    return re.sub(re.escape(root) + r"(?![\w.-])", f"/tmp/{name}", text)


def _is_public(path):
    return any(path == root or path.startswith(root + "/") for root in PUBLIC_ROOTS)


def _private_paths(text):
    return [path for path in PATH.findall(text) if not _is_public(path)]


def _texts(database):
    """Every text of a run file, JSON taken apart, with where it stands."""
    tables = [name for (name,) in database.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    for table in tables:
        columns = [row[1] for row in database.execute(f'PRAGMA table_info("{table}")')]
        for column in columns:
            values = database.execute(f'SELECT DISTINCT "{column}" FROM "{table}" WHERE typeof("{column}") = \'text\'')
            for (value,) in values:
                for text in _strings(value):
                    yield f"{table}.{column}", text


def _strings(value):
    """The strings of a text that is JSON, or the text."""
    if value[:1] not in ("{", "["):
        return [value]
    try:
        document = json.loads(value)
    except ValueError:
        return [value]
    found, left = [], [document]
    while left:
        part = left.pop()
        if isinstance(part, dict):
            found.extend(part)
            left.extend(part.values())
        elif isinstance(part, list):
            left.extend(part)
        elif isinstance(part, str):
            found.append(part)
    return found


def _private_bytes(path):
    """Homes of people in the bytes of the file, in unused pages too."""
    content = pathlib.Path(path).read_bytes()
    return sorted({found.decode("ascii", "replace") for found in re.findall(rb"/(?:home|root|Users)/[\w.-]+", content)})


def _measured(path):
    """All that a run file holds, but for what is made general: two files of the same measurement are equal in it."""
    with _open(path) as database:
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        general = {"run": {"command_line", "place"}, "environment": {"value"}, "filesystem": {"mount_options"}, **REWRITTEN}
        whole = {}
        for table in tables:
            columns = [row[1] for row in database.execute(f'PRAGMA table_info("{table}")')]
            left_out = general.get(table, set())
            kept = ", ".join(f'"{column}"' for column in columns if column not in left_out)
            whole[table] = database.execute(f'SELECT {kept} FROM "{table}"').fetchall()
        return whole


def _has_table(database, name):
    found = database.execute("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?", (name,))
    return found.fetchone() is not None


class _open:
    """A run file that is only read, closed at the end."""

    def __init__(self, path):
        self.database = sqlite3.connect(f"file:{pathlib.Path(path).resolve()}?mode=ro&immutable=1", uri=True)

    def __enter__(self):
        if not _has_table(self.database, "environment") or not _has_table(self.database, "run"):
            raise NotPublishable("it is no run file of sqlitmus")
        return self.database

    def __exit__(self, *reason):
        self.database.close()
