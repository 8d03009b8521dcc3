//! Paths in archives, made harmless.

/// The most bytes of one part of a path, and the most parts.
const MAX_PART: usize = 200;
const MAX_PARTS: usize = 16;

/// The path without what could lead out of a folder: no `..`, no root, no drive. Control characters, and those that
/// some systems do not allow, become `_`.
pub fn harmless(folder: &str, name: &str) -> String {
    let parts = name.split(['/', '\\']).map(str::trim).filter(|part| !matches!(*part, "" | "." | ".."));
    let parts: Vec<String> = parts.map(harmless_part).collect();
    // The name is at the end, and says more than the outermost folders.
    let kept = &parts[parts.len().saturating_sub(MAX_PARTS)..];
    let path = if kept.is_empty() { "unnamed".to_owned() } else { kept.join("/") };
    if folder.is_empty() { path } else { format!("{folder}/{path}") }
}

fn harmless_part(part: &str) -> String {
    let is_bad = |c: char| c.is_control() || matches!(c, ':' | '*' | '?' | '"' | '<' | '>' | '|');
    let mut part = part.replace(is_bad, "_");
    if part.len() > MAX_PART {
        let (stem, extension) = split(&part);
        let extension = if extension.len() > 20 { "" } else { extension };
        let end = stem.floor_char_boundary(MAX_PART - extension.len());
        part = format!("{}{extension}", &stem[..end]);
    }
    part
}

/// `notes (2).txt`.
pub fn numbered(path: &str, number: usize) -> String {
    let (stem, extension) = split(path);
    format!("{stem} ({number}){extension}")
}

/// A path without its extension, and the extension with its dot.
fn split(path: &str) -> (&str, &str) {
    let name = path.rfind('/').map_or(0, |slash| slash + 1);
    match path[name..].rfind('.') {
        Some(dot) if dot > 0 => path.split_at(name + dot),
        _ => (path, ""),
    }
}

/// Whether only the operating system wrote it.
pub fn is_of_system(name: &str) -> bool {
    let mut parts = name.split(['/', '\\']);
    let file = parts.next_back().unwrap_or_default();
    parts.any(|folder| folder == "__MACOSX")
        || [".DS_Store", "Thumbs.db", "desktop.ini"].iter().any(|system| system.eq_ignore_ascii_case(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_cannot_lead_out_of_its_folder() {
        for (name, path) in [
            ("a/b.txt", "a/b.txt"),
            ("../../etc/passwd", "etc/passwd"),
            ("/etc/passwd", "etc/passwd"),
            ("C:\\Windows\\system.ini", "C_/Windows/system.ini"),
            ("a/./b//c/../d", "a/b/c/d"),
            (" .. /x", "x"),
            ("..\\..\\x", "x"),
            ("a\0b\n.txt", "a_b_.txt"),
            ("..", "unnamed"),
            ("", "unnamed"),
        ] {
            assert_eq!(harmless("", name), path, "{name:?}");
        }
        assert_eq!(harmless("in.zip", "../x"), "in.zip/x");
    }

    #[test]
    fn a_long_path_keeps_its_name_and_extension() {
        let path = harmless("", &format!("{}{}.txt", "folder/".repeat(100), "é".repeat(300)));
        assert!(path.ends_with("é.txt"));
        assert_eq!(path.split('/').count(), MAX_PARTS);
        assert!(path.rsplit('/').next().unwrap().len() <= MAX_PART);
    }
}
