//! Subtitles (SRT, VTT, SBV): the words and who says them, without the times.

use crate::error::Error;
use crate::flow::{Flow, Gap};
use crate::limits::Bounds;
use landfall_core::text::Extracted;

pub fn extract(source: &str, bounds: Bounds<'_>) -> Result<Extracted, Error> {
    let mut flow = Flow::new(bounds.limits);
    let mut last = String::new();
    let mut lines = source.lines().map(str::trim).peekable();
    let mut in_cue = false;
    while let Some(line) = lines.next() {
        if line.is_empty() {
            in_cue = false;
        } else if is_timing(line) {
            in_cue = true;
        } else if in_cue {
            let words = without_tags(line);
            // Captions that roll show each line twice.
            if words != last {
                flow.widen(Gap::Line);
                flow.words(&words);
                flow.check()?;
                last = words;
            }
        } else if line.starts_with("WEBVTT")
            || ["NOTE", "STYLE", "REGION"].iter().any(|word| is_block(line, word))
        {
            // A comment or a style goes on to the next empty line.
            while lines.next_if(|next| !next.is_empty() && !is_timing(next)).is_some() {}
        } else if !lines.peek().is_some_and(|next| is_timing(next)) {
            // Neither the number of a cue nor its name: words without a time.
            flow.widen(Gap::Line);
            flow.words(&without_tags(line));
            flow.check()?;
        }
    }
    flow.finish()
}

fn is_block(line: &str, word: &str) -> bool {
    line.strip_prefix(word).is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t', ':']))
}

/// `00:00:01,000 --> 00:00:04,000`, also `0:00:01.000,0:00:04.000`.
fn is_timing(line: &str) -> bool {
    let (start, end) = match line.split_once("-->") {
        Some(times) => times,
        None => match line.split_once(',') {
            Some(times) => times,
            None => return false,
        },
    };
    is_time(start.trim()) && is_time(end.split_whitespace().next().unwrap_or_default())
}

fn is_time(text: &str) -> bool {
    text.contains(':')
        && text.starts_with(|c: char| c.is_ascii_digit())
        && text.chars().all(|c| c.is_ascii_digit() || matches!(c, ':' | ',' | '.'))
}

/// The words of a line. The speaker, which VTT has in a tag, comes before them.
fn without_tags(line: &str) -> String {
    let mut words = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((before, after)) = rest.split_once('<') {
        words.push_str(before);
        let Some((tag, behind)) = after.split_once('>') else {
            words.push('<');
            rest = after;
            break;
        };
        if let Some(speaker) = speaker(tag) {
            words.push_str(speaker);
            words.push_str(": ");
        } else if !is_tag(tag) {
            words.push('<');
            words.push_str(tag);
            words.push('>');
        }
        rest = behind;
    }
    words.push_str(rest);
    // Positions as some programs write them into SRT.
    while let Some(start) = words.find("{\\") {
        let Some(end) = words[start..].find('}') else { break };
        words.replace_range(start..=start + end, "");
    }
    for (entity, character) in
        [("&lt;", "<"), ("&gt;", ">"), ("&nbsp;", " "), ("&lrm;", ""), ("&rlm;", ""), ("&amp;", "&")]
    {
        if words.contains(entity) {
            words = words.replace(entity, character);
        }
    }
    words
}

fn speaker(tag: &str) -> Option<&str> {
    let rest = tag.strip_prefix('v')?;
    let (classes, name) = rest.split_once([' ', '\t'])?;
    (classes.is_empty() || classes.starts_with('.')).then(|| name.trim()).filter(|name| !name.is_empty())
}

fn is_tag(tag: &str) -> bool {
    let name = tag.trim_start_matches('/');
    let name = name.split(['.', ' ', '\t']).next().unwrap_or_default().to_ascii_lowercase();
    is_time(tag)
        || matches!(name.as_str(), "b" | "i" | "u" | "s" | "c" | "v" | "ruby" | "rt" | "lang" | "font" | "")
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use super::*;
    use crate::limits::Limits;

    fn text(source: &str) -> String {
        let limits = Limits::default();
        extract(source, Bounds::new(&limits, &|| ControlFlow::Continue(()))).unwrap().text
    }

    #[test]
    fn words_are_kept_and_times_are_not() {
        let srt = "1\n00:00:01,000 --> 00:00:04,000\n<i>High</i> water\nat {\\an8}1984.\n\n2\n\
            00:00:05,000 --> 00:00:06,000\n1984\n\n3\n00:00:07,000 --> 00:00:08,000 X1:0\n- Low?\n";
        assert_eq!(text(srt), "High water\nat 1984.\n1984\n- Low?");
        assert_eq!(text("0:00:01.000,0:00:02.000\nHigh, water\n"), "High, water");
    }

    #[test]
    fn speakers_are_kept_and_comments_are_not() {
        let vtt = "WEBVTT Tides\nKind: captions\n\nSTYLE\n::cue { color: red }\n\nNOTE\nnot\nthis\n\nintro\n\
            00:01.000 --> 00:02.000 align:start\n<v.loud Mary>Is <00:01.500><c>it</c> 3 &lt; 4?\n\n\
            00:02.000 --> 00:03.000\n<v.loud Mary>Is it 3 &lt; 4?\n<v Tom>Yes</v>\n";
        assert_eq!(text(vtt), "Mary: Is it 3 < 4?\nTom: Yes");
    }
}
