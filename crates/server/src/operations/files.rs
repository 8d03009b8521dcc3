//! A step of an operation on files of any state: the next files that match are retried, cancelled or deleted.
//!
//! The operation goes through the files in the order of their registration, newest first, and each of them is compared with the
//! filter when its turn comes. It is locked, and compared once more, before it is changed: a file that another operation or
//! a person changed meanwhile is left as it is.

use std::collections::HashMap;

use landfall_core::actor::Actor;
use landfall_core::caller::{Reach, TenantUser};
use landfall_core::lifecycle::{Stage, Status, Transition};
use landfall_core::refusal::Refusal;
use landfall_core::states::OperationAction;
use landfall_store::{Error, Tx};
use uuid::Uuid;

use super::advance::{Advance, Extent, PAGE, Step, Taken};
use super::tally::Tally;
use super::{Files, Operation, rows};
use crate::intake::cancel::cancel_all;
use crate::intake::delete::{self, Cause};
use crate::records::cursor::Cursor;
use crate::records::file::File;
use crate::records::files::listing::{self, Listing, Position, Sorting, Wanted};

/// The files of the next step, and the cursor behind them.
struct Page {
    ids: Vec<Uuid>,
    cursor: Uuid,
}

impl Operation {
    /// Whose files it may change.
    fn reach(&self) -> Reach {
        match (&self.filter.of_tenant, &self.filter.of_user) {
            (None, _) => Reach::All,
            (Some(tenant), None) => Reach::Tenant(tenant.clone()),
            (Some(tenant), Some(user)) => Reach::User(TenantUser::new(tenant, user)),
        }
    }

    /// The files that match a filter, are in a state that allows the action, and existed when the operation began.
    fn wanted(&self, filter: &landfall_api::file_queries::FileFilter) -> Result<Wanted, Error> {
        let wanted = Wanted::new(filter, self.reach())?.that_allow(self.action);
        Ok(Wanted {
            user: filter.owner.clone().filter(|_| wanted.reach == Reach::All),
            existed_at: Some(self.created_at),
            ..wanted
        })
    }

    /// The next files. `None` if there are no more.
    async fn next_page(&self, tx: &mut Tx, files: &Files, most: usize) -> Result<Option<Page>, Error> {
        let filter = match files {
            Files::Matching(filter) => filter,
            Files::Named(ids) => {
                let mut ids: Vec<Uuid> = ids.iter().copied().filter(|id| *id < self.cursor_id).collect();
                ids.sort_unstable_by(|one, other| other.cmp(one));
                ids.dedup();
                ids.truncate(most);
                return Ok(ids.last().copied().map(|cursor| Page { ids, cursor }));
            }
            Files::DeadLetters => return Ok(None),
        };
        let after = Position::at(self.cursor_id);
        let listing = Listing::new(&self.wanted(filter)?, Sorting::default(), Some(&after));
        let (ids, next) = listing.next_ids(tx, i64::try_from(most).unwrap_or(i64::MAX)).await?;
        let cursor = next.map(|next| next.id()).or(ids.last().copied());
        Ok(cursor.map(|cursor| Page { ids, cursor }))
    }
}

/// The blobs of the next files, of those that begin again with their bytes.
pub async fn next_blobs(tx: &mut Tx, operation: &Operation, files: &Files) -> Result<Vec<String>, Error> {
    let Some(page) = operation.next_page(tx, files, PAGE).await? else { return Ok(Vec::new()) };
    let files = listing::find_all(tx, &page.ids).await?;
    let needs_bytes = |file: &File| matches!(file.next_stage, Stage::Scan | Stage::Extract);
    Ok(files.into_iter().filter(needs_bytes).filter_map(|file| file.blob_key).collect())
}

impl Advance {
    /// Processes the next files. Returns `None` if there are no more.
    pub(super) async fn take_files(
        &self,
        tx: &mut Tx,
        operation: &Operation,
        files: &Files,
    ) -> Result<Option<Taken>, Error> {
        let most = if self.extent == Extent::Page { PAGE } else { 1 };
        let Some(page) = operation.next_page(tx, files, most).await? else { return Ok(None) };
        let mut tally = Tally::of(operation);
        let mut stopped = Vec::new();
        if let Extent::PassOver(_) = self.extent {
            page.ids.iter().for_each(|id| tally.pass_over(*id));
        } else {
            let able = match files {
                Files::Matching(filter) => {
                    let found = listing::lock_wanted(tx, &operation.wanted(filter)?, &page.ids).await?;
                    self.able(operation, found, &mut tally)
                }
                _ => {
                    let found = listing::lock_all(tx, &page.ids).await?;
                    let mut found: HashMap<Uuid, File> =
                        found.into_iter().map(|file| (file.id, file)).collect();
                    let reach = operation.reach();
                    let mut visible = Vec::with_capacity(page.ids.len());
                    for id in &page.ids {
                        let file = found.remove(id).filter(|f| reach.includes(&f.tenant_id, &f.user_id));
                        match file {
                            Some(file) => visible.push(file),
                            None => tally.skip(*id, None, &Refusal::no_such_file()),
                        }
                    }
                    self.able(operation, visible, &mut tally)
                }
            };
            stopped = able.iter().filter(|file| file.status.is_running()).map(|file| file.id).collect();
            tally.done = self.act(tx, operation, able).await?;
        }
        let (files, revived) = (page.ids.len(), tally.done);
        let cursor = Cursor { at: operation.cursor_at, id: page.cursor };
        let canaries = operation.canaries.clone();
        rows::advance(tx, operation.id, tally.progress(canaries, cursor), self.now).await?;
        Ok(Some(Taken { step: Step::Moved { files, revived }, stopped }))
    }

    /// Those of the files that the action is possible for. The others are left alone, with the reason.
    fn able(&self, operation: &Operation, files: Vec<File>, tally: &mut Tally) -> Vec<File> {
        let mut able = Vec::with_capacity(files.len());
        for file in files {
            match self.hindrance(operation.action, &file) {
                None => able.push(file),
                Some(why) => tally.skip(file.id, Some(&file.file_name), &why),
            }
        }
        able
    }

    /// Why a file cannot be changed: for the same reasons as when that is asked for it alone.
    fn hindrance(&self, action: OperationAction, file: &File) -> Option<Refusal> {
        if file.status == Status::Deleted {
            return Some(Refusal::gone());
        }
        if !action.states().contains(&file.status) {
            return file.status.apply(action.transition()).err().map(Refusal::from);
        }
        if action == OperationAction::Retry { self.refusal(file) } else { None }
    }

    /// Does what is wanted with files that the transaction has locked. Returns with how many.
    async fn act(&self, tx: &mut Tx, operation: &Operation, files: Vec<File>) -> Result<usize, Error> {
        let (by, count) = (operation.by(), files.len());
        match operation.action {
            OperationAction::Retry => return self.revive(tx, operation, files).await,
            OperationAction::Cancel => {
                let reason = format!("Cancelled with the operation {}", operation.id);
                cancel_all(tx, &files, &by, &reason, self.now).await?;
            }
            OperationAction::Delete => {
                let reason = format!("Deleted with the operation {}", operation.id);
                let is_open = |file: &File| Transition::Cancel.from().contains(&file.status);
                let (open, mut rest): (Vec<File>, Vec<File>) = files.into_iter().partition(is_open);
                // Workers that hold them find their claims gone and change nothing.
                rest.extend(cancel_all(tx, &open, &by, &reason, self.now).await?);
                let cause = Cause { name: None, reason: Some(&reason) };
                let is_own = |file: &File| file.tenant_id == by.tenant && file.user_id == by.user;
                let (own, of_others): (Vec<File>, Vec<File>) = rest.into_iter().partition(is_own);
                for files in [own, of_others] {
                    let Some(first) = files.first() else { continue };
                    let actor = Actor::user(&by, &first.tenant_id, &first.user_id);
                    delete::bury(tx, files, &actor, Some(cause), self.now).await?;
                }
            }
        }
        Ok(count)
    }
}
