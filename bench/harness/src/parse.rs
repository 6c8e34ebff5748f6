//! Pages through the rules of a source, on one thread: bytes in, records as JSON out.

use std::path::Path;
use std::time::Instant as Stopwatch;

use lakebed::config::SourceConfig;
use lakebed::parse::{FixturePage, PageInput, Rules, parse_page};
use lakebed::spec::CaptureRecord;
use lakebed::time::Instant;
use lakebed::{Error, Result};
use serde_json::{Value, json};

use crate::packs::run_key;

/// The pages of a folder, `repeat` times over; the records of one round go to `out`.
pub fn measure(rules: &Path, pages: &Path, repeat: u64, out: &Path) -> Result<Value> {
    let io = |path: &Path, e| Error::io("use", path.display(), e);
    let text = std::fs::read_to_string(rules).map_err(|e| io(rules, e))?;
    let file = rules.display().to_string();
    let rules = Rules::read(
        &SourceConfig::parse(&"books".parse()?, &text, &file)?,
        &file,
    )?;
    let mut files = Vec::new();
    for entry in std::fs::read_dir(pages).map_err(|e| io(pages, e))? {
        let path = entry.map_err(|e| io(pages, e))?.path();
        if path.extension().is_some_and(|e| e == "html") {
            files.push(path);
        }
    }
    files.sort();
    let mut inputs: Vec<(CaptureRecord, Vec<u8>)> = Vec::new();
    for path in &files {
        let body = std::fs::read(path).map_err(|e| io(path, e))?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let page = FixturePage {
            url: format!("http://books.test/catalogue/{name}/index.html"),
            stage: "detail".parse()?,
            status: 200,
            fetched_at: Instant::from_micros(0),
            charset: Some("utf-8".to_owned()),
            headers: Vec::new(),
        };
        inputs.push((page.capture(&name, &body), body));
    }
    let run = run_key("books")?;
    let mut lines = Vec::new();
    for (capture, body) in &inputs {
        let run = &run;
        for record in parse_page(&rules, &PageInput { run, capture, body }).records {
            lines.extend(record.record.to_json().into_bytes());
            lines.push(b'\n');
        }
    }
    std::fs::write(out, lines).map_err(|e| io(out, e))?;
    let (begin, before) = (Stopwatch::now(), cpu_seconds());
    let mut bytes = 0;
    for _ in 0..repeat {
        for (capture, body) in &inputs {
            let run = &run;
            for record in parse_page(&rules, &PageInput { run, capture, body }).records {
                bytes += record.record.to_json().len();
            }
        }
    }
    Ok(json!({
        "seconds": begin.elapsed().as_secs_f64(),
        "cpu_s": cpu_seconds() - before,
        "pages": repeat * inputs.len() as u64,
        "json_bytes": bytes,
    }))
}

/// Seconds of processor time of this process, from the kernel's ticks of a hundredth.
fn cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = text
        .rsplit(')')
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .collect();
    let ticks = |at: usize| {
        fields
            .get(at)
            .and_then(|f| f.parse::<f64>().ok())
            .unwrap_or(0.0)
    };
    (ticks(11) + ticks(12)) / 100.0
}
