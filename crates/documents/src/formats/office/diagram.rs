//! SmartArt: the words of its points, as a list that is nested like the points.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::elements::{Elements, Piece};
use crate::error::Error;
use crate::flow::{Flow, Gap};
use crate::limits::Bounds;

/// Deeper points are left on this level.
const MAX_DEPTH: usize = 32;

/// Writes a diagram where the flow is now. `source` is its part `data`.
pub fn write(source: &str, flow: &mut Flow, bounds: Bounds<'_>) -> Result<(), Error> {
    let diagram = Diagram::read(source, bounds)?;
    flow.widen(Gap::Paragraph);
    diagram.write(flow)?;
    flow.end_list();
    Ok(())
}

#[derive(Default)]
struct Diagram {
    /// The words of each point, in the order of the file.
    points: Vec<(String, String)>,
    /// The points under a point, in their order.
    under: HashMap<String, BTreeMap<(u32, usize), String>>,
    top: Option<String>,
}

impl Diagram {
    fn read(source: &str, bounds: Bounds<'_>) -> Result<Self, Error> {
        let mut diagram = Self::default();
        // The open point, unless it only says how others look.
        let mut point: Option<(String, String)> = None;
        let mut in_text = false;
        let mut elements = Elements::new(source, bounds);
        while let Some(piece) = elements.next()? {
            match piece {
                Piece::Open(element) => match element.name() {
                    "pt" => {
                        let kind = element.attribute("type").unwrap_or_default();
                        let id = element.attribute("modelId").unwrap_or_default();
                        match kind.as_str() {
                            "pres" | "parTrans" | "sibTrans" => elements.skip()?,
                            "doc" => diagram.top = Some(id),
                            _ => point = Some((id, String::new())),
                        }
                    }
                    "cxn" => diagram.connect(
                        element.attribute("type").as_deref(),
                        element.attribute("srcId").zip(element.attribute("destId")),
                        element.attribute("srcOrd").and_then(|order| order.parse().ok()).unwrap_or(0),
                    ),
                    "t" => in_text = element.prefix() == "a" || point.is_some(),
                    "p" | "br" => {
                        if let Some((_, words)) = &mut point {
                            words.push(' ');
                        }
                    }
                    _ => {}
                },
                Piece::Close(name) => match name.as_str() {
                    "t" => in_text = false,
                    "pt" => diagram.points.extend(point.take()),
                    _ => {}
                },
                Piece::Words(words) => {
                    if let Some((_, text)) = point.as_mut().filter(|_| in_text) {
                        text.push_str(&words);
                    }
                }
            }
        }
        Ok(diagram)
    }

    fn connect(&mut self, kind: Option<&str>, ends: Option<(String, String)>, order: u32) {
        if let (None | Some("parOf"), Some((from, to))) = (kind, ends) {
            let under = self.under.entry(from).or_default();
            // Two with the same order stay in the order of the file.
            let number = under.len();
            under.insert((order, number), to);
        }
    }

    /// Each point is written once, also if the connections have a cycle. Points that nothing leads to come last.
    fn write(&self, flow: &mut Flow) -> Result<(), Error> {
        let words: HashMap<&str, &str> =
            self.points.iter().map(|(id, words)| (id.as_str(), words.as_str())).collect();
        let mut written = HashSet::new();
        let starts = self.top.iter().chain(self.points.iter().map(|(id, _)| id));
        for start in starts {
            // The next points, the first of them last, and how deep they are.
            let mut next = vec![(start.as_str(), 0_usize)];
            let mut open = 0;
            while let Some((id, depth)) = next.pop() {
                if !written.insert(id) {
                    continue;
                }
                let text = words.get(id).copied().unwrap_or_default().trim();
                let depth = if text.is_empty() {
                    depth
                } else {
                    while open > depth {
                        flow.end_item();
                        open -= 1;
                    }
                    flow.begin_item("-");
                    open += 1;
                    flow.words(text);
                    (depth + 1).min(MAX_DEPTH)
                };
                flow.check()?;
                let under = self.under.get(id).into_iter().flat_map(|under| under.values().rev());
                next.extend(under.map(|id| (id.as_str(), depth)));
            }
            for _ in 0..open {
                flow.end_item();
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use super::*;
    use crate::limits::Limits;

    #[test]
    fn points_are_nested_and_ordered_by_their_connections() {
        let point = |id: u32, kind: &str, words: &str| {
            format!(
                "<dgm:pt modelId='{id}' type='{kind}'><dgm:t><a:p><a:r><a:t>{words}</a:t></a:r></a:p></dgm:t></dgm:pt>"
            )
        };
        let source = format!(
            "<dgm:dataModel><dgm:ptLst><dgm:pt modelId='0' type='doc'/>{}{}{}{}{}</dgm:ptLst><dgm:cxnLst>\
             <dgm:cxn srcId='0' destId='2' srcOrd='1'/><dgm:cxn srcId='0' destId='1' srcOrd='0'/>\
             <dgm:cxn srcId='1' destId='3' srcOrd='0'/><dgm:cxn srcId='3' destId='1' srcOrd='0'/>\
             <dgm:cxn type='presOf' srcId='2' destId='4' srcOrd='0'/></dgm:cxnLst></dgm:dataModel>",
            point(2, "node", "Sail"),
            point(1, "node", "Cast off"),
            point(3, "node", "Bow line"),
            point(4, "pres", "Not words"),
            point(5, "node", "Alone"),
        );
        let limits = Limits::default();
        let mut flow = Flow::new(&limits);
        write(&source, &mut flow, Bounds::new(&limits, &|| ControlFlow::Continue(()))).unwrap();
        assert_eq!(flow.finish().unwrap().text, "- Cast off\n  - Bow line\n- Sail\n- Alone");
    }
}
