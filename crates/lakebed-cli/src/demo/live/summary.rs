//! The page that is left: one HTML file without scripts, fonts or addresses of elsewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use serde_json::Value;

/// What the page tells.
pub(super) struct Summary<'a> {
    /// What happened, by day.
    pub(super) notes: &'a [(String, String)],
    /// `lakebed status --format json`.
    pub(super) status: &'a Value,
    /// Rows of a query by day: columns of numbers.
    pub(super) days: &'a Value,
    /// Rows of `feature.rentals.by_city`: `dt`, `city`, `homes`, `mean_price`.
    pub(super) cities: &'a Value,
    /// How a row came to be, as `lakebed lineage` tells it.
    pub(super) lineage: &'a str,
    /// Requests that the site saw.
    pub(super) requests: u64,
}

const STYLE: &str = "body{font:15px/1.55 system-ui,'Noto Sans TC','PingFang TC','Microsoft JhengHei',sans-serif;color:#1d2b33;background:#f6f8f9;margin:0}\
main{max-width:62rem;margin:0 auto;padding:1.5rem}h1{margin:.2rem 0}h2{margin:2rem 0 .6rem;font-size:1.15rem}\
p.lead{color:#5b6b75;margin-top:0}table{border-collapse:collapse;background:#fff;width:100%}\
th,td{padding:.35rem .6rem;border:1px solid #dde4e8;text-align:left;vertical-align:top}td.n{text-align:right;font-variant-numeric:tabular-nums}\
.done{background:#dff3e4}.red{background:#f9d9d3}.stale{background:#fbe9c6}.missing,.outdated{background:#eef1f3;color:#5b6b75}\
pre{background:#fff;border:1px solid #dde4e8;padding:.8rem;overflow:auto}svg{background:#fff;border:1px solid #dde4e8;width:100%;height:auto}\
.grid{overflow:auto}";

/// The page.
pub(super) fn page(summary: &Summary<'_>) -> String {
    let mut html = String::from(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width\">\n",
    );
    put(
        &mut html,
        format_args!(
            "<title>Five days of a rental market</title>\n<style>{STYLE}</style>\n<main>\n"
        ),
    );
    html.push_str("<h1>Five days of a rental market</h1>\n");
    put(
        &mut html,
        format_args!(
            "<p class=\"lead\">Crawled from a test site on this machine with {} requests; every number below is a query of the lake.</p>\n",
            summary.requests
        ),
    );
    html.push_str("<h2>What happened</h2>\n<table>\n");
    for (day, note) in summary.notes {
        put(
            &mut html,
            format_args!(
                "<tr><th>{}</th><td>{}</td></tr>\n",
                escape(day),
                escape(note)
            ),
        );
    }
    html.push_str("</table>\n<h2>Stages</h2>\n<div class=\"grid\">\n");
    html.push_str(&grid(summary.status));
    html.push_str("</div>\n<h2>Days in numbers</h2>\n");
    html.push_str(&rows(summary.days));
    html.push_str("<h2>Mean rent by city</h2>\n");
    html.push_str(&chart(summary.cities));
    html.push_str("<h2>Where a row comes from</h2>\n<pre>");
    html.push_str(&escape(summary.lineage));
    html.push_str("</pre>\n</main>\n</html>\n");
    html
}

/// Writing to a text cannot fail.
fn put(html: &mut String, text: std::fmt::Arguments<'_>) {
    let _always = html.write_fmt(text);
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Stages by date, in the order of the flow.
fn grid(status: &Value) -> String {
    let dates = list(&status["dates"]);
    let mut stages: Vec<String> = Vec::new();
    for stage in dates.iter().flat_map(|d| list(&d["stages"])) {
        let name = text(&stage["stage"]);
        if !stages.contains(&name) {
            stages.push(name);
        }
    }
    let mut html = String::from("<table>\n<tr><th></th>");
    for stage in &stages {
        put(&mut html, format_args!("<th>{}</th>", escape(stage)));
    }
    html.push_str("</tr>\n");
    for date in dates {
        put(
            &mut html,
            format_args!("<tr><th>{}</th>", escape(&text(&date["date"]))),
        );
        for stage in &stages {
            let found = list(&date["stages"])
                .iter()
                .find(|s| text(&s["stage"]) == *stage);
            let standing = found.map_or(String::new(), |s| text(&s["standing"]));
            let why = found.map_or(String::new(), |s| text(&s["why"]));
            put(
                &mut html,
                format_args!(
                    "<td class=\"{}\" title=\"{}\">{}</td>",
                    escape(&standing),
                    escape(&why),
                    escape(&shown(&standing))
                ),
            );
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</table>\n");
    html
}

/// As `lakebed status` shows it: what waits for a person stands out.
fn shown(standing: &str) -> String {
    match standing {
        "stale" => "STALE".to_owned(),
        "not_due" => "-".to_owned(),
        other => other.to_owned(),
    }
}

/// Rows of a query as they came.
fn rows(rows: &Value) -> String {
    let Some(Value::Object(first)) = list(rows).first() else {
        return String::new();
    };
    let mut html = String::from("<table>\n<tr>");
    for name in first.keys() {
        put(
            &mut html,
            format_args!("<th>{}</th>", escape(&name.replace('_', " "))),
        );
    }
    html.push_str("</tr>\n");
    for row in list(rows) {
        html.push_str("<tr>");
        for name in first.keys() {
            let class = if row[name].is_number() {
                " class=\"n\""
            } else {
                ""
            };
            put(
                &mut html,
                format_args!("<td{class}>{}</td>", escape(&text(&row[name]))),
            );
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</table>\n");
    html
}

const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 320.0;
const COLORS: [&str; 8] = [
    "#1f7a8c", "#c8553d", "#6a994e", "#7b5ea7", "#d19a2a", "#2f6690", "#a23b72", "#555f66",
];

/// Prices of cities by day.
struct Prices {
    dates: Vec<String>,
    by_city: BTreeMap<String, BTreeMap<String, f64>>,
    low: f64,
    high: f64,
}

impl Prices {
    fn of(cities: &Value) -> Self {
        let mut by_city: BTreeMap<String, BTreeMap<String, f64>> = BTreeMap::new();
        for row in list(cities) {
            if let Ok(price) = text(&row["mean_price"]).parse::<f64>() {
                let prices = by_city.entry(text(&row["city"])).or_default();
                prices.insert(text(&row["dt"]), price);
            }
        }
        let prices = || by_city.values().flat_map(BTreeMap::values).copied();
        let dates: BTreeSet<&String> = by_city.values().flat_map(BTreeMap::keys).collect();
        Self {
            dates: dates.into_iter().cloned().collect(),
            low: prices().fold(f64::MAX, f64::min),
            high: prices().fold(0.0, f64::max),
            by_city,
        }
    }

    #[allow(clippy::cast_precision_loss, reason = "a handful of days")]
    fn x(&self, day: usize) -> f64 {
        60.0 + day as f64 * (WIDTH - 220.0) / (self.dates.len().max(2) - 1) as f64
    }

    fn y(&self, price: f64) -> f64 {
        20.0 + (self.high - price) / (self.high - self.low).max(1.0) * (HEIGHT - 60.0)
    }
}

/// A line for each city over the days.
fn chart(cities: &Value) -> String {
    let prices = Prices::of(cities);
    let mut svg = format!(
        "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"mean rent by city and day\">\n"
    );
    let mut label = |(x, y): (f64, f64), look: &str, text: &str| {
        let text = escape(text);
        put(
            &mut svg,
            format_args!("<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"12\" {look}>{text}</text>\n"),
        );
    };
    let soft = "fill=\"#5b6b75\"";
    for (n, date) in prices.dates.iter().enumerate() {
        let look = format!("text-anchor=\"middle\" {soft}");
        label((prices.x(n), HEIGHT - 12.0), &look, date);
    }
    for price in [prices.low, prices.high] {
        let look = format!("text-anchor=\"end\" {soft}");
        label((52.0, prices.y(price) + 4.0), &look, &format!("{price:.0}"));
    }
    for ((city, by_date), color) in prices.by_city.iter().zip(COLORS.iter().cycle()) {
        if let Some(last) = by_date.values().next_back() {
            let place = (WIDTH - 150.0, prices.y(*last) + 4.0);
            label(place, &format!("fill=\"{color}\""), city);
        }
    }
    for (by_date, color) in prices.by_city.values().zip(COLORS.iter().cycle()) {
        let dates = prices.dates.iter().enumerate();
        let points = dates.filter_map(|(n, date)| {
            let price = by_date.get(date)?;
            Some(format!("{:.1},{:.1}", prices.x(n), prices.y(*price)))
        });
        let points = points.collect::<Vec<_>>().join(" ");
        put(
            &mut svg,
            format_args!(
                "<polyline points=\"{points}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"2\"/>\n"
            ),
        );
    }
    svg.push_str("</svg>\n");
    svg
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_page_shows_what_it_was_given_and_no_markup_of_others() {
        let status = json!({ "dates": [{ "date": "2026-11-26", "stages": [
            { "stage": "list", "standing": "done", "why": "" },
            { "stage": "parse", "standing": "red", "why": "<b>\"no\"</b>" },
        ] }] });
        let days = json!([{ "dt": "2026-11-26", "new_homes": 3 }]);
        let cities = json!([
            { "dt": "2026-11-26", "city": "白石市", "mean_price": "100" },
            { "dt": "2026-11-27", "city": "白石市", "mean_price": "200" },
        ]);
        let notes = [("2026-11-26".to_owned(), "a <script>".to_owned())];
        let html = page(&Summary {
            notes: &notes,
            status: &status,
            days: &days,
            cities: &cities,
            lineage: "a -> b",
            requests: 7,
        });
        for wanted in [
            "a &lt;script&gt;",
            "class=\"red\" title=\"&lt;b&gt;&quot;no&quot;&lt;/b&gt;\"",
            "<td class=\"n\">3</td>",
            "<th>new homes</th>",
            "points=\"60.0,280.0 740.0,20.0\"",
            "a -&gt; b",
            "7 requests",
        ] {
            assert!(html.contains(wanted), "{wanted} in {html}");
        }
        assert!(
            !html.contains("<script") && !html.contains("http"),
            "{html}"
        );
    }
}
