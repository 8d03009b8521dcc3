//! How far a scan is askew.
//!
//! If the lines of text are level, the rows of a page are either full of ink or empty. So the angle is right at which the
//! ink in neighbouring rows differs the most.

use super::render::Grey;

/// The largest angle that is looked for, in degrees.
const MAX_ANGLE: i32 = 15;
/// Smaller angles do not matter to OCR.
const MIN_ANGLE: f64 = 0.4;
/// The rows must differ by this factor more than without turning. Otherwise it is a drawing or a photograph.
const CLEARER: f64 = 1.15;
/// A scan is not only ink: one pixel in this many is the most.
const MAX_INK_DIVISOR: usize = 3;

/// The angle in degrees by which the page is to be turned clockwise, so that its lines are level; 0 if they are.
pub fn angle(page: &Grey) -> f64 {
    let mut ink: Vec<(f64, f64)> = Vec::new();
    for (y, row) in page.pixels.chunks(page.width.max(1)).enumerate() {
        let dark = row.iter().enumerate().filter(|(_, shade)| **shade < 128);
        ink.extend(dark.map(|(x, _)| (to_f64(x), to_f64(y))));
    }
    if ink.len() < 200 || ink.len() * MAX_INK_DIVISOR > page.pixels.len() {
        return 0.0;
    }
    let level = clearness(&ink, 0.0, page);
    let mut best = (level, 0.0);
    for degrees in -MAX_ANGLE..=MAX_ANGLE {
        try_angle(f64::from(degrees), &ink, page, &mut best);
    }
    let coarse = best.1;
    for tenths in -9..=9 {
        try_angle(coarse + f64::from(tenths) / 10.0, &ink, page, &mut best);
    }
    let (clearness, degrees) = best;
    if degrees.abs() < MIN_ANGLE || clearness < CLEARER * level { 0.0 } else { degrees }
}

fn try_angle(degrees: f64, ink: &[(f64, f64)], page: &Grey, best: &mut (f64, f64)) {
    let found = clearness(ink, degrees, page);
    if found > best.0 {
        *best = (found, degrees);
    }
}

/// How much neighbouring rows differ in their ink if the page is turned clockwise by this angle.
fn clearness(ink: &[(f64, f64)], degrees: f64, page: &Grey) -> f64 {
    let (sin, cos) = degrees.to_radians().sin_cos();
    // Every place of the page is within its diagonal.
    let half = page.width + page.height;
    let mut rows = vec![0.0_f64; 2 * half + 1];
    for (x, y) in ink {
        let row = x * sin + y * cos + to_f64(half) / 2.0;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "within the diagonal")]
        let row = row.max(0.0) as usize;
        if let Some(row) = rows.get_mut(row) {
            *row += 1.0;
        }
    }
    rows.windows(2).map(|pair| (pair[1] - pair[0]).powi(2)).sum()
}

#[expect(clippy::cast_precision_loss, reason = "a place on a page")]
fn to_f64(place: usize) -> f64 {
    place as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines of text that go down to the right by this angle: dashes, as letters are.
    fn lines(degrees: f64) -> Grey {
        let (width, height) = (500, 700);
        let mut pixels = vec![255; width * height];
        for line in 0..30 {
            for x in (60..440).filter(|x| x % 7 < 4) {
                let y = 60.0 + 20.0 * f64::from(line) + f64::from(x) * degrees.to_radians().tan();
                for thick in 0..5 {
                    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a test")]
                    let at = (y as usize + thick) * width + x as usize;
                    if let Some(pixel) = pixels.get_mut(at) {
                        *pixel = 0;
                    }
                }
            }
        }
        Grey { width, height, pixels }
    }

    #[test]
    fn a_page_is_turned_so_that_its_lines_are_level() {
        for degrees in [-12.0, -3.0, 1.0, 5.0, 10.0] {
            let found = angle(&lines(degrees));
            assert!((found + degrees).abs() < 0.5, "{degrees}: {found}");
        }
        assert!(angle(&lines(0.0)).abs() < f64::EPSILON);
    }

    #[test]
    fn a_blank_page_and_a_black_one_are_left_as_they_are() {
        for shade in [0, 255] {
            let page = Grey { width: 100, height: 100, pixels: vec![shade; 10_000] };
            assert!(angle(&page).abs() < f64::EPSILON);
        }
    }
}
