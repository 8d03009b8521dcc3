//! Spreadsheets, each for one feature.

use landfall_test_documents as made;

use super::Builder;

pub const DOCUMENTS: &[(&str, Builder)] = &[
    ("number-formats.xlsx", number_formats),
    ("days-since-1904.xlsx", days_since_1904),
    ("parts-of-a-workbook.xlsx", parts_of_a_workbook),
    ("blocks.xlsx", blocks),
    ("binary.xlsb", binary),
    ("before-2007.xls", before_2007),
    ("semicolons.csv", || b"Port;Height\nAyr;\"2,5\"\n;\nOban;\"1|2\"\n".to_vec()),
    ("columns.tsv", || b"Port\tShips\tNote\nAyr\t\tclosed, for now\n".to_vec()),
];

const MAIN: &str = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";

/// The references of a part: id, kind, target. Those that begin with a scheme are outside.
pub fn relations(relations: &[(&str, &str, &str)]) -> String {
    let relation = |(id, kind, target): &(&str, &str, &str)| {
        let mode = if target.contains(':') { " TargetMode=\"External\"" } else { "" };
        format!("<Relationship Id=\"{id}\" Type=\"{MAIN}/{kind}\" Target=\"{target}\"{mode}/>")
    };
    format!("<Relationships>{}</Relationships>", relations.iter().map(relation).collect::<String>())
}

/// A package with these parts beside its main part.
pub fn package(main_part: &str, types: &str, parts: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let top = relations(&[("rId1", "officeDocument", main_part)]);
    let types = format!("<Types>{types}</Types>");
    let mut all: Vec<(&str, &[u8])> =
        vec![("[Content_Types].xml", types.as_bytes()), ("_rels/.rels", top.as_bytes())];
    all.extend(parts.iter().map(|(name, part)| (*name, part.as_slice())));
    made::archive(&all)
}

const WORKBOOK: &str = "<Override PartName=\"/xl/workbook.xml\" \
    ContentType=\"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml\"/>";

/// A workbook of one sheet with these formats, and these cells: each its style and its value, ten in a row.
fn formatted(properties: &str, formats: &[&str], cells: &[(usize, &str)]) -> Vec<u8> {
    let codes: String = (164..)
        .zip(formats)
        .map(|(id, code)| {
            format!("<numFmt numFmtId=\"{id}\" formatCode=\"{}\"/>", code.replace('"', "&quot;"))
        })
        .collect();
    let styles: String = (0..formats.len()).map(|n| format!("<xf numFmtId=\"{}\"/>", 164 + n)).collect();
    // The first styles are built in: none, 0.00%, a short date.
    let styles = format!(
        "<styleSheet><numFmts>{codes}</numFmts><cellStyleXfs><xf numFmtId=\"9\"/></cellStyleXfs><cellXfs>\
         <xf numFmtId=\"0\"/><xf numFmtId=\"10\"/><xf numFmtId=\"14\"/>{styles}</cellXfs></styleSheet>"
    );
    let row = |cells: &[(usize, &str)]| {
        let cell = |(style, value): &(usize, &str)| format!("<c s=\"{style}\"><v>{value}</v></c>");
        format!("<row>{}</row>", cells.iter().map(cell).collect::<String>())
    };
    let rows: String = cells.chunks(10).map(row).collect();
    package(
        "xl/workbook.xml",
        WORKBOOK,
        &[
            (
                "xl/workbook.xml",
                format!(
                    "<workbook>{properties}<sheets><sheet name=\"Figures\" r:id=\"r1\"/></sheets></workbook>"
                )
                .into(),
            ),
            (
                "xl/_rels/workbook.xml.rels",
                relations(&[("r1", "worksheet", "worksheets/sheet1.xml"), ("r2", "styles", "styles.xml")])
                    .into(),
            ),
            ("xl/styles.xml", styles.into()),
            (
                "xl/worksheets/sheet1.xml",
                format!("<worksheet><sheetData>{rows}</sheetData></worksheet>").into(),
            ),
        ],
    )
}

fn number_formats() -> Vec<u8> {
    let formats = [
        "\"$\"#,##0.00",
        "#,##0;[Red](#,##0)",
        "0.00E+00",
        "# ?/?",
        "yyyy-mm-dd hh:mm",
        "[h]:mm",
        "[>=1000]0.0,\"K\";0",
        "h:mm AM/PM",
    ];
    let cells = [
        (0, "2.5"),
        (1, "0.025"),
        (2, "45000"),
        (3, "1599.99"),
        (4, "-1234"),
        (5, "123456"),
        (6, "0.75"),
        (7, "45000.75"),
        (8, "1.5"),
        (9, "1500"),
        (0, "0.30000000000000004"),
        (1, "1"),
        (2, "1"),
        (3, "-3"),
        (4, "1234567"),
        (5, "0.00012"),
        (6, "2"),
        (10, "0.5"),
        (8, "0.25"),
        (9, "15"),
    ];
    formatted("", &formats, &cells)
}

fn days_since_1904() -> Vec<u8> {
    formatted("<workbookPr date1904=\"1\"/>", &["d mmmm yyyy"], &[(3, "43538"), (2, "0")])
}

fn parts_of_a_workbook() -> Vec<u8> {
    let cell = |name: &str, kind: &str, value: &str| format!("<c r=\"{name}\" t=\"{kind}\">{value}</c>");
    let prices = format!(
        "<worksheet><sheetData><row r=\"2\">{}{}{}</row><row r=\"3\">{}{}{}</row></sheetData>\
         <mergeCells><mergeCell ref=\"B2:C2\"/></mergeCells>\
         <hyperlinks><hyperlink ref=\"B3\" r:id=\"link\"/></hyperlinks>\
         <headerFooter><oddHeader>&amp;LHarbour office&amp;RPage &amp;P of &amp;N</oddHeader>\
         <oddFooter>&amp;CNot for navigation</oddFooter></headerFooter><drawing r:id=\"drawing\"/></worksheet>",
        cell("B2", "s", "<v>1</v>"),
        cell("D2", "inlineStr", "<is><r><t>In</t></r><r><t>line</t></r><rPh><t>no</t></rPh></is>"),
        cell("E2", "b", "<v>1</v>"),
        cell("B3", "s", "<v>0</v>"),
        cell("D3", "str", "<f>A1&amp;B1</f><v>made of two</v>"),
        cell("E3", "e", "<f>1/0</f><v>#DIV/0!</v>"),
    );
    let hidden = "<worksheet><sheetData><row><c t=\"inlineStr\"><is><t>Of the office</t></is></c></row></sheetData>\
        <headerFooter><oddFooter>&amp;CNot for navigation</oddFooter></headerFooter></worksheet>";
    let drawing = "<xdr:wsDr><xdr:sp><xdr:nvSpPr><xdr:cNvPr descr=\"A buoy\"/></xdr:nvSpPr><xdr:txBody><a:p><a:r><a:t>Mind the \
        tide</a:t></a:r></a:p></xdr:txBody></xdr:sp><xdr:graphicFrame><c:chart r:id=\"chart\"/></xdr:graphicFrame></xdr:wsDr>";
    let chart = "<c:chartSpace><c:chart><c:title><c:tx><c:rich><a:p><a:r><a:t>Height by port</a:t></a:r></a:p></c:rich></c:tx>\
        </c:title><c:plotArea><c:ser><c:tx><c:strRef><c:strCache><c:pt idx=\"0\"><c:v>Spring tide</c:v></c:pt></c:strCache></c:strRef></c:tx>\
        <c:val><c:numRef><c:numCache><c:pt idx=\"0\"><c:v>4</c:v></c:pt></c:numCache></c:numRef></c:val></c:ser></c:plotArea></c:chart></c:chartSpace>";
    let notes = "<comments><authors><author>Ann</author><author>tc={1}</author></authors><commentList>\
        <comment ref=\"D3\" authorId=\"0\"><text><r><t>Ann:</t></r><r><t> Ask again</t></r></text></comment>\
        <comment ref=\"B2\" authorId=\"1\"><text><t>[Threaded comment]</t></text></comment></commentList></comments>";
    let threads = "<ThreadedComments><threadedComment ref=\"B2\" personId=\"p1\" id=\"c1\"><text>Is this right?</text></threadedComment>\
        <threadedComment ref=\"B2\" personId=\"p2\" id=\"c2\" parentId=\"c1\"><text>It is.</text></threadedComment></ThreadedComments>";
    let persons = "<personList><person displayName=\"Bea\" id=\"p1\"/><person displayName=\"Cal\" id=\"p2\"/></personList>";
    let workbook = "<workbook><sheets><sheet name=\"Prices\" r:id=\"r1\"/><sheet name=\"Codes\" state=\"veryHidden\" r:id=\"r2\"/></sheets></workbook>";
    let of_workbook = relations(&[
        ("r1", "worksheet", "worksheets/sheet1.xml"),
        ("r2", "worksheet", "/xl/worksheets/sheet2.xml"),
        ("r3", "sharedStrings", "sharedStrings.xml"),
        ("r4", "person", "persons/person.xml"),
    ]);
    let of_sheet = relations(&[
        ("link", "hyperlink", "https://example.com/boats"),
        ("drawing", "drawing", "../drawings/drawing1.xml"),
        ("notes", "comments", "../comments1.xml"),
        ("threads", "threadedComment", "../threadedComments/threadedComment1.xml"),
        ("table", "table", "../tables/table1.xml"),
    ]);
    package(
        "xl/workbook.xml",
        WORKBOOK,
        &[
            ("xl/workbook.xml", workbook.into()),
            ("xl/_rels/workbook.xml.rels", of_workbook.into()),
            (
                "xl/sharedStrings.xml",
                "<sst><si><t>Boat</t></si><si><r><t>Name </t></r><r><t>and price</t></r></si></sst>".into(),
            ),
            ("xl/persons/person.xml", persons.into()),
            ("xl/worksheets/sheet1.xml", prices.into()),
            ("xl/worksheets/sheet2.xml", hidden.into()),
            ("xl/worksheets/_rels/sheet1.xml.rels", of_sheet.into()),
            ("xl/drawings/drawing1.xml", drawing.into()),
            (
                "xl/drawings/_rels/drawing1.xml.rels",
                relations(&[("chart", "chart", "../charts/chart1.xml")]).into(),
            ),
            ("xl/charts/chart1.xml", chart.into()),
            ("xl/comments1.xml", notes.into()),
            ("xl/threadedComments/threadedComment1.xml", threads.into()),
            ("xl/tables/table1.xml", "<table displayName=\"BoatPrices\" ref=\"B2:E3\"/>".into()),
        ],
    )
}

fn blocks() -> Vec<u8> {
    let row = |number: u32, cells: &[(&str, &str)]| {
        let cell = |(column, words): &(&str, &str)| {
            format!("<c r=\"{column}{number}\" t=\"inlineStr\"><is><t>{words}</t></is></c>")
        };
        format!("<row r=\"{number}\">{}</row>", cells.iter().map(cell).collect::<String>())
    };
    let rows = [
        row(3, &[("B", "Report of the year")]),
        row(5, &[("B", "Port"), ("C", "Ships"), ("F", "Wind"), ("G", "Days")]),
        row(6, &[("B", "Ayr"), ("C", "12"), ("F", "West"), ("G", "200")]),
        row(7, &[("B", "Oban"), ("F", "East"), ("G", "80")]),
        row(8, &[("F", "North"), ("G", "85")]),
        row(20, &[("B", "Far"), ("ZZ", "away")]),
    ];
    made::xlsx(&[("Report", &format!("<sheetData>{}</sheetData>", rows.concat()))], "")
}

/// A record of a binary workbook of the newer kind.
fn record(kind: u16, data: &[u8]) -> Vec<u8> {
    let mut record = Vec::new();
    for (mut number, most) in [(usize::from(kind), 2), (data.len(), 4)] {
        for _ in 0..most {
            let byte = u8::try_from(number & 0x7F).unwrap();
            number >>= 7;
            record.push(if number > 0 { byte | 0x80 } else { byte });
            if number == 0 {
                break;
            }
        }
    }
    [record, data.to_vec()].concat()
}

fn wide(text: &str) -> Vec<u8> {
    let units: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    [&u32::try_from(units.len() / 2).unwrap().to_le_bytes()[..], &units].concat()
}

fn binary() -> Vec<u8> {
    let place = |column: u32, style: u32| [column.to_le_bytes(), style.to_le_bytes()].concat();
    let workbook = [
        record(153, &[0; 8]),
        record(156, &[vec![0; 8], wide("r1"), wide("Tides")].concat()),
        record(156, &[vec![1, 0, 0, 0, 2, 0, 0, 0], wide("r2"), wide("Codes")].concat()),
    ];
    let styles = [
        record(44, &[&[164, 0][..], &wide("0.0 \"m\"")].concat()),
        record(47, &[0, 0, 9, 0]),
        record(617, &[2, 0, 0, 0]),
        record(47, &[0, 0, 0, 0]),
        record(47, &[0, 0, 164, 0]),
        record(618, &[]),
    ];
    let range = [2_u32, 2, 1, 1].map(u32::to_le_bytes).concat();
    let sheet = [
        record(0, &2_u32.to_le_bytes()),
        record(7, &[place(1, 0), vec![0; 4]].concat()),
        record(5, &[place(2, 1), 4.25_f64.to_le_bytes().to_vec()].concat()),
        record(0, &3_u32.to_le_bytes()),
        record(6, &[place(1, 0), wide("Oban")].concat()),
        record(2, &[place(2, 1), (250_u32 << 2 | 3).to_le_bytes().to_vec()].concat()),
        record(4, &[place(3, 0), vec![1]].concat()),
        record(11, &[place(4, 0), vec![0x2A]].concat()),
        record(494, &[range, wide("link")].concat()),
        record(479, &[vec![0, 0], wide("&LHarbour office"), wide("&CPage &P")].concat()),
    ];
    let hidden = [record(0, &[0; 4]), record(8, &[place(0, 0), wide("by formula")].concat())];
    let comments = [
        record(632, &wide("Ann")),
        record(635, &[&[0; 4][..], &[3_u32, 3, 2, 2].map(u32::to_le_bytes).concat()].concat()),
        record(637, &[vec![0], wide("Ask again")].concat()),
    ];
    // Only the extension says what the workbook is.
    let types = "<Default Extension=\"bin\" ContentType=\"application/vnd.ms-excel.sheet.binary.macroEnabled.main\"/>";
    package(
        "xl/workbook.bin",
        types,
        &[
            ("xl/workbook.bin", workbook.concat()),
            (
                "xl/_rels/workbook.bin.rels",
                relations(&[
                    ("r1", "worksheet", "worksheets/sheet1.bin"),
                    ("r2", "worksheet", "worksheets/sheet2.bin"),
                    ("r3", "styles", "styles.bin"),
                    ("r4", "sharedStrings", "sharedStrings.bin"),
                ])
                .into(),
            ),
            ("xl/styles.bin", styles.concat()),
            ("xl/sharedStrings.bin", record(19, &[vec![0], wide("Ayr")].concat())),
            ("xl/worksheets/sheet1.bin", sheet.concat()),
            ("xl/worksheets/sheet2.bin", hidden.concat()),
            (
                "xl/worksheets/_rels/sheet1.bin.rels",
                relations(&[
                    ("link", "hyperlink", "https://example.com/ayr"),
                    ("c", "comments", "../comments1.bin"),
                ])
                .into(),
            ),
            ("xl/comments1.bin", comments.concat()),
        ],
    )
}

/// A record of a workbook of before 2007.
fn old_record(kind: u16, data: &[u8]) -> Vec<u8> {
    [&kind.to_le_bytes()[..], &u16::try_from(data.len()).unwrap().to_le_bytes(), data].concat()
}

fn before_2007() -> Vec<u8> {
    let begin = |kind: u16| old_record(0x0809, &[&[0, 6][..], &kind.to_le_bytes(), &[0; 12]].concat());
    let end = || old_record(0x000A, &[]);
    let text = |words: &str| {
        [&u16::try_from(words.len()).unwrap().to_le_bytes()[..], &[0], words.as_bytes()].concat()
    };
    let cell = |row: u16, column: u16, style: u16| [row, column, style].map(u16::to_le_bytes).concat();
    let sheet_entry = |at: usize, state: u8, name: &str| {
        let at = u32::try_from(at).unwrap().to_le_bytes();
        old_record(
            0x0085,
            &[&at[..], &[state, 0, u8::try_from(name.len()).unwrap(), 0], name.as_bytes()].concat(),
        )
    };
    let url: Vec<u8> = "https://example.com/ayr\0".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let moniker = [0xE0, 0xC9, 0xEA, 0x79, 0xF9, 0xBA, 0xCE, 0x11, 0x8C, 0x82, 0, 0xAA, 0, 0x4B, 0xA9, 0x0B];
    let link = [
        &[1_u16, 1, 1, 1].map(u16::to_le_bytes).concat()[..],
        &[0; 16],
        &2_u32.to_le_bytes(),
        &3_u32.to_le_bytes(),
        &moniker,
        &u32::try_from(url.len()).unwrap().to_le_bytes(),
        &url,
    ]
    .concat();
    let object = |kind: u16, number: u16| {
        old_record(0x005D, &[0x15, 18, kind, number, 0, 0].map(u16::to_le_bytes).concat())
    };
    let words_of_object = |words: &str| {
        let mut header = vec![0; 18];
        header[10..12].copy_from_slice(&u16::try_from(words.len()).unwrap().to_le_bytes());
        let (first, second) = words.split_at(words.len() / 2);
        let part = |words: &str| old_record(0x003C, &[&[0][..], words.as_bytes()].concat());
        [old_record(0x01B6, &header), part(first), part(second)].concat()
    };
    let first = [
        begin(0x10),
        old_record(0x0014, &text("&LHarbour office&RPage &P")),
        old_record(0x00FD, &[cell(1, 1, 0), vec![0; 4]].concat()),
        old_record(0x0203, &[cell(1, 2, 1), 4.25_f64.to_le_bytes().to_vec()].concat()),
        old_record(0x0204, &[cell(2, 1, 0), text("Oban")].concat()),
        old_record(0x027E, &[cell(2, 2, 1), (250_u32 << 2 | 3).to_le_bytes().to_vec()].concat()),
        old_record(
            0x00BD,
            &[
                [3_u16, 2, 1].map(u16::to_le_bytes).concat(),
                (30_u32 << 2 | 2).to_le_bytes().to_vec(),
                vec![0, 0],
                (7_u32 << 2 | 2).to_le_bytes().to_vec(),
                vec![3, 0],
            ]
            .concat(),
        ),
        old_record(0x0006, &[cell(4, 1, 0), vec![0, 0, 0, 0, 0, 0, 0xFF, 0xFF], vec![0; 8]].concat()),
        old_record(0x0207, &text("by formula")),
        old_record(0x0006, &[cell(4, 2, 0), vec![2, 0, 7, 0, 0, 0, 0xFF, 0xFF], vec![0; 8]].concat()),
        old_record(0x0205, &[cell(4, 3, 0), vec![1, 0]].concat()),
        old_record(0x01B8, &link),
        object(0x19, 1),
        words_of_object("Ask again"),
        object(6, 2),
        words_of_object("Mind the tide"),
        begin(0x20),
        old_record(0x100D, &[&[0, 0, 14, 0][..], b"Height by port"].concat()),
        end(),
        old_record(0x001C, &[[2_u16, 2, 0, 1].map(u16::to_le_bytes).concat(), text("Ann")].concat()),
        end(),
    ]
    .concat();
    let second =
        [begin(0x10), old_record(0x0204, &[cell(0, 0, 0), text("Of the office")].concat()), end()].concat();
    let globals = |first: usize, second: usize| {
        [
            begin(5),
            old_record(0x041E, &[vec![164, 0], text("0.0 \"m\"")].concat()),
            old_record(0x00E0, &[0; 20]),
            old_record(0x00E0, &[&[0, 0, 164, 0][..], &[0; 16]].concat()),
            sheet_entry(first, 0, "Tides"),
            sheet_entry(second, 1, "Codes"),
            old_record(0x00FC, &[vec![1, 0, 0, 0, 1, 0, 0, 0], text("Ayr")].concat()),
            end(),
        ]
        .concat()
    };
    let length = globals(0, 0).len();
    let stream = [globals(length, length + first.len()), first, second].concat();
    // Some programs write the names of streams in capitals.
    made::compound_of(&[("WORKBOOK", &stream)])
}
