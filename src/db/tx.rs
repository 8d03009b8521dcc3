//! A connection to either database, inside a transaction when it came from [`super::Db::write`].

use sqlx::pool::PoolConnection;
use sqlx::postgres::PgRow;
use sqlx::sqlite::SqliteRow;
use sqlx::{AssertSqlSafe, FromRow, PgConnection, Postgres, Sqlite, SqliteConnection, Transaction};

use super::args::{Arg, Rows, for_postgres, for_sqlite};
use crate::error::Error;
use crate::observe::aftermath::Aftermath;

pub struct Tx {
    held: Held,
    /// What a change leaves to the end of its transaction, and to after its commit.
    pub(crate) aftermath: Aftermath,
}

pub(super) enum Held {
    Sqlite(PoolConnection<Sqlite>),
    SqliteTransaction(Transaction<'static, Sqlite>),
    Postgres(PoolConnection<Postgres>),
    PostgresTransaction(Transaction<'static, Postgres>),
}

enum Connection<'c> {
    Sqlite(&'c mut SqliteConnection),
    Postgres(&'c mut PgConnection),
}

/// A type that rows of both databases turn into.
pub trait FromRows: for<'r> FromRow<'r, SqliteRow> + for<'r> FromRow<'r, PgRow> + Send + Unpin {}

impl<T> FromRows for T where T: for<'r> FromRow<'r, SqliteRow> + for<'r> FromRow<'r, PgRow> + Send + Unpin {}

impl Tx {
    pub(super) fn new(held: Held) -> Self {
        Self { held, aftermath: Aftermath::default() }
    }

    fn connection(&mut self) -> Connection<'_> {
        match &mut self.held {
            Held::Sqlite(connection) => Connection::Sqlite(connection),
            Held::SqliteTransaction(transaction) => Connection::Sqlite(transaction),
            Held::Postgres(connection) => Connection::Postgres(connection),
            Held::PostgresTransaction(transaction) => Connection::Postgres(transaction),
        }
    }

    pub fn is_postgres(&self) -> bool {
        matches!(self.held, Held::Postgres(_) | Held::PostgresTransaction(_))
    }

    /// Runs a statement and answers how many rows it changed.
    pub async fn execute(&mut self, sql: impl Into<String>, args: Vec<Arg>) -> Result<u64, Error> {
        let sql = AssertSqlSafe(sql.into());
        Ok(match self.connection() {
            Connection::Sqlite(connection) => {
                sqlx::query_with(sql, for_sqlite(args)?).execute(connection).await?.rows_affected()
            }
            Connection::Postgres(connection) => {
                sqlx::query_with(sql, for_postgres(args)?).execute(connection).await?.rows_affected()
            }
        })
    }

    pub async fn rows<T: FromRows>(
        &mut self,
        sql: impl Into<String>,
        args: Vec<Arg>,
    ) -> Result<Vec<T>, Error> {
        let sql = AssertSqlSafe(sql.into());
        Ok(match self.connection() {
            Connection::Sqlite(connection) => {
                sqlx::query_as_with(sql, for_sqlite(args)?).fetch_all(connection).await?
            }
            Connection::Postgres(connection) => {
                sqlx::query_as_with(sql, for_postgres(args)?).fetch_all(connection).await?
            }
        })
    }

    pub async fn row<T: FromRows>(
        &mut self,
        sql: impl Into<String>,
        args: Vec<Arg>,
    ) -> Result<Option<T>, Error> {
        let sql = AssertSqlSafe(sql.into());
        Ok(match self.connection() {
            Connection::Sqlite(connection) => {
                sqlx::query_as_with(sql, for_sqlite(args)?).fetch_optional(connection).await?
            }
            Connection::Postgres(connection) => {
                sqlx::query_as_with(sql, for_postgres(args)?).fetch_optional(connection).await?
            }
        })
    }

    /// The single number that a query answers.
    pub async fn number(&mut self, sql: impl Into<String>, args: Vec<Arg>) -> Result<i64, Error> {
        let row: Option<(i64,)> = self.row(sql, args).await?;
        row.map(|(number,)| number).ok_or(Error::Database(sqlx::Error::RowNotFound))
    }

    /// Inserts rows in as few statements as their number allows. `into` is the table with its columns, `tail` what
    /// follows the values (`ON CONFLICT …`). The first column is never NULL.
    pub async fn insert(&mut self, into: &str, rows: Rows, tail: &str) -> Result<(), Error> {
        for portion in rows.portions() {
            let (values, args) = portion.into_values(self.is_postgres());
            let sql =
                format!("INSERT INTO {into} SELECT * FROM ({values}) AS v WHERE column1 IS NOT NULL {tail}");
            self.execute(sql, args).await?;
        }
        Ok(())
    }

    /// Statements without arguments, separated by semicolons.
    pub async fn script(&mut self, sql: &str) -> Result<(), Error> {
        let sql = sqlx::raw_sql(AssertSqlSafe(sql.to_owned()));
        match self.connection() {
            Connection::Sqlite(connection) => sql.execute(connection).await.map(drop)?,
            Connection::Postgres(connection) => sql.execute(connection).await.map(drop)?,
        }
        Ok(())
    }

    pub(super) async fn rollback(self) -> Result<(), Error> {
        match self.held {
            Held::SqliteTransaction(transaction) => transaction.rollback().await?,
            Held::PostgresTransaction(transaction) => transaction.rollback().await?,
            Held::Sqlite(_) | Held::Postgres(_) => {}
        }
        Ok(())
    }

    pub(super) async fn commit(self) -> Result<(), Error> {
        match self.held {
            Held::SqliteTransaction(transaction) => transaction.commit().await?,
            Held::PostgresTransaction(transaction) => transaction.commit().await?,
            Held::Sqlite(_) | Held::Postgres(_) => {}
        }
        Ok(())
    }
}
