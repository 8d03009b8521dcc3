//! The pictures that a scanned page consists of, as files that an OCR program reads.

use pdf_oxide::PdfDocument;
use pdf_oxide::extractors::{ColorSpace, ImageData, PdfImage};

use crate::limits::Limits;
use crate::reading::Picture;

/// A smaller picture is a line, a logo or a bullet.
const MIN_PIXELS: u64 = 10_000;
/// Scanners cut a page into a few strips; a page of hundreds of pictures is a drawing.
const MAX_ON_A_PAGE: usize = 16;

pub struct Pictures<'a> {
    limits: &'a Limits,
    taken: Vec<Picture>,
    bytes: usize,
}

impl<'a> Pictures<'a> {
    pub fn new(limits: &'a Limits) -> Self {
        Self { limits, taken: Vec::new(), bytes: 0 }
    }

    /// Takes the pictures of a page, within the limits. A picture that cannot be decoded is left out.
    pub fn take_from(&mut self, document: &PdfDocument, page: usize, text_offset: usize) {
        let Ok(handles) = document.page_image_handles(page) else { return };
        let large_enough = handles.iter().filter(|handle| {
            let pixels = u64::from(handle.width) * u64::from(handle.height);
            (MIN_PIXELS..=self.limits.picture_pixels).contains(&pixels)
        });
        for handle in large_enough.take(MAX_ON_A_PAGE) {
            if self.taken.len() >= self.limits.pictures || self.bytes >= self.limits.picture_bytes {
                return;
            }
            let Some(bytes) = handle.decode().ok().and_then(encode) else { continue };
            self.bytes += bytes.len();
            let page = i64::try_from(page + 1).ok();
            self.taken.push(Picture { text_offset, page, bytes });
        }
    }

    pub fn is_empty(&self) -> bool {
        self.taken.is_empty()
    }

    pub fn finish(self) -> Vec<Picture> {
        self.taken
    }
}

fn encode(picture: PdfImage) -> Option<Vec<u8>> {
    match picture.data() {
        // Most programs show a CMYK JPEG inverted, so it is converted. All other JPEGs are files already.
        ImageData::Jpeg(bytes) if *picture.color_space() != ColorSpace::DeviceCMYK => Some(bytes.clone()),
        _ => picture.to_png_bytes().ok(),
    }
}
