//! What is left out of folders: patterns in the syntax of `.gitignore`, and hidden files.

use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, bail};
use ignore::gitignore::{Gitignore, GitignoreBuilder};

/// A list is written by hand; more than this is another file by mistake.
const MAX_LIST_BYTES: u64 = 1 << 20;

#[derive(Debug)]
pub struct Excludes {
    patterns: Gitignore,
    pub hidden_too: bool,
}

impl Excludes {
    /// Patterns in their order: the last that matches a path decides, so `!` takes an exception back. Those of the command
    /// line come last.
    pub fn new(patterns: &[String], lists: &[PathBuf], hidden_too: bool) -> anyhow::Result<Self> {
        let mut builder = GitignoreBuilder::new("");
        for list in lists {
            let lines = read(list).with_context(|| format!("--exclude-from {}", list.display()))?;
            for (number, line) in (1..).zip(lines.trim_start_matches('\u{feff}').lines()) {
                builder
                    .add_line(None, line)
                    .with_context(|| format!("--exclude-from {}, line {number}", list.display()))?;
            }
        }
        for pattern in patterns {
            // A line of this kind is a comment in a list.
            let pattern = if pattern.starts_with('#') { format!("\\{pattern}") } else { pattern.clone() };
            builder.add_line(None, &pattern).with_context(|| format!("--exclude {pattern}"))?;
        }
        Ok(Self { patterns: builder.build().context("the patterns of --exclude")?, hidden_too })
    }

    /// Whether a path below a folder is left out. Of a folder that is left out nothing is looked at.
    pub fn contains(&self, below: &Path, is_folder: bool) -> bool {
        self.patterns.matched(below, is_folder).is_ignore()
    }

    /// The same for a file that the command line names. A path that leads elsewhere counts by its name.
    pub fn contains_named(&self, path: &Path) -> bool {
        let stays = path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
        let path = path.strip_prefix(".").unwrap_or(path);
        let counted = if stays { path } else { path.file_name().map_or(path, Path::new) };
        self.patterns.matched_path_or_any_parents(counted, false).is_ignore()
    }

    /// Whether a name is hidden and hidden files are left out.
    pub fn hides(&self, name: &OsStr) -> bool {
        !self.hidden_too && name.as_bytes().starts_with(b".")
    }
}

fn read(list: &Path) -> anyhow::Result<String> {
    let mut text = String::new();
    std::fs::File::open(list)?.take(MAX_LIST_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_LIST_BYTES {
        bail!("a list has at most {MAX_LIST_BYTES} bytes");
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_mean_what_they_mean_in_a_gitignore() {
        let folder = tempfile::tempdir().unwrap();
        let list = folder.path().join("list");
        std::fs::write(&list, "# a comment\n\n*.tmp\n!keep.tmp\n/top.txt\nbuild/\n").unwrap();
        let excludes = Excludes::new(&["drafts/*.md".to_owned(), "#x".to_owned()], &[list], false).unwrap();
        for (path, is_folder, excluded) in [
            ("a.tmp", false, true),
            ("deep/down/a.tmp", false, true),
            ("keep.tmp", false, false),
            ("top.txt", false, true),
            ("deep/top.txt", false, false),
            ("build", true, true),
            ("deep/build", true, true),
            ("build", false, false),
            ("drafts/a.md", false, true),
            ("deep/drafts/a.md", false, false),
            ("#x", false, true),
            ("a comment", false, false),
        ] {
            assert_eq!(excludes.contains(Path::new(path), is_folder), excluded, "{path}");
        }
    }

    #[test]
    fn a_named_file_is_left_out_too() {
        let excludes = Excludes::new(&["*.tmp".to_owned(), "build/".to_owned()], &[], false).unwrap();
        for (path, excluded) in [
            ("a.tmp", true),
            ("./a.tmp", true),
            ("../elsewhere/a.tmp", true),
            ("/srv/a.tmp", true),
            ("build/a.txt", true),
            ("a.txt", false),
        ] {
            assert_eq!(excludes.contains_named(Path::new(path)), excluded, "{path}");
        }
    }

    #[test]
    fn a_list_that_cannot_be_used_is_an_error_that_names_it() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("missing");
        let error = Excludes::new(&[], &[missing], false).unwrap_err();
        assert!(format!("{error:#}").contains("missing"), "{error:#}");
        let bad = folder.path().join("bad");
        std::fs::write(&bad, "fine\n{a\n").unwrap();
        let error = Excludes::new(&[], &[bad], false).unwrap_err();
        assert!(format!("{error:#}").contains("line 2"), "{error:#}");
    }
}
