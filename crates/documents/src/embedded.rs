//! Documents inside a document: attachments of mails, objects in Office files, files in a PDF.

use crate::error::{Error, ErrorKind};
use crate::flow::Flow;
use crate::limits::Bounds;
use crate::missing;
use crate::read::{Document, read_within};
use crate::reading::Reading;
use landfall_core::warning::Warning;

/// Reads the documents inside one document, and remembers those that cannot be read.
#[derive(Default)]
pub struct Embedded {
    not_read: Vec<String>,
}

impl Embedded {
    /// Writes the text of a document where the flow is now. Returns whether it was read. An error is one of the whole
    /// document: the caller wants to stop, or there is too much text.
    pub fn read(
        &mut self,
        document: Document<'_>,
        flow: &mut Flow,
        bounds: Bounds<'_>,
    ) -> Result<bool, Error> {
        let Some(reading) = self.open(document, bounds)? else { return Ok(false) };
        flow.embed(reading);
        flow.check()?;
        Ok(true)
    }

    /// Writes the text of a document under a heading. Returns whether it was read.
    pub fn read_titled(
        &mut self,
        title: &str,
        document: Document<'_>,
        flow: &mut Flow,
        bounds: Bounds<'_>,
    ) -> Result<bool, Error> {
        let Some(reading) = self.open(document, bounds)? else { return Ok(false) };
        flow.begin_heading(1);
        flow.words(title);
        flow.end_heading();
        flow.embed(reading);
        flow.check()?;
        Ok(true)
    }

    fn open(&mut self, document: Document<'_>, bounds: Bounds<'_>) -> Result<Option<Reading>, Error> {
        let Some(inside) = bounds.of_embedded() else {
            self.skip(document.name);
            return Ok(None);
        };
        match read_within(document, inside) {
            Ok(reading) => Ok(Some(reading)),
            Err(error) if error.kind() == ErrorKind::Stopped => Err(error),
            Err(_) => {
                self.skip(document.name);
                Ok(None)
            }
        }
    }

    /// Remembers a document that is not read.
    pub fn skip(&mut self, name: &str) {
        let name = if name.trim().is_empty() { "a file without a name" } else { name };
        self.not_read.push(name.to_owned());
    }

    /// The warning about those that were not read. `what` is the word for one of them.
    pub fn finish(self, what: &str) -> Option<Warning> {
        missing::parts_not_read(what, self.not_read.len(), &self.not_read)
    }
}
