//! One thread's work on rows: point queries, inserts and point updates, in transactions of the
//! caller's. A session whose database is in memory also copies it over the file, when it is due.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use sqlitmus_core::dataset::consume;
use sqlitmus_core::rows::{User, consume_columns};

use super::connection::Connection;
use super::error::SqliteError;
use super::force::{self, at};
use super::rows::{index, open};
use super::settings::{Insert, JournalMode, Plan, Prepare, ReadTransaction, Residence};
use super::statement::StatementId;
use crate::engine::{EngineError, ReadBack};
use crate::rows::{Counters, RowSession, UserTotals};

/// Rows of one INSERT with several: 300 parameters, of which every SQLite allows 999.
const ROWS_OF_AN_INSERT: usize = 100;

/// A connection with everything prepared.
pub(super) struct SqliteRowSession {
    path: PathBuf,
    plan: Plan,
    connection: Connection,
    select: StatementId,
    update: StatementId,
    insert: StatementId,
    begin_reading: StatementId,
    begin: StatementId,
    commit: StatementId,
    /// Statements that insert so many rows at once.
    insert_many: Vec<(usize, StatementId)>,
    /// A read transaction is held.
    holds: bool,
    sql: String,
    /// Where the database in memory is copied to.
    copy: Option<Copy>,
}

/// The file that a database in memory is copied over.
struct Copy {
    file: Connection,
    every: Option<Duration>,
    last: Instant,
    /// When the oldest transaction was committed that is not in the file.
    oldest_at_risk: Option<Instant>,
    counters: CopyCounters,
}

#[derive(Default)]
struct CopyCounters {
    copies: u64,
    pages: u64,
    copying: Duration,
    longest_at_risk: Duration,
}

impl SqliteRowSession {
    pub(super) fn open(path: &Path, plan: Plan) -> Result<Self, EngineError> {
        let (mut connection, copy) = match plan.residence {
            Residence::File => (open(path, &plan)?, None),
            Residence::Memory { copy_every_ms } => {
                let (connection, copy) = in_memory(path, &plan, copy_every_ms)?;
                (connection, Some(copy))
            }
        };
        let mut prepare = |sql: &str| connection.prepare(sql).map_err(at(path));
        Ok(Self {
            select: prepare("SELECT * FROM user WHERE id=?1")?,
            update: prepare("UPDATE user SET c1=c1+1 WHERE id=?1")?,
            insert: prepare("INSERT INTO user(c1, c2, c3) VALUES(?1, ?2, ?3)")?,
            begin_reading: prepare("BEGIN")?,
            begin: prepare(plan.begin.sql())?,
            commit: prepare("COMMIT")?,
            insert_many: Vec::new(),
            holds: false,
            sql: String::new(),
            path: path.to_owned(),
            plan,
            connection,
            copy,
        })
    }

    fn prepare_if_each(&mut self, statement: StatementId) -> Result<(), SqliteError> {
        match self.plan.prepare {
            Prepare::Once => Ok(()),
            Prepare::Each => self.connection.prepare_again(statement),
        }
    }

    /// Ends a read transaction that is held.
    fn release(&mut self) -> Result<(), SqliteError> {
        if std::mem::take(&mut self.holds) && self.connection.is_in_transaction() {
            self.connection.statement(self.commit).run()?;
        }
        Ok(())
    }

    #[inline]
    fn query_row(&mut self, id: u64) -> Result<Option<u64>, SqliteError> {
        let hold = self.plan.read_transaction == ReadTransaction::Held;
        if hold && !self.holds && !self.connection.is_in_transaction() {
            self.connection.statement(self.begin_reading).run()?;
            self.holds = true;
        }
        self.prepare_if_each(self.select)?;
        let mut statement = self.connection.statement(self.select);
        statement.bind_i64(1, id.cast_signed())?;
        let mut found = None;
        // To the end, as a program does that treats all queries alike.
        while let Some(mut row) = statement.step()? {
            let (id, c1) = (row.i64(0).cast_unsigned(), row.i64(1));
            let c2 = consume(row.blob(2)?);
            let c3 = consume(row.blob(3)?);
            found = Some(consume_columns(id, c1, c2, c3));
        }
        statement.reset()?;
        Ok(found)
    }

    fn insert_rows(&mut self, users: &[User<'_>]) -> Result<(), SqliteError> {
        self.release()?;
        match self.plan.insert {
            Insert::Prepared => users.iter().try_for_each(|user| self.insert_bound(user)),
            Insert::Text => users.iter().try_for_each(|user| self.insert_text(user)),
            Insert::MultiRow => users
                .chunks(ROWS_OF_AN_INSERT)
                .try_for_each(|users| self.insert_several(users)),
        }
    }

    fn insert_bound(&mut self, user: &User<'_>) -> Result<(), SqliteError> {
        self.prepare_if_each(self.insert)?;
        let mut statement = self.connection.statement(self.insert);
        statement.bind_i64(1, user.c1)?;
        statement.bind_text(2, user.c2)?;
        statement.bind_text(3, user.c3)?;
        statement.run()
    }

    fn insert_text(&mut self, user: &User<'_>) -> Result<(), SqliteError> {
        self.sql.clear();
        // Writing to a String cannot fail; the texts have no letter that would need quoting.
        let _ = write!(
            self.sql,
            "INSERT INTO user(c1, c2, c3) VALUES({}, '{}', '{}')",
            user.c1, user.c2, user.c3
        );
        self.connection.execute(&self.sql)
    }

    fn insert_several(&mut self, users: &[User<'_>]) -> Result<(), SqliteError> {
        let known = self
            .insert_many
            .iter()
            .find(|(rows, _)| *rows == users.len());
        let id = match known {
            Some((_, id)) => *id,
            None => {
                let values = vec!["(?, ?, ?)"; users.len()].join(", ");
                let sql = format!("INSERT INTO user(c1, c2, c3) VALUES {values}");
                let id = self.connection.prepare(&sql)?;
                self.insert_many.push((users.len(), id));
                id
            }
        };
        self.prepare_if_each(id)?;
        let mut statement = self.connection.statement(id);
        for (row, user) in users.iter().enumerate() {
            let parameter = 3 * row as u16 + 1;
            statement.bind_i64(parameter, user.c1)?;
            statement.bind_text(parameter + 1, user.c2)?;
            statement.bind_text(parameter + 2, user.c3)?;
        }
        statement.run()
    }

    fn update_row(&mut self, id: u64) -> Result<bool, SqliteError> {
        self.release()?;
        self.prepare_if_each(self.update)?;
        let mut statement = self.connection.statement(self.update);
        statement.bind_i64(1, id.cast_signed())?;
        statement.run()?;
        drop(statement);
        Ok(self.connection.changes() > 0)
    }

    /// Notes a commit; copies the database over its file if that is due. Outside of a transaction
    /// every write is a commit.
    fn committed(&mut self) -> Result<(), SqliteError> {
        let Some(copy) = &mut self.copy else {
            return Ok(());
        };
        if self.connection.is_in_transaction() {
            return Ok(());
        }
        let now = Instant::now();
        copy.oldest_at_risk.get_or_insert(now);
        match copy.every {
            Some(every) if now - copy.last >= every => copy.make(&mut self.connection),
            _ => Ok(()),
        }
    }

    fn settle_all(&mut self) -> Result<(), SqliteError> {
        self.release()?;
        if let Some(copy) = &mut self.copy {
            return match copy.oldest_at_risk {
                Some(_) => copy.make(&mut self.connection),
                None => Ok(()),
            };
        }
        if self.plan.journal_mode == JournalMode::Wal {
            self.connection.checkpoint()?;
        }
        Ok(())
    }

    fn clear_all(&mut self) -> Result<(), SqliteError> {
        self.release()?;
        self.connection
            .execute("DELETE FROM user; DELETE FROM sqlite_sequence WHERE name='user'; VACUUM")?;
        if self.plan.journal_mode == JournalMode::Wal && self.copy.is_none() {
            // The log, too, begins anew: a log that has grown once is faster to write.
            self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")?;
        }
        Ok(())
    }

    fn add_up(&mut self) -> Result<UserTotals, SqliteError> {
        self.release()?;
        let all = self.connection.prepare("SELECT * FROM user")?;
        let mut statement = self.connection.statement(all);
        let mut totals = UserTotals::default();
        while let Some(mut row) = statement.step()? {
            let (id, c1) = (row.i64(0).cast_unsigned(), row.i64(1));
            let c2 = consume(row.blob(2)?);
            let c3 = consume(row.blob(3)?);
            totals.rows += 1;
            totals.c1_sum = totals.c1_sum.wrapping_add(c1);
            let sum = consume_columns(id, c1, c2, c3);
            totals.consumed = totals.consumed.wrapping_add(sum);
        }
        statement.reset()?;
        Ok(totals)
    }
}

/// A database in memory with the content of the file, and where it is copied to.
fn in_memory(
    path: &Path,
    plan: &Plan,
    copy_every_ms: Option<u64>,
) -> Result<(Connection, Copy), EngineError> {
    let mut file = open(path, plan)?;
    let mut memory = Connection::open_in_memory(force::library(plan)?).map_err(at(path))?;
    let cache = format!("-{}", plan.cache_bytes / 1024);
    file.copy_to(&mut memory)
        .and_then(|_| memory.set_pragma("cache_size", cache))
        .map_err(at(path))?;
    let copy = Copy {
        file,
        every: copy_every_ms.map(Duration::from_millis),
        last: Instant::now(),
        oldest_at_risk: None,
        counters: CopyCounters::default(),
    };
    Ok((memory, copy))
}

impl Copy {
    /// Copies everything: when it returns the file holds all that was committed, as safely as the
    /// settings of journal and synchronisation make it.
    fn make(&mut self, memory: &mut Connection) -> Result<(), SqliteError> {
        let start = Instant::now();
        self.counters.pages += memory.copy_to(&mut self.file)?;
        let end = Instant::now();
        self.last = end;
        self.counters.copies += 1;
        self.counters.copying += end - start;
        if let Some(oldest) = self.oldest_at_risk.take() {
            let at_risk = end - oldest;
            self.counters.longest_at_risk = self.counters.longest_at_risk.max(at_risk);
        }
        Ok(())
    }
}

impl RowSession for SqliteRowSession {
    fn query(&mut self, id: u64) -> Result<Option<u64>, EngineError> {
        self.query_row(id).map_err(at(&self.path))
    }

    fn insert(&mut self, users: &[User<'_>]) -> Result<(), EngineError> {
        let inserted = self.insert_rows(users).and_then(|()| self.committed());
        inserted.map_err(at(&self.path))
    }

    fn update(&mut self, id: u64) -> Result<bool, EngineError> {
        let updated = self.update_row(id).and_then(|found| {
            self.committed()?;
            Ok(found)
        });
        updated.map_err(at(&self.path))
    }

    fn begin(&mut self) -> Result<(), EngineError> {
        let begun = self
            .release()
            .and_then(|()| self.connection.statement(self.begin).run());
        begun.map_err(at(&self.path))
    }

    fn commit(&mut self) -> Result<(), EngineError> {
        let committed = self.connection.statement(self.commit).run();
        committed
            .and_then(|()| self.committed())
            .map_err(at(&self.path))
    }

    fn rollback(&mut self) -> Result<(), EngineError> {
        self.holds = false;
        if self.connection.is_in_transaction() {
            self.connection
                .execute("ROLLBACK")
                .map_err(at(&self.path))?;
        }
        Ok(())
    }

    fn clear(&mut self) -> Result<(), EngineError> {
        self.clear_all().map_err(at(&self.path))
    }

    fn totals(&mut self) -> Result<UserTotals, EngineError> {
        self.add_up().map_err(at(&self.path))
    }

    fn settle(&mut self) -> Result<(), EngineError> {
        self.settle_all().map_err(at(&self.path))
    }

    fn read_back(&mut self) -> Result<ReadBack, EngineError> {
        // A database in memory has no journal, no sync and no locks: what is in force for what is
        // kept is what is in force for its file.
        let connection = match &mut self.copy {
            Some(copy) => &mut copy.file,
            None => &mut self.connection,
        };
        let mut back = force::read_back(connection, &self.path, &self.plan)?;
        self.plan.add_own(&mut back);
        let index = index(connection).map_err(at(&self.path))?;
        back.insert("index".to_owned(), index.to_owned());
        force::check_memory_statistics(&self.plan, &back)?;
        Ok(back)
    }

    fn take_counters(&mut self) -> Counters {
        let Some(copy) = &mut self.copy else {
            return Counters::new();
        };
        let counters = std::mem::take(&mut copy.counters);
        [
            ("copies", counters.copies),
            ("copied_pages", counters.pages),
            ("copying_ns", counters.copying.as_nanos() as u64),
            (
                "peak_at_risk_ns",
                counters.longest_at_risk.as_nanos() as u64,
            ),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
    }
}
