//! What is missing of a document that could be read otherwise: the codes, and the sentence for its owner.

use serde::{Deserialize, Serialize};

macro_rules! codes {
    ($($variant:ident $name:literal $meaning:literal;)*) => {
        /// The code of a warning, as the database and the API have it.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum WarningCode { $(#[serde(rename = $name)] $variant),* }

        impl WarningCode {
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),* }
            }

            /// What the code means, for people. The message of a warning says more.
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$variant => $meaning),* }
            }
        }
    };
}

codes! {
    Truncated "TRUNCATED" "The file breaks off before its end, so what comes after that is missing";
    PagesUnreadable "PAGES_UNREADABLE" "Some pages, slides or sheets are damaged, so their text is missing";
    CharactersUnmapped "CHARACTERS_UNMAPPED" "Some characters are stored in a way that does not say which letters they are, so they are missing or shown as �";
    OcrIncomplete "OCR_INCOMPLETE" "Some pages are pictures that OCR did not read, so their text is missing";
    PartsNotRead "PARTS_NOT_READ" "The file contains other files or objects that are not read: attachments, embedded objects, charts, pictures";
    MoreWarnings "MORE_WARNINGS" "There are more warnings than are kept with a file";
}

impl WarningCode {
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|code| code.name() == name)
    }
}

/// Something that is missing of a document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warning {
    pub code: WarningCode,
    /// For the owner: what happened, what is missing, what to do.
    pub message: String,
    /// The first page that it is about, from 1.
    #[serde(default)]
    pub page: Option<i64>,
}

impl Warning {
    /// The most warnings of one document.
    pub const MAX: usize = 20;
    /// The most bytes of a message. Messages contain names that the document chooses.
    pub const MAX_MESSAGE: usize = 600;

    /// A warning without control characters, which no message needs and PostgreSQL cannot store all of.
    pub fn new(code: WarningCode, message: impl Into<String>) -> Self {
        let mut message = message.into().replace(|c: char| c.is_control(), " ");
        if message.len() > Self::MAX_MESSAGE {
            message.truncate(message.floor_char_boundary(Self::MAX_MESSAGE - '…'.len_utf8()));
            message.push('…');
        }
        Self { code, message, page: None }
    }

    #[must_use]
    pub fn on_page(mut self, page: Option<i64>) -> Self {
        self.page = page;
        self
    }

    /// At most [`Warning::MAX`] warnings. If there are more, the last one says how many are left out.
    #[must_use]
    pub fn bounded(mut warnings: Vec<Self>) -> Vec<Self> {
        if warnings.len() > Self::MAX {
            let left_out = warnings.len() - (Self::MAX - 1);
            warnings.truncate(Self::MAX - 1);
            warnings.push(Self::new(
                WarningCode::MoreWarnings,
                format!("There are {left_out} more warnings about this file, which are not kept"),
            ));
        }
        warnings
    }

    /// Whether it is as [`Warning::new`] makes it. One from another process may not be.
    pub fn is_well_formed(&self) -> bool {
        !self.message.trim().is_empty()
            && self.message.len() <= Self::MAX_MESSAGE
            && !self.message.contains(char::is_control)
            && self.page.is_none_or(|page| page > 0)
    }
}

impl std::fmt::Display for WarningCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_is_short_and_on_one_line_whatever_names_are_in_it() {
        let warning = Warning::new(WarningCode::PartsNotRead, format!("a\0b\nc{}", "é".repeat(1_000)));
        assert!(warning.message.starts_with("a b cé"));
        assert!(warning.message.ends_with('…'));
        assert!(warning.is_well_formed());
        assert!(!Warning { message: "a\0b".to_owned(), ..warning.clone() }.is_well_formed());
        assert!(!Warning { message: "é".repeat(1_000), ..warning.clone() }.is_well_formed());
        assert!(!warning.on_page(Some(0)).is_well_formed());
    }

    #[test]
    fn the_last_of_too_many_warnings_says_how_many_are_left_out() {
        let warnings = |count| {
            let one = |number| Warning::new(WarningCode::PagesUnreadable, format!("{number}"));
            Warning::bounded((0..count).map(one).collect())
        };
        assert_eq!(warnings(20).len(), 20);
        assert_eq!(warnings(20)[19].message, "19");
        let many = warnings(50);
        assert_eq!((many.len(), many[18].message.as_str()), (20, "18"));
        assert_eq!(many[19].code, WarningCode::MoreWarnings);
        assert!(many[19].message.contains("31 more"), "{}", many[19].message);
    }

    #[test]
    fn the_name_of_a_code_is_the_same_in_every_form() {
        for code in WarningCode::ALL {
            assert_eq!(serde_json::to_value(code).unwrap(), code.name());
            assert_eq!(WarningCode::parse(code.name()), Some(*code));
        }
    }
}
