//! Draws pages whose text only OCR can read: scans, and fonts that do not say which letters they have.
//!
//! A page is drawn as it is shown: turned by its `/Rotate`, with all its pictures in their places. A scan that is a little
//! askew is turned straight: first it is drawn small, to find the angle at which its lines are level.

use std::cell::OnceCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use hayro::hayro_interpret::InterpreterSettings;
use hayro::hayro_interpret::util::TransformExt;
use hayro::hayro_syntax::Pdf;
use hayro::hayro_syntax::page::Page;
use hayro::kurbo::{Affine, Vec2};
use hayro::vello_cpu::color::palette::css::WHITE;
use hayro::vello_cpu::{Pixmap, RasterizerSettings, RenderContext, Resources, TargetInit};
use hayro::{RenderCache, RenderSettings, render_into};

use super::skew;

/// Pixels for each point of the page: 200 for each inch.
const SCALE: f64 = 200.0 / 72.0;
/// The same for finding out how far it is askew.
const SMALL_SCALE: f64 = 60.0 / 72.0;
/// The most pixels of a page, and the longest side. A page of A3 at this scale has 8 million.
const MAX_PIXELS: f64 = 30_000_000.0;
const MAX_SIDE: f64 = 12_000.0;
/// A page with less ink than one pixel in this many is blank.
const BLANK_DIVISOR: usize = 20_000;

/// A page in shades of grey, from black to white.
pub struct Grey {
    pub width: usize,
    pub height: usize,
    pub pixels: Vec<u8>,
}

impl Grey {
    pub fn is_blank(&self) -> bool {
        let ink = self.pixels.iter().filter(|shade| **shade < 128).count();
        ink * BLANK_DIVISOR < self.pixels.len()
    }

    fn into_png(self) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        let (width, height) = (u32::try_from(self.width).ok()?, u32::try_from(self.height).ok()?);
        let mut encoder = png::Encoder::new(&mut bytes, width, height);
        encoder.set_color(png::ColorType::Grayscale);
        encoder.set_depth(png::BitDepth::Eight);
        encoder.set_compression(png::Compression::Fast);
        encoder.write_header().ok()?.write_image_data(&self.pixels).ok()?;
        Some(bytes)
    }
}

/// Draws pages of one document. It is opened when the first page is wanted.
pub struct Renderer<'a> {
    bytes: &'a [u8],
    pages: usize,
    pdf: OnceCell<Option<Pdf>>,
}

impl<'a> Renderer<'a> {
    /// `pages` is the number of pages that the other reader found.
    pub fn new(bytes: &'a [u8], pages: usize) -> Self {
        Self { bytes, pages, pdf: OnceCell::new() }
    }

    /// A page as a picture in PNG. `None` if it cannot be drawn or is blank.
    pub fn draw(&self, page: usize) -> Option<Vec<u8>> {
        // A page that the renderer fails on is read in another way.
        catch_unwind(AssertUnwindSafe(|| self.draw_page(page))).ok().flatten()
    }

    fn draw_page(&self, page: usize) -> Option<Vec<u8>> {
        let pdf = self.pdf.get_or_init(|| Pdf::new(Arc::new(self.bytes.to_vec())).ok()).as_ref()?;
        let pages = pdf.pages();
        // If the two readers do not agree on the pages, this may be another one.
        let page = pages.get(page).filter(|_| pages.len() == self.pages)?;
        let small = draw(page, SMALL_SCALE, 0.0)?;
        if small.is_blank() {
            return None;
        }
        draw(page, SCALE, skew::angle(&small))?.into_png()
    }
}

/// Draws a page at this scale, turned clockwise by so many degrees.
fn draw(page: &Page<'_>, scale: f64, degrees: f64) -> Option<Grey> {
    let (width, height) = page.render_dimensions();
    let (width, height) = (f64::from(width), f64::from(height));
    if !(width >= 1.0 && height >= 1.0) {
        return None;
    }
    let fitting = (MAX_PIXELS / (width * height)).sqrt().min(MAX_SIDE / width.max(height));
    let scale = scale.min(fitting);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most MAX_SIDE")]
    let (pixels_across, pixels_down) = ((width * scale) as u16, (height * scale) as u16);
    if pixels_across == 0 || pixels_down == 0 {
        return None;
    }
    let middle = Vec2::new(width * scale / 2.0, height * scale / 2.0);
    let turned =
        Affine::translate(middle) * Affine::rotate(degrees.to_radians()) * Affine::translate(-middle);
    let transform = turned * Affine::scale(scale) * page.initial_transform(true).to_kurbo();
    let mut context = RenderContext::new(pixels_across, pixels_down);
    let settings = InterpreterSettings::default();
    render_into(page, &RenderCache::new(), &settings, &RenderSettings::default(), &mut context, transform);
    context.flush();
    let mut pixmap = Pixmap::new(pixels_across, pixels_down);
    let on_white =
        RasterizerSettings { target_init: TargetInit::Clear(WHITE), ..RasterizerSettings::default() };
    context.render_with(&mut pixmap, &mut Resources::default(), on_white);
    let shade = |red: u8, green: u8, blue: u8| {
        let sum = 299 * u32::from(red) + 587 * u32::from(green) + 114 * u32::from(blue);
        u8::try_from(sum / 1_000).unwrap_or(u8::MAX)
    };
    let pixels = pixmap.data().iter().map(|pixel| shade(pixel.r, pixel.g, pixel.b)).collect();
    Some(Grey { width: usize::from(pixels_across), height: usize::from(pixels_down), pixels })
}
