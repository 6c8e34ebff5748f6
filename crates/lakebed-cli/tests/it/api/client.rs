//! A crawler of somebody else: plain HTTP over a socket, and what every answer is held against.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};

use serde_json::{Value, json};

use crate::lake::TestLake;

pub(super) const RUN: &str = "/v1/runs/rentals/2026-11-30/day";
const FRAMED: &str = "application/vnd.lakebed.finish";

const SOURCE: &str = r#"class = "log"

[crawl]
user_agent = "lakebed-test/1 (+https://lakebed.example/bot)"
hosts = ["127.0.0.1"]
allow_private = ["127.0.0.0/8"]
seed_stage = "list"
accept_statuses = [410]
max_body_mib = 1
max_failures = 2

[crawl.stage.list]
follow = [{ stage = "detail", css = "main a[href*='/rent/']" }]

[crawl.stage.detail]
"#;
const LOCAL: &str = "[crawl.usual]\npause_ms = 0\nplaces = 50\nbackoff_ms = 1\n";

/// A process of ours that serves; killed when a test ends early.
pub(super) struct Process {
    child: Child,
    pub(super) told: Value,
}

impl Process {
    fn start(lake: &TestLake, args: &[&str]) -> Self {
        let mut child = lake.call(args).command().spawn().unwrap();
        let mut line = String::new();
        let stdout = child.stdout.as_mut().unwrap();
        BufReader::new(stdout).read_line(&mut line).unwrap();
        let Ok(told) = serde_json::from_str(&line) else {
            let output = child.wait_with_output().unwrap();
            panic!("{}", String::from_utf8_lossy(&output.stderr));
        };
        Self { child, told }
    }

    pub(super) fn port(&self) -> u16 {
        u16::try_from(self.told["port"].as_u64().unwrap()).unwrap()
    }

    /// Tells it to end; its exit and what it told on stderr.
    pub(super) fn end(mut self) -> (ExitStatus, String) {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args(["-TERM", &id]).status().unwrap();
        assert!(sent.success());
        let mut told = String::new();
        let stderr = self.child.stderr.as_mut().unwrap();
        stderr.read_to_string(&mut told).unwrap();
        (self.child.wait().unwrap(), told)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // After `end` nothing is left to kill.
        if self.child.kill().is_ok() {
            self.child.wait().unwrap();
        }
    }
}

/// An answer.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) head: String,
    pub(super) body: Vec<u8>,
}

impl Answer {
    pub(super) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("{self:?}"))
    }

    /// The word of a refusal, with its status.
    #[track_caller]
    pub(super) fn refused(&self, status: u16, code: &str) -> Value {
        let error = self.json()["error"].clone();
        assert_eq!(
            (self.status, error["code"].as_str()),
            (status, Some(code)),
            "{error}"
        );
        error
    }
}

/// Sends bytes and reads the answer to its end.
pub(super) fn exchange(port: u16, request: &[u8]) -> Answer {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.write_all(request).unwrap();
    read_answer(stream)
}

pub(super) fn read_answer(mut stream: TcpStream) -> Answer {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    let end = bytes.windows(4).position(|w| w == b"\r\n\r\n");
    let end = end.unwrap_or_else(|| panic!("no head: {:?}", String::from_utf8_lossy(&bytes)));
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    Answer {
        status: head[9..12].parse().unwrap(),
        head,
        body: bytes[end + 4..].to_vec(),
    }
}

/// A page as a crawler gets it: status, headers, body.
pub(super) fn fetch(url: &str) -> (u16, Vec<(String, String)>, Vec<u8>) {
    let rest = url.strip_prefix("http://").unwrap();
    let (host, path) = rest.split_once('/').unwrap();
    let port = host.split_once(':').unwrap().1.parse().unwrap();
    let request = format!("GET /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    let answer = exchange(port, request.as_bytes());
    let headers = answer.head.lines().skip(1).map(|line| {
        let (name, value) = line.split_once(':').unwrap();
        (name.to_owned(), value.trim().to_owned())
    });
    (answer.status, headers.collect(), answer.body)
}

/// A project with a site to crawl and the interface over it.
pub(super) struct Api {
    pub(super) lake: TestLake,
    pub(super) site: Process,
    pub(super) server: Option<Process>,
    pub(super) token: String,
    document: Value,
}

impl Api {
    pub(super) fn new(site: &[&str]) -> Self {
        let lake = TestLake::new();
        lake.run(&["source", "add", "rentals", "--class", "log"])
            .ok();
        let source = lake.project().join("sources/rentals/source.toml");
        std::fs::write(source, SOURCE).unwrap();
        std::fs::write(lake.project().join("lakebed.local.toml"), LOCAL).unwrap();
        let mut all = vec![
            "demo-site",
            "--port",
            "0",
            "--listings",
            "30",
            "--format",
            "json",
        ];
        all.extend(site);
        let site = Process::start(&lake, &all);
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/openapi.json");
        let document = serde_json::from_slice(&std::fs::read(page).unwrap()).unwrap();
        let mut api = Self {
            lake,
            site,
            server: None,
            token: String::new(),
            document,
        };
        api.start();
        api
    }

    /// Starts the interface.
    pub(super) fn start(&mut self) {
        let args = [
            "serve",
            "--api",
            "--listen",
            "127.0.0.1:0",
            "--format",
            "json",
            "-v",
        ];
        let server = Process::start(&self.lake, &args);
        let file = server.told["token_file"].as_str().unwrap();
        self.token = std::fs::read_to_string(file).unwrap().trim().to_owned();
        self.server = Some(server);
    }

    pub(super) fn port(&self) -> u16 {
        self.server.as_ref().unwrap().port()
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.site.port())
    }

    /// A call with any body.
    pub(super) fn send(&self, method: &str, path: &str, media: &str, body: &[u8]) -> Answer {
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {}\r\nContent-Type: {media}\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n",
            self.token,
            body.len()
        );
        exchange(self.port(), &[head.as_bytes(), body].concat())
    }

    /// A call with JSON; its answer is as the document says.
    #[track_caller]
    pub(super) fn call(&self, method: &str, path: &str, body: &Value) -> Answer {
        let text = match body {
            Value::Null => String::new(),
            body => body.to_string(),
        };
        let answer = self.send(method, path, "application/json", text.as_bytes());
        self.fits(method, path, &answer);
        answer
    }

    /// A call that succeeds.
    #[track_caller]
    pub(super) fn must(&self, method: &str, path: &str, body: &Value) -> Value {
        let answer = self.call(method, path, body);
        assert_eq!(answer.status, 200, "{}", answer.json());
        answer.json()
    }

    /// A finish with bytes.
    #[track_caller]
    pub(super) fn finish(&self, request: &Value, call: &Value, bytes: &[u8]) -> Answer {
        let body = [format!("{call}\n").as_bytes(), bytes].concat();
        let path = format!("{RUN}/requests/{request}/finish");
        let answer = self.send("POST", &path, FRAMED, &body);
        self.fits("POST", &path, &answer);
        answer
    }

    /// Makes the run, seeds it with these URLs and opens it.
    pub(super) fn seed(&self, urls: &[String], stage: &str) {
        self.must("PUT", RUN, &Value::Null);
        let seeds: Vec<Value> = urls
            .iter()
            .map(|u| json!({"url": u, "stage": stage}))
            .collect();
        let call = json!({"seeding": "first", "batch": 0, "seeds": seeds});
        self.must("POST", &format!("{RUN}/seeds"), &call);
        let call = json!({"seeding": "first", "announced": urls.len()});
        self.must("POST", &format!("{RUN}/open"), &call);
    }

    pub(super) fn join(&self) -> String {
        let joined = self.must(
            "POST",
            &format!("{RUN}/workers"),
            &json!({"label": "a test"}),
        );
        joined["worker"].as_str().unwrap().to_owned()
    }

    pub(super) fn claim(&self, worker: &str, limit: u32) -> Vec<Value> {
        let call = json!({"worker": worker, "limit": limit});
        let answer = self.must("POST", &format!("{RUN}/claims"), &call);
        answer["claims"].as_array().unwrap().clone()
    }

    pub(super) fn close(&self) -> Value {
        self.must("POST", &format!("{RUN}/close"), &Value::Null)
    }

    /// Fails unless the answer has the shape that the document gives it.
    #[track_caller]
    fn fits(&self, method: &str, path: &str, answer: &Answer) {
        let operation = self.operation(&method.to_ascii_lowercase(), path);
        let status = answer.status.to_string();
        let schema = &operation["responses"][&status]["content"]["application/json"]["schema"];
        assert!(
            schema.is_object(),
            "{method} {path} may not answer {status}: {}",
            answer.json()
        );
        if let Err(why) = self.check(schema, &answer.json(), "answer") {
            panic!("{method} {path}: {why}: {}", answer.json());
        }
        if answer.status != 200 {
            let code = answer.json()["error"]["code"].to_string().replace('"', "`");
            let told = operation["responses"][&status]["description"]
                .as_str()
                .unwrap();
            assert!(
                told.contains(&code),
                "{method} {path}: {code} is not among {told}"
            );
        }
    }

    fn operation(&self, method: &str, path: &str) -> Value {
        let paths = self.document["paths"].as_object().unwrap();
        let fits = |template: &str| {
            let (a, b): (Vec<&str>, Vec<&str>) =
                (template.split('/').collect(), path.split('/').collect());
            a.len() == b.len() && a.iter().zip(&b).all(|(t, p)| t.starts_with('{') || t == p)
        };
        let found = paths
            .iter()
            .find(|(template, item)| fits(template) && item.get(method).is_some());
        found
            .unwrap_or_else(|| panic!("{method} {path} is not in the document"))
            .1[method]
            .clone()
    }

    /// As much of JSON Schema as the document uses.
    fn check(&self, schema: &Value, value: &Value, at: &str) -> Result<(), String> {
        if let Some(name) = schema["$ref"].as_str() {
            let name = name.strip_prefix("#/components/schemas/").unwrap();
            return self.check(&self.document["components"]["schemas"][name], value, at);
        }
        for key in ["anyOf", "oneOf"] {
            if let Some(all) = schema[key].as_array() {
                let fits = all.iter().any(|s| self.check(s, value, at).is_ok());
                return if fits {
                    Ok(())
                } else {
                    Err(format!("{at} fits none of {key}"))
                };
            }
        }
        if schema.get("const").is_some_and(|c| c != value) {
            return Err(format!("{at} is not {}", schema["const"]));
        }
        if schema["enum"]
            .as_array()
            .is_some_and(|all| !all.contains(value))
        {
            return Err(format!("{at} is none of {}", schema["enum"]));
        }
        let kind = match value {
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            Value::Number(n) if n.is_f64() => "number",
            Value::Number(_) => "integer",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        };
        let types = match &schema["type"] {
            Value::String(one) => vec![one.clone()],
            Value::Array(all) => all.iter().map(|t| t.as_str().unwrap().to_owned()).collect(),
            _ => Vec::new(),
        };
        if !types.is_empty() && !types.iter().any(|t| t == kind) {
            return Err(format!("{at} is a {kind}, not {types:?}"));
        }
        for (i, item) in value.as_array().into_iter().flatten().enumerate() {
            let own = &schema["prefixItems"][i];
            let schema = if own.is_object() {
                own
            } else {
                &schema["items"]
            };
            if schema.is_object() {
                self.check(schema, item, &format!("{at}[{i}]"))?;
            }
        }
        let Some(members) = value.as_object() else {
            return Ok(());
        };
        for key in schema["required"].as_array().into_iter().flatten() {
            if !members.contains_key(key.as_str().unwrap()) {
                return Err(format!("{at} lacks {key}"));
            }
        }
        for (key, member) in members {
            let (own, rest) = (&schema["properties"][key], &schema["additionalProperties"]);
            match (own.is_object() || own == true, rest) {
                (true, _) if own == true => {}
                (true, _) => self.check(own, member, &format!("{at}.{key}"))?,
                (false, Value::Object(_)) => self.check(rest, member, &format!("{at}.{key}"))?,
                (false, _) if schema["properties"].is_object() => {
                    return Err(format!("{at}.{key} is unknown"));
                }
                (false, _) => {}
            }
        }
        Ok(())
    }
}

/// A response as it is told, with the length of its body.
pub(super) fn response(url: &str, status: u16, bytes: &[u8]) -> Value {
    json!({
        "url": url,
        "status": status,
        "headers": [["Content-Type", "text/html; charset=utf-8"]],
        "body_bytes": bytes.len(),
    })
}
