//! The terms under which a text is indexed, and those of a question: the same on both databases, because the
//! databases get ready terms.
//!
//! A term is a stem without accents, or a pair of characters where words are written without spaces (Chinese, Japanese,
//! Thai) or with many endings (Korean). The index holds 32-bit hashes of terms. The hash includes the owner, so the
//! entries of one owner are apart from those of all others.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;
use unicode_segmentation::UnicodeSegmentation;

use super::language::Language;
use landfall_core::caller::TenantUser;

/// The maximum number of terms of a question that are searched; more do not improve the result.
const MAX_TERMS: usize = 16;
/// The maximum number of characters of a word. What is longer is not a word of a language.
const MAX_WORD: usize = 64;

/// The number of an owner in the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnerCode(u64);

impl OwnerCode {
    pub fn of(owner: &TenantUser) -> Self {
        let digest = Sha256::digest(owner.to_string().as_bytes());
        let first: [u8; 8] = std::array::from_fn(|index| digest[index]);
        Self(u64::from_le_bytes(first))
    }

    /// As it is stored.
    pub fn number(self) -> i64 {
        i64::from_le_bytes(self.0.to_le_bytes())
    }

    /// The hash of a term of this owner.
    fn hash(self, term: &str) -> u32 {
        // FNV-1a, and the last step of MurmurHash3, because the low bits of FNV-1a alone depend on few bits of the input.
        let mut hash = self.0 ^ 0xcbf2_9ce4_8422_2325;
        for byte in term.as_bytes() {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
        hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
        (hash >> 32) as u32
    }
}

/// The terms of a chunk with their counts, in the order of their hashes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChunkTerms {
    /// The number of words.
    pub length: u16,
    counts: Vec<(u32, u8)>,
}

impl ChunkTerms {
    pub fn of(text: &str, language: Language, owner: OwnerCode) -> Self {
        let (mut counts, mut length) = (BTreeMap::<u32, u8>::new(), 0_u16);
        for piece in pieces(text) {
            length = length.saturating_add(1);
            let mut add = |term: &str| {
                let count = counts.entry(owner.hash(term)).or_insert(0);
                *count = count.saturating_add(1);
            };
            match piece {
                Piece::Word(word) => add(&stem(&word, language)),
                Piece::Run(run) => run_terms(&run, true).iter().for_each(|term| add(term)),
            }
        }
        Self { length, counts: counts.into_iter().collect() }
    }

    /// How often the chunk has any of these terms.
    pub fn count(&self, hashes: &[u32]) -> u32 {
        let of = |hash: &u32| self.counts.binary_search_by_key(hash, |(hash, _)| *hash).ok();
        hashes.iter().filter_map(of).map(|place| u32::from(self.counts[place].1)).sum()
    }

    /// Whether the chunk has one of each of these groups of terms.
    pub fn has_all(&self, all_of: &[Vec<u32>]) -> bool {
        all_of.iter().all(|any| self.count(any) > 0)
    }

    pub fn hashes(&self) -> impl Iterator<Item = u32> {
        self.counts.iter().map(|(hash, _)| *hash)
    }

    /// The length in two bytes, then each hash in four with its count in one.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(2 + self.counts.len() * 5);
        bytes.extend(self.length.to_le_bytes());
        for (hash, count) in &self.counts {
            bytes.extend(hash.to_le_bytes());
            bytes.push(*count);
        }
        bytes
    }

    pub fn from_bytes(bytes: &[u8]) -> Self {
        let Some((length, counts)) = bytes.split_first_chunk::<2>() else {
            return Self { length: 0, counts: Vec::new() };
        };
        let counts = counts
            .as_chunks::<5>()
            .0
            .iter()
            .map(|[a, b, c, d, count]| (u32::from_le_bytes([*a, *b, *c, *d]), *count));
        Self { length: u16::from_le_bytes(*length), counts: counts.collect() }
    }
}

/// A word of a question: the hashes of its stems in all languages that are searched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Term {
    pub written: String,
    pub hashes: Vec<u32>,
}

/// The terms of a question, each once. Stop words are used only if there are no other words.
pub fn of_question(question: &str, languages: &[Language], owner: OwnerCode) -> Vec<Term> {
    let asked_in = Language::of(question, Some(languages));
    let pieces = pieces(question);
    let is_stop_word = |piece: &Piece| matches!(piece, Piece::Word(word) if asked_in.is_stop_word(word));
    let only_stop_words = pieces.iter().all(is_stop_word);
    let mut terms: Vec<Term> = Vec::new();
    for piece in pieces.into_iter().filter(|piece| only_stop_words || !is_stop_word(piece)) {
        let found: Vec<Term> = match piece {
            Piece::Word(word) => {
                let mut hashes: Vec<u32> =
                    languages.iter().map(|language| owner.hash(&stem(&word, *language))).collect();
                hashes.sort_unstable();
                hashes.dedup();
                vec![Term { written: word, hashes }]
            }
            Piece::Run(run) => run_terms(&run, false)
                .into_iter()
                .map(|written| Term { hashes: vec![owner.hash(&written)], written })
                .collect(),
        };
        for term in found {
            // Two forms of a word are one term.
            let is_known =
                terms.iter().any(|known| known.hashes.iter().any(|hash| term.hashes.contains(hash)));
            if terms.len() < MAX_TERMS && !is_known {
                terms.push(term);
            }
        }
    }
    terms
}

/// The words of a text in lower case; what is written without spaces is left out.
pub fn words(text: &str) -> Vec<String> {
    let word = |piece| match piece {
        Piece::Word(word) => Some(word),
        Piece::Run(_) => None,
    };
    pieces(text).into_iter().filter_map(word).collect()
}

/// A part of a text between spaces and punctuation, in lower case.
enum Piece {
    Word(String),
    /// Several words without a space between them.
    Run(String),
}

fn pieces(text: &str) -> Vec<Piece> {
    // Composed, because stemmers know letters with accents as one character.
    let plain: String = plain(text).nfc().flat_map(char::to_lowercase).collect();
    let mut pieces = Vec::new();
    for word in plain.split(|c: char| !c.is_alphanumeric() && !is_combining_mark(c)) {
        let mut rest = word;
        while let Some(first) = rest.chars().next() {
            let is_run = is_written_without_spaces(first);
            let end = rest
                .find(|c: char| is_written_without_spaces(c) != is_run && !is_combining_mark(c))
                .unwrap_or(rest.len());
            let (piece, after) = rest.split_at(end);
            rest = after;
            if is_run {
                pieces.push(Piece::Run(piece.to_owned()));
            } else {
                pieces.push(Piece::Word(piece.chars().take(MAX_WORD).collect()));
            }
        }
    }
    pieces
}

/// The stem without accents, so that `Muller` finds `Müller`.
fn stem(word: &str, language: Language) -> String {
    let stem = language.stem(word);
    if stem.is_ascii() {
        return stem;
    }
    // Only the accents of Latin, Greek and Cyrillic letters: marks of other scripts are letters of their own.
    let mut plain: String = stem.nfd().filter(|c| !matches!(c, '\u{300}'..='\u{36F}')).nfc().collect();
    if plain.contains('ß') {
        plain = plain.replace('ß', "ss");
    }
    plain
}

/// The pairs of adjacent characters of a run, because word boundaries cannot be found without a dictionary. The
/// index also has single characters, for a question of one character. A character is what a reader sees: in Thai, a
/// consonant with its vowel signs.
fn run_terms(run: &str, with_single: bool) -> Vec<String> {
    let characters: Vec<&str> = run.graphemes(true).collect();
    let mut terms: Vec<String> = characters.windows(2).map(<[&str]>::concat).collect();
    if with_single || characters.len() == 1 {
        terms.extend(characters.iter().map(|&character| character.to_owned()));
    }
    terms
}

/// Thai, Lao, Burmese, Khmer, Han, Hiragana, Katakana and Hangul.
const fn is_written_without_spaces(c: char) -> bool {
    matches!(c,
        '\u{0E00}'..='\u{0EFF}' | '\u{1000}'..='\u{109F}' | '\u{1780}'..='\u{17FF}'
        | '\u{1100}'..='\u{11FF}' | '\u{3005}'..='\u{3007}' | '\u{3041}'..='\u{30FF}' | '\u{31F0}'..='\u{31FF}'
        | '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}' | '\u{AC00}'..='\u{D7AF}' | '\u{F900}'..='\u{FAFF}'
        | '\u{FF66}'..='\u{FF9F}' | '\u{20000}'..='\u{3FFFF}')
}

/// The letters that a reader sees: without soft hyphens, full-width letters in their usual form, ligatures as
/// single letters.
fn plain(text: &str) -> impl Iterator<Item = char> {
    text.chars().flat_map(|c| {
        let several = match c {
            '\u{AD}' | '\u{200B}'..='\u{200D}' | '\u{2060}' | '\u{FEFF}' => Some(""),
            '\u{FB00}' => Some("ff"),
            '\u{FB01}' => Some("fi"),
            '\u{FB02}' => Some("fl"),
            '\u{FB03}' => Some("ffi"),
            '\u{FB04}' => Some("ffl"),
            '\u{FB05}' | '\u{FB06}' => Some("st"),
            _ => None,
        };
        let one = several.is_none().then(|| match c {
            '\u{FF01}'..='\u{FF5E}' => char::from_u32(u32::from(c) - 0xFEE0).unwrap_or(c),
            _ => c,
        });
        several.unwrap_or("").chars().chain(one)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENGLISH: &[Language] = &[Language::English];

    fn owner() -> OwnerCode {
        OwnerCode::of(&TenantUser::new("acme", "alice"))
    }

    fn searched(question: &str, languages: &[Language]) -> Vec<String> {
        of_question(question, languages, owner()).into_iter().map(|term| term.written).collect()
    }

    fn finds(question: &str, text: &str, language: Language) -> bool {
        let chunk = ChunkTerms::of(text, language, owner());
        of_question(question, &[language], owner()).iter().all(|term| chunk.count(&term.hashes) > 0)
    }

    #[test]
    fn a_question_has_each_word_once_and_no_punctuation() {
        assert_eq!(
            searched("Tide, tides; \"TIDE\" NEAR low-water*?", ENGLISH),
            ["tide", "near", "low", "water"]
        );
    }

    #[test]
    fn stop_words_are_searched_only_if_there_are_no_others() {
        assert_eq!(searched("When can boats enter the port?", ENGLISH), ["boats", "enter", "port"]);
        assert_eq!(searched("To be or not to be", ENGLISH), ["to", "be", "or", "not"]);
        let languages = [Language::English, Language::German];
        assert_eq!(searched("Wann kann das Schiff in den Hafen?", &languages), ["wann", "schiff", "hafen"]);
    }

    #[test]
    fn words_are_found_by_other_forms_in_their_language() {
        assert!(finds("boats", "One boat was sailing.", Language::English));
        assert!(finds("Häuser", "Das Haus ist alt.", Language::German));
        assert!(finds("chevaux noirs", "le cheval noire, les chevaux", Language::French));
        assert!(finds("корабли", "Корабль стоит в порту.", Language::Russian));
        assert!(!finds("Häuser", "Das Haus ist alt.", Language::English));
    }

    #[test]
    fn accents_and_case_do_not_matter() {
        assert!(finds("muller strasse", "MÜLLER, Straße 5", Language::German));
        assert!(finds("cafe", "cafe\u{301}", Language::Other));
        assert!(finds("हिन्दी", "यह हिन्दी है", Language::Other));
    }

    #[test]
    fn text_without_spaces_is_searched_by_pairs() {
        assert_eq!(searched("灯台守", ENGLISH), ["灯台", "台守"]);
        assert_eq!(searched("猫", ENGLISH), ["猫"]);
        assert_eq!(searched("Tokyo駅", ENGLISH), ["tokyo", "駅"]);
        for (asked, text) in [
            ("雪国", "国境の長いトンネルを抜けると雪国であった。"),
            ("猫", "黒猫がいる"),
            ("灯塔", "老人每天晚上都去看守灯塔。"),
            ("커피", "그는 아침마다 커피를 두 잔 마신다."),
            ("ท่าเรือ", "เรือประมงออกจากท่าเรือทุกเช้า"),
        ] {
            assert!(finds(asked, text, Language::Other), "{asked}");
        }
        assert!(!finds("東京", "京東の店", Language::Other), "the order of the characters counts");
    }

    #[test]
    fn a_text_is_indexed_as_a_reader_sees_it() {
        assert!(finds(
            "office file abc zerowidth",
            "of\u{AD}fice \u{FB01}le ＡＢＣ zero\u{200B}width",
            Language::Other
        ));
    }

    #[test]
    fn terms_are_read_as_they_were_written() {
        let text = format!("{} boat boat 灯台", "sea ".repeat(300));
        let chunk = ChunkTerms::of(&text, Language::English, owner());
        let read = ChunkTerms::from_bytes(&chunk.to_bytes());
        assert_eq!(read, chunk);
        assert_eq!((read.length, read.counts.len()), (303, 5));
        let counts = of_question("boats sea ocean", ENGLISH, owner());
        let counts: Vec<u32> = counts.iter().map(|term| read.count(&term.hashes)).collect();
        assert_eq!(counts, [2, 255, 0], "a count has one byte");
        assert_eq!(ChunkTerms::from_bytes(&[]).length, 0);
    }

    #[test]
    fn owners_share_no_terms() {
        let other = OwnerCode::of(&TenantUser::new("acme", "bob"));
        assert_ne!(owner().hash("boat"), other.hash("boat"));
    }
}
