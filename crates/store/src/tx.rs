//! A connection to either database, in a transaction if [`super::Db::write`] opened it.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use sqlx::pool::PoolConnection;
use sqlx::sqlite::SqliteRow;
use sqlx::{AssertSqlSafe, FromRow, Sqlite, SqliteConnection, Transaction};
use sqlx_postgres::{PgConnection, PgRow, Postgres};

use crate::Error;
use crate::arguments::{Arg, Rows, for_postgres, for_sqlite};
use crate::faults::{Faults, Step};
use crate::hooks::{CommitHook, Hooks};
use crate::wake::Signal;

pub struct Tx {
    held: Held,
    faults: Faults,
    /// What a change leaves for the end of its transaction and for after the commit.
    pub(crate) hooks: Hooks,
}

pub(crate) enum Held {
    Sqlite(PoolConnection<Sqlite>),
    SqliteTransaction(Transaction<'static, Sqlite>),
    Postgres(PoolConnection<Postgres>),
    PostgresTransaction(Transaction<'static, Postgres>),
}

enum Connection<'c> {
    Sqlite(&'c mut SqliteConnection),
    Postgres(&'c mut PgConnection),
}

/// A type that rows of both databases convert to.
pub trait FromRows: for<'r> FromRow<'r, SqliteRow> + for<'r> FromRow<'r, PgRow> + Send + Unpin {}

impl<T> FromRows for T where T: for<'r> FromRow<'r, SqliteRow> + for<'r> FromRow<'r, PgRow> + Send + Unpin {}

/// How many rows a query returns.
#[derive(Clone, Copy)]
enum HowMany {
    All,
    One,
}

/// Rows as the database returned them. They are fetched by code that does not know their final type, so it is
/// compiled once and not for each type.
enum FetchedRows {
    Sqlite(Vec<SqliteRow>),
    Postgres(Vec<PgRow>),
}

impl FetchedRows {
    fn read<T: FromRows>(&self) -> Result<Vec<T>, Error> {
        let read: Result<_, sqlx::Error> = match self {
            Self::Sqlite(rows) => rows.iter().map(T::from_row).collect(),
            Self::Postgres(rows) => rows.iter().map(T::from_row).collect(),
        };
        Ok(read?)
    }
}

impl Tx {
    pub(crate) fn new(held: Held, faults: &Faults) -> Self {
        Self { held, faults: faults.clone(), hooks: Hooks::default() }
    }

    /// The connection, for this statement.
    async fn connection(&mut self, sql: &str) -> Result<Connection<'_>, Error> {
        self.faults.inject(Step::Statement(sql)).await?;
        Ok(match &mut self.held {
            Held::Sqlite(connection) => Connection::Sqlite(connection),
            Held::SqliteTransaction(transaction) => Connection::Sqlite(transaction),
            Held::Postgres(connection) => Connection::Postgres(connection),
            Held::PostgresTransaction(transaction) => Connection::Postgres(transaction),
        })
    }

    /// The hook of this type for the end of the transaction. It is created on first use.
    pub fn hook<H: CommitHook + Default>(&mut self) -> &mut H {
        self.hooks.get()
    }

    /// Announces work. The signal is sent after the commit, and never if the transaction is rolled back.
    pub fn signal(&mut self, signal: Signal) {
        self.hooks.signal(signal);
    }

    pub fn is_postgres(&self) -> bool {
        matches!(self.held, Held::Postgres(_) | Held::PostgresTransaction(_))
    }

    /// Runs a statement and returns how many rows it changed.
    pub async fn execute(&mut self, sql: impl Into<String>, args: Vec<Arg>) -> Result<u64, Error> {
        self.change(sql.into(), args).await
    }

    pub async fn rows<T: FromRows>(
        &mut self,
        sql: impl Into<String>,
        args: Vec<Arg>,
    ) -> Result<Vec<T>, Error> {
        let found = self.fetch(sql.into(), args, HowMany::All).await?;
        found.read()
    }

    pub async fn row<T: FromRows>(
        &mut self,
        sql: impl Into<String>,
        args: Vec<Arg>,
    ) -> Result<Option<T>, Error> {
        let found = self.fetch(sql.into(), args, HowMany::One).await?;
        Ok(found.read()?.pop())
    }

    fn change(&mut self, sql: String, args: Vec<Arg>) -> BoxFuture<'_, Result<u64, Error>> {
        async move {
            let connection = self.connection(&sql).await?;
            let sql = AssertSqlSafe(sql);
            Ok(match connection {
                Connection::Sqlite(connection) => {
                    sqlx::query_with(sql, for_sqlite(args)?).execute(connection).await?.rows_affected()
                }
                Connection::Postgres(connection) => {
                    sqlx::query_with(sql, for_postgres(args)?).execute(connection).await?.rows_affected()
                }
            })
        }
        .boxed()
    }

    fn fetch(
        &mut self,
        sql: String,
        args: Vec<Arg>,
        many: HowMany,
    ) -> BoxFuture<'_, Result<FetchedRows, Error>> {
        async move {
            let connection = self.connection(&sql).await?;
            let sql = AssertSqlSafe(sql);
            Ok(match connection {
                Connection::Sqlite(connection) => {
                    let query = sqlx::query_with(sql, for_sqlite(args)?);
                    FetchedRows::Sqlite(match many {
                        HowMany::All => query.fetch_all(connection).await?,
                        HowMany::One => query.fetch_optional(connection).await?.into_iter().collect(),
                    })
                }
                Connection::Postgres(connection) => {
                    let query = sqlx::query_with(sql, for_postgres(args)?);
                    FetchedRows::Postgres(match many {
                        HowMany::All => query.fetch_all(connection).await?,
                        HowMany::One => query.fetch_optional(connection).await?.into_iter().collect(),
                    })
                }
            })
        }
        .boxed()
    }

    /// The single number that a query returns.
    pub async fn number(&mut self, sql: impl Into<String>, args: Vec<Arg>) -> Result<i64, Error> {
        let row: Option<(i64,)> = self.row(sql, args).await?;
        row.map(|(number,)| number).ok_or(Error::Database(sqlx::Error::RowNotFound))
    }

    /// Inserts rows in as few statements as their number allows. `into` is the table with its columns, `tail` is
    /// what follows the values (`ON CONFLICT …`). The first column is never NULL.
    pub async fn insert(&mut self, into: &str, rows: Rows, tail: &str) -> Result<(), Error> {
        for part in rows.batches() {
            let (values, args) = part.into_values(self);
            let sql =
                format!("INSERT INTO {into} SELECT * FROM ({values}) AS v WHERE column1 IS NOT NULL {tail}");
            self.execute(sql, args).await?;
        }
        Ok(())
    }

    /// Statements without arguments, separated by semicolons.
    pub async fn script(&mut self, sql: &str) -> Result<(), Error> {
        let connection = self.connection(sql).await?;
        let sql = sqlx::raw_sql(AssertSqlSafe(sql.to_owned()));
        match connection {
            Connection::Sqlite(connection) => sql.execute(connection).await.map(drop)?,
            Connection::Postgres(connection) => sql.execute(connection).await.map(drop)?,
        }
        Ok(())
    }

    pub(crate) async fn rollback(self) -> Result<(), Error> {
        match self.held {
            Held::SqliteTransaction(transaction) => transaction.rollback().await?,
            Held::PostgresTransaction(transaction) => transaction.rollback().await?,
            Held::Sqlite(_) | Held::Postgres(_) => {}
        }
        Ok(())
    }

    pub(crate) async fn commit(self) -> Result<(), Error> {
        self.faults.inject(Step::Commit).await?;
        match self.held {
            Held::SqliteTransaction(transaction) => transaction.commit().await?,
            Held::PostgresTransaction(transaction) => transaction.commit().await?,
            Held::Sqlite(_) | Held::Postgres(_) => {}
        }
        self.faults.inject(Step::Committed).await
    }
}
