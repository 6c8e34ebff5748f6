//! `source new`: a working skeleton, with pages that its rules can be tried on.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use lakebed::config::SourceConfig;
use lakebed::name::SourceName;
use lakebed::parse::{EXPECTED_SUFFIX, Fixture, FixturePage, Rules};
use lakebed::spec::CanonicalUrl;
use lakebed::spec::QueryOrder;
use lakebed::time::Instant;
use lakebed::{Error, Result};
use serde::Serialize;

use super::{ANSWER_FORMAT, class_of};
use crate::args::{SourceNewArgs, TextFormat};
use crate::commands::skeleton::{PAGES, SCHEMA, SEEDS, SOURCE};
use crate::context::{Context, Globals};
use crate::exit::Exit;

/// What stands in `user_agent` until somebody says how to be reached.
pub(super) const NO_CONTACT: &str = "+mailto:nobody@example.invalid";
/// What the host of a skeleton ends with that was told no address: no site has such a name.
pub(super) const MADE_UP_HOST: &str = ".invalid";

#[derive(Serialize)]
struct NewAnswer<'a> {
    format: u32,
    files: Vec<String>,
    #[serde(flatten)]
    source: &'a SourceConfig,
}

/// `lakebed source new`
pub(crate) async fn new(args: SourceNewArgs, globals: &Globals<'_>) -> Result<Exit> {
    let name: SourceName = args.name.parse()?;
    let context = Context::open(globals).await?;
    let project = context.project();
    let file = project.source_file(&name);
    if file.exists() {
        return Err(
            Error::already_exists(format!("source `{name}` is there already"))
                .with("file", file.display())
                .hint("edit that file; nothing was changed"),
        );
    }
    let site = Site::of(&name, args.url.as_deref())?;
    let values: [(&str, String); 7] = [
        ("@NAME@", name.to_string()),
        ("@CLASS@", class_of(args.class).as_str().to_owned()),
        ("@TITLE@", title_line(args.title.as_deref())),
        ("@URL@", site.url.clone()),
        ("@HOST@", site.host.clone()),
        ("@AGENT@", agent(&name, args.contact.as_deref())?),
        ("@PRIVATE@", private_line(&site.host)),
    ];
    let fill = |text: &str| {
        let put = |text: String, (key, value): &(&str, String)| text.replace(key, value);
        values.iter().fold(text.to_owned(), put)
    };
    let text = fill(SOURCE);
    let shown = file.display().to_string();
    let source = SourceConfig::parse(&name, &text, &shown)?;
    let rules = Rules::read(&source, &shown)?;
    let folder = file.with_file_name("");
    let mut files = vec![
        (folder.join("seeds.txt"), fill(SEEDS)),
        (
            project.schemas_dir(&name.as_str().parse()?).join("v1.toml"),
            fill(SCHEMA),
        ),
    ];
    for (page, stage, path, text) in PAGES {
        let fixture = FixturePage {
            url: format!("{}{path}", site.root),
            stage: stage.parse()?,
            status: 200,
            fetched_at: Instant::from_micros(0),
            charset: None,
            headers: vec!["Content-Type: text/html; charset=utf-8".to_owned()],
        };
        let parsed = fixture.parse(&rules, &folder, (&name, page), text.as_bytes())?;
        let expected = Fixture::of(fixture, &parsed)?.to_text()?;
        let pages = folder.join("fixtures");
        files.push((pages.join(page), text.to_owned()));
        files.push((pages.join(format!("{page}{EXPECTED_SUFFIX}")), expected));
    }
    // A folder with a `source.toml` is a source: that comes last.
    files.push((file, text));
    for (path, text) in &files {
        write_new(path, text)?;
    }
    context.put_sources().await?;
    tell(&files, &source, globals)?;
    if args.contact.is_none() {
        warn_of_no_contact(&source, &project.source_file(&name), globals);
    }
    Ok(Exit::Done)
}

/// Where a skeleton is crawled.
struct Site {
    url: String,
    host: String,
    /// Scheme and authority.
    root: String,
}

impl Site {
    fn of(name: &SourceName, url: Option<&str>) -> Result<Self> {
        let made_up = format!(
            "https://{}{MADE_UP_HOST}/list",
            name.as_str().replace('_', "-")
        );
        let text = url.unwrap_or(&made_up);
        let url = CanonicalUrl::parse(text, QueryOrder::Kept).map_err(|e| {
            e.with("option", "--url")
                .hint("such as --url https://rent.example/list")
        })?;
        let host = url.host().to_owned();
        let root = url.origin();
        Ok(Self {
            url: match text.contains(is_special) {
                true => url.as_str().to_owned(),
                false => text.to_owned(),
            },
            host,
            root,
        })
    }
}

fn title_line(title: Option<&str>) -> String {
    match title {
        Some(title) => format!("title = {}\n", toml::Value::String(title.to_owned())),
        None => "# title = \"...\"               # in any script\n".to_owned(),
    }
}

fn agent(name: &SourceName, contact: Option<&str>) -> Result<String> {
    let contact = match contact {
        Some(contact) if contact.contains(char::is_control) => {
            let shown = contact.escape_default();
            let what = format!("`{shown}` is sent with every request: it has no line breaks");
            return Err(Error::invalid(what).with("option", "--contact"));
        }
        Some(contact) if !contact.contains("://") && !contact.contains('@') => {
            let what = format!("`{contact}` is neither a mail address nor a URL");
            return Err(Error::invalid(what).with("option", "--contact").hint(
                "those who run the site must be able to reach you: --contact you@acme.example, or --contact https://acme.example/bot",
            ));
        }
        Some(contact) if contact.contains("://") => format!("+{contact}"),
        Some(contact) => format!("+mailto:{}", contact.trim_start_matches("mailto:")),
        None => NO_CONTACT.to_owned(),
    };
    let agent = format!("{name}-crawler/1.0 ({contact})");
    Ok(agent.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Who is crawled must be able to reach somebody.
fn warn_of_no_contact(source: &SourceConfig, file: &Path, globals: &Globals<'_>) {
    let nobody = NO_CONTACT.trim_start_matches("+mailto:");
    let name = &source.name;
    globals.printer.warn(format!(
        "without `--contact`, crawls call themselves `{nobody}`, whom nobody reaches: write yours into `user_agent` of {} before `lakebed run {name}`",
        file.display()
    ));
}

/// What cannot stand in a text of TOML as it is.
fn is_special(c: char) -> bool {
    c.is_control() || matches!(c, '"' | '\\')
}

/// A site on this machine is reached only where the source allows it.
fn private_line(host: &str) -> String {
    let address = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
    let is_private = host == "localhost" || address.is_ok_and(|a| a.is_loopback());
    match is_private {
        true => format!(
            "allow_private = [{}]   # it runs on this machine\n",
            toml::Value::String(host.to_owned())
        ),
        false => String::new(),
    }
}

fn write_new(path: &Path, text: &str) -> Result<()> {
    let folder = path.parent().unwrap_or(Path::new(""));
    fs::create_dir_all(folder).map_err(|e| Error::io("create the folder", folder.display(), e))?;
    // What a call left that died is as good.
    if fs::read(path).is_ok_and(|there| there == text.as_bytes()) {
        return Ok(());
    }
    let mut options = OpenOptions::new();
    let file = options.write(true).create_new(true).open(path);
    let written = file.and_then(|mut f| f.write_all(text.as_bytes()));
    written.map_err(|e| match e.kind() {
        std::io::ErrorKind::AlreadyExists => {
            Error::already_exists("another file stands where one of the skeleton would")
                .with("file", path.display())
                .hint("move it away, or write the rest by hand; nothing is overwritten")
        }
        _ => Error::io("write the file", path.display(), e),
    })
}

fn tell(files: &[(PathBuf, String)], source: &SourceConfig, globals: &Globals<'_>) -> Result<()> {
    let printer = globals.printer;
    let files: Vec<String> = files.iter().map(|(p, _)| p.display().to_string()).collect();
    match printer.format() {
        TextFormat::Json => printer.json(&NewAnswer {
            format: ANSWER_FORMAT,
            files,
            source,
        })?,
        TextFormat::Text => {
            for file in &files {
                printer.line(format!("wrote {file}"))?;
            }
        }
    }
    let name = &source.name;
    printer.hint(format!(
        "next: `lakebed source sample {name} --draft` fetches a few pages and drafts rules from them (`--save` keeps pages for the rules that are there), `lakebed parse {name} --try PAGE` shows what the rules give, \
         `lakebed parse {name} --schema` writes the schema that follows from them, `lakebed source test {name}` says what is missing"
    ));
    Ok(())
}
