//! The direction of turned text.
//!
//! The library computes it from the two matrices of a glyph in the wrong order. Where one of them turns the page upside down,
//! as programs do whose pages begin at the top, it says the angle to the other side. The places of glyphs are right, so they
//! decide.

use pdf_oxide::layout::TextChar;

use super::glyphs::{Frame, Glyph, Looks, in_frame, usual_width};

/// Pairs of glyphs that decide about a direction.
const MIN_PAIRS: usize = 6;
/// How much better the other direction fits before it is taken.
const BETTER: f32 = 0.8;

/// The frame in which these glyphs are written: that of the angle, or that of the angle to the other side.
pub fn written(degrees: f32, glyphs: &[&TextChar], frame_of: impl Fn(f32) -> Frame) -> Frame {
    let (frame, other) = (frame_of(degrees), frame_of(-degrees));
    if !frame.is_turned() {
        return frame;
    }
    let (here, there) = (in_frame_of_all(glyphs, &frame), in_frame_of_all(glyphs, &other));
    let (rows, rows_there) = (rows(&here), rows(&there));
    // In the wrong direction each glyph is on a line of its own.
    let is_other = if 10 * rows_there < 7 * rows {
        true
    } else if 10 * rows < 7 * rows_there {
        false
    } else {
        is_backwards(&here)
    };
    if is_other { other } else { frame }
}

/// The glyphs in the coordinates of a frame.
pub fn in_frame_of_all(glyphs: &[&TextChar], frame: &Frame) -> Vec<Glyph> {
    let is_turned = frame.is_turned();
    let mut looks = Looks::default();
    let mut glyphs: Vec<Glyph> =
        glyphs.iter().flat_map(|glyph| in_frame(glyph, frame, is_turned, &mut looks)).collect();
    if is_turned {
        estimate_widths(&mut glyphs);
    }
    glyphs
}

/// The usual width of the letter, but at most up to the next glyph.
fn estimate_widths(glyphs: &mut [Glyph]) {
    glyphs.sort_by(|a, b| a.y.round().total_cmp(&b.y.round()).then(a.x.total_cmp(&b.x)));
    for at in 0..glyphs.len() {
        let Glyph { character, x, y, size, .. } = glyphs[at];
        let usual = size * usual_width(character);
        let next = glyphs.get(at + 1).filter(|next| (next.y - y).abs() < 0.2 * size && next.x > x);
        glyphs[at].width = next.map_or(usual, |next| usual.min(next.x - x));
    }
}

/// How many lines glyphs are on that are sorted by lines.
fn rows(glyphs: &[Glyph]) -> usize {
    1 + glyphs.windows(2).filter(|pair| (pair[1].y - pair[0].y).abs() > 0.3 * pair[0].size).count()
}

/// Whether glyphs that are sorted by lines and from the left were written from the right: the step to the next glyph is as
/// wide as that one, not as this one.
fn is_backwards(glyphs: &[Glyph]) -> bool {
    let (mut forwards, mut backwards, mut pairs) = (0.0, 0.0, 0);
    for pair in glyphs.windows(2) {
        let [first, second] = pair else { continue };
        let step = (second.x - first.x) / first.size;
        let (one, other) = (usual_width(first.character), usual_width(second.character));
        let is_step = (second.y - first.y).abs() < 0.2 * first.size && step > 0.05 && step < 1.2;
        if is_step && (one - other).abs() > 0.1 {
            forwards += (step - one).abs();
            backwards += (step - other).abs();
            pairs += 1;
        }
    }
    pairs >= MIN_PAIRS && backwards < BETTER * forwards
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A word whose glyphs begin where they are drawn from, with their usual widths.
    fn line(text: &str, from_right: bool) -> Vec<Glyph> {
        let mut x = 0.0;
        let mut glyphs: Vec<Glyph> = Vec::new();
        for character in text.chars() {
            let width = 10.0 * usual_width(character);
            let at = if from_right { -x } else { x };
            glyphs.push(Glyph { character, x: at, width, y: 0.0, size: 10.0, ..Glyph::default() });
            x += width;
        }
        glyphs.sort_by(|a, b| a.x.total_cmp(&b.x));
        glyphs
    }

    #[test]
    fn the_steps_between_glyphs_say_from_which_side_they_were_written() {
        let text = "Tidal millimetres will fill it";
        assert!(!is_backwards(&line(text, false)));
        assert!(is_backwards(&line(text, true)));
        assert!(!is_backwards(&line("mill", true)), "too few to decide");
    }
}
