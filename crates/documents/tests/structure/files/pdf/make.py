#!/usr/bin/env python3
"""Makes the PDFs of this folder: `make.py [NAME…]`. Needs reportlab, fpdf2, weasyprint, typst and pikepdf from PyPI.

Each is a kind of page that people upload, made with one of four programs. The texts that are expected are in
`../../made/NAME.md`. They were written from the text below and from the picture of the page.
"""
import sys
from datetime import datetime, timezone
from pathlib import Path

HERE = Path(__file__).parent

PAPER = r"""
#set document(title: "Tides in narrow harbours", date: none)
#set page(width: 21cm, height: 19cm, columns: 2, margin: 2cm, numbering: "1")
#set text(font: "Libertinus Serif", size: 10pt, lang: "en", hyphenate: true)
#set par(justify: true)
#set heading(numbering: "1.1")
#place(top + center, scope: "parent", float: true)[
  #text(size: 18pt, weight: "bold")[Tides in narrow harbours]

  Ada Wright and Ben Okafor

  _Institute of Coastal Waters, Lowestoft_
]

= Introduction
Tides in narrow harbours differ from tides on the open coast. The water that enters through a small
mouth needs time to fill the basin, and the highest level inside comes later than the highest level
outside. Fishermen have known this for centuries, but the effect was measured only when automatic
gauges became affordable.#footnote[The first such gauge in this area was installed in 1957.]

We describe measurements from three harbours and offer a simple model that explains most of the
differences. The model has two parameters, and both can be estimated from a map.

= Measurements
Gauges were placed at the mouth and at the inner end of each harbour. They recorded the level every
six minutes for two years. @levels gives the mean range at both places.

#figure(
  table(
    columns: 3,
    align: (left, right, right),
    [Harbour], [Mouth (m)], [Inner end (m)],
    [Ely Quay], [2.41], [1.98],
    [Rye], [5.62], [5.10],
    [Deal], [4.07], [3.95],
  ),
  caption: [Mean tidal range.],
) <levels>

The difference between the two places is largest where the mouth is narrowest. It does not depend
on the depth of the basin as far as we can tell.

== Errors
Waves disturb the gauges at the mouth. We removed single readings that differed from both of their
neighbours by more than twenty centimetres. This affected fewer than one reading in a thousand.

= Model
Let the basin have a constant area and let the flow through the mouth be proportional to the
difference of the levels. The level inside then follows the level outside like a sluggish
thermometer follows the temperature of a room: it is late, and it does not reach the extremes.

The delay grows with the area of the basin and shrinks with the width of the mouth. For the three
harbours it is between eleven and forty-six minutes, which agrees with the measurements to within
four minutes.

= Conclusion
A map and a ruler are enough to estimate when the water in a narrow harbour is highest. Pilots may
find the result useful where no gauge is available.
"""

FOOTNOTES = r"""
#set document(title: "The keeper's handbook", date: none)
#set page(paper: "a5", margin: 1.8cm, header: context [The keeper's handbook #h(1fr) Lighthouse Board],
  footer: context align(center)[Page #counter(page).display("1 of 1", both: true)])
#set text(font: "New Computer Modern", size: 10pt, lang: "en")
#set par(justify: true, first-line-indent: 1.2em)
= The lamp
The lamp is lit half an hour before sunset and put out half an hour after sunrise.#footnote[Times of
sunset are in the almanac, which is kept in the watch room.] The keeper on duty writes both times in
the log.

In fog the lamp burns by day as well. A flare that is first seen from the affluent suburbs to the
north must be reported to the office at once.

#pagebreak()
= The log
Every entry has the date, the time and the name of the keeper. Nothing in the log is erased: a wrong
entry is struck out with a single line.#footnote[Ink only.] #footnote[Entries in pencil are not
accepted by the inspector.]

The inspector reads the log twice a year and signs below the last entry.

#pagebreak()
= The stores
Oil, wicks and spare glasses are kept in the dry room below the stairs. They are counted on the first
day of each month, and the count is entered in the log.
"""

SPANS = r"""
#set document(title: "Watches", date: none)
#set page(width: 18cm, height: 13cm, margin: 2cm)
#set text(font: "Libertinus Serif", size: 11pt)
= Watches of the week
The table says who keeps the light. A name that stands beside two watches keeps both.

#table(
  columns: 4,
  align: horizon,
  table.header([Day], [Watch], [Keeper], [Remarks]),
  table.cell(rowspan: 3)[Monday], [Morning], [Ada Wright], table.cell(rowspan: 2)[Oil is brought at noon],
  [Noon], [Ben Okafor],
  [Night], [Ada Wright], [],
  table.cell(rowspan: 2)[Tuesday], [Morning], table.cell(rowspan: 2)[Piet de Vries], [],
  [Night], [Fog expected],
  table.cell(colspan: 4)[From Wednesday on the list of last week applies],
)
"""

BOOKTABS = r"""
#set document(title: "Gauges", date: none)
#set page(width: 18cm, height: 18cm, margin: 2cm)
#set text(font: "New Computer Modern", size: 10pt)
= Comparison of gauges
Each gauge was read for a month in summer and for a month in winter.

#table(
  columns: 5,
  stroke: none,
  align: (left + horizon, left, right, right, right),
  table.hline(),
  table.header([Harbour], [Gauge], [Readings], [Mean (m)], [Error (cm)]),
  table.hline(stroke: 0.5pt),
  table.cell(rowspan: 2)[Ely Quay], [float], [7,440], [2.41], [1.8],
  [radar], [7,440], [2.39], [0.6],
  table.cell(rowspan: 2)[Rye], [float], [7,102], [5.62], [2.2],
  [radar], [7,431], [5.60], [0.7],
  table.cell(rowspan: 2)[Deal], [float], [6,980], [4.07], [1.9],
  [radar], [7,438], [4.05], [0.5],
  table.hline(),
)

The radar gauges are better in each harbour. Their prices have fallen since the first of them was bought.

#table(
  columns: 4,
  stroke: none,
  align: (left, right, right, right),
  column-gutter: 12pt,
  [Gauge], [Price], [Years], [Yearly],
  [float], [420], [12], [35],
  [radar], [1,900], [15], [127],
  [pressure], [760], [8], [95],
)

All prices are in pounds.
"""

NEWSLETTER = """
<style>
@page { size: A4; margin: 1.6cm; }
body { font: 10pt/1.35 "DejaVu Serif"; }
h1 { font: bold 26pt "DejaVu Sans"; margin: 0; }
.date { border-bottom: 1px solid black; margin-bottom: 8pt; }
.columns { columns: 3; column-gap: 16pt; text-align: justify; }
h2 { font: bold 13pt "DejaVu Sans"; margin: 0 0 4pt 0; }
p { margin: 0 0 6pt 0; }
</style>
<h1>Harbour News</h1>
<div class="date">Number 14, March</div>
<div class="columns">
<h2>New crane arrives</h2>
<p>The new crane was unloaded on Monday. It lifts forty tons and replaces the two old cranes on the
north quay. Training for the drivers begins next week and takes ten days.</p>
<p>Until then the north quay stays closed to ships with heavy loads. Captains are asked to call the
office before they arrive.</p>
<h2>Ferry timetable</h2>
<p>From the first of April the ferry to the island leaves at eight, ten, two and four. The late ferry
on Saturdays is discontinued because too few people used it last year.</p>
<p>Tickets can be bought on board. Season tickets are sold in the office on the south quay only.</p>
<h2>Thanks to volunteers</h2>
<p>More than sixty volunteers cleaned the beach on the last Sunday of February. They collected two
hundred bags of rubbish, eleven tyres and a piano. The council thanks everyone who helped.</p>
<p>The next cleaning is on the last Sunday of May. Gloves and bags are provided, and there is soup
for all.</p>
</div>
"""

SIDEBAR = """
<style>
@page { size: A4; margin: 1.8cm; }
body { font: 10.5pt/1.4 "DejaVu Sans"; }
.page { display: flex; }
.side { width: 4.6cm; margin-right: 0.8cm; background: #eee; padding: 8pt; font-size: 9pt; }
.main { flex: 1; }
h1 { font-size: 20pt; margin: 0 0 8pt 0; }
h2 { font-size: 13pt; margin: 8pt 0 4pt 0; }
.side h2 { font-size: 10.5pt; }
p { margin: 0 0 6pt 0; }
</style>
<div class="page">
<div class="side">
<h2>Contact</h2>
<p>Clara Jansen<br>12 Quay Street<br>Harwich<br>clara@example.org</p>
<h2>Languages</h2>
<p>Dutch<br>English<br>German</p>
<h2>Certificates</h2>
<p>Master of yachts<br>Radio operator<br>First aid</p>
</div>
<div class="main">
<h1>Clara Jansen</h1>
<p>Navigator with twelve years on cargo ships in the North Sea and the Baltic, now looking for a
position on shore.</p>
<h2>Experience</h2>
<p>Second officer on the Annie, from 2014 to 2019. Planned routes, kept charts up to date and trained
three younger officers in the use of radar.</p>
<p>First officer on the Bella, from 2019 until today. Responsible for the deck, for the cargo and for
the safety of a crew of eleven.</p>
<h2>Education</h2>
<p>Nautical College of Enkhuizen, diploma with distinction in 2013. The thesis compares the drift of
buoys in spring and autumn.</p>
</div>
</div>
"""

LISTS = """
<style>
@page { size: A4; margin: 2.2cm; }
body { font: 11pt/1.4 "DejaVu Serif"; }
h1 { font-size: 19pt; } h2 { font-size: 14pt; }
</style>
<h1>Before you sail</h1>
<p>Work through the whole list every time. Most accidents begin with a step that was left out.</p>
<h2>On shore</h2>
<ol>
<li>Read the forecast for the next twelve hours, including the outlook for the coast to the north of
your destination.</li>
<li>Tell the office:
<ul><li>who is on board,</li><li>where you are going,</li><li>when you will be back.</li></ul></li>
<li>Fill the tank.</li>
</ol>
<h2>On board</h2>
<ul>
<li>Check the lifejackets.</li>
<li>Check the radio:
<ol style="list-style-type: lower-alpha"><li>switch it on,</li><li>call the station on channel twelve,</li><li>leave it on.</li></ol></li>
<li>Close the valves.</li>
</ul>
<p>Then cast off.</p>
"""

RIGHT_TO_LEFT = """
<html dir="rtl" lang="he"><style>
@page { size: A4; margin: 2.2cm; }
body { font: 13pt/1.5 "DejaVu Sans"; }
h1 { font-size: 20pt; }
table { border-collapse: collapse; } td, th { border: 1px solid black; padding: 4pt 10pt; }
</style>
<h1>שעות הנמל</h1>
<p>הנמל פתוח כל יום משעה 6 עד שעה 22. בסופי שבוע הוא נסגר בשעה 18.</p>
<p>למידע נוסף אפשר לפנות אל Harbour Office בטלפון 555-0199.</p>
<table><tr><th>יום</th><th>פתיחה</th><th>סגירה</th></tr>
<tr><td>ראשון</td><td>6</td><td>22</td></tr>
<tr><td>שבת</td><td>8</td><td>18</td></tr></table>
</html>
"""


def typst(name, source):
    import typst

    (HERE / name).write_bytes(typst.compile(source.encode()))


def weasyprint(name, source):
    import weasyprint

    weasyprint.HTML(string=source).write_pdf(HERE / name)


def canvas(name, size=None):
    from reportlab.lib.pagesizes import A4
    from reportlab.pdfgen.canvas import Canvas

    return Canvas(str(HERE / name), pagesize=size or A4, invariant=1)


def tables(name):
    """Tables with rules and without, with cells of several lines, empty cells and cells over two columns."""
    from reportlab.lib import colors
    from reportlab.lib.styles import getSampleStyleSheet
    from reportlab.platypus import Paragraph, SimpleDocTemplate, Spacer, Table

    styles = getSampleStyleSheet()
    cell = styles["BodyText"]
    ruled = [
        ["Berth", "Ship", "Remarks"],
        ["1", "Annie", Paragraph("Leaves on Friday with the evening tide if the wind allows it", cell)],
        ["2", "", Paragraph("Reserved for the pilot", cell)],
        ["3", "Clara", Paragraph("Repairs of the rudder, not before Tuesday", cell)],
    ]
    plain = [
        ["Month", "Arrivals", "Departures", "Tons"],
        ["January", "112", "109", "8,450"],
        ["February", "98", "101", "7,912"],
        ["March", "131", "127", "9,874"],
        ["Total", "341", "337", "26,236"],
    ]
    merged = [
        ["", "Summer", "", "Winter", ""],
        ["Station", "Day", "Night", "Day", "Night"],
        ["North", "12", "7", "4", "-1"],
        ["South", "15", "9", "6", "2"],
    ]
    grid = [("GRID", (0, 0), (-1, -1), 0.5, colors.black), ("VALIGN", (0, 0), (-1, -1), "TOP")]
    spans = [("SPAN", (1, 0), (2, 0)), ("SPAN", (3, 0), (4, 0))]
    right = [("ALIGN", (1, 0), (-1, -1), "RIGHT")]
    document = SimpleDocTemplate(str(HERE / name), invariant=1)
    document.build([
        Paragraph("Report of the harbour", styles["Title"]),
        Paragraph("Berths", styles["Heading2"]),
        Paragraph("The berths as they are today, from north to south.", cell),
        Table(ruled, colWidths=[50, 80, 200], style=grid),
        Spacer(1, 12),
        Paragraph("Traffic", styles["Heading2"]),
        Paragraph("Ships and their loads in the first three months of the year.", cell),
        Table(plain, colWidths=[90, 80, 80, 80], style=right),
        Spacer(1, 12),
        Paragraph("Temperatures", styles["Heading2"]),
        Table(merged, colWidths=[70, 50, 50, 50, 50], style=grid + spans),
        Spacer(1, 12),
        Paragraph("All figures are preliminary.", cell),
    ])


def form(name):
    page = canvas(name)
    page.setFont("Helvetica-Bold", 18)
    page.drawString(72, 770, "Application for a berth")
    page.setFont("Helvetica", 11)
    fields = [("Name of the ship", "Annie of Ely"), ("Home port", "Lowestoft"), ("Length in metres", "14.5")]
    for number, (label, value) in enumerate(fields):
        y = 720 - 34 * number
        page.drawString(72, y, f"{label}:")
        page.acroForm.textfield(name=label, x=200, y=y - 6, width=220, height=20, value=value, fontSize=11)
    page.drawString(72, 610, "Engine:")
    page.acroForm.checkbox(name="diesel", x=200, y=606, size=14, checked=True)
    page.drawString(220, 610, "diesel")
    page.acroForm.checkbox(name="electric", x=300, y=606, size=14, checked=False)
    page.drawString(320, 610, "electric")
    page.drawString(72, 570, "I have read the rules of the harbour and will follow them.")
    page.save()


def registration(name):
    """A form in two columns, filled in by a program: labels with values beside them, and boxes to be ticked."""
    page = canvas(name)
    page.setFont("Helvetica-Bold", 16)
    page.drawString(60, 780, "Registration of a ship")
    page.setFont("Helvetica", 10)
    page.drawString(60, 755, "Please fill in all fields. Fields that do not apply stay empty.")
    page.setFont("Helvetica-Bold", 12)
    page.drawString(60, 722, "The ship")
    rows = [("Name:", "Annie of Ely", "Flag:", "Ireland"), ("Built:", "1987", "Draught:", "1.4 m"),
            ("Home port:", "Howth", "Call sign:", ""), ("Engine:", "diesel", "Power:", "48 kW")]
    for number, row in enumerate(rows):
        for x, text, font in zip((60, 150, 320, 410), row, ("Helvetica", "Courier") * 2):
            page.setFont(font, 10)
            page.drawString(x, 700 - 20 * number, text)
    page.setFont("Helvetica-Bold", 12)
    page.drawString(60, 608, "The owner")
    rows = [("Family name:", "Byrne"), ("First name:", "Orla"), ("Street and number:", "4 Chapel Lane"),
            ("Town:", "Howth")]
    for number, row in enumerate(rows):
        for x, text, font in zip((60, 180), row, ("Helvetica", "Courier")):
            page.setFont(font, 10)
            page.drawString(x, 586 - 20 * number, text)
    page.setFont("Helvetica", 10)
    page.drawString(60, 490, "The owner declares that the ship is insured for the whole of the coming year.")
    page.save()


def turned(name):
    """A page that is shown turned, with a wide table, and one that is upside down in the file."""
    page = canvas(name)
    rows = [("Station", "High water", "Low water", "Range"), ("Ely Quay", "03:12", "09:40", "2.4"),
            ("Rye", "04:05", "10:31", "5.6"), ("Deal", "04:48", "11:02", "4.1")]
    # The library turns the box of a page with it.
    page.setPageSize((842, 595))
    page.setPageRotation(90)
    page.saveState()
    page.translate(595, 0)
    page.rotate(90)
    page.setFont("Helvetica-Bold", 18)
    page.drawString(72, 520, "Tides of the day")
    page.setFont("Helvetica", 11)
    for number, row in enumerate(rows):
        for column, text in enumerate(row):
            page.drawString(72 + 150 * column, 480 - 20 * number, text)
    page.drawString(72, 380, "Times are in winter time. Add one hour in summer.")
    page.restoreState()
    page.showPage()
    page.setPageSize((595, 842))
    page.setPageRotation(180)
    page.saveState()
    page.translate(595, 842)
    page.rotate(180)
    page.setFont("Helvetica", 11)
    page.drawString(72, 760, "The second page was scanned upside down and turned by the reader.")
    page.drawString(72, 744, "Its lines still follow one another from the top.")
    page.restoreState()
    page.showPage()
    page.save()


def invoice(name):
    from fpdf import FPDF

    page = FPDF(format="A4")
    page.set_creation_date(datetime(2025, 5, 3, tzinfo=timezone.utc))
    page.add_page()
    page.set_font("Helvetica", size=10)
    for number, line in enumerate(["Quayside Supplies Ltd", "4 Dock Road", "Harwich CO12 3JH"]):
        page.text(20, 20 + 5 * number, line)
    for number, line in enumerate(["Invoice 2041", "Date: 3 May 2025", "Due: 2 June 2025"]):
        page.text(140, 20 + 5 * number, line)
    page.text(20, 48, "To:")
    for number, line in enumerate(["Harbour Office", "1 South Quay", "Lowestoft NR33 0AA"]):
        page.text(20, 54 + 5 * number, line)
    page.set_font("Helvetica", "B", 10)
    rows = [("Description", "Quantity", "Price", "Amount"), ("Rope, 12 mm, per metre", "200", "1.15", "230.00"),
            ("Buoy, orange", "6", "38.50", "231.00"), ("Shackle, stainless", "24", "4.20", "100.80")]
    for number, row in enumerate(rows):
        for text, x, right in zip(row, (20, 110, 140, 170), (False, True, True, True)):
            page.text(x + 20 - page.get_string_width(text) if right else x, 90 + 8 * number, text)
        page.set_font("Helvetica", size=10)
    for number, (label, amount) in enumerate([("Subtotal", "561.80"), ("VAT 20%", "112.36"), ("Total", "674.16")]):
        y = 126 + 7 * number
        page.text(140, y, label)
        page.text(190 - page.get_string_width(amount), y, amount)
    page.text(20, 165, "Please pay within thirty days. Thank you for your order.")
    page.output(str(HERE / name))


def slides(name):
    page = canvas(name, (960, 540))
    decks = [
        ("Safer harbours", ["A proposal to the council", "Ben Okafor, 12 June"]),
        ("Where accidents happen", ["\u2022 At the mouth, in cross winds", "\u2022 At the fuel quay",
                                    "\u2022 On the stairs, when they are wet"]),
        ("What we propose", ["1. Lights on the stairs", "2. A second buoy at the mouth",
                             "3. A list of trained helpers"]),
    ]
    for number, (title, lines) in enumerate(decks, start=1):
        page.setFont("Helvetica-Bold", 40)
        page.drawString(60, 430, title)
        page.setFont("Helvetica", 26)
        for at, line in enumerate(lines):
            page.drawString(60, 350 - 48 * at, line)
        page.setFont("Helvetica", 12)
        page.drawString(60, 24, "Harbour council")
        page.drawRightString(900, 24, str(number))
        page.showPage()
    page.save()


def columns_by_rows(name):
    """Two columns whose lines are written across both, as some programs do, with a title and a note over both."""
    page = canvas(name)
    page.setFont("Times-Bold", 16)
    page.drawCentredString(297, 780, "Minutes of the meeting")
    left = ["The chair opened the meeting at", "seven and welcomed two guests", "from the neighbouring town.",
            "", "The minutes of the last meeting", "were accepted without changes.", "", "The treasurer reported that the",
            "repair of the wall cost less than", "expected, and that the rest is", "kept for the winter."]
    right = ["A member asked when the lamps", "on the south quay will work", "again. The chair promised an",
             "answer within a week.", "", "The date of the summer feast", "was moved to the second Sunday",
             "of July because of the regatta.", "", "The meeting was closed at nine.", "Next meeting: 4 September."]
    page.setFont("Times-Roman", 12)
    for number, (one, other) in enumerate(zip(left, right)):
        page.drawString(72, 740 - 15 * number, one)
        page.drawString(320, 740 - 15 * number, other)
    page.setFont("Times-Italic", 10)
    page.drawString(72, 540, "Written by the secretary. Objections may be raised until the end of the month.")
    page.save()


def code(name):
    page = canvas(name)
    page.setFont("Helvetica-Bold", 16)
    page.drawString(72, 770, "Reading a gauge")
    page.setFont("Helvetica", 11)
    page.drawString(72, 740, "The gauge answers one line for each request. This program prints the level:")
    page.setFont("Courier", 10)
    for number, line in enumerate(["import gauge", "", "def level(port):", "    with gauge.open(port) as device:",
                                   "        return device.read() / 100", "", "print(level(7))"]):
        page.drawString(90, 712 - 13 * number, line)
    page.setFont("Helvetica", 11)
    page.drawString(72, 610, "Levels are in metres above the zero of the chart.")
    page.save()


def encrypted(name):
    """The minutes with AES-256 of revision 5, which opens without a password."""
    import pikepdf

    with pikepdf.open(HERE / "minutes.pdf") as document:
        document.save(HERE / name, encryption=pikepdf.Encryption(user="", owner="chair", R=5))


def locked(name):
    """A table whose lines are in a drawing, and an attached note, with AES-128, which opens without a password."""
    import pikepdf

    cells = [
        (65, 705, "Boat"), (165, 705, "Seen last"), (265, 705, "Home"),
        (65, 665, "Annie"), (265, 665, "Ely"),
        (65, 625, "Bella"), (165, 625, "on Friday"), (165, 613, "at noon"), (265, 625, "Rye"),
    ]
    text = "".join(f"BT /F1 10 Tf 1 0 0 1 {x} {y} Tm ({words}) Tj ET\n" for x, y, words in cells)
    level = "".join(f"60 {y} m 360 {y} l S\n" for y in (600, 640, 680, 720))
    upright = "".join(f"{x} 600 m {x} 720 l S\n" for x in (60, 160, 260, 360))
    with pikepdf.new() as document:
        font = pikepdf.Dictionary(Type=pikepdf.Name.Font, Subtype=pikepdf.Name.Type1, BaseFont=pikepdf.Name.Helvetica)
        lines = document.make_stream((level + upright).encode())
        lines.Type, lines.Subtype, lines.BBox = pikepdf.Name.XObject, pikepdf.Name.Form, [0, 0, 595, 842]
        page = document.add_blank_page(page_size=(595, 842))
        page.Resources = pikepdf.Dictionary(Font=pikepdf.Dictionary(F1=font), XObject=pikepdf.Dictionary(X1=lines))
        page.Contents = document.make_stream(f"/X1 Do\n{text}".encode())
        document.attachments["note.txt"] = pikepdf.AttachedFileSpec(document, b"The harbour closes at low tide.")
        document.save(HERE / name, encryption=pikepdf.Encryption(user="", owner="master", R=4), static_id=True)


def drawings(name):
    """Sixty drawings, each of which draws the next one twice, with AES-128."""
    import pikepdf

    with pikepdf.new() as document:
        inner = None
        for _ in range(60):
            drawing = document.make_stream(b"q /X Do Q q 1 0 0 1 0 -40 cm /X Do Q" if inner else b"0 0 m 9 9 l S")
            drawing.Type, drawing.Subtype, drawing.BBox = pikepdf.Name.XObject, pikepdf.Name.Form, [0, 0, 600, 800]
            if inner is not None:
                drawing.Resources = pikepdf.Dictionary(XObject=pikepdf.Dictionary(X=inner))
            inner = drawing
        page = document.add_blank_page(page_size=(600, 800))
        page.Resources = pikepdf.Dictionary(XObject=pikepdf.Dictionary(X=inner))
        page.Contents = document.make_stream(b"/X Do")
        document.save(HERE / name, encryption=pikepdf.Encryption(user="", owner="master", R=4), static_id=True)


def bands(name):
    """A table with level lines only, whose cells have several lines."""
    page = canvas(name)
    page.setFont("Helvetica", 11)
    page.drawString(72, 780, "These berths were let in the second quarter.")
    rows = [
        (["Berth"], ["Tenant and", "address"], ["Fee"], ["Remarks"]),
        (["North", "quay 1"], ["Orla Byrne", "4 Chapel Lane, Howth"], ["120.50"], ["Paid in", "two parts"]),
        (["North", "quay 2"], ["Piet de Vries", "Kade 19, Urk"], ["98.00"], []),
        (["Pier"], ["The pilots of the", "lower river"], [], ["Free by", "contract"]),
    ]
    y = 750
    page.line(72, y, 520, y)
    for row in rows:
        for x, lines in zip((76, 170, 330, 400), row):
            for number, line in enumerate(lines):
                page.drawString(x, y - 14 - 13 * number, line)
        y -= 10 + 13 * max(len(lines) for lines in row)
        page.line(72, y, 520, y)
    page.drawString(72, y - 30, "All fees are in pounds for each month.")
    page.save()


MAKERS = {
    "paper.pdf": lambda name: typst(name, PAPER),
    "handbook.pdf": lambda name: typst(name, FOOTNOTES),
    "spans.pdf": lambda name: typst(name, SPANS),
    "booktabs.pdf": lambda name: typst(name, BOOKTABS),
    "newsletter.pdf": lambda name: weasyprint(name, NEWSLETTER),
    "sidebar.pdf": lambda name: weasyprint(name, SIDEBAR),
    "lists.pdf": lambda name: weasyprint(name, LISTS),
    "right-to-left.pdf": lambda name: weasyprint(name, RIGHT_TO_LEFT),
    "tables.pdf": tables,
    "form.pdf": form,
    "registration.pdf": registration,
    "turned.pdf": turned,
    "invoice.pdf": invoice,
    "slides.pdf": slides,
    "minutes.pdf": columns_by_rows,
    "code.pdf": code,
    "encrypted.pdf": encrypted,
    "locked.pdf": locked,
    "locked-drawings.pdf": drawings,
    "bands.pdf": bands,
}

if __name__ == "__main__":
    for name in sys.argv[1:] or MAKERS:
        MAKERS[name](name)
