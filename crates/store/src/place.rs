//! Where a database is. A backup that is restored is somewhere else than what it was made of: another file, or another
//! database on the server.

use crate::{Backend, Db, Error, args};

impl Db {
    /// A text that stays the same for as long as this database lives, and that a restored copy does not share.
    ///
    /// A copy that takes the very place of the original (a restore into the same PostgreSQL database, a snapshot of a whole
    /// disk) has the same text.
    pub async fn place(&self) -> Result<String, Error> {
        match &self.backend {
            Backend::Sqlite { file, .. } => file.place(),
            Backend::Simulated { .. } => Ok("memory".to_owned()),
            Backend::Postgres { .. } => self.place_on_server().await,
        }
    }

    /// The cluster, its timeline, which a restore to a point in time begins again, and the database in it.
    async fn place_on_server(&self) -> Result<String, Error> {
        const DATABASE: &str =
            "(SELECT CAST(oid AS TEXT) FROM pg_database WHERE datname = current_database())";
        let cluster = format!(
            "SELECT CONCAT_WS(' ', 'server', s.system_identifier, c.timeline_id, {DATABASE})
             FROM pg_control_system() s, pg_control_checkpoint() c"
        );
        let found: Result<Option<(String,)>, Error> = self.read().await?.row(cluster, args![]).await;
        let found = match found {
            // The operator of the server may have taken the right to call these functions away.
            Err(error) if !error.database_is_away() => {
                tracing::debug!(%error, "the identity of the cluster could not be read");
                self.read()
                    .await?
                    .row(format!("SELECT CONCAT_WS(' ', 'database', {DATABASE})"), args![])
                    .await?
            }
            found => found?,
        };
        found.map(|(place,)| place).ok_or(Error::Database(sqlx::Error::RowNotFound))
    }
}
