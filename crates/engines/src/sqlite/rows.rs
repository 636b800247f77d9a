//! The `sqlite` engine's rows: creating, opening and loading a database with the tables `user`
//! and `orders`. Querying and changing them is [`super::row_session`]'s business.

use std::path::{Path, PathBuf};

use sqlitmus_core::rows::Rows;
use sqlitmus_core::settings::Settings;

use super::connection::Connection;
use super::engine::{connect_for_loading, create_file, require_file};
use super::error::SqliteError;
use super::force::{self, at};
use super::row_session::SqliteRowSession;
use super::settings::Plan;
use crate::engine::EngineError;
use crate::rows::{RowEngine, RowSession, RowStore};

/// The tables, as published.
const SCHEMA: &str = "\
    CREATE TABLE user(id INTEGER PRIMARY KEY AUTOINCREMENT, \
        c1 INT, c2 VARCHAR(1000), c3 VARCHAR(1000)); \
    CREATE TABLE orders(id INTEGER PRIMARY KEY AUTOINCREMENT, \
        user_id INT, c1 VARCHAR(1000), c2 VARCHAR(1000))";

/// The secondary index.
const INDEX: &str = "CREATE INDEX user_c1 ON user(c1)";

/// Rows between two reports of progress.
const PROGRESS_ROWS: u64 = 256;

/// Rows in tables of an SQLite database.
pub(super) struct SqliteRows;

impl RowEngine for SqliteRows {
    fn create(&self, path: &Path, settings: &Settings) -> Result<Box<dyn RowStore>, EngineError> {
        let plan = Plan::from(settings)?;
        let schema = match plan.indexed {
            true => format!("{SCHEMA}; {INDEX}"),
            false => SCHEMA.to_owned(),
        };
        create_file(path, &plan, &schema)?;
        Ok(Box::new(SqliteRowStore {
            path: path.to_owned(),
            plan,
        }))
    }

    fn open(&self, path: &Path, settings: &Settings) -> Result<Box<dyn RowStore>, EngineError> {
        let plan = Plan::from(settings)?;
        require_file(path)?;
        let connection = open(path, &plan)?;
        connection.close().map_err(at(path))?;
        Ok(Box::new(SqliteRowStore {
            path: path.to_owned(),
            plan,
        }))
    }
}

struct SqliteRowStore {
    path: PathBuf,
    plan: Plan,
}

impl RowStore for SqliteRowStore {
    /// Loads in one transaction, in the order of the ids; the index is made afterwards.
    fn load(&self, rows: &Rows, progress: &mut dyn FnMut(u64) -> bool) -> Result<(), EngineError> {
        let mut connection = connect_for_loading(&self.path, &self.plan)?;
        let failed = || at(&self.path);
        connection
            .execute("DROP INDEX IF EXISTS user_c1; BEGIN EXCLUSIVE")
            .map_err(failed())?;
        let insert_user = connection
            .prepare("INSERT INTO user(id, c1, c2, c3) VALUES(?1, ?2, ?3, ?4)")
            .map_err(failed())?;
        let insert_order = connection
            .prepare("INSERT INTO orders(id, user_id, c1, c2) VALUES(?1, ?2, ?3, ?4)")
            .map_err(failed())?;
        for number in 0..2 * rows.count() {
            let (table, id) = (number / rows.count(), number % rows.count() + 1);
            let (insert, integer, first, second) = if table == 0 {
                let user = rows.user(id);
                (insert_user, user.c1, user.c2, user.c3)
            } else {
                let order = rows.order(id);
                let user_id = order.user_id.cast_signed();
                (insert_order, user_id, order.c1, order.c2)
            };
            insert_row(&mut connection, insert, (id, integer, first, second)).map_err(failed())?;
            if number % PROGRESS_ROWS == 0 && !progress(number + 1) {
                let interrupted = std::io::ErrorKind::Interrupted.into();
                return Err(EngineError::io("make the content of", &self.path)(
                    interrupted,
                ));
            }
        }
        connection.execute("COMMIT").map_err(failed())?;
        if self.plan.indexed {
            connection.execute(INDEX).map_err(failed())?;
        }
        connection.close().map_err(failed())?;
        let connection = open(&self.path, &self.plan)?;
        connection.close().map_err(failed())
    }

    fn session(&self) -> Result<Box<dyn RowSession>, EngineError> {
        let session = SqliteRowSession::open(&self.path, self.plan.clone())?;
        Ok(Box::new(session))
    }
}

fn insert_row(
    connection: &mut Connection,
    insert: super::statement::StatementId,
    (id, integer, first, second): (u64, i64, &str, &str),
) -> Result<(), SqliteError> {
    let mut statement = connection.statement(insert);
    statement.bind_i64(1, id.cast_signed())?;
    statement.bind_i64(2, integer)?;
    statement.bind_text(3, first)?;
    statement.bind_text(4, second)?;
    statement.run()
}

/// A connection to a database with rows, with all settings in force.
pub(super) fn open(path: &Path, plan: &Plan) -> Result<Connection, EngineError> {
    let mut connection = force::connect(path, plan)?;
    check_tables(&mut connection, path, plan)?;
    force::put_in_force(&mut connection, path, plan)?;
    Ok(connection)
}

/// Checks that the tables are there, and the index where there is to be one.
fn check_tables(connection: &mut Connection, path: &Path, plan: &Plan) -> Result<(), EngineError> {
    for (table, columns) in [("user", "id,c1,c2,c3"), ("orders", "id,user_id,c1,c2")] {
        let sql = format!("SELECT group_concat(lower(name)) FROM pragma_table_info('{table}')");
        let found = connection.query_text(&sql).map_err(at(path))?;
        if found.as_deref() != Some(columns) {
            return Err(EngineError::Damaged {
                path: path.to_owned(),
                reason: format!("it is a database, but has no table {table}({columns})"),
            });
        }
    }
    let got = index(connection).map_err(at(path))?;
    let asked = if plan.indexed { "c1" } else { "none" };
    if got == asked {
        return Ok(());
    }
    Err(EngineError::NotInForce {
        name: "index",
        asked: asked.to_owned(),
        got: got.to_owned(),
    })
}

/// The value of the setting `index` that the database has.
pub(super) fn index(connection: &mut Connection) -> Result<&'static str, SqliteError> {
    let sql = "SELECT count(*) FROM sqlite_master WHERE type='index' AND name='user_c1'";
    Ok(match connection.query_i64(sql)? {
        Some(1) => "c1",
        _ => "none",
    })
}
