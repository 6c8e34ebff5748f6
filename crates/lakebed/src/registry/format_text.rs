//! Date and timestamp format texts: which are known, which are sound.
//!
//! Known: `rfc3339`, `epoch_s`, `epoch_ms`, `epoch_us`, and strptime texts made of literals and
//! `%Y %m %d %H %M %S %y %f %.f %b %B %p %I %z %j %T %F %%`. How they read a value is `ingest`'s,
//! which compiles nothing else than what is sound here.

use crate::config::nearest;

/// Words that are formats by themselves.
pub(crate) const FORMAT_WORDS: [&str; 4] = ["rfc3339", "epoch_s", "epoch_ms", "epoch_us"];

/// What a format reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FormatClass {
    /// A text with its offset.
    Rfc3339,
    /// A count since 1970.
    Epoch,
    /// A strptime text.
    Strptime {
        /// Whether it reads an offset.
        offset: bool,
        /// Whether it reads any part of a time of day.
        time: bool,
    },
}

/// The class of a format text, or what is wrong with it.
pub(crate) fn classify(text: &str) -> Result<FormatClass, String> {
    match text {
        "rfc3339" => return Ok(FormatClass::Rfc3339),
        "epoch_s" | "epoch_ms" | "epoch_us" => return Ok(FormatClass::Epoch),
        "" => return Err("an empty format".to_owned()),
        _ => {}
    }
    if !text.contains('%') {
        let near = nearest(text, FORMAT_WORDS)
            .map_or_else(String::new, |w| format!("; did you mean `{w}`?"));
        return Err(format!(
            "`{text}` is neither {} nor a strptime text{near}",
            FORMAT_WORDS.join(", ")
        ));
    }
    let parts = directives(text)?;
    check_parts(text, &parts)?;
    Ok(FormatClass::Strptime {
        offset: parts.contains(&Part::Offset),
        time: parts.iter().any(|p| {
            matches!(
                p,
                Part::Hour24
                    | Part::Hour12
                    | Part::Minute
                    | Part::Second
                    | Part::Fraction
                    | Part::Half
            )
        }),
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Year,
    Month,
    Day,
    DayOfYear,
    Hour24,
    Hour12,
    Half,
    Minute,
    Second,
    Fraction,
    Offset,
}

fn directives(text: &str) -> Result<Vec<Part>, String> {
    let mut parts = Vec::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '%' {
            continue;
        }
        let known: &[Part] = match chars.next() {
            Some('%') => &[],
            Some('Y' | 'y') => &[Part::Year],
            Some('m' | 'b' | 'B') => &[Part::Month],
            Some('d') => &[Part::Day],
            Some('j') => &[Part::DayOfYear],
            Some('F') => &[Part::Year, Part::Month, Part::Day],
            Some('H') => &[Part::Hour24],
            Some('I') => &[Part::Hour12],
            Some('p') => &[Part::Half],
            Some('M') => &[Part::Minute],
            Some('S') => &[Part::Second],
            Some('T') => &[Part::Hour24, Part::Minute, Part::Second],
            Some('f') => &[Part::Fraction],
            Some('z') => &[Part::Offset],
            Some('.') => match chars.next() {
                Some('f') => &[Part::Fraction],
                _ => return Err(format!("`{text}`: `%.` is known only as `%.f`")),
            },
            Some(other) => {
                return Err(format!(
                    "`{text}`: `%{other}` is not known; known are %Y %m %d %H %M %S %y %f %.f %b %B %p %I %z %j %T %F %%"
                ));
            }
            None => return Err(format!("`{text}` ends with a lone `%`")),
        };
        for part in known {
            if parts.contains(part) {
                return Err(format!("`{text}` reads the {} twice", part_name(*part)));
            }
            parts.push(*part);
        }
    }
    Ok(parts)
}

fn part_name(part: Part) -> &'static str {
    match part {
        Part::Year => "year",
        Part::Month => "month",
        Part::Day => "day",
        Part::DayOfYear => "day of the year",
        Part::Hour24 | Part::Hour12 => "hour",
        Part::Half => "half of the day",
        Part::Minute => "minute",
        Part::Second => "second",
        Part::Fraction => "fraction",
        Part::Offset => "offset",
    }
}

fn check_parts(text: &str, parts: &[Part]) -> Result<(), String> {
    let has = |p: Part| parts.contains(&p);
    let by_month = has(Part::Month) && has(Part::Day);
    let some_month = has(Part::Month) || has(Part::Day);
    if !has(Part::Year) {
        return Err(format!("`{text}` reads no year"));
    }
    if has(Part::DayOfYear) && some_month {
        return Err(format!(
            "`{text}` reads the day twice, by month and by `%j`"
        ));
    }
    if !has(Part::DayOfYear) && !by_month {
        return Err(format!(
            "`{text}` reads no whole day (month and day, or `%j`)"
        ));
    }
    if has(Part::Hour24) && has(Part::Hour12) {
        return Err(format!("`{text}` reads the hour twice, by `%H` and `%I`"));
    }
    if has(Part::Hour12) != has(Part::Half) {
        return Err(format!(
            "`{text}`: `%I` and `%p` only mean something together"
        ));
    }
    let hour = has(Part::Hour24) || has(Part::Hour12);
    let steps = [
        (has(Part::Minute), hour, "minutes without an hour"),
        (
            has(Part::Second),
            has(Part::Minute),
            "seconds without minutes",
        ),
        (
            has(Part::Fraction),
            has(Part::Second),
            "a fraction without seconds",
        ),
        (has(Part::Offset), hour, "an offset without a time"),
    ];
    match steps.iter().find(|(there, needed, _)| *there && !needed) {
        Some((_, _, what)) => Err(format!("`{text}` reads {what}")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strptime(text: &str) -> (bool, bool) {
        match classify(text) {
            Ok(FormatClass::Strptime { offset, time }) => (offset, time),
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn sound_formats_pass() {
        assert_eq!(classify("rfc3339"), Ok(FormatClass::Rfc3339));
        assert_eq!(classify("epoch_us"), Ok(FormatClass::Epoch));
        assert_eq!(strptime("%Y-%m-%d"), (false, false));
        assert_eq!(strptime("%Y年%m月%d日 %H时%M分"), (false, true));
        assert_eq!(strptime("%F %T%.f%z"), (true, true));
        assert_eq!(strptime("%d %b %y %I:%M %p"), (false, true));
        assert_eq!(strptime("%Y%j"), (false, false));
        assert_eq!(strptime("100%% %B %d, %Y"), (false, false));
    }

    #[test]
    fn unsound_formats_say_why() {
        for (bad, why) in [
            ("", "empty"),
            ("epoch", "did you mean `epoch_s`"),
            ("iso8601", "neither"),
            ("%Y-%m-%d %Q", "`%Q` is not known"),
            ("%Y-%m-%d%", "lone `%`"),
            ("%Y-%m-%d %.3f", "`%.`"),
            ("%m-%d", "no year"),
            ("%Y-%m", "no whole day"),
            ("%F %d", "day twice"),
            ("%Y-%j-%d", "day twice"),
            ("%Y-%y-%m-%d", "year twice"),
            ("%F %I:%M", "together"),
            ("%F %H:%M %p", "together"),
            ("%F %H %I %p", "hour twice"),
            ("%F %M", "minutes without an hour"),
            ("%F %H:%S", "seconds without minutes"),
            ("%F %H:%M%.f", "fraction without seconds"),
            ("%F%z", "offset without a time"),
        ] {
            let e = classify(bad).unwrap_err();
            assert!(e.contains(why), "{bad}: {e}");
        }
    }
}
