//! The words under which a text is indexed, and the words of a question.
//!
//! Both databases split words at spaces. Chinese, Japanese and Korean are written without them: there every
//! character is indexed as a word, and a question searches for pairs of adjacent characters.

/// The maximum number of words of a question that are searched; more do not improve the result.
const MAX_TERMS: usize = 32;

/// Words that are in every English text and do not distinguish texts. PostgreSQL leaves them out by itself.
const COMMON: &[&str] = &[
    "a", "about", "an", "and", "any", "are", "as", "at", "be", "been", "but", "by", "can", "could", "did",
    "do", "does", "for", "from", "had", "has", "have", "how", "i", "if", "in", "into", "is", "it", "its",
    "may", "me", "my", "no", "not", "of", "on", "or", "our", "should", "so", "some", "than", "that", "the",
    "their", "them", "then", "there", "these", "they", "this", "those", "to", "was", "we", "were", "what",
    "when", "where", "which", "who", "whom", "whose", "why", "will", "with", "would", "you", "your",
];

/// A text in the form in which it is indexed.
pub fn index_text(text: &str) -> String {
    let mut spelled = String::with_capacity(text.len());
    for c in plain(text) {
        if is_word_by_itself(c) {
            spelled.extend([' ', c, ' ']);
        } else {
            spelled.push(c);
        }
    }
    spelled
}

/// A search term: one word, or several adjacent ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Term(Vec<String>);

impl Term {
    /// In the syntax of FTS5.
    pub fn for_sqlite(&self) -> String {
        format!("\"{}\"", self.0.join(" "))
    }

    /// In the syntax of `to_tsquery`.
    pub fn for_postgres(&self) -> String {
        format!("({})", self.0.join(" <-> "))
    }

    /// As it is written in a text.
    pub fn as_written(&self) -> String {
        self.0.concat()
    }
}

/// The words of a question, in lower case, each once. Common words are used only if there are no others.
pub fn terms(question: &str) -> Vec<Term> {
    let question: String = plain(question).collect::<String>().to_lowercase();
    let words = || question.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let only_common = words().all(|word| COMMON.contains(&word));
    let mut terms: Vec<Term> = Vec::new();
    for word in words().filter(|word| only_common || !COMMON.contains(word)) {
        for term in terms_of(word) {
            if terms.len() < MAX_TERMS && !terms.contains(&term) {
                terms.push(term);
            }
        }
    }
    terms
}

fn terms_of(word: &str) -> Vec<Term> {
    let characters: Vec<char> = word.chars().collect();
    let alike = characters.chunk_by(|one, next| is_word_by_itself(*one) == is_word_by_itself(*next));
    let mut terms = Vec::new();
    for run in alike {
        let text = |part: &[char]| part.iter().collect::<String>();
        if !is_word_by_itself(run[0]) || run.len() == 1 {
            terms.push(Term(vec![text(run)]));
        } else {
            // By pairs, because word boundaries cannot be found without a dictionary.
            terms.extend(run.windows(2).map(|two| Term(two.iter().map(|c| text(&[*c])).collect())));
        }
    }
    terms
}

/// Han, Hiragana, Katakana and Hangul.
const fn is_word_by_itself(c: char) -> bool {
    matches!(c,
        '\u{1100}'..='\u{11FF}' | '\u{3005}'..='\u{3007}' | '\u{3041}'..='\u{30FF}' | '\u{31F0}'..='\u{31FF}'
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

    fn searched(question: &str) -> Vec<String> {
        terms(question).iter().map(Term::for_sqlite).collect()
    }

    #[test]
    fn a_question_has_each_word_once_and_no_punctuation() {
        let asked = searched("Tide, tide; \"TIDE\" NEAR low-water*?");
        assert_eq!(asked, ["\"tide\"", "\"near\"", "\"low\"", "\"water\""]);
    }

    #[test]
    fn common_words_are_searched_only_if_there_are_no_others() {
        assert_eq!(searched("When can boats enter the port?"), ["\"boats\"", "\"enter\"", "\"port\""]);
        assert_eq!(searched("To be or not to be"), ["\"to\"", "\"be\"", "\"or\"", "\"not\""]);
    }

    #[test]
    fn text_without_spaces_is_searched_by_pairs() {
        assert_eq!(searched("灯台守"), ["\"灯 台\"", "\"台 守\""]);
        assert_eq!(searched("猫"), ["\"猫\""]);
        assert_eq!(searched("Tokyo駅"), ["\"tokyo\"", "\"駅\""]);
        assert_eq!(terms("커피")[0].for_postgres(), "(커 <-> 피)");
    }

    #[test]
    fn a_text_is_indexed_as_it_is_searched() {
        let words = |text| index_text(text).split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(words("雪国とは novel"), ["雪", "国", "と", "は", "novel"]);
        assert_eq!(
            words("of\u{AD}fice \u{FB01}le ＡＢＣ zero\u{200B}width"),
            ["office", "file", "ABC", "zerowidth"]
        );
    }
}
