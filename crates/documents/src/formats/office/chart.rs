//! Charts of Office documents: the title, and the figures as a table with a row for each category.

use std::collections::{BTreeMap, BTreeSet};

use crate::elements::{Elements, Piece};
use crate::error::Error;
use crate::flow::{Flow, Gap};
use crate::limits::Bounds;

/// Excel allows 255.
const MAX_SERIES: usize = 255;

/// Writes a chart where the flow is now.
pub fn write(source: &str, flow: &mut Flow, bounds: Bounds<'_>) -> Result<(), Error> {
    Chart::read(source, bounds)?.write(flow)
}

/// Writes the names in a chart of a workbook, whose figures are in the cells.
pub fn write_names(source: &str, flow: &mut Flow, bounds: Bounds<'_>) -> Result<(), Error> {
    let chart = Chart::read(source, bounds)?;
    flow.widen(Gap::Paragraph);
    let names = chart.series.iter().map(|series| &series.name);
    for words in [&chart.title].into_iter().chain(&chart.axes).chain(names) {
        flow.words(words);
        flow.widen(Gap::Line);
    }
    flow.widen(Gap::Paragraph);
    flow.check()
}

#[derive(Default)]
struct Chart {
    title: String,
    /// The titles of the axes.
    axes: Vec<String>,
    series: Vec<Series>,
    /// The figures of newer charts, which stand apart from the series, by their ids.
    data: BTreeMap<String, Series>,
    points: usize,
}

/// A row of figures, by the positions of their categories.
#[derive(Default, Clone)]
struct Series {
    name: String,
    categories: BTreeMap<u32, String>,
    values: BTreeMap<u32, String>,
    data: Option<String>,
}

/// The open elements, and what was opened in them.
#[derive(Default)]
struct Position {
    path: Vec<String>,
    /// The point whose value follows.
    point: u32,
    data: Option<String>,
}

impl Position {
    fn is_in(&self, names: &[&str]) -> bool {
        self.path.iter().any(|open| names.contains(&open.as_str()))
    }
}

impl Chart {
    fn read(source: &str, bounds: Bounds<'_>) -> Result<Self, Error> {
        let mut chart = Self::default();
        let mut position = Position::default();
        let mut elements = Elements::new(source, bounds);
        while let Some(piece) = elements.next()? {
            match piece {
                Piece::Open(element) => {
                    let name = element.name().to_owned();
                    match name.as_str() {
                        "Fallback" | "txPr" | "dLbls" => {
                            elements.skip()?;
                            continue;
                        }
                        "ser" | "series" if chart.series.len() < MAX_SERIES => {
                            chart.series.push(Series::default());
                        }
                        "data" => position.data = element.attribute("id"),
                        "dataId" => {
                            if let Some(series) = chart.series.last_mut() {
                                series.data = element.attribute("val");
                            }
                        }
                        "pt" => {
                            position.point =
                                element.attribute("idx").and_then(|idx| idx.parse().ok()).unwrap_or(0);
                        }
                        "title" if position.is_in(AXES) => chart.axes.push(String::new()),
                        "p" => chart.add(" ", &position, bounds)?,
                        _ => {}
                    }
                    position.path.push(name);
                }
                Piece::Close(_) => _ = position.path.pop(),
                Piece::Words(words) => {
                    if matches!(position.path.last().map(String::as_str), Some("v" | "t" | "pt")) {
                        chart.add(&words, &position, bounds)?;
                    }
                }
            }
        }
        Ok(chart)
    }

    /// Adds words to what they belong to.
    fn add(&mut self, words: &str, position: &Position, bounds: Bounds<'_>) -> Result<(), Error> {
        let of_figures = position.is_in(&["cat", "xVal", "val", "yVal", "strDim", "numDim"]);
        if of_figures {
            self.points += 1;
            if self.points > bounds.limits.cells {
                return Err(bounds.limits.too_many_cells());
            }
        }
        let series = match (&position.data, position.is_in(&["ser", "series"])) {
            (_, true) => self.series.last_mut(),
            (Some(id), false) if position.is_in(&["data"]) => Some(self.data.entry(id.clone()).or_default()),
            _ => None,
        };
        match series {
            Some(series) if position.is_in(&["cat", "xVal", "strDim"]) => {
                add_point(&mut series.categories, position.point, words);
            }
            Some(series) if of_figures => add_point(&mut series.values, position.point, words),
            Some(series) if position.is_in(&["tx"]) => series.name.push_str(words),
            None if position.is_in(AXES) && position.is_in(&["title"]) => {
                if let Some(title) = self.axes.last_mut() {
                    title.push_str(words);
                }
            }
            None if position.is_in(&["title"]) => self.title.push_str(words),
            _ => {}
        }
        Ok(())
    }

    fn write(mut self, flow: &mut Flow) -> Result<(), Error> {
        for series in &mut self.series {
            if let Some(data) = series.data.as_ref().and_then(|id| self.data.get(id)) {
                (series.categories, series.values) = (data.categories.clone(), data.values.clone());
            }
        }
        self.series.retain(|series| !series.name.trim().is_empty() || !series.values.is_empty());
        flow.widen(Gap::Paragraph);
        flow.words(&self.title);
        for axis in &self.axes {
            flow.widen(Gap::Paragraph);
            flow.words(axis);
        }
        flow.widen(Gap::Paragraph);
        let points: BTreeSet<u32> = self
            .series
            .iter()
            .flat_map(|series| series.values.keys().chain(series.categories.keys()))
            .copied()
            .collect();
        flow.begin_table();
        flow.begin_row();
        flow.begin_cell();
        for series in &self.series {
            flow.begin_cell();
            flow.words(&series.name);
        }
        for point in points {
            flow.begin_row();
            flow.begin_cell();
            let category = self.series.iter().find_map(|series| series.categories.get(&point));
            flow.words(category.map_or("", String::as_str));
            for series in &self.series {
                flow.begin_cell();
                flow.words(&figure(series.values.get(&point).map_or("", String::as_str)));
            }
            flow.check()?;
        }
        flow.end_table();
        flow.check()
    }
}

const AXES: &[&str] = &["catAx", "valAx", "dateAx", "serAx", "axis"];

fn add_point(points: &mut BTreeMap<u32, String>, at: u32, words: &str) {
    let point = points.entry(at).or_default();
    // Categories of several levels stand after one another.
    if !point.is_empty() {
        point.push(' ');
    }
    point.push_str(words);
}

/// A number without the last digits, which only the conversion to binary made.
fn figure(value: &str) -> String {
    match value.trim().parse::<f64>() {
        Ok(number) if number.is_finite() && value.len() > 15 => {
            let rounded = format!("{number:.14e}").parse().unwrap_or(number);
            format!("{rounded}")
        }
        _ => value.trim().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use super::*;
    use crate::limits::Limits;

    fn text(source: &str) -> String {
        let limits = Limits::default();
        let bounds = Bounds::new(&limits, &|| ControlFlow::Continue(()));
        let mut flow = Flow::new(&limits);
        write(source, &mut flow, bounds).unwrap();
        flow.finish().unwrap().text
    }

    #[test]
    fn a_chart_is_its_title_its_axes_and_a_table() {
        let series = |name: &str, values: [&str; 2]| {
            format!(
                "<c:ser><c:tx><c:strRef><c:f>S!B1</c:f><c:strCache><c:pt idx='0'><c:v>{name}</c:v></c:pt></c:strCache></c:strRef></c:tx>\
                 <c:cat><c:strRef><c:strCache><c:pt idx='0'><c:v>Ayr</c:v></c:pt><c:pt idx='1'><c:v>Oban</c:v></c:pt></c:strCache></c:strRef></c:cat>\
                 <c:val><c:numRef><c:numCache><c:formatCode>General</c:formatCode><c:pt idx='0'><c:v>{}</c:v></c:pt><c:pt idx='1'><c:v>{}</c:v></c:pt></c:numCache></c:numRef></c:val></c:ser>",
                values[0], values[1]
            )
        };
        let source = format!(
            "<c:chartSpace><c:chart><c:title><c:tx><c:rich><a:p><a:r><a:t>Tides in </a:t></a:r><a:r><a:t>May</a:t></a:r></a:p></c:rich></c:tx></c:title>\
             <c:plotArea><c:barChart>{}{}</c:barChart><c:valAx><c:title><c:tx><c:rich><a:p><a:r><a:t>Metres</a:t></a:r></a:p></c:rich></c:tx></c:title></c:valAx>\
             </c:plotArea></c:chart></c:chartSpace>",
            series("High", ["4.2999999999999998", "3"]),
            series("Low", ["0.5", ""]),
        );
        assert_eq!(
            text(&source),
            "Tides in May\n\nMetres\n\n| | High | Low |\n| --- | --- | --- |\n| Ayr | 4.3 | 0.5 |\n| Oban | 3 | |"
        );
    }

    #[test]
    fn newer_charts_keep_their_figures_apart() {
        let source = "<cx:chartSpace><cx:chartData><cx:data id='0'><cx:strDim type='cat'><cx:lvl><cx:pt idx='0'>Ayr</cx:pt></cx:lvl></cx:strDim>\
            <cx:numDim type='val'><cx:lvl><cx:pt idx='0'>7</cx:pt></cx:lvl></cx:numDim></cx:data></cx:chartData>\
            <cx:chart><cx:title><cx:tx><cx:txData><cx:v>Boats</cx:v></cx:txData></cx:tx></cx:title><cx:plotArea><cx:plotAreaRegion>\
            <cx:series layoutId='funnel'><cx:tx><cx:txData><cx:v>In port</cx:v></cx:txData></cx:tx><cx:dataId val='0'/></cx:series>\
            </cx:plotAreaRegion></cx:plotArea></cx:chart></cx:chartSpace>";
        assert_eq!(text(source), "Boats\n\n| | In port |\n| --- | --- |\n| Ayr | 7 |");
    }
}
