//! The test site, run as a process and steered over its control addresses.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use lakebed::{Error, Result};
use serde_json::{Value, json};

/// Listings of the market on its first day.
const LISTINGS: &str = "120";
/// How long the site may take for an answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// The running site; it ends with the demo.
pub(super) struct Site {
    child: Child,
    /// Its address, without a slash at its end.
    pub(super) url: String,
    address: SocketAddr,
}

impl Site {
    /// Starts the site on a free port.
    pub(super) fn start(date: &str) -> Result<Self> {
        let program = std::env::current_exe()
            .map_err(|e| Error::io("find this program", "the demo site", e))?;
        let mut child = Command::new(program)
            .args(["demo-site", "--port", "0", "--listings", LISTINGS])
            .args(["--date", date, "--format", "json"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|e| Error::io("start the test site", "lakebed demo-site", e))?;
        let mut line = String::new();
        if let Some(out) = child.stdout.as_mut() {
            BufReader::new(out)
                .read_line(&mut line)
                .map_err(|e| Error::io("read the address of the test site", "", e))?;
        }
        let told: Value = serde_json::from_str(&line).unwrap_or_default();
        let url = told["url"]
            .as_str()
            .unwrap_or_default()
            .trim_end_matches('/')
            .to_owned();
        let address = url.trim_start_matches("http://").parse::<SocketAddr>();
        let site = Self {
            child,
            address: address.unwrap_or_else(|_| SocketAddr::from(([127, 0, 0, 1], 0))),
            url,
        };
        match site.url.is_empty() {
            // Dropped here, which ends the process.
            true => Err(Error::unavailable("the test site did not start")
                .hint("`lakebed demo-site` by itself says why")),
            false => Ok(site),
        }
    }

    /// The day that the site shows from now on.
    pub(super) fn set_date(&self, date: &str) -> Result<()> {
        self.post("/_control/date", &json!({ "date": date }))
    }

    /// What goes wrong from now on.
    pub(super) fn set_faults(&self, faults: &[&str]) -> Result<()> {
        self.post("/_control/faults", &json!({ "faults": faults }))
    }

    /// Requests that the site has seen.
    pub(super) fn requests(&self) -> Result<u64> {
        let answer = self.ask("GET", "/_control/stats", "")?;
        let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        let stats: Value = serde_json::from_str(body).unwrap_or_default();
        Ok(stats["total"]["requests"].as_u64().unwrap_or_default())
    }

    fn post(&self, path: &str, body: &Value) -> Result<()> {
        let answer = self.ask("POST", path, &body.to_string())?;
        match answer.starts_with("HTTP/1.1 200") {
            true => Ok(()),
            false => Err(Error::internal(format!(
                "the test site refused `{path}`: {answer}"
            ))),
        }
    }

    fn ask(&self, method: &str, path: &str, body: &str) -> Result<String> {
        let failed = |e| Error::io("steer the test site", self.address, e);
        let mut stream = TcpStream::connect_timeout(&self.address, PATIENCE).map_err(failed)?;
        stream.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        );
        let mut answer = String::new();
        stream.write_all(request.as_bytes()).map_err(failed)?;
        stream.read_to_string(&mut answer).map_err(failed)?;
        Ok(answer)
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        // It may have ended by itself.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
