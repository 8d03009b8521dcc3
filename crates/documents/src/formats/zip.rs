//! ZIP: the files of an archive, each under a heading with its path.

use crate::Document;
use crate::embedded::Embedded;
use crate::error::Error;
use crate::flow::Flow;
use crate::limits::Bounds;
use crate::members::{ArchiveLimits, archive_members};
use crate::missing::PageCount;
use crate::reading::Reading;

pub fn read(bytes: &[u8], bounds: Bounds<'_>) -> Result<Reading, Error> {
    let limits = ArchiveLimits {
        total_bytes: bounds.limits.unpacked_bytes,
        ratio: bounds.limits.unpacked_ratio,
        suspicious_bytes: bounds.limits.suspicious_bytes,
        ..ArchiveLimits::default()
    };
    let mut flow = Flow::new(bounds.limits);
    let mut embedded = Embedded::default();
    let unpacked = archive_members(bytes, &limits, bounds.progress, &mut |member| {
        let document = Document { bytes: &member.bytes, name: &member.path, content_type: None };
        embedded.read_titled(&member.path, document, &mut flow, bounds)?;
        Ok(())
    })?;
    for left_out in &unpacked.left_out {
        embedded.skip(&left_out.path);
    }
    if let Some(warning) = embedded.finish("file") {
        flow.warn(warning);
    }
    flow.finish_reading(PageCount::default())
}
