//! The names of the files in an archive: unique, and safe to unpack on every system.

use std::collections::{HashMap, HashSet};

use unicode_normalization::UnicodeNormalization;

/// What an entry may be as long as. File systems have 255 bytes.
const MAX_BYTES: usize = 240;
/// What Windows takes for devices, whatever follows after a point.
const DEVICES: [&str; 6] = ["con", "prn", "aux", "nul", "conin$", "conout$"];

/// The names that are taken.
pub struct Names {
    taken: HashSet<String>,
    /// The last number that was given to a name.
    numbers: HashMap<String, usize>,
}

impl Names {
    /// `reserved` is not given to any file.
    pub fn new(reserved: &str) -> Self {
        Self { taken: HashSet::from([key(reserved)]), numbers: HashMap::new() }
    }

    /// A name for a file like this, that no other one has: `report.pdf`, `report (2).pdf`.
    pub fn take(&mut self, name: &str) -> String {
        let name = safe(name);
        if self.taken.insert(key(&name)) {
            return name;
        }
        let (stem, extension) = split(&name);
        loop {
            let number = self.numbers.entry(key(&name)).or_insert(1);
            *number += 1;
            let ending = format!(" ({number}){extension}");
            let other = format!("{}{ending}", cut(stem, MAX_BYTES.saturating_sub(ending.len())));
            if self.taken.insert(key(&other)) {
                return other;
            }
        }
    }
}

/// Two names with the same key are one file on some systems.
fn key(name: &str) -> String {
    name.nfc().collect::<String>().to_lowercase().nfc().collect()
}

/// The name without its extension, and the extension with its point. A long end is no extension.
fn split(name: &str) -> (&str, &str) {
    match name.rfind('.') {
        Some(at) if at > 0 && name.len() - at <= 20 => name.split_at(at),
        _ => (name, ""),
    }
}

fn cut(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

/// One name and no path, without what some system refuses or takes for something else.
fn safe(name: &str) -> String {
    let plain = |c: char| {
        let is_hidden = matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}');
        if c.is_control() || is_hidden || r#"/\:*?"<>|"#.contains(c) { '_' } else { c }
    };
    let name: String = name.chars().map(plain).collect();
    let name = name.trim_start().trim_end_matches(|c: char| c == '.' || c.is_whitespace());
    let (stem, extension) = split(name);
    let name = format!("{}{extension}", cut(stem, MAX_BYTES.saturating_sub(extension.len())));
    let first = name.split('.').next().unwrap_or_default().trim_end().to_lowercase();
    let is_port = |kind: &str| {
        first
            .strip_prefix(kind)
            .is_some_and(|rest| rest.chars().count() == 1 && "123456789¹²³".contains(rest))
    };
    if name.is_empty() {
        "file".to_owned()
    } else if DEVICES.contains(&first.as_str()) || is_port("com") || is_port("lpt") {
        format!("_{name}")
    } else {
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_name_and_no_path() {
        for (name, expected) in [
            ("report.pdf", "report.pdf"),
            ("../../etc/passwd", ".._.._etc_passwd"),
            ("C:\\temp\\a.txt", "C__temp_a.txt"),
            ("..", "file"),
            ("", "file"),
            ("a\0b\n.txt", "a_b_.txt"),
            (" ends with points. . ", "ends with points"),
            ("Übersicht 日本語.txt", "Übersicht 日本語.txt"),
            ("gpj\u{202e}exe.pdf", "gpj_exe.pdf"),
            ("nul.txt", "_nul.txt"),
            ("COM1", "_COM1"),
            ("comb.txt", "comb.txt"),
            (".env", ".env"),
        ] {
            assert_eq!(safe(name), expected, "{name:?}");
        }
        let long = safe(&format!("{}.pdf", "ü".repeat(200)));
        assert!(long.len() <= MAX_BYTES && long.ends_with("ü.pdf"), "{long}");
    }

    #[test]
    fn no_two_files_have_one_name_on_any_system() {
        let mut names = Names::new("MISSING.txt");
        let taken: Vec<String> = [
            "a.txt",
            "a.txt",
            "A.TXT",
            "a (2).txt",
            "missing.TXT",
            "caf\u{e9}",
            "cafe\u{301}",
            "x",
            "x",
            ".env",
            ".env",
        ]
        .map(|name| names.take(name))
        .to_vec();
        assert_eq!(
            taken,
            [
                "a.txt",
                "a (2).txt",
                "A (3).TXT",
                "a (2) (2).txt",
                "missing (2).TXT",
                "caf\u{e9}",
                "cafe\u{301} (2)",
                "x",
                "x (2)",
                ".env",
                ".env (2)",
            ]
        );
        let keys: HashSet<String> = taken.iter().map(|name| key(name)).collect();
        assert_eq!(keys.len(), taken.len());
    }
}
