//! The words that a text is found by, and those that a question asks for.
//!
//! Both databases take what stands between two spaces for a word. Chinese, Japanese and Korean do not write those: there
//! every character is a word of its own, and a question asks for two of them side by side.

/// The words of a question that are looked for; more say nothing more.
const MOST_TERMS: usize = 32;

/// Words that are in every English text and tell none from another. PostgreSQL leaves them out by itself.
const COMMON: &[&str] = &[
    "a", "about", "an", "and", "any", "are", "as", "at", "be", "been", "but", "by", "can", "could", "did",
    "do", "does", "for", "from", "had", "has", "have", "how", "i", "if", "in", "into", "is", "it", "its",
    "may", "me", "my", "no", "not", "of", "on", "or", "our", "should", "so", "some", "than", "that", "the",
    "their", "them", "then", "there", "these", "they", "this", "those", "to", "was", "we", "were", "what",
    "when", "where", "which", "who", "whom", "whose", "why", "will", "with", "would", "you", "your",
];

/// A text as it is put into the index.
pub fn spelled_out(text: &str) -> String {
    let mut spelled = String::with_capacity(text.len());
    for c in plain(text) {
        if is_a_word_alone(c) {
            spelled.extend([' ', c, ' ']);
        } else {
            spelled.push(c);
        }
    }
    spelled
}

/// What a question asks for: words that stand side by side, most often one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Term(Vec<String>);

impl Term {
    /// As FTS5 reads it.
    pub fn for_sqlite(&self) -> String {
        format!("\"{}\"", self.0.join(" "))
    }

    /// As `to_tsquery` reads it.
    pub fn for_postgres(&self) -> String {
        format!("({})", self.0.join(" <-> "))
    }

    /// As it stands in a text.
    pub fn as_written(&self) -> String {
        self.0.concat()
    }
}

/// The words of a question, in lower case, each once; the common ones only where there are no others.
pub fn terms(question: &str) -> Vec<Term> {
    let question: String = plain(question).collect::<String>().to_lowercase();
    let words = || question.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let only_common = words().all(|word| COMMON.contains(&word));
    let mut terms: Vec<Term> = Vec::new();
    for word in words().filter(|word| only_common || !COMMON.contains(word)) {
        for term in terms_of(word) {
            if terms.len() < MOST_TERMS && !terms.contains(&term) {
                terms.push(term);
            }
        }
    }
    terms
}

fn terms_of(word: &str) -> Vec<Term> {
    let characters: Vec<char> = word.chars().collect();
    let alike = characters.chunk_by(|one, next| is_a_word_alone(*one) == is_a_word_alone(*next));
    let mut terms = Vec::new();
    for run in alike {
        let text = |part: &[char]| part.iter().collect::<String>();
        if !is_a_word_alone(run[0]) || run.len() == 1 {
            terms.push(Term(vec![text(run)]));
        } else {
            // By twos, because nobody can tell without a dictionary where one word ends and the next begins.
            terms.extend(run.windows(2).map(|two| Term(two.iter().map(|c| text(&[*c])).collect())));
        }
    }
    terms
}

/// Han, Hiragana, Katakana and Hangul.
const fn is_a_word_alone(c: char) -> bool {
    matches!(c,
        '\u{1100}'..='\u{11FF}' | '\u{3005}'..='\u{3007}' | '\u{3041}'..='\u{30FF}' | '\u{31F0}'..='\u{31FF}'
        | '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}' | '\u{AC00}'..='\u{D7AF}' | '\u{F900}'..='\u{FAFF}'
        | '\u{FF66}'..='\u{FF9F}' | '\u{20000}'..='\u{3FFFF}')
}

/// The letters that a reader sees: without hints for where a word may be broken, full-width ones in their usual form,
/// ligatures taken apart.
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

    fn asked(question: &str) -> Vec<String> {
        terms(question).iter().map(Term::for_sqlite).collect()
    }

    #[test]
    fn a_question_is_its_words_once_each_and_nothing_of_its_punctuation() {
        let asked = asked("Tide, tide; \"TIDE\" NEAR low-water*?");
        assert_eq!(asked, ["\"tide\"", "\"near\"", "\"low\"", "\"water\""]);
    }

    #[test]
    fn words_that_every_text_has_are_asked_for_only_where_there_are_no_others() {
        assert_eq!(asked("When can boats enter the port?"), ["\"boats\"", "\"enter\"", "\"port\""]);
        assert_eq!(asked("To be or not to be"), ["\"to\"", "\"be\"", "\"or\"", "\"not\""]);
    }

    #[test]
    fn what_is_written_without_spaces_is_asked_for_by_twos() {
        assert_eq!(asked("灯台守"), ["\"灯 台\"", "\"台 守\""]);
        assert_eq!(asked("猫"), ["\"猫\""]);
        assert_eq!(asked("Tokyo駅"), ["\"tokyo\"", "\"駅\""]);
        assert_eq!(terms("커피")[0].for_postgres(), "(커 <-> 피)");
    }

    #[test]
    fn a_text_is_put_into_the_index_as_it_is_asked_for() {
        let words = |text| spelled_out(text).split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(words("雪国とは novel"), ["雪", "国", "と", "は", "novel"]);
        assert_eq!(
            words("of\u{AD}fice \u{FB01}le ＡＢＣ zero\u{200B}width"),
            ["office", "file", "ABC", "zerowidth"]
        );
    }
}
