//! Compares the Markdown of documents with references that were written by hand.
//!
//! `structure/KIND/NAME.md` is the reference of the document `KIND/NAME` of the corpus (see `corpus.rs`), and
//! `structure/made/NAME.md` that of a document that is made here. The kind of a made document is its extension.
//! `LANDFALL_SHOW=NAME` prints the text of one document. `LANDFALL_WRITE=FOLDER` writes the made documents to a folder.

#[path = "structure/made_mail.rs"]
mod made_mail;
#[path = "structure/made_office.rs"]
mod made_office;
#[path = "structure/made_pdf.rs"]
mod made_pdf;
#[path = "structure/made_sheets.rs"]
mod made_sheets;
#[path = "structure/made_slides.rs"]
mod made_slides;
#[path = "structure/score.rs"]
mod score;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use landfall_documents::{Document, Limits, Recognised};
use score::Score;

/// Makes a document for a test.
type Builder = fn() -> Vec<u8>;

/// All documents that are made here, by name.
fn made() -> Vec<(&'static str, Builder)> {
    [
        made_mail::DOCUMENTS,
        made_office::DOCUMENTS,
        made_pdf::DOCUMENTS,
        made_sheets::DOCUMENTS,
        made_slides::DOCUMENTS,
    ]
    .concat()
}

/// What the documents of a kind must reach.
struct Floor {
    /// The mean of the bigram scores.
    bigram: f64,
    /// The bigram score of each document.
    worst_bigram: f64,
    /// The mean of the scores of the sequence.
    sequence: f64,
    /// The mean of the structure scores.
    structure: f64,
}

const OFFICE: Floor = Floor { bigram: 0.98, worst_bigram: 0.90, sequence: 0.98, structure: 0.95 };

#[test]
fn docx() {
    assert_floor("docx", &OFFICE);
}

#[test]
fn html() {
    assert_floor("html", &OFFICE);
}

#[test]
fn mails() {
    for kind in ["eml", "mbox", "mhtml", "msg", "dat", "p7m"] {
        assert_floor(kind, &OFFICE);
    }
}

#[test]
fn books_archives_and_texts() {
    for kind in ["epub", "pages", "zip", "adoc", "ipynb", "md", "org", "rs", "rst", "srt", "tex", "vtt"] {
        assert_floor(kind, &OFFICE);
    }
}

#[test]
fn odt() {
    assert_floor("odt", &OFFICE);
}

/// The references have the words of an independent reader (pdftotext) in the order of the picture of the page.
#[test]
fn pdf() {
    assert_floor("pdf", &Floor { bigram: 0.98, worst_bigram: 0.90, sequence: 0.98, structure: 0.93 });
}

/// Each of them was made for a kind of structure.
#[test]
fn made_pdfs_keep_their_structure() {
    for (name, build) in made_pdf::DOCUMENTS {
        let score = score(&build(), "made", name);
        assert!(score.structure >= 0.90, "{name}: {score:?}");
    }
}

#[test]
fn pptx() {
    assert_floor("pptx", &OFFICE);
}

#[test]
fn xlsx() {
    assert_floor("xlsx", &OFFICE);
}

/// These have one form that is right.
#[test]
fn made_spreadsheets_and_presentations_are_read_exactly() {
    for (name, build) in [made_sheets::DOCUMENTS, made_slides::DOCUMENTS].concat() {
        let reference = std::fs::read_to_string(folder_of_references().join(format!("made/{name}.md")));
        assert_eq!(text(&build(), name), reference.expect(name).trim_end(), "{name}");
    }
}

#[test]
fn other_text_documents() {
    for kind in ["doc", "fodt", "rtf"] {
        assert_floor(kind, &OFFICE);
    }
}

#[test]
fn open_spreadsheets_and_presentations() {
    for kind in ["ods", "odp"] {
        assert_floor(kind, &OFFICE);
    }
}

#[test]
fn a_document_that_was_made_for_a_feature_of_word_processors_is_read_exactly() {
    let mut wrong = Vec::new();
    for (name, build) in made_office::DOCUMENTS {
        let (found, expected) = (text(&build(), name), reference("made", name));
        if found.trim() != expected.trim() {
            println!("--- {name}\n{found}");
            wrong.push(name);
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}

#[test]
fn every_made_document_has_a_reference_and_every_reference_a_document() {
    let mut names: Vec<String> = made().iter().map(|(name, _)| (*name).to_owned()).collect();
    if let Some(folder) = std::env::var_os("LANDFALL_WRITE").map(PathBuf::from) {
        for (name, build) in made() {
            std::fs::write(folder.join(name), build()).expect("a folder for the documents");
        }
    }
    names.sort();
    assert_eq!(names, references("made"));
}

/// `corpus.rs` leaves these to the references here, which have their structure too.
#[test]
fn each_presentation_and_workbook_of_the_corpus_has_a_reference() {
    let Some(corpus) = corpus() else { return };
    for kind in ["eml", "odt", "pptx", "xlsx"] {
        let entries = std::fs::read_dir(corpus.join(kind)).expect(kind);
        let paths = entries.map(|entry| entry.expect("readable").path());
        let documents = paths.filter(|path| path.extension().is_none_or(|extension| extension != "txt"));
        let name = |path: PathBuf| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut names: Vec<String> = documents.map(name).collect();
        names.sort();
        assert_eq!(names, references(kind), "{kind}");
    }
}

/// The table says what is read of each format, and has its rows in order.
#[test]
fn the_table_of_formats_names_each_format() {
    let table = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/formats.md");
    let table = std::fs::read_to_string(table).expect("docs/formats.md");
    let rows = table.lines().filter_map(|line| line.strip_prefix("| ")?.split_once(" | "));
    let formats: Vec<String> =
        rows.map(|(format, _)| format.to_lowercase()).filter(|name| name != "format").collect();
    assert!(formats.is_sorted(), "{formats:?}");
    let made = made();
    let of_documents = made.iter().map(|(name, _)| name.rsplit('.').next().unwrap_or_default());
    for extension in of_documents.chain(["pdf", "json", "xml", "plain text", "pictures"]) {
        let format = match extension {
            "adoc" => "asciidoc",
            "dat" => "tnef",
            "fodt" => "odt",
            "ipynb" => "jupyter",
            "md" => "markdown",
            "rs" => "source code",
            "rst" => "restructuredtext",
            "tex" => "latex",
            extension => extension,
        };
        assert!(formats.iter().any(|row| row.contains(format)), "{format}");
    }
}

/// It becomes words of the cell, parted so that its cells and rows can be told.
#[test]
fn a_table_in_a_cell_is_read_alike_in_each_format() {
    let expected = "| Boat | Loads |\n| --- | --- |\n\
                    | Annie | On deck Bow / 2.1 ; Stern: 2.4 ; Dry\\|kept ; in port |\n| Bella | |";
    let html = "<table border=1><tr><th>Boat<th>Loads<tr><td>Annie<td>On deck<table><tr><td>Bow<td>2.1<tr><td>Stern:<td>2.4\
                <tr><td><td>Dry|kept</table>in port<tr><td>Bella<td></table>";
    let paragraph = |text: &str| format!("<w:p><w:r><w:t>{text}</w:t></w:r></w:p>");
    let cell = |text: &str| format!("<w:tc>{}</w:tc>", paragraph(text));
    let row = |cells: &str| format!("<w:tr>{cells}</w:tr>");
    let inner = [("Bow", "2.1"), ("Stern:", "2.4"), ("", "Dry|kept")];
    let rows = inner.map(|(a, b)| row(&(cell(a) + &cell(b)))).concat();
    let loads = format!("<w:tc>{}<w:tbl>{rows}</w:tbl>{}</w:tc>", paragraph("On deck"), paragraph("in port"));
    let docx = landfall_test_documents::docx(&format!(
        "<w:tbl>{}{}{}</w:tbl>",
        row(&(cell("Boat") + &cell("Loads"))),
        row(&(cell("Annie") + &loads)),
        row(&(cell("Bella") + &cell("")))
    ));
    let paragraph = |text: &str| format!("<text:p>{text}</text:p>");
    let cell = |inside: &str| format!("<table:table-cell>{inside}</table:table-cell>");
    let row = |a: &str, b: &str| format!("<table:table-row>{}{}</table:table-row>", cell(a), cell(b));
    let rows = inner.map(|(a, b)| row(&paragraph(a), &paragraph(b))).concat();
    let loads = paragraph("On deck") + &format!("<table:table>{rows}</table:table>") + &paragraph("in port");
    let odt = landfall_test_documents::open_document(
        "text",
        &format!(
            "<table:table>{}{}{}</table:table>",
            row(&paragraph("Boat"), &paragraph("Loads")),
            row(&paragraph("Annie"), &loads),
            row(&paragraph("Bella"), "")
        ),
    );
    let properties = "{\\*\\nesttableprops\\trowd\\cellx900\\cellx1800\\nestrow}{\\nonesttables\\par}";
    let rows = inner.map(|(a, b)| format!("\\itap2 {a}\\nestcell {b}\\nestcell{properties}")).concat();
    let edges = "\\trowd\\cellx2000\\cellx6000";
    let rtf = format!(
        "{{\\rtf1 {edges}\\intbl Boat\\cell Loads\\cell\\row{edges}\\intbl Annie\\cell On deck\\par {rows}\\intbl\\itap1 \
         in port\\cell\\row{edges}\\intbl Bella\\cell\\cell\\row\\pard}}"
    );
    let documents =
        [("a.html", html.as_bytes().to_vec()), ("a.docx", docx), ("a.odt", odt), ("a.rtf", rtf.into_bytes())];
    for (name, bytes) in documents {
        assert_eq!(text(&bytes, name).trim(), expected, "{name}");
    }
}

#[test]
fn hidden_sheets_and_slides_of_open_documents_are_marked() {
    let document = |kind: &str, style: &str, inside: &str| {
        let content = format!(
            "<office:document-content><office:automatic-styles>{style}</office:automatic-styles><office:body><office:{kind}>{inside}\
             </office:{kind}></office:body></office:document-content>"
        );
        let mimetype = format!("application/vnd.oasis.opendocument.{kind}");
        landfall_test_documents::archive(&[
            ("mimetype", mimetype.as_bytes()),
            ("content.xml", content.as_bytes()),
        ])
    };
    let sheet = |style: &str, name: &str| {
        format!(
            "<table:table table:style-name=\"{style}\" table:name=\"{name}\"><table:table-row><table:table-cell><text:p>High</text:p>\
             </table:table-cell></table:table-row></table:table>"
        )
    };
    let style = "<style:style style:name=\"h\" style:family=\"table\"><style:table-properties table:display=\"false\"/></style:style>";
    let ods = document("spreadsheet", style, &(sheet("s", "Shown") + &sheet("h", "Secret")));
    assert_eq!(text(&ods, "a.ods").trim(), "## Shown\n\nHigh\n\n## Secret (hidden)\n\nHigh");
    let slide = |style: &str, class: &str| {
        format!(
            "<draw:page draw:style-name=\"{style}\"><draw:frame presentation:class=\"{class}\"><draw:text-box><text:p>Tides</text:p>\
             </draw:text-box></draw:frame></draw:page>"
        )
    };
    let style = "<style:style style:name=\"h\" style:family=\"drawing-page\"><style:drawing-page-properties \
                 presentation:visibility=\"hidden\"/></style:style>";
    let odp = document(
        "presentation",
        style,
        &(slide("s", "title") + &slide("h", "title") + &slide("h", "subtitle") + &slide("s", "title")),
    );
    assert_eq!(
        text(&odp, "a.odp").trim(),
        "## Tides\n\n## Tides (hidden)\n\n## Slide 3 (hidden)\n\nTides\n\n## Tides"
    );
}

/// Each of these styles of Word has a list of its own, which is shown inside the list before it.
#[test]
fn the_lists_of_the_built_in_styles_are_nested() {
    let level =
        "<w:lvl w:ilvl='0'><w:start w:val='1'/><w:numFmt w:val='FORMAT'/><w:lvlText w:val='TEXT'/></w:lvl>";
    let names = [
        ("List Bullet", "bullet", "-"),
        ("List Bullet 2", "bullet", "-"),
        ("List Number 3", "decimal", "%1."),
    ];
    let (mut numbering, mut lists, mut styles) = (String::new(), String::new(), String::new());
    for (number, (name, format, text)) in (1..).zip(names) {
        let level = level.replace("FORMAT", format).replace("TEXT", text);
        numbering += &format!("<w:abstractNum w:abstractNumId='{number}'>{level}</w:abstractNum>");
        lists += &format!("<w:num w:numId='{number}'><w:abstractNumId w:val='{number}'/></w:num>");
        styles += &format!(
            "<w:style w:styleId='S{number}'><w:name w:val='{name}'/><w:pPr><w:numPr><w:numId w:val='{number}'/></w:numPr></w:pPr></w:style>"
        );
    }
    let item = |style: u32, text: &str| {
        format!("<w:p><w:pPr><w:pStyle w:val='S{style}'/></w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>")
    };
    let body =
        item(1, "Bring") + &item(2, "charts") + &item(3, "north") + &item(3, "south") + &item(1, "Leave");
    let docx = landfall_test_documents::docx_with(
        &body,
        &[
            ("word/numbering.xml", format!("<w:numbering>{numbering}{lists}</w:numbering>").as_bytes()),
            ("word/styles.xml", format!("<w:styles>{styles}</w:styles>").as_bytes()),
        ],
        &[("n", "numbering", "numbering.xml"), ("s", "styles", "styles.xml")],
    );
    assert_eq!(text(&docx, "a.docx").trim(), "- Bring\n  - charts\n    1. north\n    2. south\n- Leave");
}

fn assert_floor(kind: &str, floor: &Floor) {
    let mut scores: Vec<(String, Score)> = Vec::new();
    if let Some(corpus) = corpus() {
        for name in references(kind) {
            let bytes = std::fs::read(corpus.join(kind).join(&name)).expect(&name);
            scores.push((name.clone(), score(&bytes, kind, &name)));
        }
    }
    for (name, build) in made() {
        if name.rsplit_once('.').is_some_and(|(_, extension)| extension == kind) {
            scores.push((name.to_owned(), score(&build(), "made", name)));
        }
    }
    assert!(!scores.is_empty(), "there is no document of the kind {kind}");
    let mean = |of: fn(&Score) -> f64| {
        #[expect(clippy::cast_precision_loss, reason = "some dozens")]
        let mean = scores.iter().map(|(_, score)| of(score)).sum::<f64>() / scores.len() as f64;
        mean
    };
    for (name, score) in &scores {
        println!(
            "{kind}: unigram {:.3} bigram {:.3} sequence {:.3} structure {:.3} {name}",
            score.unigram, score.bigram, score.sequence, score.structure
        );
    }
    let (bigram, structure) = (mean(|score| score.bigram), mean(|score| score.structure));
    let sequence = mean(|score| score.sequence);
    println!(
        "{kind}: means of {}: unigram {:.4} bigram {bigram:.4} sequence {sequence:.4} structure {structure:.4}",
        scores.len(),
        mean(|score| score.unigram),
    );
    for (name, score) in &scores {
        assert!(score.bigram >= floor.worst_bigram, "{name}: {score:?}");
    }
    assert!(bigram >= floor.bigram, "{kind}: bigrams {bigram:.4} are below {}", floor.bigram);
    assert!(sequence >= floor.sequence, "{kind}: sequence {sequence:.4} is below {}", floor.sequence);
    assert!(structure >= floor.structure, "{kind}: structure {structure:.4} is below {}", floor.structure);
}

fn score(bytes: &[u8], folder: &str, name: &str) -> Score {
    let text = text(bytes, name);
    if std::env::var("LANDFALL_SHOW").is_ok_and(|wanted| wanted == name) {
        println!("{text}");
    }
    Score::of(&text, &reference(folder, name))
}

fn text(bytes: &[u8], name: &str) -> String {
    let document = Document { bytes, name, content_type: None };
    let reading = landfall_documents::read(document, &Limits::default(), &|| ControlFlow::Continue(()));
    reading.and_then(|reading| reading.finish(Recognised::NotInstalled)).expect(name).text
}

fn reference(folder: &str, name: &str) -> String {
    let path = folder_of_references().join(folder).join(format!("{name}.md"));
    std::fs::read_to_string(path).expect(name)
}

fn folder_of_references() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/structure")
}

/// The names of the documents that have a reference in this folder, in their order.
fn references(folder: &str) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder_of_references().join(folder)) else { return Vec::new() };
    let names = entries.map(|entry| entry.expect("readable").file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> =
        names.filter_map(|name| name.strip_suffix(".md").map(str::to_owned)).collect();
    names.sort();
    names
}

fn corpus() -> Option<PathBuf> {
    let above = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let set = std::env::var_os("LANDFALL_CORPUS").map(PathBuf::from);
    let beside = [above.join("../shared/corpus"), above.join("../../shared/corpus")];
    let found = set.into_iter().chain(beside).find(|folder| folder.is_dir());
    if found.is_none() {
        eprintln!("SKIPPED: there is no corpus of documents; set LANDFALL_CORPUS");
    }
    found
}
