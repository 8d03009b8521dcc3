//! Many files inserted directly into the database, quickly.

use landfall_core::clock::Time;
use landfall_store::args;

use super::TestServer;
use super::offline_app::Sql;

/// Inserts files of a user that are ready, named `file 1`, `file 2`, …, of as many bytes. They have no bytes and no totals.
pub async fn insert_ready(server: &TestServer, user: &str, count: usize) {
    let now: Time = server.app.clock.now();
    let is_postgres = server.app.db.read().await.unwrap().is_postgres();
    let numbers = if is_postgres {
        "generate_series(1, $3) AS n(number)"
    } else {
        "(WITH RECURSIVE n(number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM n WHERE number < $3) SELECT number FROM n) AS n"
    };
    // Smaller than any that is made later.
    let id = if is_postgres {
        "CAST('00000000-0000-7000-8000-' || LPAD(TO_HEX(number), 12, '0') AS UUID)"
    } else {
        "UNHEX('00000000000070008000' || PRINTF('%012x', number))"
    };
    let sql = format!(
        "INSERT INTO files (id, tenant_id, user_id, file_name, size_bytes, blob_key, status, next_stage, created_at, updated_at,
                            confirmed_at, ready_at)
         SELECT {id}, $1, $1, 'file ' || number, number, 'no/blob', 'ready', 'embed', $2, $2, $2, $2 FROM {numbers}"
    );
    server.app.db.write(Sql(sql, args![user, now, count])).await.unwrap();
    list_inserted(server).await;
    if is_postgres {
        for analyze in ["ANALYZE files", "ANALYZE listed_files"] {
            server.app.db.write(Sql(analyze.to_owned(), args![])).await.unwrap();
        }
    }
}

/// Adds the files to the lists that were inserted directly into the database.
pub async fn list_inserted(server: &TestServer) {
    let sql = "INSERT INTO listed_files (id, tenant_id, user_id, file_name, size_bytes, created_at)
               SELECT id, tenant_id, user_id, file_name, size_bytes, created_at FROM files
               WHERE deleted_at IS NULL AND NOT EXISTS (SELECT 1 FROM listed_files l WHERE l.id = files.id)";
    server.app.db.write(Sql(sql.to_owned(), args![])).await.unwrap();
}

/// Names files anew.
pub async fn rename(server: &TestServer, name: &str, which: &str) {
    for table in ["files", "listed_files"] {
        let sql = format!("UPDATE {table} SET file_name = $1 WHERE {which}");
        server.app.db.write(Sql(sql, args![name])).await.unwrap();
    }
}
