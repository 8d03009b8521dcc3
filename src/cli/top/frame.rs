//! How everything stands, laid out for a terminal of any size. What matters most stays when there is little room.

use console::{Style, measure_text_width, truncate_str};

use super::super::words::{number, printable, span};
use super::seen::{Hour, Looks, QueueStatus, Run, Schedule, Seen, Worker};
use crate::clock::Time;
use crate::lifecycle::{Stage, Status};

/// What there is room for. Without a height, for any number of lines.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    pub width: usize,
    pub height: Option<usize>,
}

pub struct Frame<'a> {
    pub looks: &'a Looks,
    pub size: Size,
    pub now: Time,
}

/// Lines that belong together. The first `least` of them are shown before any other section gets more.
struct Section {
    lines: Vec<String>,
    least: usize,
}

impl Section {
    fn new(lines: Vec<String>, least: usize) -> Self {
        Self { lines, least }
    }
}

impl Frame<'_> {
    pub fn lines(&self) -> Vec<String> {
        let mut sections = vec![self.title()];
        if let Some((at, seen)) = &self.looks.last {
            sections.extend(self.warnings(seen, *at));
            sections.push(self.overview(seen));
            sections.push(self.queues(seen));
            if let Some(queues) = &seen.queues {
                sections.push(self.workers(queues));
                sections.push(self.schedules(queues));
            }
            sections.push(self.errors(seen));
        } else if let Some(trouble) = &self.looks.trouble {
            sections.push(Section::new(vec![alarm(&printable(trouble))], 1));
        }
        let sections = sections.into_iter().filter(|section| !section.lines.is_empty()).collect();
        let lines = fit(sections, self.size.height).into_iter();
        lines.map(|line| truncate_str(&line, self.size.width, "…").into_owned()).collect()
    }

    fn title(&self) -> Section {
        let whose = if self.looks.all { "everybody's files" } else { "your files" };
        let left = format!("Landfall  {}  {whose}", printable(&self.looks.server));
        let ends = if self.size.height.is_some() { "q ends  " } else { "" };
        let right = format!("{ends}{} UTC", self.now.format("%Y-%m-%d %H:%M:%S"));
        let room = self.size.width.saturating_sub(measure_text_width(&left) + measure_text_width(&right));
        let line = if room >= 2 { format!("{left}{}{right}", " ".repeat(room)) } else { left };
        Section::new(vec![Style::new().bold().apply_to(line).to_string()], 1)
    }

    /// What a person should do something about, one line each.
    fn warnings(&self, seen: &Seen, at: Time) -> Option<Section> {
        let mut lines = Vec::new();
        if let Some(trouble) = &self.looks.trouble {
            let age = span((self.now - at).num_milliseconds());
            lines.push(alarm(&format!("{}. Below is what was seen {age} ago", printable(trouble))));
        }
        for circuit in seen.dashboard.circuits.iter().filter(|circuit| circuit.state != "closed") {
            let again = match circuit.until.map(|until| (until - self.now).num_milliseconds()) {
                Some(ms) if ms > 0 => format!("it is tried again in {}", span(ms)),
                _ => "a few files try it now".to_owned(),
            };
            let (service, state) = (printable(&circuit.service), printable(&circuit.state));
            lines.push(alarm(&format!(
                "circuit {service} is {state} after {} failures in a row: files wait, {again}",
                circuit.failures
            )));
        }
        for (stage, files) in &seen.stuck.without_workers {
            let (files, stage) = (number(*files), printable(stage));
            lines.push(alarm(&format!("{files} wait at {stage}, and no process is running that does it")));
        }
        for file in &seen.stuck.files {
            lines.push(alarm(&format!(
                "stuck for {}: {} ({}): {}",
                span(file.stuck_duration),
                printable(&file.file_name),
                printable(&file.status),
                printable(&file.message)
            )));
        }
        let named = i64::try_from(seen.stuck.files.len()).unwrap_or(i64::MAX);
        if seen.stuck.total > named {
            lines.push(alarm(&format!("stuck: {} more", number(seen.stuck.total - named))));
        }
        (!lines.is_empty()).then(|| Section::new(lines, 1))
    }

    fn overview(&self, seen: &Seen) -> Section {
        let dashboard = &seen.dashboard;
        let metrics = &dashboard.metrics;
        let mut throughput = Vec::new();
        throughput.extend(self.looks.rate().map(|rate| format!("{rate:.1}/s now")));
        throughput.push(format!("{} ready in 24 h", number(metrics.completed)));
        let failed = format!("{:.2} % failed", metrics.failure_rate);
        throughput.push(if metrics.failure_rate > 0.0 { yellow(&failed) } else { failed });
        throughput.push(format!("{} each", span(metrics.average_processing_ms)));
        let states = Status::ALL.into_iter().filter_map(|status| {
            let files = *dashboard.status_distribution.get(status.name()).filter(|files| **files > 0)?;
            let words = format!("{status} {}", number(files));
            Some(match status {
                Status::Failed => red(&words),
                Status::Ready => green(&words),
                _ => words,
            })
        });
        let states: Vec<String> = states.collect();
        let mut trouble = vec![
            format!("oldest wait {}", span(dashboard.oldest_waiting_ms)),
            format!("active batches {}", number(dashboard.active_batches)),
        ];
        for (what, files) in [("dead letters", dashboard.dlq_depth), ("stuck", dashboard.stuck_files)] {
            let words = format!("{what} {}", number(files));
            trouble.push(if files > 0 { red(&words) } else { words });
        }
        let mut lines = vec![
            labelled("Throughput", &throughput.join(" · ")),
            labelled("Files", &if states.is_empty() { "none yet".to_owned() } else { states.join(" · ") }),
            labelled("", &trouble.join(" · ")),
        ];
        // Everybody's, so only beside everybody's.
        if let Some(queues) = seen.queues.as_ref().filter(|_| self.looks.all) {
            lines.insert(1, labelled("By the hour", &hours(&queues.recent_hours, self.now, self.size.width)));
        }
        let least = lines.len();
        Section::new(lines, least)
    }

    fn queues(&self, seen: &Seen) -> Section {
        let mut rows = Vec::new();
        match &seen.queues {
            Some(status) => {
                rows.push(["QUEUE", "WAITING", "RETRYING", "RUNNING", ""].map(str::to_owned).to_vec());
                // In the order in which a file meets them.
                for stage in Stage::ALL {
                    let Some(queue) = status.queues.get(&format!("file-{stage}")) else { continue };
                    let idle = queue.waiting + queue.retrying + queue.running == 0 && queue.paused.is_none();
                    if stage == Stage::Scan && idle {
                        continue;
                    }
                    let mut held_up = Vec::new();
                    if let Some(pause) = &queue.paused {
                        let since = span((self.now - pause.at).num_milliseconds());
                        held_up.push(yellow(&format!("paused by {} {since} ago", printable(&pause.by))));
                    }
                    if let Some(until) = queue.limited_until.filter(|until| *until > self.now) {
                        let ahead = span((until - self.now).num_milliseconds());
                        held_up.push(yellow(&format!("rate limit: next in {ahead}")));
                    }
                    rows.push(vec![
                        stage.to_string(),
                        number(queue.waiting),
                        number(queue.retrying),
                        number(queue.running),
                        held_up.join(", "),
                    ]);
                }
            }
            None => {
                rows.push(["QUEUE", "WAITING"].map(str::to_owned).to_vec());
                for stage in Stage::ALL {
                    if let Some(depth) = seen.dashboard.queue_depths.get(&format!("file-{stage}")) {
                        rows.push(vec![stage.to_string(), number(*depth)]);
                    }
                }
            }
        }
        let lines = grid(&rows, &[1, 2, 3]);
        let least = lines.len();
        Section::new(lines, least)
    }

    fn workers(&self, queues: &QueueStatus) -> Section {
        let mut rows = vec![["WORKER", "STAGES", "UP", "HEARTBEAT"].map(str::to_owned).to_vec()];
        rows.extend(queues.workers.iter().map(|Worker { name, stages, started_at, heartbeat_at }| {
            let ago = |at: Time| span((self.now - at).num_milliseconds());
            vec![printable(name), printable(stages), ago(*started_at), format!("{} ago", ago(*heartbeat_at))]
        }));
        if queues.workers.is_empty() {
            rows.push(vec![red("none: nothing is worked on")]);
        }
        Section::new(grid(&rows, &[]), 2)
    }

    fn schedules(&self, queues: &QueueStatus) -> Section {
        let mut rows = vec![["SCHEDULE", "LAST", "NEXT", ""].map(str::to_owned).to_vec()];
        rows.extend(queues.schedules.iter().map(|Schedule { name, next_run_at, running, last_run }| {
            let last = match last_run {
                Some(run) => format!("{} ago", span((self.now - run.started_at).num_milliseconds())),
                None => "never".to_owned(),
            };
            let next = match next_run_at.map(|at| (at - self.now).num_milliseconds()) {
                Some(ms) if ms > 0 => format!("in {}", span(ms)),
                Some(_) => "now".to_owned(),
                None => "never".to_owned(),
            };
            let result = match last_run {
                _ if *running => "running".to_owned(),
                Some(Run { errors, .. }) if !errors.is_empty() => {
                    red(&format!("{} errors: {}", errors.len(), printable(&errors[0])))
                }
                Some(Run { started_at, ended_at: Some(ended_at), .. }) => {
                    format!("took {}", span((*ended_at - *started_at).num_milliseconds()))
                }
                _ => String::new(),
            };
            vec![printable(name), last, next, result]
        }));
        Section::new(grid(&rows, &[]), 2)
    }

    fn errors(&self, seen: &Seen) -> Section {
        let errors = &seen.dashboard.recent_errors;
        if errors.is_empty() {
            return Section::new(vec![dim("No file failed of late.")], 1);
        }
        let mut rows = vec![["FAILED", "STAGE", "CODE", "FILE", "ERROR"].map(str::to_owned).to_vec()];
        rows.extend(errors.iter().map(|error| {
            vec![
                format!("{} ago", span((self.now - error.timestamp).num_milliseconds())),
                printable(&error.stage),
                red(&printable(&error.code)),
                shortened(&printable(&error.file_name), 32),
                printable(&error.error),
            ]
        }));
        Section::new(grid(&rows, &[]), 2)
    }
}

/// As many lines of each section as there is room for: first the least of each in their order, then the rest by turns, and
/// an empty line before each if there is room for everything.
fn fit(sections: Vec<Section>, height: Option<usize>) -> Vec<String> {
    let wanted: usize = sections.iter().map(|section| section.lines.len()).sum();
    let Some(height) = height.filter(|height| wanted + sections.len().saturating_sub(1) > *height) else {
        let apart: Vec<Vec<String>> = sections.into_iter().map(|section| section.lines).collect();
        return apart.join(&String::new());
    };
    let mut room = height;
    let mut shown: Vec<usize> = Vec::new();
    for section in &sections {
        let least = section.least.min(section.lines.len()).min(room);
        room -= least;
        shown.push(least);
    }
    while room > 0 {
        let before = room;
        for (section, shown) in sections.iter().zip(&mut shown) {
            if room > 0 && *shown < section.lines.len() {
                *shown += 1;
                room -= 1;
            }
        }
        if room == before {
            break;
        }
    }
    let mut lines = Vec::new();
    for (section, shown) in sections.into_iter().zip(shown) {
        let left_out = section.lines.len() - shown;
        lines.extend(section.lines.into_iter().take(shown));
        // The last line makes room for the number of those that have none, unless it is all there is.
        if left_out > 0 && shown > 1 {
            lines.pop();
            lines.push(dim(&format!("… {} more", left_out + 1)));
        }
    }
    lines
}

/// The last day as bars, the present hour in numbers.
fn hours(recent: &[Hour], now: Time, width: usize) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let hours_ago = |hour: &Hour| usize::try_from((now.timestamp() / 3_600) - hour.hour.timestamp() / 3_600);
    let mut day = [0_i64; 24];
    for hour in recent {
        if let Some(slot) = hours_ago(hour).ok().and_then(|ago| 23_usize.checked_sub(ago)) {
            day[slot] += hour.completed + hour.failed;
        }
    }
    let most = day.iter().copied().max().unwrap_or(0).max(1);
    let bar = |files: &i64| match *files {
        0 => ' ',
        // Rounded up: one file in the hour shows.
        files => BARS[usize::try_from((files * 8 + most - 1) / most - 1).unwrap_or(0).min(7)],
    };
    let bars: String = day.iter().map(bar).collect();
    let present = recent.iter().find(|hour| hours_ago(hour) == Ok(0));
    let words = present.map_or_else(
        || "none in this hour".to_owned(),
        |hour| {
            let mut words =
                format!("{} in this hour, {} failed", number(hour.completed), number(hour.failed));
            if let (Some(p50), Some(p95)) = (hour.p50_ms, hour.p95_ms) {
                words.push_str(&format!(", p50 {}, p95 {}", span(p50), span(p95)));
            }
            words
        },
    );
    if width < 72 { words } else { format!("{bars}▏{words}") }
}

/// Cells below one another, the first row a heading; numbers to the right.
fn grid(rows: &[Vec<String>], numbers: &[usize]) -> Vec<String> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = rows.iter().filter(|row| row.len() > 1).filter_map(|row| row.get(column));
        cells.map(|cell| measure_text_width(cell)).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let line = |row: &Vec<String>| {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            let padding = " ".repeat(widths[column].saturating_sub(measure_text_width(cell)));
            let (before, after) =
                if numbers.contains(&column) { (padding, String::new()) } else { (String::new(), padding) };
            line.push_str(&before);
            line.push_str(cell);
            if column + 1 < row.len() {
                line.push_str(&after);
                line.push_str("  ");
            }
        }
        line.trim_end().to_owned()
    };
    let mut lines: Vec<String> = rows.iter().map(line).collect();
    if let Some(heading) = lines.first_mut() {
        *heading = dim(heading);
    }
    lines
}

fn labelled(label: &str, text: &str) -> String {
    format!("{}{text}", dim(&format!("{label:<13}")))
}

fn shortened(text: &str, width: usize) -> String {
    truncate_str(text, width, "…").into_owned()
}

fn alarm(text: &str) -> String {
    // The mark speaks where there are no colours.
    Style::new().red().bold().apply_to(format!("! {text}")).to_string()
}

fn red(text: &str) -> String {
    Style::new().red().apply_to(text).to_string()
}

fn yellow(text: &str) -> String {
    Style::new().yellow().apply_to(text).to_string()
}

fn green(text: &str) -> String {
    Style::new().green().apply_to(text).to_string()
}

fn dim(text: &str) -> String {
    Style::new().dim().apply_to(text).to_string()
}
