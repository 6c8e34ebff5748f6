//! The test site as a process beside a test.

#![allow(
    clippy::unwrap_used,
    reason = "what fails here fails the test that called it"
)]

use std::io::{BufRead, BufReader};
use std::process::Child;

use serde_json::Value;

use crate::lake::TestLake;

/// A running test site; it ends with the test.
pub(crate) struct Site {
    child: Child,
    /// Its address, without a slash at its end.
    pub(crate) url: String,
}

impl Site {
    /// A site with these further options.
    pub(crate) fn start(lake: &TestLake, options: &[&str]) -> Self {
        let usual = ["demo-site", "--port", "0", "--format", "json"];
        let args = [&usual[..], options].concat();
        let mut child = lake.call(&args).command().spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap())
            .read_line(&mut line)
            .unwrap();
        let told: Value = serde_json::from_str(&line).unwrap();
        let url = told["url"].as_str().unwrap();
        Self {
            child,
            url: url.trim_end_matches('/').to_owned(),
        }
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}
