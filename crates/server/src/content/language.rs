//! The language of a text: how its words are stemmed, and which of them are too common to be searched.
//!
//! Both databases get ready terms, so the language is found here and not in the database.

use std::collections::HashSet;
use std::sync::OnceLock;

use rust_stemmers::{Algorithm, Stemmer};
use whatlang::{Lang, Script};

use super::terms::words;

/// The maximum number of characters that are read to find a language.
const MAX_CHARACTERS: usize = 8_000;
/// How many characters of each chunk are read: the first pages of a document are often not in its language.
const CHARACTERS_OF_A_CHUNK: usize = 500;

/// A language with a stemmer. The numbers are in the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Language {
    /// Another language, or none: its words are searched as they are written.
    Other = 0,
    English = 1,
    German = 2,
    French = 3,
    Spanish = 4,
    Italian = 5,
    Portuguese = 6,
    Dutch = 7,
    Danish = 8,
    Swedish = 9,
    Norwegian = 10,
    Finnish = 11,
    Russian = 12,
    Hungarian = 13,
    Romanian = 14,
    Turkish = 15,
    Greek = 16,
    Arabic = 17,
    Tamil = 18,
}

/// Each language with its stemmer and the code of its stop words.
const STEMMED: [(Language, Algorithm, &str); 18] = [
    (Language::English, Algorithm::English, "en"),
    (Language::German, Algorithm::German, "de"),
    (Language::French, Algorithm::French, "fr"),
    (Language::Spanish, Algorithm::Spanish, "es"),
    (Language::Italian, Algorithm::Italian, "it"),
    (Language::Portuguese, Algorithm::Portuguese, "pt"),
    (Language::Dutch, Algorithm::Dutch, "nl"),
    (Language::Danish, Algorithm::Danish, "da"),
    (Language::Swedish, Algorithm::Swedish, "sv"),
    (Language::Norwegian, Algorithm::Norwegian, "no"),
    (Language::Finnish, Algorithm::Finnish, "fi"),
    (Language::Russian, Algorithm::Russian, "ru"),
    (Language::Hungarian, Algorithm::Hungarian, "hu"),
    (Language::Romanian, Algorithm::Romanian, "ro"),
    (Language::Turkish, Algorithm::Turkish, "tr"),
    (Language::Greek, Algorithm::Greek, "el"),
    (Language::Arabic, Algorithm::Arabic, "ar"),
    (Language::Tamil, Algorithm::Tamil, "ta"),
];

/// English words that the list lacks: parts of questions.
const MORE_ENGLISH: &[&str] = &["also", "could", "may", "might", "must", "shall", "us", "whose", "would"];

impl Language {
    pub fn number(self) -> i64 {
        self as i64
    }

    /// The language with this number in the database. An unknown one is from a newer version.
    pub fn from_number(number: i64) -> Self {
        STEMMED
            .iter()
            .find(|(language, ..)| language.number() == number)
            .map_or(Self::Other, |(language, ..)| *language)
    }

    /// The language of a document, from its chunks.
    pub fn of_document<'a>(chunks: impl Iterator<Item = &'a str>) -> Self {
        let mut text = String::new();
        let mut characters = 0;
        for chunk in chunks {
            text.extend(chunk.chars().take(CHARACTERS_OF_A_CHUNK));
            text.push('\n');
            characters += CHARACTERS_OF_A_CHUNK;
            if characters >= MAX_CHARACTERS {
                break;
            }
        }
        Self::of(&text, None)
    }

    /// The language of a text. If only some are possible, it is one of them.
    pub fn of(text: &str, among: Option<&[Self]>) -> Self {
        let is_possible = |language: &Self| among.is_none_or(|among| among.contains(language));
        if let Some([only]) = among {
            return *only;
        }
        // A long text is told by its trigrams. In a short one, they are misleading, and the common words decide.
        let detected = whatlang::detect(text);
        if let Some(info) = detected.filter(whatlang::Info::is_reliable) {
            let language = Self::from_detected(info.lang());
            if is_possible(&language) {
                return language;
            }
        }
        Self::by_stop_words(text, is_possible)
            .or_else(|| Some(Self::usual_of(whatlang::detect_script(text)?)).filter(is_possible))
            .or_else(|| among?.iter().copied().max_by_key(|language| *language == Self::English))
            .unwrap_or(Self::Other)
    }

    const fn from_detected(lang: Lang) -> Self {
        match lang {
            Lang::Eng => Self::English,
            Lang::Deu => Self::German,
            Lang::Fra => Self::French,
            Lang::Spa => Self::Spanish,
            Lang::Ita => Self::Italian,
            Lang::Por => Self::Portuguese,
            Lang::Nld => Self::Dutch,
            Lang::Dan => Self::Danish,
            Lang::Swe => Self::Swedish,
            Lang::Nob => Self::Norwegian,
            Lang::Fin => Self::Finnish,
            Lang::Rus => Self::Russian,
            Lang::Hun => Self::Hungarian,
            Lang::Ron => Self::Romanian,
            Lang::Tur => Self::Turkish,
            Lang::Ell => Self::Greek,
            Lang::Ara => Self::Arabic,
            Lang::Tam => Self::Tamil,
            _ => Self::Other,
        }
    }

    /// The language with the most stop words in the text, if there are at least two and no other has as many.
    fn by_stop_words(text: &str, is_possible: impl Fn(&Self) -> bool) -> Option<Self> {
        let words = words(text);
        let mut counts: Vec<(usize, Self)> = STEMMED
            .iter()
            .filter(|(language, ..)| is_possible(language))
            .map(|(language, ..)| {
                (words.iter().filter(|word| language.is_stop_word(word)).count(), *language)
            })
            .collect();
        counts.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
        match counts.as_slice() {
            [(most, language), (second, _), ..] if *most >= 2 && most > second => Some(*language),
            [(most, language)] if *most >= 2 => Some(*language),
            _ => None,
        }
    }

    /// What a short text in this script most likely is.
    const fn usual_of(script: Script) -> Self {
        match script {
            Script::Latin => Self::English,
            Script::Cyrillic => Self::Russian,
            Script::Greek => Self::Greek,
            Script::Arabic => Self::Arabic,
            Script::Tamil => Self::Tamil,
            _ => Self::Other,
        }
    }

    fn place(self) -> Option<usize> {
        STEMMED.iter().position(|(language, ..)| *language == self)
    }

    /// The stem of a word in lower case.
    pub fn stem(self, word: &str) -> String {
        match self.place() {
            Some(place) => Stemmer::create(STEMMED[place].1).stem(word).into_owned(),
            None => word.to_owned(),
        }
    }

    /// Whether a word in lower case is in nearly every text of this language.
    pub fn is_stop_word(self, word: &str) -> bool {
        static LISTS: OnceLock<Vec<HashSet<String>>> = OnceLock::new();
        let lists = LISTS.get_or_init(|| {
            let list = |(language, _, code): &(Self, Algorithm, &str)| {
                let more = if *language == Self::English { MORE_ENGLISH } else { &[] };
                let all = stop_words::lookup(code).unwrap_or(&[]).iter().chain(more);
                // Split like any text: `don't` is two words in the index.
                all.flat_map(|word| words(word)).collect()
            };
            STEMMED.iter().map(list).collect()
        });
        self.place().is_some_and(|place| lists[place].contains(word))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_has_the_language_that_it_is_written_in() {
        for (language, text) in [
            (
                Language::English,
                "The harbour master closes the gates when the tide is low and the wind is strong.",
            ),
            (
                Language::German,
                "Der Hafenmeister schließt die Tore, wenn das Wasser niedrig ist und der Wind stark weht.",
            ),
            (
                Language::French,
                "Le capitaine du port ferme les portes quand la marée est basse et que le vent est fort.",
            ),
            (
                Language::Spanish,
                "El capitán del puerto cierra las puertas cuando la marea está baja y el viento es fuerte.",
            ),
            (
                Language::Italian,
                "Il comandante del porto chiude i cancelli quando la marea è bassa e il vento è forte.",
            ),
            (Language::Russian, "Капитан порта закрывает ворота, когда вода низкая, а ветер сильный."),
            (Language::Other, "国境の長いトンネルを抜けると雪国であった。"),
            (Language::Other, "เรือประมงออกจากท่าเรือทุกเช้า"),
        ] {
            assert_eq!(Language::of_document(std::iter::once(text)), language, "{text}");
        }
    }

    #[test]
    fn a_few_words_are_told_by_their_common_ones() {
        assert_eq!(Language::of("the anchor of the ship", None), Language::English);
        assert_eq!(Language::of("der Anker und das Schiff", None), Language::German);
        assert_eq!(Language::of("XK4711", None), Language::English, "the usual one of its script");
        let among = [Language::German, Language::French];
        assert_eq!(Language::of("die Schiffe und die Anker", Some(&among)), Language::German);
        assert_eq!(Language::of("the ships", Some(&[Language::French])), Language::French);
        assert!(among.contains(&Language::of("XK4711", Some(&among))));
    }

    #[test]
    fn every_language_has_a_number_and_stop_words() {
        for (language, _, code) in STEMMED {
            assert_eq!(Language::from_number(language.number()), language);
            assert!(stop_words::lookup(code).is_some_and(|words| words.len() > 20), "{code}");
        }
        assert_eq!(Language::from_number(0), Language::Other);
        assert_eq!(Language::from_number(99), Language::Other);
        assert!(Language::English.is_stop_word("the") && !Language::German.is_stop_word("the"));
    }
}
