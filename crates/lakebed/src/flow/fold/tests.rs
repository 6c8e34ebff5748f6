//! Days folded in a lake: rows come in by ingest, and what comes out is read from the files.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use super::*;
use crate::catalog::SqliteCatalog;
use crate::config::{Project, SourceConfig};
use crate::ingest::decode::Mismatch;
use crate::ingest::read::resolve_inputs;
use crate::ingest::{IngestRequest, RevisionTarget, Silent, ingest};
use crate::log::load;
use crate::name::DatasetRef;
use crate::registry::{self, Evolution, PublishOptions, PublishOutcome};
use crate::spec::{By, LoadKind, ReadSpec};
use crate::store::{Lake, LocalStore};
use crate::time::{BusinessDate, Clock, Instant};

const SOURCE: &str = r#"
class = "log"
[fold.house]
key = ["city", "id"]
watch = ["price", "facts", "status"]
[[fold.house.from]]
dataset = "rent.list"
presence = true
[[fold.house.from]]
dataset = "rent.detail"
gone = { field = "code", is = 404 }
[fold.house.field]
price = "newest"
facts = { from = "detail" }
rows = "count"
days_absent = "days_absent"
seen = "last_seen"
touched = "last_touched"
print = { rule = "fingerprint", from = "list", of = ["price"] }
[fold.house.field.status]
rule = "status"
start = "open"
move = [
    { to = "open", when = { seen = "list" } },
    { to = "closed", when = { gone = "detail" } },
    { from = "open", to = "missing", when = { absent_days = 4 } },
]
[fold.house.drop]
status = ["closed", "missing"]
untouched_days = 6
"#;

const LIST: &str = r#"
dataset = "clean/rent.list"
version = 1
field = [
    { id = 1, name = "city", type = "enum", values = ["台北", "高雄"] },
    { id = 2, name = "id", type = "int" },
    { id = 3, name = "price", type = "decimal(12,2)" },
    { id = 4, name = "_fetched_at", type = "timestamp" },
]
"#;

const DETAIL: &str = r#"
dataset = "clean/rent.detail"
version = 1
[[field]]
id = 1
name = "id"
type = "int"
[[field]]
id = 2
name = "city"
type = "enum"
values = ["台北", "高雄"]
[[field]]
id = 3
name = "code"
type = "int"
[[field]]
id = 4
name = "facts"
type = "struct"
  [[field.field]]
  id = 5
  name = "坪"
  type = "float"
  [[field.field]]
  id = 6
  name = "tags"
  type = "list<string>"
[[field]]
id = 7
name = "_fetched_at"
type = "timestamp"
"#;

struct Rent {
    dir: tempfile::TempDir,
    lake: Lake,
    catalog: SqliteCatalog,
    source: SourceConfig,
}

fn by() -> By {
    By {
        program: "test".into(),
        user: None,
        run: None,
        note: None,
    }
}

fn day(n: i64) -> BusinessDate {
    // Two changes of the clock in most of the world lie within sixty days from here, and a leap of the month.
    "2026-09-15".parse::<BusinessDate>().unwrap().plus_days(n)
}

impl Rent {
    async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = Arc::new(LocalStore::new(dir.path().join("lake")));
        let clock = Arc::new(Clock::manual(Instant::from_micros(1_780_000_000_000_000)));
        let lake = Lake::open_or_create(store, clock, "America/New_York")
            .await
            .unwrap();
        let catalog = SqliteCatalog::open(dir.path().join("catalog.db"))
            .await
            .unwrap();
        let source = SourceConfig::parse(&"rent".parse().unwrap(), SOURCE, "source.toml").unwrap();
        let rent = Self {
            dir,
            lake,
            catalog,
            source,
        };
        rent.publish(LIST).await;
        rent.publish(DETAIL).await;
        let project = Project::init(rent.dir.path().join("project"), None)
            .unwrap()
            .project;
        let name = "house".parse().unwrap();
        for written in write_schemas(&rent.lake, &project, &rent.source, &name)
            .await
            .unwrap()
        {
            let (text, _) = project
                .read_schema_file(&written.dataset, written.version)
                .unwrap();
            rent.publish(&text).await;
        }
        // What is published needs no file.
        let again = write_schemas(&rent.lake, &project, &rent.source, &name)
            .await
            .unwrap();
        assert!(again.iter().all(|w| w.file.is_none()), "{again:?}");
        rent
    }

    /// The same lake in another folder.
    async fn copy(&self) -> Self {
        fn copy(from: &std::path::Path, to: &std::path::Path) {
            std::fs::create_dir_all(to).unwrap();
            for entry in std::fs::read_dir(from).unwrap() {
                let path = entry.unwrap().path();
                let target = to.join(path.file_name().unwrap());
                match path.is_dir() {
                    true => copy(&path, &target),
                    false => drop(std::fs::copy(&path, &target).unwrap()),
                }
            }
        }
        let dir = tempfile::tempdir().unwrap();
        copy(&self.dir.path().join("lake"), &dir.path().join("lake"));
        let store = Arc::new(LocalStore::new(dir.path().join("lake")));
        let clock = Arc::new(Clock::manual(Instant::from_micros(1_790_000_000_000_000)));
        Self {
            lake: Lake::open(store, clock).await.unwrap(),
            catalog: SqliteCatalog::open(dir.path().join("catalog.db"))
                .await
                .unwrap(),
            source: self.source.clone(),
            dir,
        }
    }

    async fn publish(&self, text: &str) {
        let spec = registry::parse(text, "v1.toml").unwrap();
        let options = PublishOptions {
            by: by(),
            git_commit: None,
            evolution: Evolution::Free,
        };
        let outcome = registry::publish(&self.lake, &spec, &options)
            .await
            .unwrap();
        assert!(
            matches!(outcome, PublishOutcome::Published { .. }),
            "{outcome:?}"
        );
    }

    async fn put(&self, dataset: &str, dt: BusinessDate, text: &str) {
        let path: PathBuf = self
            .dir
            .path()
            .join(format!("{dt}-{}.jsonl", dataset.replace('/', "-")));
        std::fs::write(&path, text).unwrap();
        let request = IngestRequest {
            dataset: dataset.parse().unwrap(),
            dt,
            inputs: resolve_inputs(&[path.to_str().unwrap().to_owned()]).unwrap(),
            format: None,
            schema_version: None,
            read: ReadSpec::default(),
            mismatch: Mismatch::Fail,
            batch: None,
            run: None,
            revision: RevisionTarget::Join,
            complete: true,
            late: false,
            allow_empty: true,
            rejects_of: None,
            restore: false,
            bounds: Vec::new(),
            load: LoadKind::Incremental,
            parents: Vec::new(),
            provenance: None,
            by: by(),
            threads: Some(1),
            group_bytes: None,
        };
        let report = ingest(&self.lake, &self.catalog, &request, &Silent)
            .await
            .unwrap();
        assert!(report.complete, "{report:?}");
    }

    /// A market of invented houses, by a fixed rule.
    async fn fill(&self, days: i64) {
        for n in 0..days {
            let (mut list, mut detail) = (String::new(), String::new());
            for h in 0..50 {
                let city = ["台北", "高雄"][usize::from(h % 3 == 0)];
                let at = format!("{}T{:02}:30:00Z", day(n), (h + n) % 24);
                if h <= n + 9 && (h * 5 + n) % 17 != 0 && h + 30 > n {
                    let price = 10_000 + h * 100 + (n / 7) * (h % 3);
                    writeln!(list, "{{\"id\":{h},\"city\":\"{city}\",\"price\":{price},\"_fetched_at\":\"{at}\"}}").unwrap();
                    if h % 10 == 0 {
                        // Seen twice a day.
                        writeln!(list, "{{\"id\":{h},\"city\":\"{city}\",\"price\":{},\"_fetched_at\":\"{at}\"}}", price + n).unwrap();
                    }
                }
                if (h + 2 * n) % 9 == 0 {
                    let facts = match h % 5 {
                        0 => "null".to_owned(),
                        _ => format!("{{\"坪\":{}.5,\"tags\":[\"電梯\",\"{}\"]}}", h, n / 20),
                    };
                    let code = if h + 29 <= n { 404 } else { 200 };
                    writeln!(
                        detail,
                        "{{\"id\":{h},\"city\":\"{city}\",\"code\":{code},\"facts\":{facts}}}"
                    )
                    .unwrap();
                }
            }
            self.put("clean/rent.list", day(n), &list).await;
            self.put("clean/rent.detail", day(n), &detail).await;
        }
    }

    fn options(&self) -> FoldOptions {
        FoldOptions {
            folder: self.dir.path().join("fold"),
            from: None,
            provisional: false,
            cold_start: false,
            partial: false,
            complete: false,
            allow_vanished: false,
            by: by(),
            threads: Some(2),
            memory_bytes: 1 << 30,
        }
    }

    async fn fold(&self, dt: BusinessDate, options: &FoldOptions) -> FoldReport {
        let name = "house".parse().unwrap();
        let lake = (&self.lake, &self.catalog as &dyn crate::catalog::Catalog);
        let answer = fold_date(lake, (&self.source, &name), dt, options, &Silent)
            .await
            .unwrap();
        assert!(answer.refusal.is_none(), "{:?}", answer.refusal);
        answer.report
    }

    /// Hashes of the visible files, by dataset and date, in order.
    async fn contents(&self) -> BTreeMap<(String, BusinessDate), Vec<String>> {
        let mut found = BTreeMap::new();
        for dataset in ["feature/rent.house", "feature/rent.house_events"] {
            let of: DatasetRef = dataset.parse().unwrap();
            let state = load(&self.lake, &of).await.unwrap().state;
            for dt in state.dates().keys() {
                let files = state.visible_of(*dt).flat_map(|(_, p)| p.files.values());
                let hashes = files.map(|f| f.spec.blake3.to_string()).collect();
                found.insert((dataset.to_owned(), *dt), hashes);
            }
        }
        found
    }
}

/// Attacks FLD-1.
#[tokio::test]
async fn sixty_days_and_one_go_are_the_same_bytes() {
    const DAYS: i64 = 60;
    let daily = Rent::new().await;
    daily.fill(DAYS).await;
    let chain = daily.copy().await;
    let mut sum = BTreeMap::from([
        ("vanished", 0),
        ("returned", 0),
        ("dropped", 0),
        ("changed", 0),
    ]);
    for n in 0..DAYS {
        let report = daily.fold(day(n), &daily.options()).await;
        for told in &report.days {
            *sum.get_mut("vanished").unwrap() += told.vanished;
            *sum.get_mut("returned").unwrap() += told.returned;
            *sum.get_mut("dropped").unwrap() += told.dropped;
            *sum.get_mut("changed").unwrap() += told.changed;
        }
    }
    // The market has something of everything.
    assert!(sum.values().all(|n| *n > 10), "{sum:?}");
    let options = FoldOptions {
        from: Some(day(0)),
        threads: Some(1),
        memory_bytes: 0,
        ..chain.options()
    };
    let report = chain.fold(day(DAYS - 1), &options).await;
    assert_eq!(report.days.len(), 60);
    let (one, other) = (daily.contents().await, chain.contents().await);
    assert_eq!(one.len(), 120);
    assert_eq!(one, other);
    // Calendar days, whatever the clocks of New York did in between.
    let last = report.days.last().unwrap();
    assert!(last.keys > 0 && report.days.iter().all(|d| d.complete));
}
