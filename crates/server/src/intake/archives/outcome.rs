//! What an archive is in the end: its text is the list of its files, or it fails because none of them is ready.

use std::collections::BTreeMap;

use serde_json::Value;

use super::names::PATH;
use crate::records::batch::Batch;
use crate::records::file::File;
use crate::records::files::archives::Member;
use landfall_core::failure::{Code, Failure};
use landfall_core::lifecycle::Status;
use landfall_core::text::{Extracted, Markup, Place};
use landfall_core::warning::{Warning, WarningCode};

/// The most names in one sentence.
const MAX_NAMES: usize = 5;

/// The text of an archive whose files have all ended, with a warning for those that are missing.
pub fn of(archive: &File, batch: &Batch, members: &[Member]) -> Result<Extracted, Failure> {
    if batch.ready_files == 0 {
        return Err(Failure::new(Code::ArchiveFailed, none_is_ready(batch)));
    }
    let title = &archive.file_name;
    let mut paths: Vec<&str> = members.iter().map(path).collect();
    paths.sort_unstable();
    let items: String = paths.iter().map(|path| format!("- {path}\n")).collect();
    let place = Place { start: 0, page: None, heading: Some(title.clone()), level: Some(1) };
    Ok(Extracted {
        text: format!("# {title}\n\n{}", items.trim_end()),
        markup: Markup::Markdown,
        places: vec![place],
        boxes: Vec::new(),
        warnings: [left_out(batch), not_ready(batch, members)].into_iter().flatten().collect(),
    })
}

fn path(member: &Member) -> &str {
    let path = member.attributes.as_ref().and_then(|attributes| attributes.get(PATH));
    path.and_then(Value::as_str).unwrap_or(&member.file_name)
}

fn none_is_ready(batch: &Batch) -> String {
    let total = batch.registered_files;
    let others = counted(&[
        (batch.failed_files, "failed"),
        (batch.cancelled_files, "were cancelled"),
        (batch.deleted_files, "were deleted"),
    ]);
    format!("None of the {total} files in this archive could be read: {others}. Each of them says why")
}

/// `2 failed, 1 were cancelled`.
fn counted(counts: &[(i64, &str)]) -> String {
    let some = counts.iter().filter(|(count, _)| *count > 0);
    some.map(|(count, what)| format!("{count} {what}")).collect::<Vec<_>>().join(", ")
}

/// Files that are not ready, at the time when the archive became so.
fn not_ready(batch: &Batch, members: &[Member]) -> Option<Warning> {
    let missing = batch.registered_files - batch.ready_files;
    if missing == 0 {
        return None;
    }
    let names: Vec<&str> =
        members.iter().filter(|member| member.status != Status::Ready.name()).map(path).collect();
    let others = counted(&[
        (batch.failed_files, "failed"),
        (batch.cancelled_files, "were cancelled"),
        (batch.deleted_files, "were deleted"),
    ]);
    let named = if names.is_empty() { String::new() } else { format!(" ({})", listed(&names)) };
    let message = format!(
        "Of the {} files in this archive, {others}{named}. Each says why: retry or replace it",
        batch.registered_files
    );
    Some(Warning::new(WarningCode::PartsNotRead, message))
}

/// Files that could not become files, by their reasons.
fn left_out(batch: &Batch) -> Option<Warning> {
    let left_out = batch.metadata.as_ref()?.get("leftOut")?;
    let count = left_out.get("count")?.as_u64().filter(|count| *count > 0)?;
    let mut by_reason: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for file in left_out.get("files").and_then(Value::as_array).into_iter().flatten() {
        let text = |name: &str| file.get(name).and_then(Value::as_str).unwrap_or_default();
        by_reason.entry(text("reason")).or_default().push(text("path"));
    }
    let reasons = by_reason.iter().map(|(reason, paths)| format!("{}: {reason}", listed(paths)));
    let reasons: Vec<String> = reasons.collect();
    let files =
        if count == 1 { "1 file of this archive is" } else { &format!("{count} files of this archive are") };
    Some(Warning::new(WarningCode::PartsNotRead, format!("{files} left out. {}", reasons.join(". "))))
}

fn listed(names: &[&str]) -> String {
    let shown = names.iter().take(MAX_NAMES).copied().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(MAX_NAMES) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}
