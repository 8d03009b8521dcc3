//! Lays out a snapshot for a terminal of any size. The most important lines stay when there is little room.

use console::{Style, measure_text_width, truncate_str};

use super::snapshot::{Recent, Snapshot};
use crate::format::{files_wait, number, printable, span};
use landfall_api::maintenance::{JobView, RunView};
use landfall_api::queues::{Hour, QueueStatus, WorkerView, queue_name};
use landfall_core::clock::Time;
use landfall_core::lifecycle::{Stage, Status};
use landfall_core::states::CircuitState;

/// The size of the output. Without a height, the number of lines is not limited.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    pub width: usize,
    pub height: Option<usize>,
}

pub struct Frame<'a> {
    pub recent: &'a Recent,
    pub size: Size,
    pub now: Time,
}

/// Lines that belong together. The first `min` of them are shown before any other section gets more.
struct Section {
    lines: Vec<String>,
    min: usize,
}

impl Section {
    fn new(lines: Vec<String>, min: usize) -> Self {
        Self { lines, min }
    }
}

impl Frame<'_> {
    pub fn lines(&self) -> Vec<String> {
        let mut sections = vec![self.title()];
        if let Some((at, snapshot)) = &self.recent.last {
            sections.extend(self.warnings(snapshot, *at));
            sections.push(self.overview(snapshot));
            sections.push(self.queues(snapshot));
            if let Some(status) = &snapshot.queue_status {
                sections.push(self.workers(status));
                sections.push(self.schedules(status));
            }
            sections.push(self.errors(snapshot));
        } else if let Some(error) = &self.recent.error {
            sections.push(Section::new(vec![alarm(&printable(error))], 1));
        }
        let sections = sections.into_iter().filter(|section| !section.lines.is_empty()).collect();
        let lines = fit(sections, self.size.height).into_iter();
        lines.map(|line| truncate_str(&line, self.size.width, "…").into_owned()).collect()
    }

    fn title(&self) -> Section {
        let whose = if self.recent.all { "files of all users" } else { "your files" };
        let left = format!("Landfall  {}  {whose}", printable(&self.recent.server));
        let quit = if self.size.height.is_some() { "q quits  " } else { "" };
        // The longest form that fits.
        let rights = ["%Y-%m-%d %H:%M:%S UTC", "%H:%M:%S UTC"].map(|form| self.now.format(form).to_string());
        let rights =
            rights.iter().map(|time| format!("{quit}{time}")).chain([rights[1].clone(), String::new()]);
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

    /// Problems that a person should look at, one line each.
    fn warnings(&self, snapshot: &Snapshot, at: Time) -> Option<Section> {
        let mut lines = Vec::new();
        if let Some(error) = &self.recent.error {
            let age = span((self.now - at).num_milliseconds());
            lines.push(alarm(&format!("this is {age} old: {}", printable(error))));
        }
        for circuit in
            snapshot.dashboard.circuits.iter().filter(|circuit| circuit.state != CircuitState::Closed)
        {
            let again = match circuit.until.map(|until| (until - self.now).num_milliseconds()) {
                Some(ms) if ms > 0 => format!("next try in {}", span(ms)),
                _ => "a few files try it now".to_owned(),
            };
            let (service, state) = (circuit.service.name(), circuit.state);
            lines.push(alarm(&format!(
                "circuit {service} is {state} after {} failures in a row: files wait, {again}",
                circuit.failures
            )));
        }
        for (stage, files) in &snapshot.stuck.without_workers {
            let files_wait = files_wait(*files);
            lines.push(alarm(&format!("{files_wait} at {stage}, and no process runs this stage")));
        }
        for file in &snapshot.stuck.files {
            lines.push(alarm(&format!(
                "stuck for {}: {} ({}): {}",
                span(file.stuck_duration),
                printable(&file.file_name),
                file.status,
                printable(&file.message)
            )));
        }
        let more = snapshot.stuck.total.saturating_sub(snapshot.stuck.files.len());
        if more > 0 {
            lines.push(alarm(&format!("stuck: {more} more")));
        }
        (!lines.is_empty()).then(|| Section::new(lines, 1))
    }

    fn overview(&self, snapshot: &Snapshot) -> Section {
        let dashboard = &snapshot.dashboard;
        let metrics = &dashboard.metrics;
        let mut throughput = Vec::new();
        throughput.extend(self.recent.rate().map(|rate| format!("{rate:.1}/s now")));
        throughput.push(format!("{} ready in 24 h", number(metrics.throughput)));
        let failed = format!("{:.2} % failed", metrics.failure_rate);
        throughput.push(if metrics.failure_rate > 0.0 { yellow(&failed) } else { failed });
        throughput.push(format!("{} each", span(metrics.average_processing_time)));
        let states = Status::ALL.into_iter().filter_map(|status| {
            let files = *dashboard.status_distribution.get(&status).filter(|files| **files > 0)?;
            let text = format!("{status} {}", number(files));
            Some(match status {
                Status::Failed => red(&text),
                Status::Ready => green(&text),
                _ => text,
            })
        });
        let mut states: Vec<String> = states.collect();
        if states.is_empty() {
            states.push("none yet".to_owned());
        }
        let mut rest = Vec::new();
        for (what, files) in [("stuck", dashboard.stuck_files), ("dead letters", dashboard.dlq_depth)] {
            let text = format!("{what} {}", number(files));
            rest.push(if files > 0 { red(&text) } else { text });
        }
        rest.push(format!("oldest wait {}", span(dashboard.oldest_waiting_ms)));
        rest.push(format!("active batches {}", number(dashboard.active_batches)));
        let mut lines = self.listed("Throughput", &throughput);
        // The hours count the files of all users, so they are shown only with those.
        if let Some(status) = snapshot.queue_status.as_ref().filter(|_| self.recent.all) {
            let hours = hours(&status.recent_hours, self.now, self.size.width);
            lines.extend(self.listed("By the hour", &hours));
        }
        lines.extend(self.listed("Files", &states));
        lines.extend(self.listed("", &rest));
        let min = lines.len();
        Section::new(lines, min)
    }

    /// Items after a label, on as many lines as they need.
    fn listed(&self, label: &str, items: &[String]) -> Vec<String> {
        const INDENT: usize = 13;
        let mut lines = Vec::new();
        let mut line = String::new();
        for item in items {
            let width = INDENT + measure_text_width(&line) + 3 + measure_text_width(item);
            if !line.is_empty() && width > self.size.width {
                lines.push(std::mem::take(&mut line));
            }
            line.push_str(if line.is_empty() { "" } else { " · " });
            line.push_str(item);
        }
        lines.push(line);
        let labels = std::iter::once(label).chain(std::iter::repeat(""));
        lines
            .iter()
            .zip(labels)
            .map(|(line, label)| format!("{}{line}", dim(&format!("{label:<INDENT$}"))))
            .collect()
    }

    fn queues(&self, snapshot: &Snapshot) -> Section {
        let mut rows = Vec::new();
        match &snapshot.queue_status {
            Some(status) => {
                rows.push(["QUEUE", "WAITING", "RETRYING", "RUNNING", ""].map(str::to_owned).to_vec());
                // In the order in which a file passes them.
                for stage in Stage::ALL {
                    let Some(queue) = status.queues.get(&queue_name(stage)) else { continue };
                    let idle = queue.is_idle() && queue.paused.is_none();
                    if stage == Stage::Scan && idle {
                        continue;
                    }
                    let mut delays = Vec::new();
                    if let Some(pause) = &queue.paused {
                        let since = span((self.now - pause.at).num_milliseconds());
                        delays.push(yellow(&format!("paused by {} {since} ago", printable(&pause.by))));
                    }
                    if let Some(until) = queue.limited_until.filter(|until| *until > self.now) {
                        let ahead = span((until - self.now).num_milliseconds());
                        delays.push(yellow(&format!("rate limit: next in {ahead}")));
                    }
                    rows.push(vec![
                        stage.to_string(),
                        number(queue.waiting),
                        number(queue.retrying),
                        number(queue.running),
                        delays.join(", "),
                    ]);
                }
            }
            None => {
                rows.push(["QUEUE", "WAITING"].map(str::to_owned).to_vec());
                for stage in Stage::ALL {
                    if let Some(depth) = snapshot.dashboard.queue_depths.get(&queue_name(stage)) {
                        rows.push(vec![stage.to_string(), number(*depth)]);
                    }
                }
            }
        }
        let lines = grid(&rows, &[1, 2, 3]);
        let min = lines.len();
        Section::new(lines, min)
    }

    fn workers(&self, queues: &QueueStatus) -> Section {
        let mut rows = vec![["WORKER", "STAGES", "UP", "HEARTBEAT"].map(str::to_owned).to_vec()];
        rows.extend(queues.workers.iter().map(|WorkerView { name, stages, started_at, heartbeat_at }| {
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
        rows.extend(queues.schedules.iter().map(
            |JobView { name, next_run_at, running, last_run, .. }| {
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
                    Some(RunView { errors, .. }) if !errors.is_empty() => {
                        red(&format!("{} errors: {}", errors.len(), printable(&errors[0])))
                    }
                    Some(RunView { started_at, ended_at: Some(ended_at), .. }) => {
                        format!("took {}", span((*ended_at - *started_at).num_milliseconds()))
                    }
                    _ => String::new(),
                };
                vec![printable(name), last, next, result]
            },
        ));
        Section::new(grid(&rows, &[]), 2)
    }

    fn errors(&self, snapshot: &Snapshot) -> Section {
        let errors = &snapshot.dashboard.recent_errors;
        if errors.is_empty() {
            return Section::new(vec![dim("No file failed recently.")], 1);
        }
        let mut rows = vec![["FAILED", "STAGE", "CODE", "FILE", "ERROR"].map(str::to_owned).to_vec()];
        rows.extend(errors.iter().map(|error| {
            vec![
                format!("{} ago", roughly((self.now - error.timestamp).num_milliseconds())),
                error.stage.to_string(),
                red(&printable(&error.code)),
                truncate_str(&printable(&error.file_name), self.size.width / 4, "…").into_owned(),
                printable(&error.error),
            ]
        }));
        Section::new(grid(&rows, &[]), 2)
    }
}

/// As many lines of each section as fit: first the minimum of each in their order, then one more of each in turn. If all
/// lines fit, an empty line comes before each section as long as there is room.
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
        let min = section.min.min(section.lines.len()).min(room);
        room -= min;
        shown.push(min);
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
        // The last line is replaced by the number of hidden lines, unless it is the only one.
        if left_out > 0 && shown > 1 {
            lines.pop();
            lines.push(dim(&format!("… {} more", left_out + 1)));
        }
    }
    lines
}

/// The last day as bars, the current hour in numbers.
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
        // Rounded up, so that one file in an hour is visible.
        files => BARS[usize::try_from((files * 8 + most - 1) / most - 1).unwrap_or(0).min(7)],
    };
    let bars: String = day.iter().map(bar).collect();
    let current = recent.iter().find(|hour| hours_ago(hour) == Ok(0));
    let mut parts = match current {
        Some(hour) => vec![
            format!("{} in this hour", number(hour.completed)),
            format!("{} failed", number(hour.failed)),
        ],
        None => vec!["none in this hour".to_owned()],
    };
    if let Some((p50, p95)) = current.and_then(|hour| hour.p50_ms.zip(hour.p95_ms)) {
        parts.extend([format!("p50 {}", span(p50)), format!("p95 {}", span(p95))]);
    }
    if width >= 60 {
        parts[0].insert_str(0, &format!("{bars}▏"));
    }
    parts
}

/// Rows with aligned columns. The first row is the heading; columns with numbers are aligned to the right.
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

/// A duration in its largest unit only.
fn roughly(ms: i64) -> String {
    span(ms).split(' ').take(2).collect::<Vec<_>>().join(" ")
}

fn alarm(text: &str) -> String {
    // The mark is for terminals without colours.
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

    /// A server with every kind of problem.
    fn with_problems() -> Value {
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
                    "lastRun": { "runId": "01890000-0000-7000-8000-000000000000", "startedBy": null, "worker": "host-4711",
                                 "metrics": null, "startedAt": "2026-01-02T03:00:00Z", "endedAt": "2026-01-02T03:00:01Z", "errors": errors } })
        };
        json!({
            "dashboard": {
                "statusDistribution": { "queued": 1_234_575, "extracting": 8, "ready": 20_113, "failed": 12 },
                "activeBatches": 3, "dlqDepth": 12, "stuckFiles": 5,
                "queueDepths": { "file-extract": 1_234_570, "file-chunk": 0, "file-embed": 5 },
                "recentErrors": (0..10).map(error).collect::<Vec<_>>(),
                "metrics": { "averageProcessingTime": 840, "throughput24h": 20_113, "failureRate24h": 1.25 },
                "circuits": [
                    { "service": "gateway", "state": "closed", "failures": 0, "until": null, "changedAt": null },
                    { "service": "embeddings", "state": "open", "failures": 5, "until": "2026-01-02T03:04:46Z",
                      "changedAt": null },
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
                "throughput": { "totalCompleted": 20_113, "totalFailed": 254, "totalTimedOut": 0, "totalFailedAttempts": 4, "totalAttemptsTimedOut": 0, "totalRetried": 0, "totalRetriedReady": 0, "retrySuccessRate": null, "p50Ms": null, "p95Ms": null },
                "recentHours": [
                    { "hour": "2026-01-02T03:00:00Z", "completed": 1_204, "failed": 3, "timedOut": 0, "byClass": {}, "failedAttempts": 4, "attemptsTimedOut": 0, "attemptsByClass": {}, "retried": 0, "retriedReady": 0, "p50Ms": 1024, "p95Ms": 4096 },
                    { "hour": "2026-01-02T02:00:00Z", "completed": 1, "failed": 0, "timedOut": 0, "byClass": {}, "failedAttempts": 4, "attemptsTimedOut": 0, "attemptsByClass": {}, "retried": 0, "retriedReady": 0, "p50Ms": 8, "p95Ms": 8 },
                ],
                "workers": [{ "name": "host-4711", "stages": "extract,embed", "startedAt": "2026-01-02T01:04:05Z", "heartbeatAt": "2026-01-02T03:04:03Z" }],
                "queues": { "file-scan": { "waiting": 0, "retrying": 0, "running": 0, "paused": null, "limitedUntil": null },
                            "file-extract": extract, "file-chunk": queue(0), "file-embed": embed },
                "circuits": [],
                "schedules": [job("stuck-file-recovery", json!([])), job("orphan-cleanup", json!(["blob ff/x: no"]))],
            },
        })
    }

    fn recent(raw: Value, all: bool) -> Recent {
        let mut recent = Recent::new("http://127.0.0.1:3002", all);
        recent.add(Ok(serde_json::from_value(raw).unwrap()), now());
        recent
    }

    fn lines(recent: &Recent, width: usize, height: Option<usize>) -> Vec<String> {
        Frame { recent, size: Size { width, height }, now: now() }.lines()
    }

    #[test]
    fn a_frame_shows_everything_important() {
        let frame = lines(&recent(with_problems(), true), 200, Some(60)).join("\n");
        for part in [
            "files of all users",
            "2026-01-02 03:04:05 UTC",
            "! circuit embeddings is open after 5 failures in a row: files wait, next try in 41 s",
            "! 40 files wait at chunk, and no process runs this stage",
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
        assert!(!frame.contains("scan "), "a stage without files is left out:\n{frame}");
        assert!(!frame.contains("closed"), "a closed circuit is no problem");
    }

    #[test]
    fn a_frame_fits_into_any_size() {
        let recent = recent(with_problems(), true);
        for (width, height) in [(80, 24), (200, 50), (132, 43), (40, 12), (20, 5), (1, 1), (80, 1), (3, 100)]
        {
            let lines = lines(&recent, width, Some(height));
            assert!(lines.len() <= height, "{} lines in {height}", lines.len());
            for line in lines {
                assert!(measure_text_width(&line) <= width, "{width}: {line}");
            }
        }
    }

    #[test]
    fn the_most_important_lines_stay_in_a_small_frame() {
        let frame = lines(&recent(with_problems(), true), 80, Some(24)).join("\n");
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
    fn control_characters_in_names_are_escaped() {
        let frame = lines(&recent(with_problems(), true), 200, None).join("\n");
        assert!(frame.contains("scan-0\\u{1b}[2J.pdf") && !frame.contains('\u{1b}'), "{frame}");
    }

    #[test]
    fn a_user_sees_only_their_own_files() {
        let mut raw = with_problems();
        raw["queueStatus"] = Value::Null;
        let frame = lines(&recent(raw, false), 80, None).join("\n");
        assert!(frame.contains("your files") && frame.contains("1,234,570"), "{frame}");
        assert!(
            !frame.contains("WORKER") && !frame.contains("SCHEDULE") && !frame.contains("hour"),
            "{frame}"
        );
    }

    #[test]
    fn the_last_snapshot_stays_with_its_age_while_the_server_is_away() {
        let mut recent = recent(with_problems(), true);
        recent.error = Some("cannot reach http://127.0.0.1:3002: Connection refused".to_owned());
        let frame = Frame {
            recent: &recent,
            size: Size { width: 200, height: Some(50) },
            now: now() + chrono::TimeDelta::seconds(12),
        };
        let frame = frame.lines().join("\n");
        assert!(
            frame.contains("! this is 12 s old: cannot reach http://127.0.0.1:3002: Connection refused"),
            "{frame}"
        );
        assert!(frame.contains("host-4711"), "{frame}");
    }

    #[test]
    fn a_server_that_never_responded_is_reported() {
        let mut recent = Recent::new("http://127.0.0.1:3002", false);
        recent.error = Some("cannot reach it".to_owned());
        assert_eq!(lines(&recent, 80, Some(24)).len(), 3);
        assert_eq!(lines(&recent, 80, Some(24))[2], "! cannot reach it");
    }
}
