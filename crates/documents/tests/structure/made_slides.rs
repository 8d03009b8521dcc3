//! Presentations, each for one feature.

use landfall_test_documents as made;

use super::Builder;
use super::made_sheets::{package, relations};

pub const DOCUMENTS: &[(&str, Builder)] = &[
    ("lists.pptx", lists),
    ("order.pptx", order),
    ("objects.pptx", objects),
    ("remarks.pptx", remarks),
    ("before-2007.ppt", before_2007),
];

const PRESENTATION: &str = "<Override PartName=\"/ppt/presentation.xml\" \
    ContentType=\"application/vnd.openxmlformats-officedocument.presentationml.presentation.main+xml\"/>";

/// A shape: what says which placeholder it is, where it is (left, top, width, height), and its paragraphs.
fn shape(placeholder: &str, place: Option<[u32; 4]>, paragraphs: &str) -> String {
    let place = place.map_or_else(String::new, |[left, top, width, height]| {
        format!("<a:xfrm><a:off x=\"{left}\" y=\"{top}\"/><a:ext cx=\"{width}\" cy=\"{height}\"/></a:xfrm>")
    });
    format!(
        "<p:sp><p:nvSpPr><p:cNvPr id=\"2\"/><p:nvPr>{placeholder}</p:nvPr></p:nvSpPr><p:spPr>{place}</p:spPr>\
         <p:txBody>{paragraphs}</p:txBody></p:sp>"
    )
}

fn title(kind: &str, words: &str) -> String {
    shape(&format!("<p:ph type=\"{kind}\"/>"), None, &paragraph("", words))
}

fn paragraph(properties: &str, words: &str) -> String {
    format!("<a:p>{properties}<a:r><a:t>{words}</a:t></a:r></a:p>")
}

/// Its attributes, its shapes, and what it refers to.
type Slide<'a> = (&'a str, String, Vec<(&'a str, &'a str, &'a str)>);

/// A presentation of slides, each its shapes and what it refers to, with one layout and one master.
fn presentation(
    slides: &[Slide<'_>],
    of_presentation: &[(&str, &str, &str)],
    further: &[(&str, Vec<u8>)],
) -> Vec<u8> {
    let list: String = (0..slides.len()).map(|n| format!("<p:sldId id=\"{n}\" r:id=\"s{n}\"/>")).collect();
    let targets: Vec<(String, String)> =
        (0..slides.len()).map(|n| (format!("s{n}"), format!("slides/slide{n}.xml"))).collect();
    let mut all: Vec<(&str, &str, &str)> =
        targets.iter().map(|(id, target)| (id.as_str(), "slide", target.as_str())).collect();
    all.extend(of_presentation);
    let mut parts: Vec<(String, Vec<u8>)> = vec![
        (
            "ppt/presentation.xml".to_owned(),
            format!("<p:presentation><p:sldIdLst>{list}</p:sldIdLst></p:presentation>").into(),
        ),
        ("ppt/_rels/presentation.xml.rels".to_owned(), relations(&all).into()),
    ];
    for (number, (attributes, shapes, references)) in slides.iter().enumerate() {
        let mut references = references.clone();
        references.push(("layout", "slideLayout", "../slideLayouts/layout.xml"));
        let slide = format!("<p:sld {attributes}><p:cSld><p:spTree>{shapes}</p:spTree></p:cSld></p:sld>");
        parts.push((format!("ppt/slides/slide{number}.xml"), slide.into()));
        parts.push((format!("ppt/slides/_rels/slide{number}.xml.rels"), relations(&references).into()));
    }
    // The master gives bodies a bullet on each level; the layout takes it away from subtitles.
    let levels: String =
        (1..=9).map(|n| format!("<a:lvl{n}pPr><a:buChar char=\"•\"/></a:lvl{n}pPr>")).collect();
    let master = format!(
        "<p:sldMaster><p:cSld><p:spTree/></p:cSld><p:txStyles><p:titleStyle><a:lvl1pPr><a:buNone/></a:lvl1pPr></p:titleStyle>\
         <p:bodyStyle>{levels}</p:bodyStyle></p:txStyles></p:sldMaster>"
    );
    let layout = "<p:sldLayout><p:cSld><p:spTree><p:sp><p:nvSpPr><p:nvPr><p:ph type=\"subTitle\" idx=\"5\"/></p:nvPr></p:nvSpPr>\
        <p:txBody><a:lstStyle><a:lvl1pPr><a:buNone/></a:lvl1pPr></a:lstStyle><a:p/></p:txBody></p:sp></p:spTree></p:cSld></p:sldLayout>";
    parts.push(("ppt/slideLayouts/layout.xml".to_owned(), layout.into()));
    parts.push((
        "ppt/slideLayouts/_rels/layout.xml.rels".to_owned(),
        relations(&[("m", "slideMaster", "../slideMasters/master.xml")]).into(),
    ));
    parts.push(("ppt/slideMasters/master.xml".to_owned(), master.into()));
    parts.extend(further.iter().map(|(name, part)| ((*name).to_owned(), part.clone())));
    let parts: Vec<(&str, Vec<u8>)> =
        parts.iter().map(|(name, part)| (name.as_str(), part.clone())).collect();
    package("ppt/presentation.xml", PRESENTATION, &parts)
}

fn lists() -> Vec<u8> {
    let first = title("ctrTitle", "Tides of the west")
        + &shape("<p:ph type=\"subTitle\" idx=\"5\"/>", None, &paragraph("", "By the harbour office"));
    let numbers = |level: u32| {
        format!(
            "<a:pPr lvl=\"{level}\"><a:buFont typeface=\"+mj-lt\"/><a:buAutoNum type=\"arabicPeriod\"/></a:pPr>"
        )
    };
    let body = [
        paragraph("", "Spring"),
        paragraph("<a:pPr lvl=\"1\"/>", "twice a month"),
        paragraph("<a:pPr lvl=\"1\"/>", "at full moon"),
        paragraph("", "Neap"),
        paragraph("<a:pPr><a:buNone/></a:pPr>", "Then:"),
        paragraph(&numbers(0), "Cast off"),
        paragraph("<a:pPr lvl=\"1\"><a:buAutoNum type=\"alphaLcParenR\"/></a:pPr>", "bow"),
        paragraph("<a:pPr lvl=\"1\"><a:buAutoNum type=\"alphaLcParenR\"/></a:pPr>", "stern"),
        paragraph(&numbers(0), "Sail"),
    ];
    let second = title("title", "Kinds of tides") + &shape("<p:ph idx=\"1\"/>", None, &body.concat());
    let hidden = title("title", "Spare") + &shape("", None, &paragraph("", "A box is no list"));
    let slides = [("", first, vec![]), ("", second, vec![]), ("show=\"0\"", hidden, vec![])];
    presentation(&slides, &[], &[])
}

fn order() -> Vec<u8> {
    let at = |left, top| Some([left, top, 400, 100]);
    let slide = shape("", at(0, 600), &paragraph("", "Below"))
        + &shape("", at(0, 300), &paragraph("", "Above"))
        + &shape("", at(500, 300), &paragraph("", "Beside"))
        + &shape("<p:ph type=\"title\"/>", at(0, 0), &paragraph("", "In order"))
        + &shape("<p:ph type=\"sldNum\"/>", None, &paragraph("", "17"))
        + &shape("<p:ph type=\"ftr\"/>", None, &paragraph("", "Harbour office"));
    let group = format!(
        "<p:grpSp><p:grpSpPr><a:xfrm><a:off x=\"0\" y=\"100\"/><a:ext cx=\"400\" cy=\"100\"/><a:chOff x=\"0\" y=\"9000\"/>\
         <a:chExt cx=\"400\" cy=\"100\"/></a:xfrm></p:grpSpPr>{}</p:grpSp>",
        shape("", Some([0, 9_000, 400, 100]), &paragraph("", "In a group"))
    );
    let second = shape("", at(0, 600), &paragraph("", "Under the group"))
        + &group
        + &shape("<p:ph type=\"ftr\"/>", None, &paragraph("", "Harbour office"));
    presentation(&[("", slide, vec![]), ("", second, vec![])], &[], &[])
}

fn objects() -> Vec<u8> {
    let cell = |attributes: &str, words: &str| {
        format!("<a:tc {attributes}><a:txBody>{}</a:txBody></a:tc>", paragraph("", words))
    };
    let empty = |attributes: &str| format!("<a:tc {attributes}><a:txBody><a:p/></a:txBody></a:tc>");
    let table = format!(
        "<p:graphicFrame><a:tbl><a:tr>{}{}{}</a:tr><a:tr>{}{}{}</a:tr></a:tbl></p:graphicFrame>",
        cell("gridSpan=\"2\"", "Port and height"),
        empty("hMerge=\"1\""),
        cell("", "Ships"),
        cell("", "Ayr"),
        empty(""),
        cell("", "12"),
    );
    let frame = |inside: &str| format!("<p:graphicFrame>{inside}</p:graphicFrame>");
    let link = "<a:p><a:r><a:t>See </a:t></a:r><a:r><a:rPr><a:hlinkClick r:id=\"link\"/></a:rPr><a:t>the tables</a:t></a:r>\
        <a:r><a:t>, please.</a:t></a:r><a:fld type=\"slidenum\"><a:t>3</a:t></a:fld><a:fld type=\"custom\"><a:t> Thanks.</a:t></a:fld></a:p>";
    let picture = "<p:pic><p:nvPicPr><p:cNvPr id=\"9\" descr=\"A boat at low tide\"/></p:nvPicPr><p:blipFill><a:blip r:embed=\"none\"/></p:blipFill></p:pic>";
    let slide = title("title", "Objects")
        + &table
        + &frame("<c:chart r:id=\"chart\"/>")
        + &frame("<dgm:relIds r:dm=\"diagram\"/>")
        + &frame(
            "<p:oleObj r:id=\"sheet\"><p:embed/><p:pic><p:nvPicPr><p:cNvPr descr=\"Preview\"/></p:nvPicPr></p:pic></p:oleObj>",
        )
        + &shape("", None, link)
        + picture;
    let chart = "<c:chartSpace><c:chart><c:title><c:tx><c:rich><a:p><a:r><a:t>Height</a:t></a:r></a:p></c:rich></c:tx></c:title>\
        <c:plotArea><c:ser><c:tx><c:strRef><c:strCache><c:pt idx=\"0\"><c:v>Spring</c:v></c:pt></c:strCache></c:strRef></c:tx>\
        <c:cat><c:strRef><c:strCache><c:pt idx=\"0\"><c:v>Ayr</c:v></c:pt></c:strCache></c:strRef></c:cat>\
        <c:val><c:numRef><c:numCache><c:pt idx=\"0\"><c:v>4.2</c:v></c:pt></c:numCache></c:numRef></c:val></c:ser></c:plotArea></c:chart></c:chartSpace>";
    let diagram = "<dgm:dataModel><dgm:ptLst><dgm:pt modelId=\"1\"><dgm:t><a:p><a:r><a:t>Cast off</a:t></a:r></a:p></dgm:t></dgm:pt>\
        <dgm:pt modelId=\"2\"><dgm:t><a:p><a:r><a:t>Sail</a:t></a:r></a:p></dgm:t></dgm:pt></dgm:ptLst></dgm:dataModel>";
    let sheet = made::xlsx(
        &[(
            "Inside",
            "<sheetData><row><c t=\"inlineStr\"><is><t>A sheet in a slide</t></is></c></row></sheetData>",
        )],
        "",
    );
    let references = vec![
        ("chart", "chart", "../charts/chart1.xml"),
        ("diagram", "diagramData", "../diagrams/data1.xml"),
        ("sheet", "package", "../embeddings/sheet.xlsx"),
        ("link", "hyperlink", "https://example.com/tables"),
    ];
    presentation(
        &[("", slide, references)],
        &[],
        &[
            ("ppt/charts/chart1.xml", chart.into()),
            ("ppt/diagrams/data1.xml", diagram.into()),
            ("ppt/embeddings/sheet.xlsx", sheet),
        ],
    )
}

fn remarks() -> Vec<u8> {
    let notes = |words: &str| {
        format!(
            "<p:notes>{}{}{}{}</p:notes>",
            shape("<p:ph type=\"sldImg\"/>", None, ""),
            shape("<p:ph type=\"body\" idx=\"1\"/>", None, &paragraph("", words)),
            shape("<p:ph type=\"hdr\"/>", None, &paragraph("", "Draft of May")),
            shape("<p:ph type=\"sldNum\"/>", None, &paragraph("", "1")),
        )
    };
    let old = "<p:cmLst><p:cm authorId=\"0\"><p:pos x=\"1\" y=\"1\"/><p:text>Check the date</p:text></p:cm></p:cmLst>";
    let new = "<p188:cmLst><p188:cm id=\"{1}\" authorId=\"{B}\"><p188:replyLst><p188:reply authorId=\"{C}\"><p188:txBody><a:p><a:r><a:t>It \
        is.</a:t></a:r></a:p></p188:txBody></p188:reply></p188:replyLst><p188:txBody><a:p><a:r><a:t>Is it right?</a:t></a:r></a:p></p188:txBody></p188:cm></p188:cmLst>";
    let slide = |words: &str| title("title", words);
    let slides = [
        (
            "",
            slide("First"),
            vec![
                ("n", "notesSlide", "../notesSlides/notes1.xml"),
                ("c", "comments", "../comments/comment1.xml"),
            ],
        ),
        (
            "",
            slide("Second"),
            vec![
                ("n", "notesSlide", "../notesSlides/notes2.xml"),
                ("c", "comments", "../comments/modern1.xml"),
            ],
        ),
    ];
    presentation(
        &slides,
        &[("old", "commentAuthors", "commentAuthors.xml"), ("new", "authors", "authors.xml")],
        &[
            ("ppt/notesSlides/notes1.xml", notes("Say it slowly").into()),
            ("ppt/notesSlides/notes2.xml", notes("Then wait").into()),
            ("ppt/comments/comment1.xml", old.into()),
            ("ppt/comments/modern1.xml", new.into()),
            ("ppt/commentAuthors.xml", "<p:cmAuthorLst><p:cmAuthor id=\"0\" name=\"Ann\"/></p:cmAuthorLst>".into()),
            (
                "ppt/authors.xml",
                "<p188:authorLst><p188:author id=\"{B}\" name=\"Bea\"/><p188:author id=\"{C}\" name=\"Cal\"/></p188:authorLst>".into(),
            ),
        ],
    )
}

/// A record of a presentation of before 2007: its version and instance, its kind, and what is in it.
fn record(version: u16, kind: u16, inside: &[u8]) -> Vec<u8> {
    let length = u32::try_from(inside.len()).unwrap().to_le_bytes();
    [&version.to_le_bytes()[..], &kind.to_le_bytes(), &length, inside].concat()
}

fn before_2007() -> Vec<u8> {
    const CONTAINER: u16 = 0x000F;
    let text = |kind: u32, words: &str| {
        let units: Vec<u8> = words.encode_utf16().flat_map(u16::to_le_bytes).collect();
        [record(0, 0x0F9F, &kind.to_le_bytes()), record(0, 0x0FA0, &units)].concat()
    };
    let persist =
        |number: u32| record(0, 0x03F3, &[number, 0, 2, 255 + number, 0].map(u32::to_le_bytes).concat());
    let slides = [
        persist(1),
        text(0, "Tides"),
        text(1, "Spring\rNeap"),
        persist(2),
        text(0, "Winds"),
        text(1, "From the west"),
    ];
    let document = record(CONTAINER, 0x03E8, &record(CONTAINER, 0x0FF0, &slides.concat()));
    made::compound_of(&[("POWERPOINT DOCUMENT", &document), ("Current User", &[0; 28])])
}
