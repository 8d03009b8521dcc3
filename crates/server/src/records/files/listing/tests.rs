use landfall_core::caller::TenantUser;
use landfall_core::states::SortOrder;
use landfall_store::Db;

use super::*;

async fn database(folder: &tempfile::TempDir) -> Db {
    Db::open(&format!("sqlite://{}/landfall.db", folder.path().display()), 4).await.unwrap()
}

fn reaches() -> [Reach; 3] {
    [Reach::User(TenantUser::new("acme", "ada")), Reach::Tenant("acme".to_owned()), Reach::All]
}

async fn plan(db: &Db, sql: String, arguments: Vec<Arg>) -> Vec<String> {
    let plan: Vec<(i64, i64, i64, String)> =
        db.read().await.unwrap().rows(format!("EXPLAIN QUERY PLAN {sql}"), arguments).await.unwrap();
    plan.into_iter().map(|(_, _, _, step)| step).collect()
}

/// No step may sort or walk through more than the page. (The page itself is sorted once more.)
#[tokio::test]
async fn each_order_follows_its_index_also_behind_a_cursor() {
    let folder = tempfile::tempdir().unwrap();
    let db = database(&folder).await;
    let orders = [
        (FileSort::CreatedAt, Position::at(Uuid::max()), ["listed_by_user", "listed_of_tenant", ""]),
        (
            FileSort::FileName,
            "n61_ffffffff-ffff-ffff-ffff-ffffffffffff".parse().unwrap(),
            ["listed_by_name", "listed_of_tenant_by_name", "listed_of_all_by_name"],
        ),
        (
            FileSort::Size,
            "s7_ffffffff-ffff-ffff-ffff-ffffffffffff".parse().unwrap(),
            ["listed_by_size", "listed_of_tenant_by_size", "listed_of_all_by_size"],
        ),
    ];
    for (by, position, indexes) in orders {
        for (reach, index) in reaches().into_iter().zip(indexes) {
            for order in [SortOrder::Asc, SortOrder::Desc] {
                for after in [None, Some(&position)] {
                    let listing = Listing::new(&Wanted::all_of(reach.clone()), Sorting { by, order }, after);
                    let sql = listing.walk(10);
                    let plan = plan(&db, sql, listing.arguments.clone()).await;
                    assert!(plan.iter().any(|step| step.contains(index)), "{plan:?}");
                    let (walks, sorts): (Vec<&String>, Vec<&String>) =
                        plan.iter().partition(|step| step.contains(" listed_files"));
                    // Of a list that is made of two, the page of each is sorted once more.
                    let is_merged = by == FileSort::FileName && after.is_some();
                    let sorted = sorts.iter().filter(|step| step.contains("TEMP B-TREE")).count();
                    assert_eq!(sorted, if is_merged { 2 } else { 0 }, "{plan:?}");
                    let is_bound = |step: &&String| ["<", ">"].iter().any(|sign| step.contains(sign));
                    assert_eq!(
                        walks.iter().all(is_bound),
                        after.is_some(),
                        "the cursor bounds the walk: {plan:?}"
                    );
                }
            }
        }
    }
}

#[tokio::test]
async fn a_users_files_in_some_states_are_found_along_their_indexes() {
    let folder = tempfile::tempdir().unwrap();
    let db = database(&folder).await;
    let [own, ..] = reaches();
    let cases: [(&[Status], &[&str]); 3] = [
        (&[Status::Failed, Status::Cancelled], &["files_at_rest"]),
        (&[Status::Registered, Status::Ready], &["files_to_confirm", "files_at_rest"]),
        (&[Status::Queued, Status::Embedding], &["files_under_way", "files_claimed"]),
    ];
    for (states, indexes) in cases {
        let wanted = Wanted { states: states.to_vec(), ..Wanted::all_of(own.clone()) };
        let listing = Listing::new(&wanted, Sorting::default(), None);
        let plan = {
            let (sql, arguments) = listing.statement(10, 0);
            plan(&db, sql, arguments).await
        };
        for index in indexes {
            assert!(plan.iter().any(|step| step.contains(index)), "{index}: {plan:?}");
        }
        assert!(!plan.iter().any(|step| step.contains("SCAN files")), "{plan:?}");
    }
}

/// What only `files` has is looked up there by id, for no more rows than are compared.
#[tokio::test]
async fn a_filter_looks_up_each_file_that_the_list_meets() {
    let folder = tempfile::tempdir().unwrap();
    let db = database(&folder).await;
    let filters: [fn(Wanted) -> Wanted; 3] = [
        |wanted| Wanted { states: vec![Status::Ready], ..wanted },
        |wanted| Wanted { codes: vec!["PARSE_ERROR".to_owned()], ..wanted },
        |wanted| Wanted { has_warnings: true, part: Some("a".to_owned()), ..wanted },
    ];
    for (reach, filter) in
        reaches().into_iter().flat_map(|reach| filters.map(|filter| (reach.clone(), filter)))
    {
        let sorting = Sorting { by: FileSort::Size, ..Sorting::default() };
        let listing = Listing::new(&filter(Wanted::all_of(reach)), sorting, None);
        let (sql, arguments) = listing.statement(10, 0);
        let plan = plan(&db, sql, arguments).await;
        let files: Vec<&String> = plan.iter().filter(|step| step.contains(" files ")).collect();
        assert_eq!(files.len(), 2, "for the filter and for the page: {plan:?}");
        assert!(files.iter().all(|step| step.contains("SEARCH") && step.contains("(id=?)")), "{plan:?}");
    }
}

/// Without the order in which the rows are found first, SQLite walks through all files of the user.
#[tokio::test]
async fn few_files_are_found_along_an_index_that_has_only_those() {
    let folder = tempfile::tempdir().unwrap();
    let db = database(&folder).await;
    for reach in reaches() {
        let all = || Wanted::all_of(reach.clone());
        let cases = [
            (Narrow::Bytes, Wanted { md5s: Some(vec![String::new(); 2]), ..all() }, "files_by_md5"),
            (Narrow::Batch, Wanted { batch: Some(Uuid::nil()), ..all() }, "files_by_batch"),
            (Narrow::Held, Wanted { states: vec![Status::Chunking], ..all() }, "files_claimed"),
            (
                Narrow::WithError,
                Wanted { codes: vec!["PARSE_ERROR".to_owned()], ..all() },
                "files_with_error",
            ),
            (Narrow::WithWarnings, Wanted { has_warnings: true, ..all() }, "files_with_warnings"),
            (
                Narrow::Registered,
                Wanted { created_after: Some(Time::UNIX_EPOCH), ..all() },
                match reach {
                    Reach::User(_) => "listed_by_user",
                    Reach::Tenant(_) => "listed_of_tenant",
                    Reach::All => "PRIMARY KEY",
                },
            ),
        ];
        for (narrow, wanted, index) in cases {
            let sorting = Sorting { by: FileSort::FileName, ..Sorting::default() };
            let mut tx = db.read().await.unwrap();
            assert_eq!(Narrow::find(&mut tx, &wanted, true).await.unwrap(), Some(narrow));
            let listing = Listing::taken_from(&tx, narrow, &wanted, sorting, None);
            let plan = {
                let (sql, arguments) = listing.statement(10, 0);
                plan(&db, sql, arguments).await
            };
            assert!(
                plan.iter().any(|step| format!("{step} ").contains(&format!(" {index} "))),
                "{index}: {plan:?}"
            );
        }
    }
}
