//! Compares the codes with the vectors of the index.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use uuid::Uuid;

use super::packed::Packed;
use super::{Scope, segments, vectors};
use landfall_models::bits;
use landfall_store::{Error, Tx, args};

/// What is wrong with the codes of a scope.
pub struct Wrong {
    pub scope: Scope,
    pub what: String,
}

impl Wrong {
    fn new(scope: &Scope, what: String) -> Self {
        let Scope { tenant, user, model } = scope;
        Self { scope: scope.clone(), what: format!("codes of {tenant:?}/{user:?} and {model}: {what}") }
    }
}

/// Segments that are compared at once.
const SEGMENTS_AT_ONCE: i64 = 16;

/// Calls `wrong` for everything that is wrong. The statements of `tx` must see the same state of the database.
pub async fn check(tx: &mut Tx, mut wrong: impl FnMut(Wrong)) -> Result<(), Error> {
    missing(tx, &mut wrong).await?;
    let mut after = -1;
    loop {
        let page = segments::page(tx, after, SEGMENTS_AT_ONCE).await?;
        let Some((last, _)) = page.last() else { return Ok(()) };
        after = *last;
        for (id, scope) in page {
            if let Some(what) = check_segment(tx, id, &scope).await? {
                wrong(Wrong::new(&scope, format!("segment {id} {what}")));
            }
        }
    }
}

/// Files that are neither coded nor listed as uncoded, that are both, or that have another number of codes than of
/// vectors.
async fn missing(tx: &mut Tx, wrong: &mut impl FnMut(Wrong)) -> Result<(), Error> {
    let rows: Vec<(Uuid, String, String, String, i64, i64, i64)> = tx
        .rows(
            // Looked up file by file: SQLite would group all codes in memory.
            "SELECT file_id, tenant_id, user_id, model, vectors, codes, uncoded
             FROM (SELECT i.file_id, i.tenant_id, i.user_id, i.model, i.vectors,
                          CAST(COALESCE((SELECT SUM(c.entries) FROM coded_files c JOIN code_segments s ON s.id = c.segment
                                         WHERE c.file_id = i.file_id), 0) AS BIGINT) AS codes,
                          (SELECT COUNT(*) FROM uncoded_files u WHERE u.file_id = i.file_id) AS uncoded
                   FROM (SELECT file_id, MIN(tenant_id) AS tenant_id, MIN(user_id) AS user_id, MIN(model) AS model,
                                COUNT(*) AS vectors FROM chunk_index GROUP BY file_id) AS i) AS compared
             WHERE CASE WHEN uncoded = 0 THEN vectors ELSE 0 END <> codes",
            args![],
        )
        .await?;
    for (file, tenant, user, model, vectors, codes, uncoded) in rows {
        let expected = if uncoded == 0 { vectors } else { 0 };
        let scope = Scope { tenant, user, model };
        wrong(Wrong::new(&scope, format!("file {file} has {codes}, should have {expected}")));
    }
    Ok(())
}

/// What is wrong with a segment, if anything is.
async fn check_segment(tx: &mut Tx, id: i64, scope: &Scope) -> Result<Option<String>, Error> {
    let (entries, packed) = match segments::read(tx, id).await {
        Ok(Some(read)) => read,
        Ok(None) => return Ok(None),
        Err(Error::Internal(damaged)) => return Ok(Some(damaged)),
        Err(error) => return Err(error),
    };
    if usize::try_from(entries) != Ok(packed.len()) {
        return Ok(Some(format!("has {} codes, should have {entries}", packed.len())));
    }
    if packed.chunks.iter().collect::<BTreeSet<_>>().len() != packed.len() {
        return Ok(Some("has two codes of one chunk".to_owned()));
    }
    let counted = count_files(tx, scope, &packed).await?;
    let (found, strange) = match counted {
        Ok(counted) => counted,
        Err(chunk) => return Ok(Some(format!("has another code for chunk {chunk} than its vector"))),
    };
    let noted: BTreeMap<Uuid, i64> = segments::files_in(tx, id).await?.into_iter().collect();
    Ok(if strange > 0 {
        Some(format!("has {strange} codes of chunks without a vector of this scope"))
    } else if noted != found {
        Some("has codes of other files than is noted".to_owned())
    } else {
        None
    })
}

/// How many codes are of which file, and how many of none. Or a chunk whose code is not that of its vector.
async fn count_files(
    tx: &mut Tx,
    scope: &Scope,
    packed: &Packed,
) -> Result<Result<(BTreeMap<Uuid, i64>, usize), i64>, Error> {
    let indexed = vectors::of_chunks(tx, scope, &packed.chunks).await?;
    let of: HashMap<i64, (Uuid, Vec<f32>)> =
        indexed.into_iter().map(|(chunk, file, vector)| (chunk, (file, vector))).collect();
    let (mut found, mut strange) = (BTreeMap::new(), 0);
    for (chunk, code) in packed.entries() {
        match of.get(&chunk) {
            None => strange += 1,
            Some((_, vector)) if bits::code(vector) != code => return Ok(Err(chunk)),
            Some((file, _)) => *found.entry(*file).or_insert(0) += 1,
        }
    }
    Ok(Ok((found, strange)))
}
