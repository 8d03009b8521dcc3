//! The pictures that a scanned page consists of, as files that an OCR program reads.

use pdf_oxide::PdfDocument;
use pdf_oxide::extractors::{ColorSpace, ImageData, PdfImage};

use super::forms::Forms;
use super::layout::glyphs::Paper;
use super::streams::Streams;
use crate::flow::Flow;
use crate::limits::Limits;

/// A smaller picture is a line, a logo or a bullet.
const MIN_PIXELS: u64 = 10_000;
/// Scanners cut a page into a few strips; a page of hundreds of pictures is a drawing.
const MAX_ON_A_PAGE: usize = 16;

/// The share of a page that a scan covers at least.
const COVERED: f32 = 0.7;

/// Drawings and pictures that are followed on all pages. A map or a plan has some thousands.
const MAX_DRAWINGS: u64 = 1_000_000;

/// What became of the pictures of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OfPage {
    /// There is none that could be a scan.
    None,
    /// At least one was taken.
    Taken,
    /// All are too large, too many, or cannot be decoded.
    LeftOut,
}

pub struct Pictures<'a> {
    limits: &'a Limits,
    forms: Forms,
    drawings_left: u64,
}

impl<'a> Pictures<'a> {
    pub fn new(limits: &'a Limits) -> Self {
        Self { limits, forms: Forms::default(), drawings_left: MAX_DRAWINGS }
    }

    /// Whether the library can follow all drawings of a page in the time that a document may take. Only a hostile document
    /// has so many.
    pub fn can_be_followed(
        &mut self,
        document: &PdfDocument,
        streams: &Streams,
        page: usize,
        instructions: &[u8],
    ) -> bool {
        let drawings = self.forms.on_page(document, streams, page, instructions);
        let left = self.drawings_left.checked_sub(drawings);
        self.drawings_left = left.unwrap_or(self.drawings_left);
        left.is_some()
    }

    /// Takes the pictures of a page, within the limits. A picture that cannot be decoded is left out.
    pub fn take_from(&mut self, document: &PdfDocument, page: usize, flow: &mut Flow) -> OfPage {
        let Ok(handles) = document.page_image_handles(page) else { return OfPage::None };
        let pixels = |width: u32, height: u32| u64::from(width) * u64::from(height);
        let mut large =
            handles.iter().filter(|handle| pixels(handle.width, handle.height) >= MIN_PIXELS).peekable();
        if large.peek().is_none() {
            return OfPage::None;
        }
        let mut of_page = OfPage::LeftOut;
        for handle in large.take(MAX_ON_A_PAGE) {
            if pixels(handle.width, handle.height) > self.limits.picture_pixels {
                continue;
            }
            let Some(bytes) = handle.decode().ok().and_then(encode) else { continue };
            if !flow.picture(i64::try_from(page + 1).ok(), &bytes) {
                break;
            }
            of_page = OfPage::Taken;
        }
        of_page
    }
}

/// Whether a picture covers most of a page, so that it may be a scan.
pub fn cover(document: &PdfDocument, page: usize, paper: Paper) -> bool {
    let handles = document.page_image_handles(page).unwrap_or_default();
    handles.iter().any(|handle| {
        let covered = handle.bbox.width.abs() * handle.bbox.height.abs();
        covered > COVERED * paper.width * paper.height
    })
}

fn encode(picture: PdfImage) -> Option<Vec<u8>> {
    match picture.data() {
        // Most programs show a CMYK JPEG inverted, so it is converted. All other JPEGs are files already.
        ImageData::Jpeg(bytes) if *picture.color_space() != ColorSpace::DeviceCMYK => Some(bytes.clone()),
        _ => picture.to_png_bytes().ok(),
    }
}
