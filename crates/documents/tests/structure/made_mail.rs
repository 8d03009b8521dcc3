//! Web pages, mails, books and texts, each for one feature.

use landfall_test_documents as made;

use super::Builder;

pub const DOCUMENTS: &[(&str, Builder)] = &[
    ("article.html", || ARTICLE.as_bytes().to_vec()),
    ("code.rs", || b"//! Tides.\nfn high() -> bool {\n    true\n}\n".to_vec()),
    ("contract.md.p7m", || made::signed(b"# Contract\n\n1. First part\n2. Second part\n")),
    ("form.html", || FORM.as_bytes().to_vec()),
    ("harbour.epub", harbour),
    ("lists.html", || LISTS.as_bytes().to_vec()),
    ("mailbox.mbox", || MAILBOX.as_bytes().to_vec()),
    ("manual.adoc", || b"= Manual\n\n== Mooring\n\n* rope\n* anchor\n".to_vec()),
    ("manual.org", || b"#+TITLE: Manual\n* Mooring\n- rope\n- anchor\n".to_vec()),
    ("manual.rst", || b"Manual\n======\n\nMooring\n-------\n\n- rope\n- anchor\n".to_vec()),
    ("message.msg", message),
    ("newsletter.html", || NEWSLETTER.as_bytes().to_vec()),
    ("notebook.ipynb", || NOTEBOOK.as_bytes().to_vec()),
    ("notes.md", || b"---\ntitle: Notes\n---\nTides\n=====\n\n- high\n  - higher\n".to_vec()),
    ("order.eml", || ORDER.as_bytes().to_vec()),
    ("page.mhtml", || PAGE.as_bytes().to_vec()),
    ("paper.tex", || PAPER.as_bytes().to_vec()),
    ("parts.zip", parts),
    ("preview.pages", preview),
    ("spans.html", || SPANS.as_bytes().to_vec()),
    ("speech.srt", || SPEECH.as_bytes().to_vec()),
    ("speech.vtt", || {
        format!("WEBVTT\n\n{}", SPEECH.replace(",0", ".0").replace("Ann: ", "<v Ann>")).into_bytes()
    }),
    ("winmail.dat", winmail),
];

/// As an encyclopaedia writes it: navigation, links, notes, an info box, a gallery.
const ARTICLE: &str = "<!DOCTYPE html><html><head><meta charset=utf-8><title>Tide - Encyclopaedia</title>\
<style>.x{}</style><script>var a = '<h1>no</h1>';</script></head><body>
<nav><ul><li><a href='/wiki/Main'>Main page</a></li><li><a href='/wiki/Random'>Random page</a></li></ul></nav>
<main><h1 id=top>Tide</h1><p><b>Tides</b> are the rise and fall of <a href='/wiki/Sea_level'>sea levels</a>.<sup><a href='#n1'>[1]</a></sup>
They are caused by the <i>Moon</i>&nbsp;and the <i>Sun</i>.</p>
<table class=infobox><caption>Tide at a glance</caption><tr><th>Cause</th><td>Moon, Sun</td></tr><tr><th>Period</th><td>12&thinsp;h 25&thinsp;min</td></tr></table>
<h2>Characteristics<span style='display: none'> edit</span></h2>
<p>Tide changes proceed via these stages:</p>
<ul><li>Sea level rises: <em>flood tide</em>.</li><li>The water rises to its highest level: <em>high tide</em>.
<ul><li>Spring tides are higher.</li></ul></li></ul>
<h3>Definitions</h3><dl><dt>Neap tide</dt><dd>A tide of small range.</dd></dl>
<figure><img src=a.jpg alt='A beach at low tide'><figcaption>Low tide in Brittany</figcaption></figure>
<blockquote><p>Time and tide wait for no man.</p></blockquote>
<h2>References</h2><ol><li id=n1><a href='https://example.org/tides'>Tides explained</a>. 2024.</li></ol></main>
<footer><p>Last edited today.</p></footer></body></html>";

const LISTS: &str = "<h2>Packing</h2><ol type=a><li>Ropes<li>Anchors</ol><ol start=7><li><p>Seven</p><li><p>Eight</p>\
<ul><li>Left</ul><ul><li>Right</ul></ol><ul><li><input type=checkbox checked>Paid</li><li><input type=checkbox>Sent</li></ul>\
<ul><li>One</li><ul><li>Below one</li></ul><li>Two</li></ul><p>End.</p>";

const SPANS: &str = "<table><thead><tr><th rowspan=2>Port</th><th colspan=2>High water</th></tr><tr><th>Time</th><th>Metres</th>\
</tr></thead><tbody><tr><td>Brest</td><td>04:12</td><td></td></tr><tr><td rowspan=2>Dover</td><td>11:03</td><td>6.5</td></tr>\
<tr><td>23:30</td><td>6.7</td></tr></tbody><tfoot><tr><td colspan=3>All times local | UTC+1</td></tr></tfoot></table>";

const FORM: &str = "<form><fieldset><legend>Booking</legend><label>Name <input name=n value='Ann Lee'></label><br>\
<label><input type=radio checked> Berth</label><br><label><input type=radio> Buoy</label><input type=hidden value=secret>\
<textarea>Two\nnights</textarea><select><option selected>Pier 1<option>Pier 2</select></fieldset></form>\
<details><summary>Terms</summary><p>Pay on arrival.</p></details><dialog>Never shown</dialog>";

/// Tables only arrange it, as in mails.
const NEWSLETTER: &str = "<html><body><table width=100% border=0 cellpadding=0><tr><td align=center>\
<table role=presentation><tr><td><img src=logo.png alt='Harbour News'></td></tr><tr><td><h1>March</h1></td></tr>\
<tr><td><p>Dear reader,</p><p>the <a href='https://example.org/r'>regatta</a> is near.</p></td></tr>\
<tr><td><table border=1><tr><th>Day</th><th>Start</th></tr><tr><td>Sunday</td><td>10:00</td></tr></table></td></tr>\
<tr><td><ul><li>Bring boots</li></ul></td></tr></table></td></tr></table></body></html>";

const MAILBOX: &str = "From a@b.c Mon Mar  2 09:30:00 2026\nFrom: Ann <a@b.c>\nSubject: Berth\nMessage-ID: <1@b>\n\n\
Is it free?\n\nFrom d@e.f Tue Mar  3 09:30:00 2026\nFrom: Dan <d@e.f>\nSubject: Re: Berth\nMessage-ID: <2@b>\n\nYes.\n\
>From noon on.\n";

const ORDER: &str = "From: Shop <shop@example.org>\r\nTo: ann@example.org\r\nSubject: Order 17\r\nMIME-Version: 1.0\r\n\
Content-Type: multipart/mixed; boundary=m\r\n\r\n--m\r\nContent-Type: multipart/alternative; boundary=a\r\n\r\n\
--a\r\nContent-Type: text/plain\r\n\r\nThank you for your order. Rope 2 Anchor 1\r\n\
--a\r\nContent-Type: text/html\r\n\r\n<h2>Thank you for your order.</h2><table><tr><th>Item</th><th>Number</th></tr>\
<tr><td>Rope</td><td>2</td></tr><tr><td>Anchor</td><td>1</td></tr></table>\r\n--a--\r\n\
--m\r\nContent-Type: text/markdown; name=care.md\r\nContent-Disposition: attachment; filename=care.md\r\n\r\n\
## Care\r\n\r\n1. Rinse\r\n2. Dry\r\n--m--\r\n";

const PAGE: &str = "From: <Saved by Blink>\r\nSnapshot-Content-Location: http://a.b/\r\nSubject: Tides\r\nMIME-Version: 1.0\r\n\
Content-Type: multipart/related; type=\"text/html\"; boundary=x\r\n\r\n--x\r\nContent-Type: text/html\r\n\
Content-Transfer-Encoding: quoted-printable\r\n\r\n<h1>Tides</h1><p>High wa=\r\nter</p><ul><li>now</ul>\r\n--x--\r\n";

const NOTEBOOK: &str = r###"{"metadata": {"language_info": {"name": "python"}}, "nbformat": 4, "cells": [
{"cell_type": "markdown", "source": ["# Tides\n", "\n", "Measured at *Brest*."]},
{"cell_type": "code", "source": ["import tides\n", "tides.table()"], "outputs": [
  {"output_type": "stream", "name": "stdout", "text": ["2 rows\n"]},
  {"output_type": "execute_result", "data": {"text/plain": ["x"], "text/html": ["<table><thead><tr><th></th><th>m</th></tr></thead><tr><th>0</th><td>6.5</td></tr></table>"]}}]},
{"cell_type": "markdown", "source": "## Result"}]}"###;

const PAPER: &str = r"\documentclass{article}
\title{On Tides}
\begin{document}
\maketitle
\section{Theory}
The force is $F = \frac{Gm}{r^2}$ % Newton
and it is weak~\cite{n}.
\subsection{Data}
\begin{tabular}{lr}
\hline Port & Metres \\
Brest & 6.5 \\
\end{tabular}
\begin{enumerate}
\item Measure
\item Compare
  \begin{itemize}\item twice\end{itemize}
\end{enumerate}
\end{document}";

const SPEECH: &str = "1\n00:00:01,000 --> 00:00:03,000\nAnn: The tide is high\n\n2\n00:00:03,000 --> 00:00:05,000\nand it\nfalls at 5.\n";

fn harbour() -> Vec<u8> {
    let contents = "<ncx><navPoint><navLabel><text>Foreword</text></navLabel><content src='fore.xhtml'/></navPoint></ncx>";
    let chapters = [
        (
            "one.xhtml",
            "<html><head><title>One</title></head><body><h1>The Harbour</h1><p>Ships <i>come</i>.</p><h2>Piers</h2>\
         <ul><li>North</li><li>South</li></ul></body></html>",
        ),
        ("fore.xhtml", "<html><head><title>Fore</title></head><body><p>Read this first.</p></body></html>"),
    ];
    made::book(&chapters, &[("O/toc.ncx", contents)])
}

fn message() -> Vec<u8> {
    let page = b"<h2>Plan</h2><ol><li>Moor</li><li>Eat</li></ol>".to_vec();
    let attached = "__attach_version1.0_#00000000";
    let (name, data) =
        (format!("{attached}/__substg1.0_3707001F"), format!("{attached}/__substg1.0_37010102"));
    let others = [(name.as_str(), made::utf16("list.md")), (data.as_str(), b"- rope\n- anchor\n".to_vec())];
    made::outlook(("__substg1.0_10130102", &page), &others)
}

fn parts() -> Vec<u8> {
    let docx = made::docx(&made::paragraph("In Word"));
    made::archive(&[("docs/a.md", b"## Spring\n\n- high\n"), ("docs/b.docx", &docx)])
}

fn preview() -> Vec<u8> {
    let pdf = made::pdf(&[&["Preview words"]]);
    made::archive(&[("Index/Document.iwa", b"x"), ("QuickLook/Preview.pdf", &pdf)])
}

/// A body and an attachment as Outlook sends them.
fn winmail() -> Vec<u8> {
    let attribute = |identifier: u32, data: &[u8]| {
        let length = u32::try_from(data.len()).unwrap();
        [&[1][..], &identifier.to_le_bytes(), &length.to_le_bytes(), data, &[0, 0]].concat()
    };
    [
        b"\x78\x9F\x3E\x22\x01\x00".to_vec(),
        attribute(0x0002_800C, b"See the list.\0"),
        attribute(0x0006_9002, &[0; 14]),
        attribute(0x0001_8010, b"list.md\0"),
        attribute(0x0006_800F, b"- rope\n- anchor\n"),
    ]
    .concat()
}
