//! A connection to either database, in a transaction if [`super::Db::write`] opened it.

use std::any::Any;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use sqlx_core::pool::PoolConnection;
use sqlx_core::sql_str::AssertSqlSafe;
use sqlx_core::transaction::Transaction;
use sqlx_postgres::{PgConnection, Postgres};

use crate::Error;
use crate::arguments::{Arg, Rows, for_postgres};
use crate::faults::{Faults, Step};
use crate::hooks::{CommitHook, Hooks};
use crate::row::{self, Columns, FromRow, Row};
use crate::sqlite::{self, HowMany, Lease, Pool};
use crate::wake::Signal;

pub struct Tx {
    held: Held,
    /// Whether a query of a reader of SQLite runs where it is called: it finds few rows by an index.
    pub(crate) is_look_up: bool,
    faults: Faults,
    /// What a change leaves for the end of its transaction and for after the commit.
    pub(crate) hooks: Hooks,
}

pub(crate) enum Held {
    /// On the writer's thread: statements run where they are called.
    SqliteWriter(Lease),
    /// `None` while a statement runs, and for good if its caller did not wait for it.
    SqliteReader(Option<Lease>),
    /// Of a simulated database: each statement waits for its turn.
    SimulatedReader(Pool),
    Postgres(PoolConnection<Postgres>),
    PostgresTransaction(Transaction<'static, Postgres>),
}

/// Where the rows of a result go. They are fetched by code that does not know their type, so it is compiled once and not
/// for each type.
trait Collect: Any + Send {
    fn add(&mut self, row: &Row<'_>) -> Result<(), Error>;
}

impl<T: FromRow> Collect for Vec<T> {
    fn add(&mut self, row: &Row<'_>) -> Result<(), Error> {
        self.push(T::from_row(row)?);
        Ok(())
    }
}

impl Tx {
    pub(crate) fn new(held: Held, faults: &Faults) -> Self {
        Self { held, is_look_up: false, faults: faults.clone(), hooks: Hooks::default() }
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

    pub async fn rows<T: FromRow>(
        &mut self,
        sql: impl Into<String>,
        args: Vec<Arg>,
    ) -> Result<Vec<T>, Error> {
        self.collect(sql.into(), args, HowMany::All).await
    }

    pub async fn row<T: FromRow>(
        &mut self,
        sql: impl Into<String>,
        args: Vec<Arg>,
    ) -> Result<Option<T>, Error> {
        Ok(self.collect(sql.into(), args, HowMany::One).await?.pop())
    }

    async fn collect<T: FromRow>(
        &mut self,
        sql: String,
        args: Vec<Arg>,
        many: HowMany,
    ) -> Result<Vec<T>, Error> {
        let found: Box<dyn Any> = self.fetch(sql, args, many, Box::new(Vec::<T>::new())).await?;
        Ok(*found.downcast().expect("what was given comes back"))
    }

    fn change(&mut self, sql: String, args: Vec<Arg>) -> BoxFuture<'_, Result<u64, Error>> {
        async move {
            self.faults.inject(Step::Statement(&sql)).await?;
            match &mut self.held {
                Held::SqliteWriter(lease) => sqlite::execute(lease.connection()?, &sql, &args),
                Held::SqliteReader(lease) => {
                    Lease::run_elsewhere(lease, move |connection| sqlite::execute(connection, &sql, &args))
                        .await
                }
                Held::SimulatedReader(pool) => {
                    sqlite::execute(pool.acquire().await?.connection()?, &sql, &args)
                }
                Held::Postgres(connection) => change_on_postgres(connection, sql, args).await,
                Held::PostgresTransaction(transaction) => change_on_postgres(transaction, sql, args).await,
            }
        }
        .boxed()
    }

    fn fetch(
        &mut self,
        sql: String,
        args: Vec<Arg>,
        many: HowMany,
        mut into: Box<dyn Collect>,
    ) -> BoxFuture<'_, Result<Box<dyn Collect>, Error>> {
        async move {
            self.faults.inject(Step::Statement(&sql)).await?;
            match &mut self.held {
                Held::SqliteWriter(lease) => {
                    sqlite::query(lease.connection()?, &sql, &args, many, &mut |row| into.add(row))?;
                    Ok(into)
                }
                Held::SqliteReader(lease) => {
                    if self.is_look_up
                        && let Some(lease) = lease
                        && sqlite::query_unless_locked(lease, &sql, &args, many, &mut |row| into.add(row))?
                    {
                        return Ok(into);
                    }
                    Lease::run_elsewhere(lease, move |connection| {
                        sqlite::query(connection, &sql, &args, many, &mut |row| into.add(row))?;
                        Ok(into)
                    })
                    .await
                }
                Held::SimulatedReader(pool) => {
                    let mut lease = pool.acquire().await?;
                    sqlite::query(lease.connection()?, &sql, &args, many, &mut |row| into.add(row))?;
                    Ok(into)
                }
                Held::Postgres(connection) => fetch_on_postgres(connection, sql, args, many, into).await,
                Held::PostgresTransaction(transaction) => {
                    fetch_on_postgres(transaction, sql, args, many, into).await
                }
            }
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
        let most = if self.is_postgres() { Rows::MAX_IN_ARRAYS } else { Rows::MAX };
        for part in rows.parts(most) {
            let (values, args) = part.into_values(self);
            let sql =
                format!("INSERT INTO {into} SELECT * FROM ({values}) AS v WHERE column1 IS NOT NULL {tail}");
            self.execute(sql, args).await?;
        }
        Ok(())
    }

    /// Statements without arguments, separated by semicolons.
    pub async fn script(&mut self, sql: &str) -> Result<(), Error> {
        self.faults.inject(Step::Statement(sql)).await?;
        let on_postgres = || sqlx_core::raw_sql::raw_sql(AssertSqlSafe(sql.to_owned()));
        match &mut self.held {
            Held::SqliteWriter(lease) => lease.connection()?.execute_batch(sql)?,
            Held::SqliteReader(lease) => {
                let sql = sql.to_owned();
                Lease::run_elsewhere(lease, move |connection| Ok(connection.execute_batch(&sql)?)).await?;
            }
            Held::SimulatedReader(pool) => pool.acquire().await?.connection()?.execute_batch(sql)?,
            Held::Postgres(connection) => on_postgres().execute(&mut **connection).await.map(drop)?,
            Held::PostgresTransaction(transaction) => {
                on_postgres().execute(&mut **transaction).await.map(drop)?;
            }
        }
        Ok(())
    }

    pub(crate) async fn rollback(mut self) -> Result<(), Error> {
        match &mut self.held {
            Held::SqliteWriter(lease) => Ok(lease.connection()?.execute_batch("ROLLBACK")?),
            Held::SqliteReader(_) | Held::SimulatedReader(_) | Held::Postgres(_) => Ok(()),
            Held::PostgresTransaction(_) => {
                let Held::PostgresTransaction(transaction) = self.held else { return Ok(()) };
                Ok(transaction.rollback().await?)
            }
        }
    }

    pub(crate) async fn commit(self) -> Result<(), Error> {
        self.faults.inject(Step::Commit).await?;
        match self.held {
            Held::SqliteWriter(mut lease) => {
                sqlite::execute(lease.connection()?, "COMMIT", &[])?;
            }
            Held::PostgresTransaction(transaction) => transaction.commit().await?,
            Held::SqliteReader(_) | Held::SimulatedReader(_) | Held::Postgres(_) => {}
        }
        self.faults.inject(Step::Committed).await
    }
}

async fn change_on_postgres(
    connection: &mut PgConnection,
    sql: String,
    args: Vec<Arg>,
) -> Result<u64, Error> {
    let query = sqlx_core::query::query_with(AssertSqlSafe(sql), for_postgres(args)?);
    Ok(query.execute(connection).await?.rows_affected())
}

async fn fetch_on_postgres(
    connection: &mut PgConnection,
    sql: String,
    args: Vec<Arg>,
    many: HowMany,
    mut into: Box<dyn Collect>,
) -> Result<Box<dyn Collect>, Error> {
    let statement = row::hash_of(&sql);
    let query = sqlx_core::query::query_with(AssertSqlSafe(sql), for_postgres(args)?);
    let rows = match many {
        HowMany::All => query.fetch_all(connection).await?,
        HowMany::One => query.fetch_optional(connection).await?.into_iter().collect(),
    };
    let columns = Columns::of(statement);
    for row in &rows {
        into.add(&Row::of_postgres(row, &columns))?;
    }
    Ok(into)
}
