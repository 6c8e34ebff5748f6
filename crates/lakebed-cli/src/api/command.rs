//! `lakebed serve --api`: starts the interface, tells its address, ends on a signal.

use std::sync::Arc;

use lakebed::config::Settings;
use lakebed::{Error, Result};
use serde_json::json;
use tokio::net::TcpListener;

use crate::api::office::Office;
use crate::api::server::{Served, serve};
use crate::api::token::{self, TokenOrigin, VARIABLE};
use crate::args::{ServeArgs, TextFormat};
use crate::commands::{STATE_FOLDER, stop_signal};
use crate::context::Globals;
use crate::exit::Exit;

/// `lakebed serve`
pub(crate) async fn run(args: ServeArgs, globals: &Globals<'_>) -> Result<Exit> {
    let printer = globals.printer;
    if !args.api {
        return Err(Error::invalid("nothing to serve was named")
            .hint("`lakebed serve --api` serves the interface for other crawlers"));
    }
    let project = globals.find_project()?;
    let settings = Settings::load(&project, &globals.layers())?;
    let (token, origin) = token::load(&project.root().join(STATE_FOLDER))?;
    let failed = |e| Error::io("listen on", args.listen, e);
    let listener = TcpListener::bind(args.listen).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    // Waiting begins before the address is told: who reads it may send the signal at once.
    let stop = stop_signal()?;
    let url = format!("http://{address}/v1");
    match args.output.format {
        TextFormat::Text => printer.line(&url)?,
        TextFormat::Json => {
            let file = match &origin {
                TokenOrigin::Variable => None,
                TokenOrigin::File(path) => Some(path.display().to_string()),
            };
            let told = json!({"format": 1, "url": url, "port": address.port(), "token_file": file});
            printer.line(told)?;
        }
    }
    match &origin {
        TokenOrigin::Variable => printer.info(format!("the token is that of {VARIABLE}")),
        TokenOrigin::File(path) => printer.info(format!("the token lies in {}", path.display())),
    }
    if !address.ip().is_loopback() {
        printer.warn(format!("{address} is open to the network, and nothing is encrypted: token and pages can be read on the way"));
        printer.hint(
            "listen on 127.0.0.1 behind a proxy that speaks TLS, or within a private network",
        );
    }
    let served = Arc::new(Served::new(
        Office::new(project, settings, printer.twin()),
        token,
    ));
    serve(listener, Arc::clone(&served), stop).await;
    served.office.close().await;
    Ok(Exit::Done)
}
