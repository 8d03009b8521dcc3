//! A pattern on the command line that the shell did not expand: `docs/**/*.pdf`.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use globset::{GlobBuilder, GlobMatcher};

use super::Problem;

/// A position for each component has to fit into the bits of [`Open`].
const MAX_COMPONENTS: usize = 63;

#[derive(Debug)]
pub struct Pattern {
    /// The folder before the first special character. What is found is shown and stored relative to it.
    pub base: PathBuf,
    components: Vec<Component>,
    /// It ends with a slash.
    only_folders: bool,
}

#[derive(Debug)]
enum Component {
    /// `**`: any number of folders, none included.
    Folders,
    Name {
        matcher: GlobMatcher,
        /// It begins with a dot, so it matches hidden names.
        hidden: bool,
    },
}

/// The components that the next name below a folder may be compared with, as bits. There may be several because of `**`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Open(u64);

/// The result of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compared {
    /// The whole pattern matches: the file is wanted, or all that is in the folder.
    pub matches: bool,
    /// With what the names in this folder are compared. `None`: nothing in it can match.
    pub below: Option<Open>,
}

/// Whether a name has characters that are special in a pattern.
pub fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?', '[', '{'])
}

impl Pattern {
    pub fn parse(text: &str) -> Result<Self, Problem> {
        let bad =
            |why: String| Problem::new("INVALID_PATTERN", format!("This pattern cannot be used: {why}"));
        let (path, only_folders) = match text.trim_end_matches('/') {
            path if path.len() < text.len() => (path, true),
            path => (path, false),
        };
        let (mut base, mut components) = (PathBuf::new(), Vec::new());
        if path.starts_with('/') {
            base.push("/");
        }
        for part in path.split('/').filter(|part| !part.is_empty() && *part != ".") {
            if components.is_empty() && !is_pattern(part) && !part.contains('\\') {
                base.push(part);
            } else if part == "**" {
                components.push(Component::Folders);
            } else if part == ".." {
                return Err(bad("`..` behind a special character leads out of the folder".to_owned()));
            } else {
                let glob = GlobBuilder::new(part).literal_separator(true).backslash_escape(true).build();
                let matcher = glob.map_err(|error| bad(error.kind().to_string()))?.compile_matcher();
                components.push(Component::Name { matcher, hidden: part.starts_with('.') });
            }
        }
        if components.len() > MAX_COMPONENTS {
            return Err(bad(format!("it has more than {MAX_COMPONENTS} parts")));
        }
        if base.as_os_str().is_empty() {
            base.push(".");
        }
        Ok(Self { base, components, only_folders })
    }

    /// With what the names in the base folder are compared.
    pub fn start() -> Open {
        Open(1)
    }

    /// Compares a name in a folder.
    pub fn compare(&self, open: Open, name: &OsStr, is_folder: bool, hidden_too: bool) -> Compared {
        let is_hidden = name.as_bytes().starts_with(b".") && !hidden_too;
        let (mut matches, mut below) = (false, 0_u64);
        let mut reach = |at: usize, matches: &mut bool| {
            if at == self.components.len() {
                *matches = true;
            } else {
                below |= 1 << at;
            }
        };
        let mut bits = open.0;
        for (at, component) in self.components.iter().enumerate() {
            if bits & (1 << at) == 0 {
                continue;
            }
            match component {
                Component::Folders => {
                    // No folder at all: the next component may match this name.
                    bits |= 2 << at;
                    if !is_hidden {
                        reach(at, &mut matches);
                        // At the end it stands for all that is there.
                        matches |= at + 1 == self.components.len();
                    }
                }
                Component::Name { matcher, hidden } => {
                    if (*hidden || !is_hidden) && matcher.is_match(name) {
                        reach(at + 1, &mut matches);
                    }
                }
            }
        }
        Compared {
            matches: matches && (is_folder || !self.only_folders),
            below: (is_folder && below != 0).then_some(Open(below)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a path below the base is found by a walk.
    fn finds(pattern: &str, path: &str) -> bool {
        let pattern = Pattern::parse(pattern).unwrap();
        let mut open = Some(Pattern::start());
        let names: Vec<&str> = path.split('/').collect();
        for (at, name) in names.iter().enumerate() {
            let Some(now) = open else { return false };
            let compared = pattern.compare(now, OsStr::new(name), at + 1 < names.len(), false);
            if compared.matches {
                return true;
            }
            open = compared.below;
        }
        false
    }

    #[test]
    fn a_pattern_finds_what_a_shell_would_find() {
        for (pattern, path, found) in [
            ("*.pdf", "a.pdf", true),
            ("*.pdf", "a.txt", false),
            ("*.pdf", "sub/a.pdf", false),
            ("**/*.pdf", "a.pdf", true),
            ("**/*.pdf", "x/y/z/a.pdf", true),
            ("**/*.pdf", "x/y/z/a.txt", false),
            ("*/b?/*.pdf", "x/b1/a.pdf", true),
            ("*/b?/*.pdf", "x/b12/a.pdf", false),
            ("**/y/**/*.pdf", "y/a.pdf", true),
            ("**/y/**/*.pdf", "x/y/z/w/a.pdf", true),
            ("**/y/**/*.pdf", "x/a.pdf", false),
            ("[ab]*", "b.txt", true),
            ("[!ab]*", "b.txt", false),
            ("*.{pdf,txt}", "a.txt", true),
            ("2024*", "2024-01/deep/a.txt", true),
            ("*/", "sub/a.txt", true),
            ("*/", "a.txt", false),
            ("**", "x/y/a.txt", true),
            ("*", ".hidden", false),
            ("**/*.pdf", ".git/a.pdf", false),
            (".*", ".hidden", true),
            ("\\**", "*a", true),
            ("\\**", "a", false),
        ] {
            assert_eq!(finds(pattern, path), found, "{pattern} {path}");
        }
    }

    #[test]
    fn the_folder_before_the_first_special_character_is_the_base() {
        for (pattern, base) in
            [("*.pdf", "."), ("docs/*.pdf", "docs"), ("/srv/docs/**", "/srv/docs"), ("../x/./y/*", "../x/y")]
        {
            assert_eq!(Pattern::parse(pattern).unwrap().base, PathBuf::from(base), "{pattern}");
        }
    }

    #[test]
    fn a_pattern_that_cannot_be_used_is_refused() {
        for bad in ["[a", "*/../x", "{a,b", &"*/".repeat(64)] {
            assert_eq!(Pattern::parse(bad).unwrap_err().code, "INVALID_PATTERN", "{bad}");
        }
    }
}
