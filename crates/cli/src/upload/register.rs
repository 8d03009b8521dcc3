//! Files are registered a group at a time. The server takes a group whole or not at all, so whoever spoils one is taken
//! out and the rest is offered again.

use serde_json::{Value, json};
use uuid::Uuid;

use super::Problem;
use super::candidates::{Candidate, Hashed};
use crate::client::{Client, ClientError};
use landfall_api::uploads::UploadTicket;

const MOST_PER_GROUP: usize = 1_000;
/// The upload URLs of a group are issued together and expire together: not more than can be sent in the meantime.
const MOST_BYTES_PER_GROUP: u64 = 1 << 30;

pub struct Registered {
    pub candidate: Candidate,
    pub md5: String,
    pub ticket: UploadTicket,
}

/// Cuts a list into groups that can be registered at once.
pub fn groups(files: Vec<Candidate>) -> Vec<Vec<Candidate>> {
    let mut groups: Vec<Vec<Candidate>> = Vec::new();
    let mut bytes = 0;
    for file in files {
        match groups.last_mut() {
            Some(group) if group.len() < MOST_PER_GROUP && bytes + file.size <= MOST_BYTES_PER_GROUP => {
                bytes += file.size;
                group.push(file);
            }
            _ => {
                bytes = file.size;
                groups.push(vec![file]);
            }
        }
    }
    groups
}

/// Registers as many of the files as the server will have; answers apart which it will not, and why.
pub async fn register(
    client: &Client,
    batch: Uuid,
    mut files: Vec<Hashed>,
) -> Result<(Vec<Registered>, Vec<(Candidate, Problem)>), ClientError> {
    let mut refused = Vec::new();
    while !files.is_empty() {
        let announced: Vec<Value> = files
            .iter()
            .map(|file| json!({ "fileName": file.candidate.name, "fileSize": file.candidate.size, "md5": file.md5 }))
            .collect();
        let path = format!("/batches/{batch}/upload-urls");
        let error = match client.create::<Vec<UploadTicket>>(&path, &json!(announced)).await {
            Ok(tickets) if tickets.len() == files.len() => {
                let registered = files
                    .into_iter()
                    .zip(tickets)
                    .map(|(file, ticket)| Registered { candidate: file.candidate, md5: file.md5, ticket })
                    .collect();
                return Ok((registered, refused));
            }
            Ok(tickets) => {
                let (asked, got) = (files.len(), tickets.len());
                return Err(client.strange(format!("{asked} upload URLs were asked for, {got} came")));
            }
            Err(error) => error,
        };
        let spoilers = spoilers(&error, &files);
        if spoilers.is_empty() {
            return Err(error);
        }
        let mut spoils = spoilers.into_iter();
        files.retain(|file| {
            let spoils = spoils.next() == Some(true);
            if spoils {
                refused.push((file.candidate.clone(), problem(&error, &file.candidate)));
            }
            !spoils
        });
    }
    Ok((Vec::new(), refused))
}

/// For each file whether it must go before the others can be taken; empty, if it is not about single files.
fn spoilers(error: &ClientError, files: &[Hashed]) -> Vec<bool> {
    let ClientError::Refused { code, details, .. } = error else {
        return Vec::new();
    };
    let spoilers: Vec<bool> = match (code.as_str(), &details["maxFileSize"], &details["quota"]) {
        // All that are too large, not only the one that was met first.
        ("TOO_LARGE", Value::Number(most), _) => {
            let most = most.as_u64().unwrap_or(u64::MAX);
            files.iter().map(|file| file.candidate.size > most).collect()
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
    if spoilers.contains(&true) { spoilers } else { Vec::new() }
}

/// Which files do not fit: each is taken, in their order, while there is room for it.
fn beyond(mut bytes: u64, mut places: u64, files: &[Hashed]) -> Vec<bool> {
    files
        .iter()
        .map(|file| {
            let fits = places > 0 && file.candidate.size <= bytes;
            if fits {
                places -= 1;
                bytes -= file.candidate.size;
            }
            !fits
        })
        .collect()
}

/// What was said of the whole list, as it concerns one file.
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
        // A place in a list that nobody but us has seen.
        problem.message = message.to_owned();
    }
    problem
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(sizes: &[u64]) -> Vec<Hashed> {
        let file = |size: &u64| Hashed {
            candidate: Candidate {
                path: "a".into(),
                shown: "a".to_owned(),
                name: "a".to_owned(),
                size: *size,
            },
            md5: String::new(),
        };
        sizes.iter().map(file).collect()
    }

    fn refused(code: &str, message: &str, details: Value) -> ClientError {
        ClientError::Refused {
            status: 400,
            code: code.to_owned(),
            message: message.to_owned(),
            retryable: false,
            details,
            hint: "",
        }
    }

    #[test]
    fn one_bad_name_costs_one_file() {
        let error = refused("INVALID_FILE_NAME", "File 1: No", json!({ "index": 1 }));
        let files = files(&[1, 2, 3]);
        assert_eq!(spoilers(&error, &files), [false, true, false]);
        assert_eq!(problem(&error, &files[1].candidate).message, "No");
    }

    #[test]
    fn every_file_that_is_too_large_goes_at_once() {
        let error = refused("TOO_LARGE", "File 0: No", json!({ "index": 0, "maxFileSize": 10 }));
        assert_eq!(spoilers(&error, &files(&[11, 10, 12])), [true, false, true]);
    }

    #[test]
    fn a_quota_takes_what_fits() {
        let quota = json!({ "quota": { "bytes": { "free": 10 }, "files": { "free": 2 } } });
        let error = refused("QUOTA_EXCEEDED", "No", quota);
        assert_eq!(spoilers(&error, &files(&[4, 8, 5, 1])), [false, true, false, true]);
    }

    #[test]
    fn a_refusal_of_the_whole_batch_is_nobodys_fault() {
        assert!(spoilers(&refused("BATCH_NOT_ACTIVE", "No", json!({})), &files(&[1])).is_empty());
    }

    #[test]
    fn a_group_is_bounded_in_files_and_in_bytes() {
        let candidates = |sizes: &[u64]| files(sizes).into_iter().map(|file| file.candidate).collect();
        assert_eq!(groups(candidates(&[1; 2_001])).len(), 3);
        let large = MOST_BYTES_PER_GROUP / 2 + 1;
        assert_eq!(groups(candidates(&[large, large, 1])).len(), 2);
    }
}
