//! Registers files in groups. The server accepts a group as a whole or not at all, so a file that it refuses is taken out
//! and the rest is sent again.

use serde_json::Value;
use uuid::Uuid;

use super::Problem;
use super::candidates::{Candidate, Hashed};
use crate::client::{Client, ClientError};
use landfall_api::uploads::{Announcement, UploadTicket};
use landfall_core::clock::{Clock, Time};

pub struct Registered {
    pub file: Hashed,
    pub batch: Uuid,
    pub ticket: UploadTicket,
    /// When the ticket came.
    pub received: Time,
}

/// Registers the files. Returns separately the files that the server refuses, with the reason.
pub async fn register(
    client: &Client,
    batch: Uuid,
    mut files: Vec<Hashed>,
) -> Result<(Vec<Registered>, Vec<(Candidate, Problem)>), ClientError> {
    let mut refused = Vec::new();
    while !files.is_empty() {
        let announced: Vec<Announcement> = files.iter().map(announcement).collect();
        let error = match client.register_files(batch, &announced).await {
            Ok(tickets) if tickets.len() == files.len() => {
                let received = Clock::System.now();
                let registered = files
                    .into_iter()
                    .zip(tickets)
                    .map(|(file, ticket)| Registered { file, batch, ticket, received })
                    .collect();
                return Ok((registered, refused));
            }
            Ok(tickets) => {
                let (expected, got) = (files.len(), tickets.len());
                return Err(client.unexpected(format!("{got} upload URLs instead of {expected}")));
            }
            Err(error) => error,
        };
        let rejected = rejected(&error, &files);
        if rejected.is_empty() {
            return Err(error);
        }
        let mut rejected = rejected.into_iter();
        files.retain(|file| {
            let reject = rejected.next() == Some(true);
            if reject {
                refused.push((file.candidate.clone(), problem(&error, &file.candidate)));
            }
            !reject
        });
    }
    Ok((Vec::new(), refused))
}

fn announcement(file: &Hashed) -> Announcement {
    Announcement {
        file_name: file.candidate.name.clone(),
        file_size: i64::try_from(file.candidate.size).unwrap_or(i64::MAX),
        content_type: None,
        md5: Some(file.checksums.md5.clone()),
        mapping: None,
        sha256: Some(file.checksums.sha256.clone()),
        attributes: file.candidate.attributes(),
    }
}

/// For each file whether it must be taken out of the group; empty if the error is not about single files.
fn rejected(error: &ClientError, files: &[Hashed]) -> Vec<bool> {
    let ClientError::Refused { code, details, .. } = error else {
        return Vec::new();
    };
    let rejected: Vec<bool> = match (code.as_str(), &details["maxFileSize"], &details["quota"]) {
        // All files that are too large, not only the first one.
        ("TOO_LARGE", Value::Number(max), _) => {
            let max = max.as_u64().unwrap_or(u64::MAX);
            files.iter().map(|file| file.candidate.size > max).collect()
        }
        ("QUOTA_EXCEEDED", _, Value::Object(quota)) => {
            let free = |what: &str| quota.get(what).and_then(|of| of["free"].as_u64()).unwrap_or(0);
            beyond(free("bytes"), free("files"), files)
        }
        _ => {
            let index = details["index"].as_u64();
            (0..).take(files.len()).map(|at| Some(at) == index).collect()
        }
    };
    if rejected.contains(&true) { rejected } else { Vec::new() }
}

/// Which files do not fit into the quota, if they are taken in their order.
fn beyond(mut bytes: u64, mut count: u64, files: &[Hashed]) -> Vec<bool> {
    files
        .iter()
        .map(|file| {
            let fits = count > 0 && file.candidate.size <= bytes;
            if fits {
                count -= 1;
                bytes -= file.candidate.size;
            }
            !fits
        })
        .collect()
}

/// The problem of one file, from the error about the whole group.
fn problem(error: &ClientError, file: &Candidate) -> Problem {
    let mut problem = Problem::from(error);
    let ClientError::Refused { code, details, .. } = error else {
        return problem;
    };
    if code == "QUOTA_EXCEEDED" {
        problem.message = format!("The quota has no room for its {} bytes", file.size);
    } else if let Some(index) = details["index"].as_u64()
        && let Some(message) = problem.message.strip_prefix(&format!("File {index}: "))
    {
        // The index is a detail of the request; the user does not know it.
        problem.message = message.to_owned();
    }
    problem
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::upload::candidates::{Checksums, Place, Stamp};
    use serde_json::json;

    fn files(sizes: &[u64]) -> Vec<Hashed> {
        let file = |size: &u64| Hashed {
            candidate: Candidate {
                place: Place::Named("a".into()),
                shown: "a".to_owned(),
                name: "a".to_owned(),
                below: None,
                noted: std::sync::Arc::default(),
                size: *size,
            },
            checksums: Checksums { md5: String::new(), sha256: String::new() },
            stamp: Stamp::of(&std::fs::metadata("/").unwrap()),
        };
        sizes.iter().map(file).collect()
    }

    fn refused(code: &str, message: &str, details: Value) -> ClientError {
        ClientError::Refused {
            status: 400,
            code: code.to_owned(),
            message: message.to_owned(),
            retryable: false,
            retry_after: None,
            details,
            hint: "",
        }
    }

    #[test]
    fn a_bad_name_rejects_one_file() {
        let error = refused("INVALID_FILE_NAME", "File 1: No", json!({ "index": 1 }));
        let files = files(&[1, 2, 3]);
        assert_eq!(rejected(&error, &files), [false, true, false]);
        assert_eq!(problem(&error, &files[1].candidate).message, "No");
    }

    #[test]
    fn all_files_that_are_too_large_are_rejected_at_once() {
        let error = refused("TOO_LARGE", "File 0: No", json!({ "index": 0, "maxFileSize": 10 }));
        assert_eq!(rejected(&error, &files(&[11, 10, 12])), [true, false, true]);
    }

    #[test]
    fn a_quota_accepts_the_files_that_fit() {
        let quota = json!({ "quota": { "bytes": { "free": 10 }, "files": { "free": 2 } } });
        let error = refused("QUOTA_EXCEEDED", "No", quota);
        assert_eq!(rejected(&error, &files(&[4, 8, 5, 1])), [false, true, false, true]);
    }

    #[test]
    fn a_refusal_of_the_whole_batch_rejects_no_single_file() {
        assert!(rejected(&refused("BATCH_NOT_ACTIVE", "No", json!({})), &files(&[1])).is_empty());
    }
}
