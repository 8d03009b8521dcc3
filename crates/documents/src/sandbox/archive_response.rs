//! Checks what a process says is in an archive. It may have been taken over by one of the files.

use std::time::Duration;

use tokio::sync::mpsc;

use super::protocol::{FromArchive, MAX_PATH};
use super::response::{NoResponse, take};
use crate::members::{ArchiveLimits, Contents, Member};
use landfall_core::clock::Clock;

/// How often progress is reported while a file waits to be taken.
const REPORT_EVERY: Duration = Duration::from_secs(1);

/// The process sent what was not asked for.
pub const UNWANTED: NoResponse = NoResponse::Violation("files of an archive that were not asked for");
const TOO_MANY: NoResponse = NoResponse::Violation("more files of an archive than the limit");
const BAD_PATH: NoResponse = NoResponse::Violation("a file of an archive without a good path");

/// An archive that is unpacked by the process.
pub struct Unpacking<'a> {
    wanted: FromArchive,
    /// Takes the files with their content.
    members: Option<&'a mpsc::Sender<Member>>,
    /// How many files and bytes may still come.
    files_left: usize,
    bytes_left: u64,
}

impl<'a> Unpacking<'a> {
    pub fn new(limits: &ArchiveLimits, members: Option<&'a mpsc::Sender<Member>>) -> Self {
        let wanted = FromArchive { limits: *limits, with_content: members.is_some() };
        Self { wanted, members, files_left: limits.members, bytes_left: limits.total_bytes }
    }

    /// What the process is asked for.
    pub fn wanted(&self) -> FromArchive {
        self.wanted
    }

    /// Whether a file of this length with its path may come.
    pub fn expect(&mut self, length: u32) -> Result<(), NoResponse> {
        if self.members.is_none() {
            return Err(UNWANTED);
        }
        let length = u64::from(length);
        if self.files_left == 0
            || length > self.wanted.limits.member_bytes.saturating_add(4 + MAX_PATH as u64)
        {
            return Err(TOO_MANY);
        }
        self.files_left -= 1;
        Ok(())
    }

    /// Passes a file on, and reports progress while it is not taken.
    pub async fn take(&mut self, frame: Vec<u8>, progress: &impl Fn()) -> Result<(), NoResponse> {
        let Some(members) = self.members else { return Err(UNWANTED) };
        let member = decode_member(frame)?;
        let length = member.bytes.len() as u64;
        if length > self.wanted.limits.member_bytes {
            return Err(TOO_MANY);
        }
        self.bytes_left = self.bytes_left.checked_sub(length).ok_or(TOO_MANY)?;
        let sending = members.send(member);
        tokio::pin!(sending);
        loop {
            tokio::select! {
                biased;
                // A caller that takes no more files drops the whole reading.
                _ = &mut sending => return Ok(()),
                () = Clock::System.sleep(REPORT_EVERY) => progress(),
            }
        }
    }

    /// The list of the files.
    pub fn contents(&self, bytes: &[u8]) -> Result<Contents, NoResponse> {
        let contents: Contents = serde_json::from_slice(bytes)
            .map_err(|_| NoResponse::Violation("the list of the files of an archive cannot be decoded"))?;
        let limits = &self.wanted.limits;
        let total = contents.members.iter().try_fold(0_u64, |total, member| total.checked_add(member.size));
        let is_within = contents.members.len() <= limits.members
            && contents.members.iter().all(|member| member.size <= limits.member_bytes)
            && total.is_some_and(|total| total <= limits.total_bytes);
        if !is_within {
            return Err(TOO_MANY);
        }
        let members = contents.members.iter().map(|member| &member.path);
        let left_out = contents.left_out.iter().map(|left_out| &left_out.path);
        if members.chain(left_out).all(|path| is_good_path(path)) { Ok(contents) } else { Err(BAD_PATH) }
    }
}

fn decode_member(mut frame: Vec<u8>) -> Result<Member, NoResponse> {
    let mut rest = &frame[..];
    let length = take(&mut rest).map(u32::from_le_bytes).ok_or(BAD_PATH)? as usize;
    let path = rest.get(..length).and_then(|path| std::str::from_utf8(path).ok()).ok_or(BAD_PATH)?;
    if !is_good_path(path) {
        return Err(BAD_PATH);
    }
    let path = path.to_owned();
    frame.drain(..4 + length);
    Ok(Member { path, bytes: frame })
}

/// As the paths of members are described.
fn is_good_path(path: &str) -> bool {
    !path.is_empty()
        && path.len() <= MAX_PATH
        && !path.contains(|c: char| c.is_control() || c == '\\')
        && path.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(path: &str, content: &[u8]) -> Vec<u8> {
        let length = u32::try_from(path.len()).unwrap();
        [&length.to_le_bytes()[..], path.as_bytes(), content].concat()
    }

    #[test]
    fn a_path_that_leads_elsewhere_is_a_violation() {
        assert_eq!(decode_member(frame("a/b.txt", b"x")).unwrap().path, "a/b.txt");
        for path in ["", "../a", "/a", "a//b", "a/..", "a\0b", "a\\b", "."] {
            assert!(decode_member(frame(path, b"x")).is_err(), "{path:?}");
        }
        assert!(decode_member(vec![9, 0, 0, 0, b'a']).is_err(), "the path is truncated");
        assert!(decode_member(vec![1, 0]).is_err(), "there is no length");
    }

    #[tokio::test]
    async fn more_files_or_bytes_than_the_limits_are_a_violation() {
        let limits =
            ArchiveLimits { members: 2, member_bytes: 4, total_bytes: 5, ..ArchiveLimits::default() };
        let (sender, mut received) = mpsc::channel(9);
        let mut unpacking = Unpacking::new(&limits, Some(&sender));
        assert!(unpacking.expect(u32::MAX).is_err(), "it is longer than a member may be");
        unpacking.expect(10).unwrap();
        unpacking.take(frame("a", b"1234"), &|| {}).await.unwrap();
        assert_eq!(received.recv().await.unwrap().bytes, b"1234");
        unpacking.expect(10).unwrap();
        assert!(unpacking.take(frame("b", b"12"), &|| {}).await.is_err(), "six bytes in all");
        assert!(unpacking.expect(1).is_err(), "a third file");
        assert!(Unpacking::new(&limits, None).expect(1).is_err(), "only the list is wanted");
    }

    #[test]
    fn a_list_beyond_the_limits_is_a_violation() {
        let limits =
            ArchiveLimits { members: 2, member_bytes: 4, total_bytes: 5, ..ArchiveLimits::default() };
        let unpacking = Unpacking::new(&limits, None);
        let list = |members: &[(&str, u64)]| {
            let members: Vec<_> = members
                .iter()
                .map(|(path, size)| serde_json::json!({ "path": path, "size": size }))
                .collect();
            let list = serde_json::json!({ "members": members, "left_out": [], "more_left_out": 0 });
            unpacking.contents(list.to_string().as_bytes()).is_ok()
        };
        assert!(list(&[("a", 4), ("b", 1)]));
        assert!(!list(&[("a", 5)]), "too large");
        assert!(!list(&[("a", 4), ("b", 2)]), "too large together");
        assert!(!list(&[("a", 1), ("b", 1), ("c", 1)]), "too many");
        assert!(!list(&[("../a", 1)]), "a bad path");
        assert!(!list(&[("a", u64::MAX), ("b", u64::MAX)]), "an overflow");
    }
}
