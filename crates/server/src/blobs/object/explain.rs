//! Says in a sentence what an object store refuses, and what to do about it.

use crate::blobs::StoreKind;

/// What a request was for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    Write,
    Read,
    List,
    Delete,
    Parts,
    ReadRules,
    WriteRules,
}

/// A failed request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    pub sentence: String,
    /// Whether any other request would fail in the same way.
    pub is_general: bool,
}

/// The bucket, for the sentences.
#[derive(Clone, Copy)]
pub struct Subject<'a> {
    pub kind: StoreKind,
    pub bucket: &'a str,
    /// The host that requests go to.
    pub host: &'a str,
}

impl Subject<'_> {
    /// `answer` is what the store said, or why there was no answer.
    pub fn explain(self, action: Action, answer: &str) -> Trouble {
        // The second form is that of one object among many.
        let code = between(answer, "<Code>", "</Code>")
            .or_else(|| between(answer, "(code: ", ")"))
            .unwrap_or_default();
        let general = |sentence: String| Trouble { sentence, is_general: true };
        let is_unauthenticated = answer.contains("failed to authenticate");
        let has_status =
            |status: &str| answer.contains(&format!("code: {status}")) || answer.starts_with(status);
        let is_gone = ["error sending request", "tcp connect error", "dns error", "Connection refused"];
        if answer.contains("169.254.169.254") || answer.contains("metadata.google.internal") {
            return general(self.no_keys());
        }
        match code {
            "InvalidAccessKeyId" => general(format!(
                "The store at {} does not know the access key in AWS_ACCESS_KEY_ID",
                self.host
            )),
            "SignatureDoesNotMatch" | "AuthenticationFailed" | "AuthenticationRequired" => {
                general(self.wrong_key())
            }
            _ if is_unauthenticated => general(self.wrong_key()),
            "RequestTimeTooSkewed" => general(format!(
                "The clock of this machine and that of {} differ too much: synchronise this one",
                self.host
            )),
            "ExpiredToken" | "InvalidToken" | "TokenRefreshRequired" => general(
                "The session token has expired or is not valid: renew it (AWS_SESSION_TOKEN)".to_owned(),
            ),
            "NoSuchBucket" | "ContainerNotFound" => general(format!(
                "There is no {} {} at {}: create it, or correct STORAGE_URL",
                self.word(),
                self.bucket,
                self.host
            )),
            "InvalidBucketName" | "InvalidResourceName" => {
                general(format!("{} is not a name that a {} can have", self.bucket, self.word()))
            }
            "PermanentRedirect" | "TemporaryRedirect" | "AuthorizationHeaderMalformed" => {
                general(format!("The bucket {} is in another region than the one in AWS_REGION", self.bucket))
            }
            "NotImplemented" => Trouble {
                sentence: format!("The store at {} does not support {}", self.host, doing(action)),
                is_general: false,
            },
            "SlowDown" | "ServerBusy" | "TooManyRequests" => {
                general(format!("The store at {} asks to be called less often: try again later", self.host))
            }
            _ if has_status("401") => general(self.wrong_key()),
            "AccessDenied" | "AllAccessDisabled" => self.forbidden(action),
            _ if has_status("403") => self.forbidden(action),
            _ if is_gone.iter().any(|sign| answer.contains(sign)) => {
                general(format!("The store does not answer at {}: {}", self.host, short(answer)))
            }
            _ => Trouble {
                sentence: format!(
                    "The store at {} failed at {}: {}",
                    self.host,
                    doing(action),
                    short(answer)
                ),
                is_general: false,
            },
        }
    }

    fn forbidden(self, action: Action) -> Trouble {
        let permission = self.permission(action);
        let sentence = format!("The keys have no permission for {} ({permission})", doing(action));
        Trouble { sentence, is_general: false }
    }

    fn word(self) -> &'static str {
        if self.kind == StoreKind::Azure { "container" } else { "bucket" }
    }

    fn no_keys(self) -> String {
        let names = match self.kind {
            StoreKind::S3 => "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE",
            StoreKind::Azure => "AZURE_STORAGE_ACCOUNT_KEY",
            StoreKind::Gcs => "GOOGLE_SERVICE_ACCOUNT",
        };
        format!("There are no keys for the store, and this machine has none of its own: set {names}")
    }

    fn wrong_key(self) -> String {
        match self.kind {
            StoreKind::S3 => {
                "The secret in AWS_SECRET_ACCESS_KEY does not belong to the access key in AWS_ACCESS_KEY_ID"
            }
            StoreKind::Azure => {
                "The key in AZURE_STORAGE_ACCOUNT_KEY (or the SAS) is not one of the account, or has expired"
            }
            StoreKind::Gcs => {
                "The key of the service account is not valid any more, or belongs to another account"
            }
        }
        .to_owned()
    }

    /// What the operator has to grant, in the words of the store.
    fn permission(self, action: Action) -> &'static str {
        match (self.kind, action) {
            (StoreKind::S3, Action::Write) => "s3:PutObject",
            (StoreKind::S3, Action::Read) => "s3:GetObject",
            (StoreKind::S3, Action::List) => "s3:ListBucket",
            (StoreKind::S3, Action::Delete) => "s3:DeleteObject",
            (StoreKind::S3, Action::Parts) => {
                "s3:PutObject, s3:AbortMultipartUpload and s3:ListBucketMultipartUploads"
            }
            (StoreKind::S3, Action::ReadRules) => "s3:GetBucketCORS",
            (StoreKind::S3, Action::WriteRules) => "s3:PutBucketCORS",
            (StoreKind::Azure, Action::ReadRules | Action::WriteRules) => {
                "the account's key, or Microsoft.Storage/storageAccounts/blobServices/write"
            }
            (StoreKind::Azure, Action::List) => "the role Storage Blob Data Contributor, or l in a SAS",
            (StoreKind::Azure, Action::Delete) => "the role Storage Blob Data Contributor, or d in a SAS",
            (StoreKind::Azure, Action::Read) => "the role Storage Blob Data Contributor, or r in a SAS",
            (StoreKind::Azure, Action::Write | Action::Parts) => {
                "the role Storage Blob Data Contributor, or cw in a SAS"
            }
            (StoreKind::Gcs, Action::Write) => "storage.objects.create",
            (StoreKind::Gcs, Action::Read) => "storage.objects.get",
            (StoreKind::Gcs, Action::List) => "storage.objects.list",
            (StoreKind::Gcs, Action::Delete) => "storage.objects.delete",
            (StoreKind::Gcs, Action::Parts) => "storage.objects.create and storage.multipartUploads.abort",
            (StoreKind::Gcs, Action::ReadRules) => "storage.buckets.get",
            (StoreKind::Gcs, Action::WriteRules) => "storage.buckets.update",
        }
    }
}

fn doing(action: Action) -> &'static str {
    match action {
        Action::Write => "writing",
        Action::Read => "reading",
        Action::List => "listing",
        Action::Delete => "deleting",
        Action::Parts => "uploads in parts",
        Action::ReadRules => "reading the CORS rules",
        Action::WriteRules => "setting the CORS rules",
    }
}

/// On one line, without the signature of an address.
fn short(answer: &str) -> String {
    let mut line: String = answer.split_whitespace().collect::<Vec<_>>().join(" ");
    for name in ["sig=", "X-Amz-Signature=", "X-Goog-Signature="] {
        if let Some(at) = line.find(name).map(|at| at + name.len()) {
            let end = line[at..].find(['&', ' ', '"', ')']).map_or(line.len(), |length| at + length);
            line.replace_range(at..end, "…");
        }
    }
    match line.char_indices().nth(300) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

pub fn between<'a>(text: &'a str, open: &str, close: &str) -> Option<&'a str> {
    text.split_once(open)?.1.split_once(close).map(|(inner, _)| inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_store_refuses_is_said_in_the_words_of_its_settings() {
        let answer = |status: &str, code: &str| {
            format!("Server returned non-2xx status code: {status}: <Error><Code>{code}</Code></Error>")
        };
        for (kind, action, answer, expected, is_general) in [
            (StoreKind::S3, Action::Write, answer("403", "InvalidAccessKeyId"), "AWS_ACCESS_KEY_ID", true),
            (StoreKind::S3, Action::Write, answer("403", "RequestTimeTooSkewed"), "clock", true),
            (StoreKind::S3, Action::List, answer("403", "AccessDenied"), "listing (s3:ListBucket)", false),
            (StoreKind::S3, Action::Read, answer("301", "PermanentRedirect"), "AWS_REGION", true),
            (StoreKind::S3, Action::Read, answer("400", "ExpiredToken"), "AWS_SESSION_TOKEN", true),
            (StoreKind::Azure, Action::Write, answer("404", "ContainerNotFound"), "no container files", true),
            (
                StoreKind::Azure,
                Action::Write,
                answer("403", "AuthenticationFailed"),
                "AZURE_STORAGE_ACCOUNT_KEY",
                true,
            ),
            (
                StoreKind::Azure,
                Action::Delete,
                answer("403", "AuthorizationPermissionMismatch"),
                "or d in a SAS",
                false,
            ),
            (StoreKind::Gcs, Action::Write, answer("401", ""), "The key of the service account", true),
            (StoreKind::Gcs, Action::Delete, answer("403", "AccessDenied"), "storage.objects.delete", false),
            (StoreKind::S3, Action::Read, "PUT http://169.254.169.254/latest".to_owned(), "no keys", true),
            (
                StoreKind::S3,
                Action::Read,
                "error sending request (a?sig=hush&b)".to_owned(),
                "(a?sig=…&b)",
                true,
            ),
        ] {
            let subject = Subject { kind, bucket: "files", host: "store.example" };
            let trouble = subject.explain(action, &answer);
            assert!(trouble.sentence.contains(expected), "{answer}: {}", trouble.sentence);
            assert_eq!(trouble.is_general, is_general, "{answer}");
        }
    }
}
