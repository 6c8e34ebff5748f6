//! `flow`: the graph of a run, as a table, as JSON or as a Makefile.

use lakebed::Result;
use lakebed::config::Settings;
use lakebed::flow::{Graph, Program, Stage, makefile};
use lakebed::name::RunName;
use serde::Serialize;

use crate::args::{FlowArgs, TextFormat};
use crate::commands::flow::graphs::{declared_of, graphs_of, program, root_of};
use crate::context::Globals;
use crate::exit::Exit;
use crate::table::Table;

/// Version of the JSON answer.
const ANSWER_FORMAT: u32 = 1;

#[derive(Serialize)]
struct StageAnswer<'a> {
    name: &'a str,
    kind: &'static str,
    after: Vec<&'a str>,
    command: &'a [String],
    reads: Vec<String>,
    writes: Vec<String>,
    rules: &'a str,
}

#[derive(Serialize)]
struct FlowAnswer<'a> {
    format: u32,
    source: &'a str,
    date: String,
    run: &'a str,
    stages: Vec<StageAnswer<'a>>,
}

#[derive(Serialize)]
struct MakeAnswer<'a> {
    format: u32,
    makefile: &'a str,
}

fn words(stage: &Stage) -> &[String] {
    match &stage.program {
        Program::Lakebed(words) | Program::Shell(words) => words,
    }
}

fn names(stage: &Stage) -> Vec<&str> {
    stage.after.iter().map(|name| name.as_str()).collect()
}

fn answer_of(stage: &Stage) -> StageAnswer<'_> {
    let named = |scopes: &[lakebed::flow::Scope], files: &[String]| {
        let scopes = scopes.iter().map(|s| match s.from == s.to {
            true => format!("{} {}", s.dataset, s.to),
            false => format!("{} {}..{}", s.dataset, s.from, s.to),
        });
        scopes.chain(files.iter().cloned()).collect()
    };
    StageAnswer {
        name: stage.name.as_str(),
        kind: stage.kind.as_str(),
        after: names(stage),
        command: words(stage),
        reads: named(&stage.reads, &stage.input_files),
        writes: named(&stage.writes, &stage.output_files),
        rules: stage.rules.as_str(),
    }
}

/// `lakebed flow`
pub(crate) fn show(args: &FlowArgs, globals: &Globals<'_>) -> Result<Exit> {
    let run: RunName = args.run.parse()?;
    let project = globals.find_project()?;
    let declared = declared_of(&project, std::slice::from_ref(&args.source))?;
    let mut graphs: Vec<Graph> = Vec::new();
    for declared in &declared {
        graphs.extend(graphs_of(declared, &[args.date.parse()?], &run)?);
    }
    let printer = globals.printer;
    for graph in &graphs {
        if args.print_make {
            let settings = Settings::load(&project, &globals.layers())?;
            let text = makefile(graph, &root_of(&project)?, &program(&project, &settings)?)?;
            match printer.format() {
                TextFormat::Json => printer.json(&MakeAnswer {
                    format: ANSWER_FORMAT,
                    makefile: &text,
                })?,
                TextFormat::Text => printer.bytes(text.as_bytes())?,
            }
            continue;
        }
        match printer.format() {
            TextFormat::Json => printer.json(&FlowAnswer {
                format: ANSWER_FORMAT,
                source: graph.source.as_str(),
                date: graph.date.to_string(),
                run: graph.run.as_str(),
                stages: graph.stages.iter().map(answer_of).collect(),
            })?,
            TextFormat::Text => {
                let mut table = Table::new(["stage", "kind", "after", "command"]);
                for stage in &graph.stages {
                    let mut command = words(stage).join(" ");
                    if let Program::Lakebed(_) = stage.program {
                        command.insert_str(0, "lakebed ");
                    }
                    let after = names(stage).join(", ");
                    table.row([stage.name.as_str(), stage.kind.as_str(), &after, &command]);
                }
                printer.table(&table)?;
            }
        }
    }
    Ok(Exit::Done)
}
