//! Jupyter notebooks: the cells in their order, code in the language of the kernel, and what it printed.

use serde_json::Value;

use super::{html, markdown};
use crate::error::{Error, ErrorKind};
use crate::flow::{Flow, Gap};
use crate::limits::Bounds;
use crate::missing::{self, PageCount};
use crate::reading::Reading;

pub fn read(source: &str, bounds: Bounds<'_>) -> Result<Reading, Error> {
    let notebook: Value = serde_json::from_str(source).map_err(|error| {
        let message = format!("This notebook is damaged: its JSON breaks at line {}", error.line());
        Error::new(ErrorKind::Damaged, message).with_detail(error)
    })?;
    // Notebooks of before 2015 have their cells in work sheets.
    let cells = notebook["cells"].as_array().or_else(|| notebook["worksheets"][0]["cells"].as_array());
    let Some(cells) = cells else {
        return Err(Error::new(ErrorKind::Damaged, "This notebook is damaged: it has no cells"));
    };
    let mut cells_of =
        Cells { flow: Flow::new(bounds.limits), language: language(&notebook), pictures: 0, bounds };
    for cell in cells {
        bounds.report_progress()?;
        cells_of.cell(cell)?;
        cells_of.flow.check()?;
    }
    let Cells { mut flow, pictures, .. } = cells_of;
    if let Some(warning) = missing::parts_not_read("picture", pictures, &[]) {
        flow.warn(warning);
    }
    flow.finish_reading(PageCount::default())
}

fn language(notebook: &Value) -> String {
    let metadata = &notebook["metadata"];
    let named = [&metadata["kernelspec"]["language"], &metadata["language_info"]["name"]];
    let is_name = |name: &&str| {
        name.len() <= 30 && name.chars().all(|c| c.is_ascii_alphanumeric() || "+-#".contains(c))
    };
    named.iter().find_map(|name| name.as_str()).filter(is_name).unwrap_or_default().to_ascii_lowercase()
}

struct Cells<'a> {
    flow: Flow,
    language: String,
    /// Pictures in the outputs, which are not read.
    pictures: usize,
    bounds: Bounds<'a>,
}

impl Cells<'_> {
    fn cell(&mut self, cell: &Value) -> Result<(), Error> {
        let source = joined(if cell["source"].is_null() { &cell["input"] } else { &cell["source"] });
        match cell["cell_type"].as_str() {
            Some("code") => {
                self.flow.code_block(&self.language, &source);
                for output in cell["outputs"].as_array().into_iter().flatten() {
                    self.output(output)?;
                }
            }
            Some("heading") => {
                let level = cell["level"].as_u64().and_then(|level| u8::try_from(level).ok()).unwrap_or(1);
                self.flow.begin_heading(level);
                self.flow.words(&source);
                self.flow.end_heading();
            }
            Some("raw") => self.paragraph(&source),
            _ => self.flow.embed(Reading::of(markdown::extract(source.trim().to_owned()))),
        }
        Ok(())
    }

    fn output(&mut self, output: &Value) -> Result<(), Error> {
        match output["output_type"].as_str() {
            Some("stream") => self.paragraph(&joined(&output["text"])),
            Some("error" | "pyerr") => {
                let word = |key: &str| output[key].as_str().unwrap_or_default().to_owned();
                self.paragraph(&format!("{}: {}", word("ename"), word("evalue")));
            }
            _ => {
                let data = if output["data"].is_object() { &output["data"] } else { output };
                let of = |kind: &str, old: &str| {
                    joined(if data[kind].is_null() { &data[old] } else { &data[kind] })
                };
                let page = of("text/html", "html");
                if page.contains("<table") {
                    self.flow.embed(html::read(&page, self.bounds)?);
                } else {
                    self.data(&of("text/markdown", "markdown"), &of("text/plain", "text"));
                }
                let is_picture = |key: &String| key.starts_with("image/") || key == "png" || key == "jpeg";
                self.pictures +=
                    usize::from(data.as_object().is_some_and(|data| data.keys().any(is_picture)));
            }
        }
        Ok(())
    }

    fn data(&mut self, in_markdown: &str, plain: &str) {
        // `<Figure size 640x480 with 1 Axes>` says only that there is a picture.
        let is_object =
            plain.starts_with('<') && plain.trim_end().ends_with('>') && plain.lines().count() == 1;
        if !in_markdown.trim().is_empty() {
            self.flow.embed(Reading::of(markdown::extract(in_markdown.trim().to_owned())));
        } else if !is_object {
            self.paragraph(plain);
        }
    }

    fn paragraph(&mut self, text: &str) {
        let text = without_colours(text);
        self.flow.widen(Gap::Paragraph);
        for line in text.trim_matches('\n').lines() {
            self.flow.verbatim(line.trim_end());
            self.flow.widen(Gap::Line);
        }
        self.flow.widen(Gap::Paragraph);
    }
}

/// A text is stored as one string or as its lines.
fn joined(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(lines) => lines.iter().filter_map(Value::as_str).collect(),
        _ => String::new(),
    }
}

/// The text without the escape sequences that colour it in a terminal.
fn without_colours(text: &str) -> String {
    let mut rest = text;
    let mut plain = String::with_capacity(text.len());
    while let Some((before, after)) = rest.split_once('\u{1B}') {
        plain.push_str(before);
        rest = after.strip_prefix('[').map_or(after, |sequence| {
            sequence.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';').get(1..).unwrap_or_default()
        });
    }
    plain.push_str(rest);
    plain
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use super::*;
    use crate::limits::Limits;

    fn read(source: &str) -> Result<Reading, Error> {
        let limits = Limits::default();
        super::read(source, Bounds::new(&limits, &|| ControlFlow::Continue(())))
    }

    #[test]
    fn cells_and_their_outputs_are_in_order() {
        let source = serde_json::json!({
            "metadata": { "kernelspec": { "language": "python" } },
            "cells": [
                { "cell_type": "markdown", "source": ["# Tides\n", "\n", "- high"] },
                { "cell_type": "code", "source": "print('low')\n\nx", "outputs": [
                    { "output_type": "stream", "text": ["\u{1b}[1;31mlow\u{1b}[0m\n"] },
                    { "output_type": "execute_result", "data": {
                        "text/plain": "   a\n0  1", "text/html": "<table><tr><th></th><th>a</th></tr><tr><th>0</th><td>1</td></tr></table>" } },
                    { "output_type": "display_data", "data": { "image/png": "iVBO", "text/plain": "<Figure size 1x1>" } },
                    { "output_type": "error", "ename": "ValueError", "evalue": "no tide", "traceback": ["x"] },
                ] },
                { "cell_type": "raw", "source": "as it is" },
            ],
        });
        let reading = read(&source.to_string()).unwrap();
        assert_eq!(
            reading.extracted.text,
            "# Tides\n\n- high\n\n```python\nprint('low')\n\nx\n```\n\nlow\n\n| | a |\n| --- | --- |\n| 0 | 1 |\n\n\
             ValueError: no tide\n\nas it is"
        );
        assert_eq!(reading.extracted.places[0].heading.as_deref(), Some("Tides"));
        assert!(reading.extracted.warnings[0].message.starts_with("1 picture"));
    }

    #[test]
    fn a_notebook_that_is_none_is_damaged() {
        assert_eq!(read("{}").unwrap_err().kind(), ErrorKind::Damaged);
        assert_eq!(read("{\"cells\": [").unwrap_err().kind(), ErrorKind::Damaged);
        assert_eq!(read(&"[".repeat(100_000)).unwrap_err().kind(), ErrorKind::Damaged);
    }
}
