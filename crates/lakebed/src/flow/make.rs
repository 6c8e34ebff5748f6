//! The graph of a run as a Makefile: the very command lines that the flow runs, in the same order.
//!
//! Its targets are files of its own below `flow/<source>/<date>/<run>/make`, which tell make that a command ended well;
//! they are no stamps. Every command is safe to call again, so a make after a flow, or before one, does nothing twice.

use std::path::Path;

use crate::error::{Error, Result};
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

/// For a recipe: `$` belongs to make, and a line feed ends it.
fn recipe_text(line: &str) -> Result<String> {
    match line.contains(['\n', '\r']) {
        true => Err(
            Error::invalid("a Makefile cannot hold a command with a line feed in it")
                .hint("put it into a script, and let the stage run that"),
        ),
        false => Ok(line.replace('$', "$$")),
    }
}

/// A path as a name of make's: of targets, and of what they come after.
fn make_name(path: &str) -> Result<String> {
    let strange = |c: char| c.is_control() || "\\*?[]~|;=&%:".contains(c);
    if let Some(c) = path.chars().find(|c| strange(*c)) {
        return Err(Error::invalid(format!(
            "make reads the character {c:?} of the project's folder as something else"
        ))
        .with("folder", path)
        .hint("move the project, or call `lakebed run`"));
    }
    let mut name = String::new();
    for c in path.chars() {
        match c {
            ' ' | '#' => name.extend(['\\', c]),
            '$' => name.push_str("$$"),
            c => name.push(c),
        }
    }
    Ok(name)
}

/// The value of a variable of make's: a comment begins at `#`.
fn make_value(text: &str) -> Result<String> {
    Ok(recipe_text(text)?.replace('#', "\\#"))
}

/// The Makefile of a run.
///
/// # Errors
/// `InvalidInput` for a command or a folder that no Makefile can name.
pub fn makefile(graph: &Graph, project: &Path, program: &[String]) -> Result<String> {
    let (source, date, run) = (&graph.source, graph.date, &graph.run);
    let target = |name: &dyn std::fmt::Display| format!("$(DONE)/{name}");
    let due: Vec<&Stage> = graph.stages.iter().filter(|s| s.is_due).collect();
    let folder = project.display().to_string();
    let mut text = format!(
        "# The flow of {source} for {date}, run {run}: `lakebed flow --print-make {source} --date {date} --run {run}`.\n\
         # `make -f FILE` runs it; `touch` of a target passes it over, deleting one runs it again.\n\
         LAKEBED := {}\n\
         DONE := {}/flow/{source}/{date}/{run}/make\n\n\
         export LAKEBED_PROJECT := {}\n\
         export LAKEBED_SOURCE := {source}\n\
         export LAKEBED_RUN := {run}\n\n\
         .DELETE_ON_ERROR:\n\
         .PHONY: all\n\
         all:",
        make_value(&shell_line(program))?,
        make_name(&folder)?,
        make_value(&folder)?,
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
            Program::Lakebed(args) => {
                recipe_text(&shell_line(args)).map(|line| format!("$(LAKEBED) {line}"))
            }
            Program::Shell(argv) => recipe_text(&shell_line(argv)),
        };
        let command = command.map_err(|e| e.with("stage", &stage.name))?;
        text.push_str(&format!(
            "\n{}: {}\n\t@mkdir -p \"$$LAKEBED_PROJECT/flow/{source}/{date}/{run}/make\"\n\
             \tcd \"$$LAKEBED_PROJECT\" && LAKEBED_DATE={} {command}\n\
             \t@touch \"$$LAKEBED_PROJECT/flow/{source}/{date}/{run}/make/{}\"\n",
            target(&stage.name),
            after.join(" "),
            stage.date,
            stage.name
        ));
    }
    Ok(text)
}
