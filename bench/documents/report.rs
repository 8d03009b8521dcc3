//! Prints the figures.

use super::corpus::Corpus;
use super::questions::Question;
use super::score::{SearchResult, hit_at, mean_reciprocal_rank};
use crate::intake::Intake;

const NAME_WIDTH: usize = 58;
/// By words and meaning together, by words alone, by meaning alone.
type Ways<T> = [T; 3];

pub struct Cost {
    pub seconds: f64,
    pub cpu_seconds: f64,
    pub peak_mebibytes: f64,
}

pub fn print(corpus: &Corpus, intake: &Intake, cost: &Cost, milliseconds: &[f64]) {
    let line = |name: &str, value: f64| println!("{name:NAME_WIDTH$} {value:>10.1}");
    println!();
    line("documents", corpus.documents.len() as f64);
    line("documents: ready", intake.ready.len() as f64);
    for (why, names) in &intake.failed {
        line(&format!("documents: {why}"), names.len() as f64);
    }
    line("first upload to last file searchable, s", cost.seconds);
    line("CPU of the server and its children, s", cost.cpu_seconds);
    line("peak memory of the server, MiB", cost.peak_mebibytes);
    let mut sorted = milliseconds.to_vec();
    sorted.sort_by(f64::total_cmp);
    if let Some(median) = sorted.get(sorted.len() / 2) {
        line("a question over the wire, median ms", *median);
    }
    let has_text = |name: &str| corpus.documents.iter().any(|one| one.has_text && one.name == name);
    for (why, names) in &intake.failed {
        for name in names.iter().filter(|name| has_text(name)) {
            println!("  {name} has text, and ended with {why}");
        }
    }
}

pub fn print_ranks(questions: &[Question], ways: Ways<&Vec<SearchResult>>, intake: &Intake) {
    println!("\n{:NAME_WIDTH$} {:>10} {:>10} {:>10}", "", "hybrid", "words", "meaning");
    let rank_of = |result: &SearchResult| result.file_rank;
    group("right file", questions, ways, |_| true, rank_of);
    group("right file, asked in its own words", questions, ways, |question| !question.paraphrase, rank_of);
    group("right file, asked in other words", questions, ways, |question| question.paraphrase, rank_of);
    let has_pages = |question: &Question| !question.pages.is_empty();
    group("right page, where there are pages", questions, ways, has_pages, |result| result.page_rank);
    let ready = |question: &&Question| question.files.iter().any(|file| intake.ready.contains(file));
    let without = questions.len() - questions.iter().filter(ready).count();
    if without > 0 {
        println!(
            "{without} questions are about documents that did not become ready; they count as not answered"
        );
    }
    print_missed(questions, ways, ready);
}

/// How often a question with an answer finds nothing, and one without an answer something.
pub fn print_floor(results: &[SearchResult], (found, queries): &(Vec<(String, f64)>, usize)) {
    let empty = results.iter().filter(|result| result.first.is_none()).count();
    println!("\nFind nothing: {empty} of {} questions with an answer", results.len());
    println!("Find something: {} of {queries} queries without an answer", found.len());
    for (query, score) in found {
        println!("  {score:.2} {query}");
    }
}

/// What to check: each is a fault of the search or of the question.
fn print_missed(questions: &[Question], ways: Ways<&Vec<SearchResult>>, ready: impl Fn(&&Question) -> bool) {
    println!("\nNot among the first three (rank by words, by meaning):");
    for (index, question) in questions.iter().enumerate().filter(|(_, question)| ready(question)) {
        let [hybrid, words, meaning] = ways.map(|answers| &answers[index]);
        if hybrid.file_rank.is_some_and(|rank| rank <= 3) {
            continue;
        }
        let shown = |result: &SearchResult| result.file_rank.map_or("-".to_owned(), |rank| rank.to_string());
        let first = hybrid.first.as_ref().map_or("nothing", |place| place.file.as_str());
        println!("  ({}, {}) {}", shown(words), shown(meaning), question.question);
        println!("      wanted {}, first was {first}", question.files.join(" or "));
    }
}

fn group(
    name: &str,
    questions: &[Question],
    ways: Ways<&Vec<SearchResult>>,
    chosen: impl Fn(&Question) -> bool,
    rank_of: impl Fn(&SearchResult) -> Option<usize>,
) {
    let ranks: Ways<Vec<Option<usize>>> = ways.map(|answers| {
        let chosen = questions.iter().zip(answers).filter(|(question, _)| chosen(question));
        chosen.map(|(_, result)| rank_of(result)).collect()
    });
    println!("{name}: {} questions", ranks[0].len());
    let line = |name: &str, figure: &dyn Fn(&[Option<usize>]) -> f64| {
        let [hybrid, words, meaning] = ranks.each_ref().map(|ranks| figure(ranks));
        println!("  {name:<0$} {hybrid:>10.3} {words:>10.3} {meaning:>10.3}", NAME_WIDTH - 2);
    };
    line("first (hit@1)", &|ranks| hit_at(1, ranks));
    line("among the first three (hit@3)", &|ranks| hit_at(3, ranks));
    line("mean reciprocal rank of the first ten", &mean_reciprocal_rank);
}
