//! Documents of word processors, each for one feature.

use landfall_test_documents::{archive, compound_of, docx, docx_with, open_document};

use super::Builder;

pub const DOCUMENTS: &[(&str, Builder)] = &[
    ("changes.docx", changes),
    ("code.docx", code),
    ("embedded.docx", embedded),
    ("equations.docx", equations),
    ("figures.docx", figures),
    ("headings.docx", headings),
    ("links.docx", links),
    ("lists.docx", lists),
    ("margins.docx", margins),
    ("notes.docx", notes),
    ("tables.docx", tables),
    ("flat.fodt", flat_text),
    ("lists.odt", open_lists),
    ("notes.odt", open_notes),
    ("tables.odt", open_tables),
    ("sheets.ods", sheets),
    ("slides.odp", slides),
    ("lists.rtf", rtf_lists),
    ("notes.rtf", rtf_notes),
    ("tables.rtf", rtf_tables),
    // Saved by LibreOffice from a text that was written for this test.
    ("harbour.doc", || include_bytes!("files/harbour.doc").to_vec()),
];

fn p(text: &str) -> String {
    styled("", text)
}

/// A paragraph with these properties.
fn styled(properties: &str, text: &str) -> String {
    format!("<w:p><w:pPr>{properties}</w:pPr>{}</w:p>", r(text))
}

fn r(text: &str) -> String {
    format!("<w:r><w:t xml:space=\"preserve\">{text}</w:t></w:r>")
}

fn item(list: u32, level: u32, text: &str) -> String {
    styled(&format!("<w:numPr><w:ilvl w:val=\"{level}\"/><w:numId w:val=\"{list}\"/></w:numPr>"), text)
}

fn with_styles(body: &str, names: &[&str]) -> Vec<u8> {
    let style = |name: &str| {
        format!("<w:style w:styleId=\"{}\"><w:name w:val=\"{name}\"/></w:style>", name.replace(' ', ""))
    };
    let styles: String = names.iter().map(|name| style(name)).collect();
    let styles = format!("<w:styles>{styles}</w:styles>");
    docx_with(body, &[("word/styles.xml", styles.as_bytes())], &[("s", "styles", "styles.xml")])
}

fn style(name: &str) -> String {
    format!("<w:pStyle w:val=\"{name}\"/>")
}

fn headings() -> Vec<u8> {
    let heading = |name: &str, text: &str| styled(&style(name), text) + &p(&format!("Words under {text}."));
    let body = heading("heading1", "Tides")
        + &heading("heading2", "Spring")
        + &heading("heading3", "The equinox")
        + &heading("heading2", "Neap")
        + &styled("<w:outlineLvl w:val=\"0\"/>", "Winds")
        + &p("Words under Winds.");
    with_styles(&body, &["heading 1", "heading 2", "heading 3"])
}

fn lists() -> Vec<u8> {
    let level = |at: u32, format: &str, text: &str| {
        format!(
            "<w:lvl w:ilvl=\"{at}\"><w:start w:val=\"1\"/><w:numFmt w:val=\"{format}\"/><w:lvlText w:val=\"{text}\"/></w:lvl>"
        )
    };
    let numbering = format!(
        "<w:numbering><w:abstractNum w:abstractNumId=\"0\">{}{}{}</w:abstractNum>\
         <w:abstractNum w:abstractNumId=\"1\">{}{}</w:abstractNum><w:abstractNum w:abstractNumId=\"2\">{}{}</w:abstractNum>\
         <w:num w:numId=\"1\"><w:abstractNumId w:val=\"0\"/></w:num><w:num w:numId=\"2\"><w:abstractNumId w:val=\"1\"/></w:num>\
         <w:num w:numId=\"3\"><w:abstractNumId w:val=\"0\"/><w:lvlOverride w:ilvl=\"0\"><w:startOverride w:val=\"7\"/>\
         </w:lvlOverride></w:num><w:num w:numId=\"4\"><w:abstractNumId w:val=\"2\"/></w:num></w:numbering>",
        level(0, "decimal", "%1."),
        level(1, "lowerLetter", "%2)"),
        level(2, "lowerRoman", "%1.%2.%3"),
        level(0, "bullet", "\u{F0B7}"),
        level(1, "bullet", "o"),
        level(0, "bullet", " "),
        level(1, "bullet", " "),
    );
    let body = p("Before the voyage:")
        + &item(1, 0, "Check the weather")
        + &item(1, 1, "Wind")
        + &item(1, 1, "Waves")
        + &item(1, 2, "Swell")
        + &item(1, 0, "Check the engine")
        + &p("Bring along:")
        + &item(2, 0, "Charts")
        + &item(2, 1, "Harbour plans")
        + &item(2, 0, "Compass")
        + &p("Then go on:")
        + &item(3, 0, "Cast off")
        + &item(3, 0, "Set sail")
        + &item(3, 1, "the jib")
        // An item with a blank for a bullet goes on with the one before.
        + &item(4, 1, "if there is little wind")
        + &item(4, 0, "and watch the shore")
        + &item(3, 0, "Arrive");
    docx_with(&body, &[("word/numbering.xml", numbering.as_bytes())], &[("n", "numbering", "numbering.xml")])
}

fn tables() -> Vec<u8> {
    let cell =
        |properties: &str, text: &str| format!("<w:tc><w:tcPr>{properties}</w:tcPr>{}</w:tc>", p(text));
    let row = |cells: &[String]| format!("<w:tr>{}</w:tr>", cells.concat());
    let table = format!(
        "<w:tbl>{}{}{}{}</w:tbl>",
        row(&[cell("<w:gridSpan w:val=\"2\"/>", "Water"), cell("", "Port")]),
        row(&[cell("", "High"), cell("", "Low"), cell("", "")]),
        row(&[cell("", "3.1"), cell("", ""), cell("<w:vMerge w:val=\"restart\"/>", "Ayr")]),
        row(&[cell("", "2.9"), cell("", "0.4"), cell("<w:vMerge/>", "")]),
    );
    let frame = format!(
        "<w:tbl>{}</w:tbl>",
        row(&[format!("<w:tc>{}{}</w:tc>", p("A framed note."), p("Its second part."))])
    );
    docx(&(p("Levels in metres") + &table + &p("Between the tables.") + &frame))
}

fn changes() -> Vec<u8> {
    let body = "<w:p><w:r><w:t xml:space=\"preserve\">The harbour </w:t></w:r><w:del><w:r><w:delText>opens</w:delText></w:r></w:del>\
        <w:ins><w:r><w:t>closes</w:t></w:r></w:ins><w:moveFrom><w:r><w:t>early</w:t></w:r></w:moveFrom>\
        <w:r><w:t xml:space=\"preserve\"> at </w:t></w:r><w:moveTo><w:r><w:t>noon.</w:t></w:r></w:moveTo></w:p>\
        <w:p><w:pPr><w:rPr><w:del/></w:rPr></w:pPr><w:r><w:t xml:space=\"preserve\">One paragraph </w:t></w:r></w:p>\
        <w:p><w:r><w:t>of two.</w:t></w:r><w:r><w:rPr><w:vanish/></w:rPr><w:t>Hidden words</w:t></w:r></w:p>";
    docx(body)
}

fn notes() -> Vec<u8> {
    let body = format!(
        "<w:p>{}<w:r><w:footnoteReference w:id=\"2\"/></w:r>{}<w:r><w:commentReference w:id=\"0\"/></w:r></w:p>{}\
         <w:p>{}<w:r><w:endnoteReference w:id=\"3\"/></w:r><w:r><mc:AlternateContent><mc:Choice><w:drawing><wps:txbx>\
         <w:txbxContent>{}</w:txbxContent></wps:txbx></w:drawing></mc:Choice><mc:Fallback><w:pict><w:txbxContent>{}</w:txbxContent>\
         </w:pict></mc:Fallback></mc:AlternateContent></w:r></w:p>",
        r("The tide turns"),
        r(" twice a day."),
        p("A paragraph between."),
        r("It follows the moon."),
        p("In a text box"),
        p("In a text box"),
    );
    let note = |element: &str, id: u32, text: &str| {
        format!(
            "<w:{element}s><w:{element} w:id=\"{id}\" w:author=\"Anna\">{}</w:{element}></w:{element}s>",
            p(text)
        )
    };
    let parts = [
        ("word/footnotes.xml", note("footnote", 2, "In most places.")),
        ("word/endnotes.xml", note("endnote", 3, "And the sun.")),
        ("word/comments.xml", note("comment", 0, "Is this so?")),
    ];
    let parts: Vec<(&str, &[u8])> = parts.iter().map(|(name, text)| (*name, text.as_bytes())).collect();
    let relations = [
        ("f", "footnotes", "footnotes.xml"),
        ("e", "endnotes", "endnotes.xml"),
        ("c", "comments", "comments.xml"),
    ];
    docx_with(&body, &parts, &relations)
}

fn links() -> Vec<u8> {
    let body = format!(
        "<w:p>{}<w:hyperlink r:id=\"l\">{}</w:hyperlink>{}</w:p><w:p><w:r><w:fldChar w:fldCharType=\"begin\"/></w:r>\
         <w:r><w:instrText> HYPERLINK \"https://b.example/chart\" </w:instrText></w:r><w:r><w:fldChar w:fldCharType=\"separate\"/></w:r>\
         {}<w:r><w:fldChar w:fldCharType=\"end\"/></w:r></w:p><w:p><w:r><w:drawing><wp:inline><wp:docPr id=\"1\" name=\"Picture 1\" \
         descr=\"A lighthouse at dusk\"/></wp:inline></w:drawing></w:r></w:p>",
        r("See "),
        r("the tide tables"),
        r(" for details."),
        r("The chart"),
    );
    let relations = "<Relationships><Relationship Id=\"l\" Type=\"x/hyperlink\" Target=\"https://a.example/tides\" \
        TargetMode=\"External\"/></Relationships>";
    let document = format!("<w:document xmlns:w=\"w\"><w:body>{body}</w:body></w:document>");
    let types = "<Types><Override PartName=\"/word/document.xml\" ContentType=\"wordprocessingml\"/></Types>";
    let top = "<Relationships><Relationship Id=\"a\" Type=\"x/officeDocument\" Target=\"word/document.xml\"/></Relationships>";
    archive(&[
        ("[Content_Types].xml", types.as_bytes()),
        ("_rels/.rels", top.as_bytes()),
        ("word/document.xml", document.as_bytes()),
        ("word/_rels/document.xml.rels", relations.as_bytes()),
    ])
}

fn margins() -> Vec<u8> {
    let field =
        |name: &str, result: &str| format!("<w:fldSimple w:instr=\" {name} \">{}</w:fldSimple>", r(result));
    let header = |text: &str| format!("<w:hdr>{}</w:hdr>", p(text));
    let footer = format!(
        "<w:ftr><w:p>{}{}</w:p><w:p>{}{}</w:p></w:ftr>",
        r("Page "),
        field("PAGE", "1"),
        r("Harbour Office, confidential, page "),
        field("PAGE", "1")
    );
    let (first, second) = (header("Notices to mariners"), header("Notices to mariners"));
    docx_with(
        &p("The harbour closes at noon."),
        &[
            ("word/header1.xml", first.as_bytes()),
            ("word/header2.xml", second.as_bytes()),
            ("word/footer1.xml", footer.as_bytes()),
        ],
        &[("a", "header", "header1.xml"), ("b", "header", "header2.xml"), ("c", "footer", "footer1.xml")],
    )
}

fn figures() -> Vec<u8> {
    let point = |at: u32, value: &str| format!("<c:pt idx=\"{at}\"><c:v>{value}</c:v></c:pt>");
    let chart = format!(
        "<c:chartSpace><c:chart><c:title><c:tx><c:rich><a:p><a:r><a:t>Ships by year</a:t></a:r></a:p></c:rich></c:tx></c:title>\
         <c:plotArea><c:barChart><c:ser><c:tx><c:strRef><c:strCache>{}</c:strCache></c:strRef></c:tx><c:cat><c:strRef><c:strCache>{}{}\
         </c:strCache></c:strRef></c:cat><c:val><c:numRef><c:numCache>{}{}</c:numCache></c:numRef></c:val></c:ser></c:barChart></c:plotArea>\
         </c:chart></c:chartSpace>",
        point(0, "Arrivals"),
        point(0, "2024"),
        point(1, "2025"),
        point(0, "310"),
        point(1, "295"),
    );
    let node = |id: u32, words: &str| {
        format!("<dgm:pt modelId=\"{id}\"><dgm:t><a:p><a:r><a:t>{words}</a:t></a:r></a:p></dgm:t></dgm:pt>")
    };
    let diagram = format!(
        "<dgm:dataModel><dgm:ptLst><dgm:pt modelId=\"0\" type=\"doc\"/>{}{}{}</dgm:ptLst><dgm:cxnLst>\
         <dgm:cxn srcId=\"0\" destId=\"1\" srcOrd=\"0\"/><dgm:cxn srcId=\"1\" destId=\"2\" srcOrd=\"0\"/>\
         <dgm:cxn srcId=\"0\" destId=\"3\" srcOrd=\"1\"/></dgm:cxnLst></dgm:dataModel>",
        node(1, "Harbour master"),
        node(2, "Pilot"),
        node(3, "Customs"),
    );
    let drawing = |inside: &str| format!("<w:p><w:r><w:drawing>{inside}</w:drawing></w:r></w:p>");
    let body = p("The port in figures.")
        + &drawing("<c:chart r:id=\"c\"/>")
        + &p("Who works there:")
        + &drawing("<dgm:relIds r:dm=\"d\"/>");
    let parts =
        [("word/charts/chart1.xml", chart.as_bytes()), ("word/diagrams/data1.xml", diagram.as_bytes())];
    docx_with(
        &body,
        &parts,
        &[("c", "chart", "charts/chart1.xml"), ("d", "diagramData", "diagrams/data1.xml")],
    )
}

fn equations() -> Vec<u8> {
    let run = |text: &str| format!("<m:r><m:t>{text}</m:t></m:r>");
    let body = format!(
        "<w:p>{}<m:oMath>{}<m:nary><m:naryPr><m:chr m:val=\"∑\"/></m:naryPr><m:sub>{}</m:sub><m:sup>{}</m:sup><m:e><m:d><m:e>{}</m:e>\
         </m:d></m:e></m:nary></m:oMath>{}</w:p><w:p><m:oMathPara><m:oMath><m:f><m:num>{}</m:num><m:den><m:rad><m:deg/><m:e>{}</m:e></m:rad>\
         </m:den></m:f></m:oMath></m:oMathPara></w:p>",
        r("The sum is "),
        run("s="),
        run("k=1"),
        run("n"),
        run("k+1"),
        r(" metres."),
        run("a"),
        run("b"),
    );
    docx(&body)
}

fn code() -> Vec<u8> {
    let body = p("Run this:")
        + &styled(&style("SourceCode"), "fn main() {")
        + &styled(&style("SourceCode"), "    tide();")
        + &styled(&style("SourceCode"), "}")
        + &p("He said:")
        + &styled(&style("Quote"), "The sea is patient.")
        + &p("Then he left.");
    with_styles(&body, &["Source Code", "Quote"])
}

fn embedded() -> Vec<u8> {
    let inner = docx(&p("Words of the inner document."));
    let object = compound_of(&[("Package", &docx(&p("Words of the packed document.")))]);
    let html = b"<html><body><p>Words of the web page.</p></body></html>";
    let body = p("First.")
        + "<w:altChunk r:id=\"h\"/>"
        + &p("Second.")
        + "<w:p><w:r><w:object><o:OLEObject r:id=\"d\"/></w:object></w:r></w:p>"
        + &p("Third.")
        + "<w:p><w:r><w:object><o:OLEObject r:id=\"o\"/></w:object></w:r></w:p>"
        + &p("Last.");
    let parts: [(&str, &[u8]); 3] = [
        ("word/afchunk1.html", html),
        ("word/embeddings/inner.docx", &inner),
        ("word/embeddings/oleObject1.bin", &object),
    ];
    let relations = [
        ("h", "aFChunk", "afchunk1.html"),
        ("d", "package", "embeddings/inner.docx"),
        ("o", "oleObject", "embeddings/oleObject1.bin"),
    ];
    docx_with(&body, &parts, &relations)
}

const LIST_STYLES: &str = "<text:list-style style:name=\"N\"><text:list-level-style-number text:level=\"1\" style:num-format=\"1\" style:num-suffix=\".\"/>\
    <text:list-level-style-number text:level=\"2\" style:num-format=\"a\" style:num-suffix=\")\"/></text:list-style>\
    <text:list-style style:name=\"B\"><text:list-level-style-bullet text:level=\"1\" text:bullet-char=\"•\"/></text:list-style>\
    <text:outline-style><text:outline-level-style text:level=\"1\" style:num-format=\"1\"/>\
    <text:outline-level-style text:level=\"2\" style:num-format=\"1\" text:display-levels=\"2\"/></text:outline-style>";

/// A text with its styles and what is in its pages' margins.
fn open_text(body: &str, margins: &str) -> Vec<u8> {
    let content = format!(
        "<office:document-content><office:automatic-styles>{LIST_STYLES}</office:automatic-styles><office:body><office:text>{body}\
         </office:text></office:body></office:document-content>"
    );
    let styles = format!(
        "<office:document-styles><office:master-styles><style:master-page>{margins}</style:master-page></office:master-styles>\
         </office:document-styles>"
    );
    archive(&[
        ("mimetype", b"application/vnd.oasis.opendocument.text"),
        ("content.xml", content.as_bytes()),
        ("styles.xml", styles.as_bytes()),
        ("Formula-0/content.xml", b"<?xml version='1.0'?><math><msub><mi>a</mi><mn>1</mn></msub></math>"),
    ])
}

fn t(text: &str) -> String {
    format!("<text:p>{text}</text:p>")
}

const OPEN_LISTS: &str = "<text:h text:outline-level=\"1\">Voyage</text:h><text:h text:outline-level=\"2\">Before</text:h>\
    <text:list xml:id=\"one\" text:style-name=\"N\"><text:list-item><text:p>Check the weather</text:p><text:list><text:list-item><text:p>Wind</text:p>\
    </text:list-item><text:list-item><text:p>Waves</text:p></text:list-item></text:list></text:list-item></text:list>\
    <text:p>A pause.</text:p><text:list text:continue-list=\"one\" text:style-name=\"N\"><text:list-item><text:p>Check the engine</text:p>\
    </text:list-item></text:list><text:h text:outline-level=\"2\">Along</text:h><text:list text:style-name=\"B\"><text:list-item>\
    <text:p>Charts</text:p></text:list-item><text:list-item><text:p>Compass</text:p><text:p>It must be tested.</text:p></text:list-item></text:list>";

fn open_lists() -> Vec<u8> {
    open_text(OPEN_LISTS, "")
}

fn flat_text() -> Vec<u8> {
    format!(
        "<?xml version=\"1.0\"?><office:document xmlns:office=\"o\" office:mimetype=\"application/vnd.oasis.opendocument.text\">\
         <office:meta><dc:title>Not words</dc:title></office:meta><office:automatic-styles>{LIST_STYLES}</office:automatic-styles>\
         <office:body><office:text>{OPEN_LISTS}</office:text></office:body></office:document>"
    )
    .into_bytes()
}

fn open_notes() -> Vec<u8> {
    let body = format!(
        "<text:p text:style-name=\"Title\">Tides</text:p><text:tracked-changes><text:changed-region><text:deletion>{}</text:deletion></text:changed-region></text:tracked-changes>\
         <text:p>The tide turns<text:note><text:note-citation>1</text:note-citation><text:note-body>{}</text:note-body></text:note> twice\
         <text:change/> a day.<office:annotation><dc:creator>Anna</dc:creator><dc:date>2026-01-01</dc:date>{}</office:annotation></text:p>\
         <text:p>See <text:a xlink:href=\"https://a.example/tides\">the tables</text:a>.<draw:frame><draw:image xlink:href=\"\"/>\
         <svg:desc>A lighthouse at dusk</svg:desc></draw:frame></text:p>\
         <text:p>Energy: <draw:frame><draw:object><math:math><math:mi>E</math:mi><math:mo>=</math:mo><math:msup><math:mi>c</math:mi>\
         <math:mn>2</math:mn></math:msup></math:math></draw:object></draw:frame></text:p>\
         <text:p>Or <draw:frame><draw:object xlink:href=\"Formula-0/\"/></draw:frame> for short.</text:p>\
         <text:p>Beside it<draw:frame><draw:text-box>{}</draw:text-box></draw:frame> stands more.</text:p>",
        t("Deleted words"),
        t("In most places."),
        t("Is this so?"),
        t("A text box"),
    );
    let margins = format!(
        "<style:header>{}</style:header><style:header-left>{}</style:header-left><style:footer><text:p>Page <text:page-number>1</text:page-number>\
         </text:p></style:footer><style:footer-left>{}</style:footer-left>",
        t("Notices to mariners"),
        t("Notices to mariners"),
        t("Harbour Office")
    );
    open_text(&body, &margins)
}

fn open_tables() -> Vec<u8> {
    let cell = |attributes: &str, text: &str| {
        format!("<table:table-cell {attributes}>{}</table:table-cell>", t(text))
    };
    let body = format!(
        "{}<table:table><table:table-row>{}{}<table:covered-table-cell/></table:table-row><table:table-row><table:table-cell/>{}{}\
         </table:table-row><table:table-row>{}{}</table:table-row></table:table>{}",
        t("Levels in metres"),
        cell("", "Port"),
        cell("table:number-columns-spanned=\"2\"", "Water"),
        cell("", "High"),
        cell("", "Low"),
        cell("", "Ayr"),
        cell("table:number-columns-repeated=\"2\"", "3.1"),
        t("After the table."),
    );
    open_text(&body, "")
}

fn sheets() -> Vec<u8> {
    let cell = |text: &str| format!("<table:table-cell>{}</table:table-cell>", t(text));
    let sheet = format!(
        "<table:table table:name=\"Levels\"><table:table-row>{}{}<table:table-cell table:number-columns-repeated=\"1022\"/></table:table-row>\
         <table:table-row table:number-rows-repeated=\"3\"><table:table-cell/></table:table-row>\
         <table:table-row>{}<table:table-cell office:value-type=\"float\" office:value=\"3.1\"/></table:table-row>\
         <table:table-row table:number-rows-repeated=\"1048000\"><table:table-cell/></table:table-row></table:table>\
         <table:table table:name=\"Ports\"><table:table-row>{}{}</table:table-row></table:table>",
        cell("Port"),
        cell("High"),
        cell("Ayr"),
        cell("Oban"),
        cell("Mallaig"),
    );
    open_document("spreadsheet", &sheet)
}

fn slides() -> Vec<u8> {
    let frame = |class: &str, inside: &str| {
        format!(
            "<draw:frame presentation:class=\"{class}\"><draw:text-box>{inside}</draw:text-box></draw:frame>"
        )
    };
    let list = "<text:list><text:list-item><text:p>They come</text:p></text:list-item><text:list-item><text:p>They go</text:p></text:list-item></text:list>";
    let slides = format!(
        "<draw:page>{}{}<presentation:notes>{}</presentation:notes></draw:page><draw:page>{}{}</draw:page>",
        frame("title", &t("Tides")),
        frame("outline", list),
        frame("notes", &t("Say it slowly")),
        frame("title", &t("The moon")),
        frame("subtitle", &t("It is round.")),
    );
    open_document("presentation", &slides)
}

fn rtf_lists() -> Vec<u8> {
    br"{\rtf1\ansi{\stylesheet{Normal;}{\s1\outlinelevel0 heading 1;}{\s2\sbasedon1 Sub;}}
\pard\s1 Voyage\par\pard Before it:\par
\pard\ls1{\listtext 1.\tab}Check the weather\par\pard\ls1\ilvl1{\listtext a)\tab}Wind\par\pard\ls1\ilvl1{\listtext b)\tab}Waves\par
\pard\ls1{\listtext 2.\tab}Check the engine\par\pard Along with:\par
\pard{\pntext\f1\'B7\tab}Charts\par\pard{\pntext\f1\'B7\tab}Compass\par\pard\s2 The end\par
{\pard \li360 \fi-360 1.\tx360\tab Moor the boat\par}{\pard \li720 \fi-360 a.\tx360\tab at the bow\par}
{\pard \li720 \fi-360 \bullet \tx360\tab at the stern\par}{\pard \li360 \fi-360 2.\tx360\tab Go home\par}
{\pard 3.\tab is no item\par}}"
        .to_vec()
}

fn rtf_notes() -> Vec<u8> {
    br#"{\rtf1\ansi{\header Notices to mariners\par}{\footer Page \chpgn\par}{\footerf Harbour Office\par}
\pard The tide turns{\super\chftn}{\footnote\pard\chftn In most places.} twice a day.{\*\atnid A}{\*\atnauthor Anna}\chatn
{\*\annotation\pard Is this so?}\par
See {\field{\*\fldinst{HYPERLINK "https://a.example/tides"}}{\fldrslt{\ul the tables}}}.\par
{\shp{\*\shpinst{\sp{\sn x}{\sv 1}}{\shptxt\pard A text box\par}}}Beside it stands more.\par{\header Notices to mariners\par}}"#
        .to_vec()
}

fn rtf_tables() -> Vec<u8> {
    br"{\rtf1\ansi Levels in metres\par
\trowd\cellx2000\cellx3000\pard\intbl Water\cell Port\cell\row
\trowd\cellx1000\cellx2000\cellx3000\pard\intbl High\cell Low\cell\cell\row
\trowd\cellx1000\cellx2000\cellx3000\pard\intbl 3.1\cell 0.4\cell Ayr\par and Troon\cell\row
\pard After the table.\par}"
        .to_vec()
}
