//! The graph of a run as a Makefile: the very command lines that the flow runs, in the same order.
//!
//! Its targets are files of its own below `flow/<source>/<date>/<run>/make`, which tell make that a command ended well;
//! they are no stamps. Every command is safe to call again, so a make after a flow, or before one, does nothing twice.

use std::path::Path;

use crate::flow::graph::{Graph, Program, Stage};

/// A command line as a shell reads it.
pub(super) fn shell_line(argv: &[String]) -> String {
    let quoted: Vec<String> = argv.iter().map(|word| shell_word(word)).collect();
    quoted.join(" ")
}

fn shell_word(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// For a recipe: `$` belongs to make.
fn recipe_text(line: &str) -> String {
    line.replace('$', "$$")
}

/// The Makefile of a run.
#[must_use]
pub fn makefile(graph: &Graph, project: &Path, program: &[String]) -> String {
    let (source, date, run) = (&graph.source, graph.date, &graph.run);
    let target = |name: &dyn std::fmt::Display| format!("$(DONE)/{name}");
    let due: Vec<&Stage> = graph.stages.iter().filter(|s| s.is_due).collect();
    let mut text = format!(
        "# The flow of {source} for {date}, run {run}: `lakebed flow --print-make {source} --date {date} --run {run}`.\n\
         # `make -f FILE` runs it; `touch` of a target passes it over, deleting one runs it again.\n\
         PROJECT := {}\n\
         LAKEBED := {}\n\
         DONE := {}/flow/{source}/{date}/{run}/make\n\n\
         export LAKEBED_PROJECT := $(PROJECT)\n\
         export LAKEBED_SOURCE := {source}\n\
         export LAKEBED_RUN := {run}\n\n\
         .DELETE_ON_ERROR:\n\
         .PHONY: all\n\
         all:",
        recipe_text(&project.display().to_string()),
        recipe_text(&shell_line(program)),
        recipe_text(&project.display().to_string()),
    );
    for stage in &due {
        text.push_str(&format!(" {}", target(&stage.name)));
    }
    text.push('\n');
    for stage in due {
        let after = stage
            .after
            .iter()
            .filter(|a| graph.stages.iter().any(|s| s.name == **a && s.is_due));
        let after: Vec<String> = after.map(|name| target(name)).collect();
        let command = match &stage.program {
            Program::Lakebed(args) => format!("$(LAKEBED) {}", recipe_text(&shell_line(args))),
            Program::Shell(argv) => recipe_text(&shell_line(argv)),
        };
        text.push_str(&format!(
            "\n{}: {}\n\t@mkdir -p '$(DONE)'\n\tcd '$(PROJECT)' && LAKEBED_DATE={} {command}\n\t@touch '$@'\n",
            target(&stage.name),
            after.join(" "),
            stage.date
        ));
    }
    text
}
