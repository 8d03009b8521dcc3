//! A listing of the storage, in the order of the keys.

use std::collections::VecDeque;

use super::{BlobInfo, local, object};
use landfall_store::Error;

/// Walks through the storage, a page at a time, so that memory does not grow with the number of blobs.
///
/// It goes on from the last key that it returned. So a page that failed, or that the caller stopped waiting for, comes
/// again with the next call.
pub struct Listing {
    prefix: String,
    /// Everything up to this key was returned or is not wanted.
    after: Option<String>,
    walk: Walk,
}

enum Walk {
    Local {
        folder: local::Folder,
        /// Where the walk is. `None` before it begins, and when a page did not come to its end.
        position: Option<local::Position>,
    },
    Objects {
        objects: object::Objects,
        /// Where the store goes on. `None` before it begins.
        token: Option<String>,
        has_ended: bool,
        /// What the store returned and the caller has not asked for yet.
        ahead: VecDeque<BlobInfo>,
    },
}

impl Listing {
    pub(super) fn local(folder: local::Folder, prefix: &str, after: Option<&str>) -> Self {
        let walk = Walk::Local { folder, position: None };
        Self { prefix: prefix.to_owned(), after: after.map(str::to_owned), walk }
    }

    pub(super) fn objects(objects: object::Objects, prefix: &str, after: Option<&str>) -> Self {
        let walk = Walk::Objects { objects, token: None, has_ended: false, ahead: VecDeque::new() };
        Self { prefix: prefix.to_owned(), after: after.map(str::to_owned), walk }
    }

    /// The next blobs, at most `limit` of them. Only at the end is a page empty.
    ///
    /// A blob that is stored or removed during the walk may or may not be in it; every other blob is in it once.
    pub async fn next_page(&mut self, limit: usize) -> Result<Vec<BlobInfo>, Error> {
        let page = match &mut self.walk {
            Walk::Local { folder, position } => {
                let begin =
                    position.take().unwrap_or_else(|| folder.position(&self.prefix, self.after.as_deref()));
                let (page, end) = begin.walk(limit).await?;
                *position = Some(end);
                page
            }
            Walk::Objects { objects, token, has_ended, ahead } => {
                // Nothing is taken from what is ahead before the page is whole, so that one that is not waited for comes again.
                while ahead.len() < limit && !*has_ended {
                    let behind = ahead.back().map(|blob| blob.key.as_str()).or(self.after.as_deref());
                    let (page, next) =
                        objects.page(&self.prefix, behind, token.clone(), limit - ahead.len()).await?;
                    *has_ended = next.is_none();
                    *token = next;
                    ahead.extend(page);
                }
                ahead.drain(..limit.min(ahead.len())).collect()
            }
        };
        if let Some(last) = page.last() {
            self.after = Some(last.key.clone());
        }
        Ok(page)
    }
}
