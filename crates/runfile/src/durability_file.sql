-- A run of the durability experiment, format version 1. DURABILITY.md describes it.

CREATE TABLE run (
  only_row INTEGER PRIMARY KEY CHECK (only_row = 1), -- there is one run in a file
  run_id TEXT NOT NULL,              -- identity, unique in practice
  sqlitmus_version TEXT NOT NULL,    -- version that made it
  started_utc TEXT NOT NULL,         -- RFC 3339
  finished_utc TEXT,                 -- RFC 3339; NULL while it runs or if it was killed
  state TEXT NOT NULL CHECK (state IN ('started', 'interrupted', 'complete')),
  command_line TEXT NOT NULL,
  place TEXT NOT NULL,               -- directory of the images or stores
  plan TEXT NOT NULL                 -- JSON: everything that was to be done
) STRICT;

CREATE TABLE environment (
  position INTEGER PRIMARY KEY,      -- from 0
  name TEXT NOT NULL,
  value TEXT NOT NULL
) STRICT;

CREATE TABLE filesystem (
  name TEXT PRIMARY KEY,             -- as asked for
  mount_options TEXT NOT NULL        -- in force
) STRICT;

CREATE TABLE configuration (
  name TEXT PRIMARY KEY,
  engine TEXT NOT NULL,
  settings TEXT NOT NULL,            -- JSON: what differs from the engine's defaults
  read_back TEXT,                    -- JSON: what the live engine said; NULL until it was asked
  claimed TEXT NOT NULL,             -- none, process-crash or power-loss
  intact_after TEXT NOT NULL,        -- likewise
  transactional INTEGER NOT NULL CHECK (transactional IN (0, 1)),
  is_control INTEGER NOT NULL CHECK (is_control IN (0, 1))
) STRICT;

CREATE TABLE cut (
  cut_id INTEGER PRIMARY KEY,        -- in the order in which they ended
  filesystem TEXT NOT NULL,
  configuration TEXT NOT NULL REFERENCES configuration,
  kind TEXT NOT NULL CHECK (kind IN ('process-crash', 'shutdown', 'device', 'reordering')),
  number INTEGER NOT NULL CHECK (number >= 0),
  held_ns INTEGER NOT NULL CHECK (held_ns >= 0),
  pause_ns INTEGER NOT NULL CHECK (pause_ns >= 0),
  failure TEXT,                      -- why nothing was found; the rest is NULL then
  acknowledged_commits INTEGER,
  lost_commits INTEGER,
  first_lost_commit INTEGER,
  lost_age_ns INTEGER,
  stale_blobs INTEGER,
  torn_blobs INTEGER,
  empty_blobs INTEGER,
  missing_blobs INTEGER,
  unreadable_blobs INTEGER,
  destroyed_in_flight_blobs INTEGER,
  half_applied_commits INTEGER,
  stray_files INTEGER,
  open_error TEXT,
  read_error TEXT,
  integrity_error TEXT,
  mount_ns INTEGER,
  recover_ns INTEGER,
  found TEXT                         -- every key in order: its generation, or a letter
) STRICT;

CREATE TABLE speed (
  speed_id INTEGER PRIMARY KEY,      -- in the order of measuring
  filesystem TEXT NOT NULL,
  configuration TEXT NOT NULL REFERENCES configuration,
  commits INTEGER NOT NULL CHECK (commits >= 0),
  elapsed_ns INTEGER NOT NULL CHECK (elapsed_ns >= 0)
) STRICT;
