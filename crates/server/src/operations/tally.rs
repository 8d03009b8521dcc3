//! What one step of an operation did, file by file.

use landfall_api::operations::OperationError;
use landfall_core::refusal::Refusal;
use serde_json::{Value, json};
use uuid::Uuid;

use super::Operation;
use super::rows::Progress;
use crate::records::cursor::Cursor;

/// Files that are listed one by one; the rest are only counted.
const NAMED_FILES: usize = 20;

pub struct Tally {
    /// Files that were retried, cancelled or deleted.
    pub done: usize,
    skipped: usize,
    failed: usize,
    errors: Vec<Value>,
    left_alone: Vec<Value>,
}

impl Tally {
    /// A step of an operation, which has named some files already.
    pub fn of(operation: &Operation) -> Self {
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let (errors, left_alone) = (list(&operation.errors), list(&operation.skipped));
        Self { done: 0, skipped: 0, failed: 0, errors, left_alone }
    }

    /// A file is left alone.
    pub fn skip(&mut self, file: Uuid, name: Option<&str>, why: &Refusal) {
        self.skipped += 1;
        if self.left_alone.len() < NAMED_FILES {
            self.left_alone.push(json!(OperationError {
                file_id: file,
                file_name: name.map(str::to_owned),
                code: why.code.code().to_owned(),
                message: why.message.clone(),
            }));
        }
    }

    /// A file could not be changed, for a reason that only the log has.
    pub fn pass_over(&mut self, file: Uuid) {
        self.failed += 1;
        if self.errors.len() < NAMED_FILES {
            let message = "This file could not be changed; the log of the server says why";
            self.errors.push(json!({ "fileId": file, "code": "INTERNAL", "message": message }));
        }
    }

    pub fn progress(self, canaries: Value, cursor: Cursor) -> Progress {
        Progress {
            done: self.done,
            skipped: self.skipped,
            failed: self.failed,
            errors: Value::Array(self.errors),
            left_alone: Value::Array(self.left_alone),
            canaries,
            cursor,
        }
    }
}
