//! How everything stands, laid out for a terminal of any size. What matters most stays when there is little room.

use console::{Style, measure_text_width, truncate_str};

use super::seen::{Hour, Looks, QueueStatus, Run, Schedule, Seen, Worker};
use crate::words::{files_wait, number, printable, span};
use landfall_core::clock::Time;
use landfall_core::lifecycle::{Stage, Status};

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
        // As much of it as there is room for.
        let rights = ["%Y-%m-%d %H:%M:%S UTC", "%H:%M:%S UTC"].map(|form| self.now.format(form).to_string());
        let rights =
            rights.iter().map(|time| format!("{ends}{time}")).chain([rights[1].clone(), String::new()]);
        let room = |right: &str| {
            self.size
                .width
                .checked_sub(measure_text_width(&left) + measure_text_width(right))
                .filter(|room| *room >= 2)
        };
        let whole = |right: String| Some(format!("{left}{}{right}", " ".repeat(room(&right)?)));
        let line = rights.into_iter().find_map(whole).unwrap_or_else(|| left.clone());
        Section::new(vec![Style::new().bold().apply_to(line).to_string()], 1)
    }

    /// What a person should do something about, one line each.
    fn warnings(&self, seen: &Seen, at: Time) -> Option<Section> {
        let mut lines = Vec::new();
        if let Some(trouble) = &self.looks.trouble {
            let age = span((self.now - at).num_milliseconds());
            lines.push(alarm(&format!("this was seen {age} ago: {}", printable(trouble))));
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
            let (files_wait, stage) = (files_wait(*files), printable(stage));
            lines.push(alarm(&format!("{files_wait} at {stage}, and no process is running that does it")));
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
        let mut states: Vec<String> = states.collect();
        if states.is_empty() {
            states.push("none yet".to_owned());
        }
        let mut rest = Vec::new();
        for (what, files) in [("stuck", dashboard.stuck_files), ("dead letters", dashboard.dlq_depth)] {
            let words = format!("{what} {}", number(files));
            rest.push(if files > 0 { red(&words) } else { words });
        }
        rest.push(format!("oldest wait {}", span(dashboard.oldest_waiting_ms)));
        rest.push(format!("active batches {}", number(dashboard.active_batches)));
        let mut lines = self.listed("Throughput", &throughput);
        // Everybody's, so only beside everybody's.
        if let Some(queues) = seen.queues.as_ref().filter(|_| self.looks.all) {
            let words = hours(&queues.recent_hours, self.now, self.size.width);
            lines.extend(self.listed("By the hour", &words));
        }
        lines.extend(self.listed("Files", &states));
        lines.extend(self.listed("", &rest));
        let least = lines.len();
        Section::new(lines, least)
    }

    /// Things after a label, on as many lines as they need.
    fn listed(&self, label: &str, things: &[String]) -> Vec<String> {
        const INDENT: usize = 13;
        let mut lines = Vec::new();
        let mut line = String::new();
        for thing in things {
            let width = INDENT + measure_text_width(&line) + 3 + measure_text_width(thing);
            if !line.is_empty() && width > self.size.width {
                lines.push(std::mem::take(&mut line));
            }
            line.push_str(if line.is_empty() { "" } else { " · " });
            line.push_str(thing);
        }
        lines.push(line);
        let labels = std::iter::once(label).chain(std::iter::repeat(""));
        lines
            .iter()
            .zip(labels)
            .map(|(line, label)| format!("{}{line}", dim(&format!("{label:<INDENT$}"))))
            .collect()
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
                format!("{} ago", roughly((self.now - error.timestamp).num_milliseconds())),
                printable(&error.stage),
                red(&printable(&error.code)),
                truncate_str(&printable(&error.file_name), self.size.width / 4, "…").into_owned(),
                printable(&error.error),
            ]
        }));
        Section::new(grid(&rows, &[]), 2)
    }
}

/// As many lines of each section as there is room for: first the least of each in their order, then the rest by turns.
/// Where all fit, an empty line comes before each as long as there is room.
fn fit(sections: Vec<Section>, height: Option<usize>) -> Vec<String> {
    let wanted: usize = sections.iter().map(|section| section.lines.len()).sum();
    let Some(height) = height.filter(|height| wanted > *height) else {
        let mut spare = height.map_or(usize::MAX, |height| height - wanted);
        let mut lines = Vec::new();
        for section in sections {
            if !lines.is_empty() && spare > 0 {
                lines.push(String::new());
                spare -= 1;
            }
            lines.extend(section.lines);
        }
        return lines;
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
fn hours(recent: &[Hour], now: Time, width: usize) -> Vec<String> {
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
    let mut words = match present {
        Some(hour) => vec![
            format!("{} in this hour", number(hour.completed)),
            format!("{} failed", number(hour.failed)),
        ],
        None => vec!["none in this hour".to_owned()],
    };
    if let Some((p50, p95)) = present.and_then(|hour| hour.p50_ms.zip(hour.p95_ms)) {
        words.extend([format!("p50 {}", span(p50)), format!("p95 {}", span(p95))]);
    }
    if width >= 60 {
        words[0].insert_str(0, &format!("{bars}▏"));
    }
    words
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

/// A span by its largest unit alone.
fn roughly(ms: i64) -> String {
    span(ms).split(' ').take(2).collect::<Vec<_>>().join(" ")
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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const NOW: &str = "2026-01-02T03:04:05Z";

    fn now() -> Time {
        NOW.parse().unwrap()
    }

    /// A server in all kinds of trouble.
    fn troubled() -> Value {
        let error = |number: i64| {
            json!({ "fileId": "01890000-0000-7000-8000-000000000000", "fileName": format!("scan-{number}\u{1b}[2J.pdf"),
                    "error": "It says .pdf, but it is not a PDF", "code": "NOT_PDF", "stage": "extract",
                    "timestamp": "2026-01-02T03:02:05Z" })
        };
        let queue = |waiting: i64| json!({ "waiting": waiting, "retrying": 3, "running": 8, "paused": null, "limitedUntil": null });
        let mut extract = queue(1_234_567);
        extract["paused"] = json!({ "at": "2026-01-02T03:00:05Z", "by": "ada" });
        let mut embed = queue(5);
        embed["limitedUntil"] = json!("2026-01-02T03:04:09Z");
        let job = |name: &str, errors: Value| {
            json!({ "name": name, "schedule": "* * * * *", "nextRunAt": "2026-01-02T03:05:00Z", "running": false,
                    "lastRun": { "startedAt": "2026-01-02T03:00:00Z", "endedAt": "2026-01-02T03:00:01Z", "errors": errors } })
        };
        json!({
            "dashboard": {
                "statusDistribution": { "queued": 1_234_575, "extracting": 8, "ready": 20_113, "failed": 12 },
                "activeBatches": 3, "dlqDepth": 12, "stuckFiles": 5,
                "queueDepths": { "file-extract": 1_234_570, "file-chunk": 0, "file-embed": 5 },
                "recentErrors": (0..10).map(error).collect::<Vec<_>>(),
                "metrics": { "averageProcessingTime": 840, "throughput24h": 20_113, "failureRate24h": 1.25 },
                "circuits": [
                    { "service": "gateway", "state": "closed", "failures": 0, "until": null },
                    { "service": "embeddings", "state": "open", "failures": 5, "until": "2026-01-02T03:04:46Z" },
                ],
                "oldestWaitingMs": 252_000,
            },
            "stuck": {
                "files": [{ "id": "01890000-0000-7000-8000-000000000000", "fileName": "left.txt", "status": "chunking",
                            "stuckDuration": 1_900_000, "retryCount": 1, "batchId": null, "updatedAt": NOW,
                            "reason": "claim_broken", "message": "The process that worked on it is gone" }],
                "total": 5, "withoutWorkers": { "chunk": 40 },
            },
            "queueStatus": {
                "throughput": { "totalCompleted": 20_113, "totalFailed": 254, "totalTimedOut": 0 },
                "recentHours": [
                    { "hour": "2026-01-02T03:00:00Z", "completed": 1_204, "failed": 3, "timedOut": 0, "byClass": {}, "p50Ms": 1024, "p95Ms": 4096 },
                    { "hour": "2026-01-02T02:00:00Z", "completed": 1, "failed": 0, "timedOut": 0, "byClass": {}, "p50Ms": 8, "p95Ms": 8 },
                ],
                "workers": [{ "name": "host-4711", "stages": "extract,embed", "startedAt": "2026-01-02T01:04:05Z", "heartbeatAt": "2026-01-02T03:04:03Z" }],
                "queues": { "file-scan": { "waiting": 0, "retrying": 0, "running": 0, "paused": null },
                            "file-extract": extract, "file-chunk": queue(0), "file-embed": embed },
                "circuits": [],
                "schedules": [job("stuck-file-recovery", json!([])), job("orphan-cleanup", json!(["blob ff/x: no"]))],
            },
        })
    }

    fn looks(raw: Value, all: bool) -> Looks {
        let mut looks = Looks::new("http://127.0.0.1:3002", all);
        looks.take(Ok(Seen::read(raw).unwrap()), now());
        looks
    }

    fn lines(looks: &Looks, width: usize, height: Option<usize>) -> Vec<String> {
        Frame { looks, size: Size { width, height }, now: now() }.lines()
    }

    #[test]
    fn everything_that_matters_is_in_a_frame() {
        let frame = lines(&looks(troubled(), true), 200, Some(60)).join("\n");
        for part in [
            "everybody's files",
            "2026-01-02 03:04:05 UTC",
            "! circuit embeddings is open after 5 failures in a row: files wait, it is tried again in 41 s",
            "! 40 files wait at chunk, and no process is running that does it",
            "! stuck for 31 min 40 s: left.txt (chunking): The process that worked on it is gone",
            "! stuck: 4 more",
            "20,113 ready in 24 h · 1.25 % failed · 840 ms each",
            "1,204 in this hour · 3 failed · p50 1 s · p95 4 s",
            "stuck 5 · dead letters 12 · oldest wait 4 min 12 s · active batches 3",
            "paused by ada 4 min ago",
            "rate limit: next in 4 s",
            "host-4711  extract,embed  2 h  2 s ago",
            "stuck-file-recovery  4 min 5 s ago  in 55 s  took 1 s",
            "1 errors: blob ff/x: no",
            "2 min ago  extract  NOT_PDF",
        ] {
            assert!(frame.contains(part), "{part}:\n{frame}");
        }
        assert!(!frame.contains("scan "), "a stage that nobody needs is left out:\n{frame}");
        assert!(!frame.contains("closed"), "a circuit that is closed needs nobody");
    }

    #[test]
    fn a_frame_fits_whatever_the_size() {
        let looks = looks(troubled(), true);
        for (width, height) in [(80, 24), (200, 50), (132, 43), (40, 12), (20, 5), (1, 1), (80, 1), (3, 100)]
        {
            let lines = lines(&looks, width, Some(height));
            assert!(lines.len() <= height, "{} lines in {height}", lines.len());
            for line in lines {
                assert!(measure_text_width(&line) <= width, "{width}: {line}");
            }
        }
    }

    #[test]
    fn what_matters_most_stays_where_there_is_little_room() {
        let frame = lines(&looks(troubled(), true), 80, Some(24)).join("\n");
        for part in [
            "03:04:05 UTC",
            "! circuit embeddings",
            "ready in 24 h",
            "ready 20,113",
            "failed 12",
            "active batches",
            "QUEUE",
            "1,234,567",
            "host-4711",
            "SCHEDULE",
            "NOT_PDF",
            "more",
        ] {
            assert!(frame.contains(part), "{part}:\n{frame}");
        }
    }

    #[test]
    fn nothing_in_a_name_is_obeyed_by_the_terminal() {
        let frame = lines(&looks(troubled(), true), 200, None).join("\n");
        assert!(frame.contains("scan-0\\u{1b}[2J.pdf") && !frame.contains('\u{1b}'), "{frame}");
    }

    #[test]
    fn who_is_no_administrator_sees_their_own() {
        let mut raw = troubled();
        raw["queueStatus"] = Value::Null;
        let frame = lines(&looks(raw, false), 80, None).join("\n");
        assert!(frame.contains("your files") && frame.contains("1,234,570"), "{frame}");
        assert!(
            !frame.contains("WORKER") && !frame.contains("SCHEDULE") && !frame.contains("hour"),
            "{frame}"
        );
    }

    #[test]
    fn a_server_that_is_away_leaves_what_was_seen_and_says_how_old_it_is() {
        let mut looks = looks(troubled(), true);
        looks.trouble = Some("cannot reach http://127.0.0.1:3002: Connection refused".to_owned());
        let frame = Frame {
            looks: &looks,
            size: Size { width: 200, height: Some(50) },
            now: now() + chrono::TimeDelta::seconds(12),
        };
        let frame = frame.lines().join("\n");
        assert!(
            frame
                .contains("! this was seen 12 s ago: cannot reach http://127.0.0.1:3002: Connection refused"),
            "{frame}"
        );
        assert!(frame.contains("host-4711"), "{frame}");
    }

    #[test]
    fn a_server_that_was_never_there_is_said_to_be_away() {
        let mut looks = Looks::new("http://127.0.0.1:3002", false);
        looks.trouble = Some("cannot reach it".to_owned());
        assert_eq!(lines(&looks, 80, Some(24)).len(), 3);
        assert_eq!(lines(&looks, 80, Some(24))[2], "! cannot reach it");
    }
}
