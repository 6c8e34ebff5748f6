//! Graphs attacked: their edges, their command lines, and what changes the name of their rules.

use std::collections::BTreeMap;

use super::*;
use crate::config::{FlowConfig, Project, SourceConfig};
use crate::flow::declared::{Folded, Seeded};
use crate::name::{DatasetRef, Layer};

const DAY: &str = "2026-11-30";

fn dataset(text: &str) -> DatasetRef {
    text.parse().unwrap()
}

/// A source that is crawled, parsed into a list and details, folded and seeded.
fn whole() -> Declared {
    let rules = ContentHash::of(b"rules");
    Declared {
        source: "rent".parse().unwrap(),
        raw: dataset("raw/rent"),
        is_crawled: true,
        parse: Some(rules.clone()),
        parsed: vec![dataset("clean/rent.detail"), dataset("clean/rent.list")],
        folds: BTreeMap::from([(
            "house".to_owned(),
            Folded {
                inputs: vec![dataset("clean/rent.list"), dataset("clean/rent.detail")],
                rules: rules.clone(),
            },
        )]),
        seed: Some(Seeded {
            list: dataset("clean/rent.list"),
            fold: "house".to_owned(),
            rules,
        }),
        derives: BTreeMap::new(),
        flow: None,
        file: "source.toml".to_owned(),
    }
}

fn graph(declared: &Declared, run: &str) -> Result<Graph> {
    Graph::of(declared, DAY.parse().unwrap(), &run.parse().unwrap())
}

fn with_flow(text: &str) -> Declared {
    let flow: FlowConfig = crate::config::parse_toml(text, "source.toml").unwrap();
    Declared {
        flow: Some(flow),
        ..whole()
    }
}

fn names(graph: &Graph) -> Vec<&str> {
    graph.stages.iter().map(|s| s.name.as_str()).collect()
}

fn line(stage: &Stage) -> String {
    match &stage.program {
        Program::Lakebed(words) | Program::Shell(words) => words.join(" "),
    }
}

#[test]
fn without_a_word_the_order_is_the_one_that_means_something() {
    let whole = graph(&whole(), "day").unwrap();
    assert_eq!(
        names(&whole),
        [
            "list",
            "parse-list",
            "seal-list",
            "fold-previous",
            "seed",
            "detail",
            "parse",
            "seal",
            "fold"
        ]
    );
    let lines: Vec<String> = whole.stages.iter().map(line).collect();
    assert_eq!(lines[0], "crawl rent --date 2026-11-30 --run day");
    assert_eq!(lines[3], "fold rent --name house --date 2026-11-29");
    assert_eq!(
        lines[5],
        "crawl rent --date 2026-11-30 --run day-detail --plan seed/rent/2026-11-30.day/plan.jsonl"
    );
    assert_eq!(lines[7], "seal clean/rent.detail --date 2026-11-30");
    // The first parse reads the list alone: a second run of packs does not make it outdated.
    let runs = |name: &str| -> Vec<String> {
        let stage = whole.stage(name).unwrap();
        stage.reads[0]
            .runs
            .iter()
            .map(ToString::to_string)
            .collect()
    };
    assert_eq!(runs("parse-list"), ["day"]);
    assert_eq!(runs("parse"), ["day", "day-detail"]);
}

#[test]
fn a_sweep_crawls_and_parses_alone() {
    assert_eq!(names(&graph(&whole(), "1500").unwrap()), ["crawl", "parse"]);
}

/// Attacks FLW-3.
#[test]
fn edges_follow_from_what_is_read_and_written() {
    let graph = graph(&whole(), "day").unwrap();
    let after = |name: &str| -> Vec<&str> {
        let stage = graph.stage(name).unwrap();
        stage.after.iter().map(FlowStageName::as_str).collect()
    };
    assert_eq!(after("list"), [""; 0]);
    assert_eq!(after("parse-list"), ["list"]);
    assert_eq!(after("seal-list"), ["parse-list"]);
    // Yesterday's fold reads nothing of today.
    assert_eq!(after("fold-previous"), [""; 0]);
    assert_eq!(after("seed"), ["parse-list", "seal-list", "fold-previous"]);
    assert_eq!(after("detail"), ["seed"]);
    assert_eq!(after("parse"), ["list", "detail"]);
    assert_eq!(after("seal"), ["parse-list", "parse"]);
    let before_fold = ["parse-list", "seal-list", "fold-previous", "parse", "seal"];
    assert_eq!(after("fold"), before_fold);
    let seed = &graph.stage("seed").unwrap().name;
    let behind: Vec<_> = graph
        .from(seed)
        .into_iter()
        .map(|n| n.to_string())
        .collect();
    assert_eq!(behind, ["detail", "fold", "parse", "seal", "seed"]);
    let before: Vec<_> = graph
        .up_to(seed)
        .into_iter()
        .map(|n| n.to_string())
        .collect();
    assert_eq!(
        before,
        ["fold-previous", "list", "parse-list", "seal-list", "seed"]
    );
}

#[test]
fn files_make_edges_and_words_are_filled_in() {
    let declared = with_flow(
        "[[stage]]\nkind = \"shell\"\nname = \"a\"\ncommand = [\"a\", \"{source} {date} {run} {month}\"]\noutputs = [\"out/{date}/*.csv\"]\n\
         [[stage]]\nkind = \"shell\"\nname = \"b\"\ncommand = [\"b\"]\ninputs = [\"out/{date}/x.csv\"]\n\
         [[stage]]\nkind = \"shell\"\nname = \"c\"\ncommand = [\"c\"]\nday = \"previous\"\ninputs = [\"out/{date}/x.csv\"]\n",
    );
    let graph = graph(&declared, "0900").unwrap();
    assert_eq!(line(&graph.stages[0]), "a rent 2026-11-30 0900 2026-11");
    assert_eq!(graph.stages[1].after, ["a".parse().unwrap()]);
    assert_eq!(graph.stages[2].input_files, ["out/2026-11-29/x.csv"]);
    assert!(graph.stages[2].after.is_empty());
}

#[test]
fn only_what_decides_rows_names_the_rules() {
    let rules = |text: &str| {
        let text = format!("[[stage]]\nkind = \"shell\"\ncommand = [\"a\"]\n{text}");
        graph(&with_flow(&text), "day").unwrap().stages[0]
            .rules
            .clone()
    };
    let plain = rules("");
    assert_eq!(rules("timeout_minutes = 5"), plain);
    assert_eq!(rules("name = \"other\""), plain);
    assert_ne!(rules("version = 1"), plain);
    assert_ne!(rules("inputs = [\"x\"]"), plain);
    // A changed crawl makes no past one another: what was fetched is a fact.
    let mut other = whole();
    let before = graph(&other, "day").unwrap();
    other.parse = Some(ContentHash::of(b"other"));
    let after = graph(&other, "day").unwrap();
    let changed: Vec<&str> = before
        .stages
        .iter()
        .zip(&after.stages)
        .filter(|(a, b)| a.rules != b.rules)
        .map(|(a, _)| a.name.as_str())
        .collect();
    assert_eq!(changed, ["parse-list", "parse"]);
}

#[test]
fn what_a_source_declares_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let project = Project::init(folder.path(), None).unwrap().project;
    let text = "class = \"log\"\n[[parse.page]]\n[[parse.page.item]]\nfield.id = \"b::text\"\n[derive.sums]\nfile = \"q.sql\"\nparents = [\"clean/rent\"]\n";
    let source = SourceConfig::parse(&"rent".parse().unwrap(), text, "source.toml").unwrap();
    assert!(
        Declared::read(&project, &source).is_err(),
        "a query without its file"
    );
    std::fs::create_dir_all(folder.path().join("sources/rent")).unwrap();
    let query = folder.path().join("sources/rent/q.sql");
    std::fs::write(&query, "SELECT id FROM clean.rent;\n").unwrap();
    let declared = Declared::read(&project, &source).unwrap();
    assert_eq!(declared.parsed, [dataset("clean/rent")]);
    assert_eq!(declared.derives["sums"].sql, "SELECT id FROM clean.rent");
    assert_eq!(declared.derives["sums"].dataset.layer, Layer::Feature);
    let graph = graph(&declared, "day").unwrap();
    assert_eq!(names(&graph), ["parse", "seal", "derive"]);
    std::fs::write(&query, " ; \n").unwrap();
    assert!(Declared::read(&project, &source).is_err(), "an empty query");
}
