//! A change to the database is applied completely or not at all, and its caller gets the result, whatever happens to
//! the changes beside it.

use futures_util::future::join_all;
use landfall_core::clock::Time;
use landfall_core::refusal::{Refusal, RefusalCode};
use landfall_store::Error;
use landfall_store::{Arg, Db, Rows, Tx, Write, args};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::script::Gate;
use crate::support::{TestDb, on_each_database};

const ADD: &str = "INSERT INTO tenants (id) VALUES ($1)";

#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Good,
    Refused,
    Panic,
}

/// Adds a row, and then ends like that.
struct Add(String, End);

impl Write for Add {
    type Output = String;

    async fn apply(&self, tx: &mut Tx) -> Result<String, Error> {
        tx.execute(ADD, args![&self.0]).await?;
        match self.1 {
            End::Good => Ok(self.0.clone()),
            End::Refused => Err(Refusal::new(RefusalCode::InvalidState, "Not so").into()),
            End::Panic => panic!("on purpose"),
        }
    }
}

/// Adds a row when the gate is opened.
struct AddLater(Gate);

impl Write for AddLater {
    type Output = ();

    async fn apply(&self, tx: &mut Tx) -> Result<(), Error> {
        self.0.wait().await;
        tx.execute(ADD, args!["later"]).await.map(drop)
    }
}

async fn added(db: &Db) -> Vec<String> {
    let sql = "SELECT id FROM tenants ORDER BY id";
    let rows: Vec<(String,)> = db.read().await.unwrap().rows(sql, args![]).await.unwrap();
    rows.into_iter().map(|(id,)| id).collect()
}

#[on_each_database]
async fn each_of_many_changes_gets_its_own_result_and_only_good_ones_are_kept(db: TestDb) {
    let db = Db::open(&db.url, 4).await.unwrap();
    let ends = [End::Good, End::Refused, End::Good, End::Panic, End::Good];
    for round in 0..4 {
        let changes = ends.iter().enumerate().map(|(place, end)| (format!("{round}{place}"), *end));
        let changes: Vec<(String, End)> = changes.collect();
        let answers = join_all(changes.iter().map(|(name, end)| db.write(Add(name.clone(), *end)))).await;
        for ((name, end), answer) in changes.iter().zip(answers) {
            match end {
                End::Good => assert_eq!(&answer.unwrap(), name),
                End::Refused => assert!(matches!(answer, Err(Error::Refused(_))), "{answer:?}"),
                End::Panic => assert!(matches!(answer, Err(Error::Internal(_))), "{answer:?}"),
            }
        }
    }
    let good = (0..4).flat_map(|round| [0, 2, 4].map(|place| format!("{round}{place}")));
    assert_eq!(added(&db).await, good.collect::<Vec<_>>());
}

#[on_each_database]
async fn a_change_whose_caller_has_gone_is_still_committed(db: TestDb) {
    let db = Db::open(&db.url, 4).await.unwrap();
    let gate = Gate::default();
    let caller = tokio::spawn({
        let (db, gate) = (db.clone(), gate.clone());
        async move { db.write(AddLater(gate)).await }
    });
    gate.reached().await;
    caller.abort();
    assert!(caller.await.unwrap_err().is_cancelled());
    let mut commits = db.wake().events();
    commits.mark_unchanged();
    gate.open();
    commits.changed().await.unwrap();
    assert_eq!(added(&db).await, ["later"]);
}

/// A value of each type, and none of each.
#[derive(Debug, Clone, PartialEq, landfall_store::FromRow)]
struct OfEveryType {
    key: i64,
    number: Option<i64>,
    flag: Option<bool>,
    text: Option<String>,
    id: Option<Uuid>,
    time: Option<Time>,
    json: Option<Value>,
    bytes: Option<Vec<u8>>,
}

#[on_each_database]
async fn rows_of_a_bulk_statement_arrive_as_they_were_given(db: TestDb) {
    let db = Db::open(&db.url, 4).await.unwrap();
    let time = Time::from_timestamp_micros(1_700_000_000_123_456).unwrap();
    let given: Vec<OfEveryType> = (0..Rows::MAX)
        .map(|number| {
            let has = |every: usize| number.is_multiple_of(every);
            let key = i64::try_from(number).unwrap();
            OfEveryType {
                key,
                number: has(2).then_some(i64::MIN + key),
                flag: has(3).then_some(has(2)),
                text: has(5).then(|| format!("{{\"{key}\", NULL, \\é}}")),
                id: has(7).then(|| Uuid::from_u128(number as u128)),
                time: has(2).then_some(time),
                json: has(3).then(|| json!({ "key": [key, null, "a,b"] })),
                bytes: has(5).then(|| vec![0, 255, number.to_le_bytes()[0]]),
            }
        })
        .collect();
    // Also a number of rows that is no power of two.
    for count in [1, 3, given.len()] {
        let mut rows = Rows::default();
        for row in given[..count].iter().cloned() {
            rows.push(args![row.key, row.number, row.flag, row.text, row.id, row.time, row.json, row.bytes]);
        }
        let mut tx = db.read().await.unwrap();
        let columns = ["key", "number", "flag", "text", "id", "time", "json", "bytes"];
        let (values, mut arguments) = rows.named("given", &columns, &tx);
        arguments.push(Arg::from(-1_i64));
        let sql = format!(
            "WITH {values} SELECT * FROM given WHERE key IS NOT NULL AND key > ${} ORDER BY key",
            arguments.len()
        );
        let found: Vec<OfEveryType> = tx.rows(sql, arguments).await.unwrap();
        assert_eq!(found, given[..count]);
    }
}

/// Adds so many rows at once.
struct AddMany(usize);

impl Write for AddMany {
    type Output = ();

    async fn apply(&self, tx: &mut Tx) -> Result<(), Error> {
        let mut rows = Rows::default();
        for number in 0..self.0 {
            rows.push(args![format!("{number:05}"), number]);
        }
        tx.insert("tenants (id, used_files)", rows, "").await
    }
}

#[on_each_database]
async fn more_rows_than_one_statement_takes_are_all_inserted(db: TestDb) {
    let db = Db::open(&db.url, 4).await.unwrap();
    db.write(AddMany(2_500)).await.unwrap();
    assert_eq!(added(&db).await, (0..2_500).map(|number| format!("{number:05}")).collect::<Vec<_>>());
}
