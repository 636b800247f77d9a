-- The run file of sqlitmus, format version 1. SCHEMA.md describes it.

CREATE TABLE run (
  only_row INTEGER PRIMARY KEY CHECK (only_row = 1), -- there is one run in a file
  run_id TEXT NOT NULL,              -- identity, unique in practice
  sqlitmus_version TEXT NOT NULL,    -- version that measured
  started_utc TEXT NOT NULL,         -- RFC 3339
  finished_utc TEXT,                 -- RFC 3339; NULL while measuring or if killed
  state TEXT NOT NULL CHECK (state IN ('started', 'interrupted', 'complete')),
  command_line TEXT NOT NULL,
  place TEXT NOT NULL,               -- directory the stores were in
  suite TEXT NOT NULL,
  scale TEXT NOT NULL,
  seed TEXT NOT NULL,                -- decimal, 64 bits without sign
  plan TEXT NOT NULL                 -- JSON: everything that was to be measured
) STRICT;

CREATE TABLE environment (
  position INTEGER PRIMARY KEY,      -- from 0
  name TEXT NOT NULL,
  value TEXT NOT NULL
) STRICT;

CREATE TABLE arm_group (
  group_id INTEGER PRIMARY KEY,      -- from 0, in the order of measuring
  name TEXT NOT NULL UNIQUE,
  baseline TEXT NOT NULL,            -- name of the arm that all are compared with
  rounds INTEGER NOT NULL,           -- planned
  slices INTEGER NOT NULL,           -- planned, of every arm in a round
  slice_ns INTEGER NOT NULL          -- planned length of a reading slice
) STRICT;

CREATE TABLE arm (
  arm_id INTEGER PRIMARY KEY,        -- from 0, in the order of the plan
  group_id INTEGER NOT NULL REFERENCES arm_group,
  name TEXT NOT NULL UNIQUE,         -- the baseline's repetition ends in ~twin
  label TEXT NOT NULL,               -- what reports call it
  case_id TEXT NOT NULL,             -- equal on all machines and in all versions
  workload TEXT NOT NULL,            -- JSON
  dataset TEXT NOT NULL,             -- JSON
  engine TEXT NOT NULL,
  settings TEXT NOT NULL,            -- JSON, complete
  durability TEXT NOT NULL,          -- none, process-crash or power-loss
  cache_state TEXT NOT NULL
) STRICT;

CREATE TABLE footprint (
  arm_id INTEGER PRIMARY KEY REFERENCES arm,
  content_bytes INTEGER NOT NULL CHECK (content_bytes >= 0),
  apparent_bytes INTEGER NOT NULL CHECK (apparent_bytes >= 0),
  allocated_bytes INTEGER NOT NULL CHECK (allocated_bytes >= 0),
  files INTEGER NOT NULL CHECK (files >= 0),
  directories INTEGER NOT NULL CHECK (directories >= 0)
) STRICT;

CREATE TABLE round (
  round_id INTEGER PRIMARY KEY,      -- in the order of recording
  group_id INTEGER NOT NULL REFERENCES arm_group,
  number INTEGER NOT NULL CHECK (number >= 0), -- from 0
  attempt INTEGER NOT NULL CHECK (attempt >= 0), -- from 0; only the last attempt counts
  complete INTEGER NOT NULL CHECK (complete IN (0, 1)), -- 0: it was interrupted
  recorded_utc TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
  UNIQUE (group_id, number, attempt)
) STRICT;

-- A finished round is never measured again.
CREATE UNIQUE INDEX complete_round ON round (group_id, number) WHERE complete = 1;

CREATE TABLE read_back (
  read_back_id INTEGER PRIMARY KEY,
  settings TEXT NOT NULL UNIQUE      -- JSON: what the live engine said is in force
) STRICT;

CREATE TABLE trial (
  trial_id INTEGER PRIMARY KEY,      -- in the order in which the trials ended
  round_id INTEGER NOT NULL REFERENCES round,
  arm_id INTEGER NOT NULL REFERENCES arm,
  live_set INTEGER NOT NULL CHECK (live_set >= 0), -- slices are paired within a set
  outcome TEXT NOT NULL CHECK (outcome IN ('valid', 'invalid', 'failed', 'skipped', 'refuted')),
  reason TEXT,                       -- why it is not valid
  read_back_id INTEGER NOT NULL REFERENCES read_back,
  latencies BLOB NOT NULL,           -- pairs of nanoseconds and count: see SCHEMA.md
  CHECK ((outcome = 'valid') = (reason IS NULL))
) STRICT;

CREATE INDEX trial_of_round ON trial (round_id, arm_id);

CREATE TABLE resource (
  trial_id INTEGER NOT NULL REFERENCES trial,
  name TEXT NOT NULL,                -- ends in its unit
  value INTEGER NOT NULL CHECK (value >= 0), -- sum over the trial's timed slices
  PRIMARY KEY (trial_id, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE system_call (
  trial_id INTEGER NOT NULL REFERENCES trial,
  name TEXT NOT NULL,
  calls INTEGER NOT NULL CHECK (calls >= 0),
  operations INTEGER NOT NULL CHECK (operations > 0), -- untimed ones that made these calls
  PRIMARY KEY (trial_id, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE sample (
  trial_id INTEGER NOT NULL REFERENCES trial,
  turn INTEGER NOT NULL CHECK (turn >= 0), -- from 0; slices of one turn are compared
  place INTEGER NOT NULL CHECK (place >= 0), -- in the order of the turn, from 0
  operations INTEGER NOT NULL CHECK (operations >= 0),
  content_bytes INTEGER NOT NULL CHECK (content_bytes >= 0),
  elapsed_ns INTEGER NOT NULL CHECK (elapsed_ns >= 0), -- to the last acknowledgement
  settle_ns INTEGER CHECK (settle_ns >= 0), -- NULL for reading slices
  device_read_bytes INTEGER CHECK (device_read_bytes >= 0), -- NULL if the kernel does not tell
  major_faults INTEGER CHECK (major_faults >= 0), -- NULL likewise
  involuntary_context_switches INTEGER CHECK (involuntary_context_switches >= 0), -- NULL likewise
  machine_steal_ns INTEGER CHECK (machine_steal_ns >= 0), -- NULL likewise; all cores of the machine
  device_read_ns INTEGER CHECK (device_read_ns >= 0), -- NULL if nothing was read, or not asked
  PRIMARY KEY (trial_id, turn)
) STRICT, WITHOUT ROWID;

-- The slices that count, with everything one asks about them.
CREATE VIEW slice AS
SELECT
  arm_group.name AS group_name,
  arm_group.baseline,
  arm.name AS arm,
  arm.engine,
  round.number AS round,
  trial.live_set,
  sample.turn,
  sample.place,
  sample.operations,
  sample.content_bytes,
  sample.elapsed_ns,
  sample.settle_ns,
  sample.device_read_bytes,
  sample.major_faults,
  CAST(sample.elapsed_ns AS REAL) / sample.operations AS operation_ns,
  CAST(sample.elapsed_ns + coalesce(sample.settle_ns, 0) AS REAL) / sample.operations
    AS settled_operation_ns,
  trial.trial_id,
  round.round_id
FROM sample
JOIN trial USING (trial_id)
JOIN round USING (round_id)
JOIN arm USING (arm_id)
JOIN arm_group ON arm_group.group_id = arm.group_id
WHERE trial.outcome = 'valid'
  AND CASE arm.cache_state
    WHEN 'warm' THEN
      coalesce(sample.major_faults, 0) = 0 AND (
        coalesce(sample.device_read_bytes, 0) = 0
        OR coalesce((sample.device_read_ns + 1000000) * 100 <= sample.elapsed_ns, 0)
      )
    ELSE coalesce(sample.device_read_bytes * 100 >= sample.content_bytes * 99, 1)
  END
  AND NOT EXISTS (
    SELECT 1 FROM trial AS refuted
    WHERE refuted.arm_id = trial.arm_id AND refuted.outcome = 'refuted'
  )
  AND NOT EXISTS (
    SELECT 1 FROM round AS later
    WHERE later.group_id = round.group_id
      AND later.number = round.number
      AND later.attempt > round.attempt
  );
