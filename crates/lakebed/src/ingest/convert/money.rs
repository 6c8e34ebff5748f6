//! Amounts of money as people write them: a declared symbol, groups of three, a declared mark.

use crate::error::{Error, Result};
use crate::spec::MoneySpec;

/// How a field's amounts are written.
#[derive(Debug)]
pub(crate) struct MoneyPlan {
    /// Longest first.
    symbols: Vec<String>,
    thousands: Option<String>,
    decimal: String,
}

impl MoneyPlan {
    /// Checks that the marks can be told apart.
    pub(crate) fn compile(spec: &MoneySpec) -> Result<Self> {
        let decimal = spec.decimal.clone().unwrap_or_else(|| ".".to_owned());
        let is_mark =
            |m: &str| !m.is_empty() && !m.chars().any(|c| c.is_ascii_digit()) && !m.contains('-');
        let marks = spec.thousands.iter().chain([&decimal]);
        for mark in marks.chain(&spec.symbols) {
            if !is_mark(mark) {
                return Err(Error::invalid(format!(
                    "`{mark}` cannot be a symbol or mark of `money`"
                ))
                .hint("a mark is not empty and holds no digit and no minus"));
            }
        }
        if spec.thousands.as_ref() == Some(&decimal) {
            return Err(Error::invalid(format!(
                "`money` has `{decimal}` both as thousands and as decimal mark"
            ))
            .hint("leave `thousands` out where amounts are not grouped"));
        }
        let mut symbols = spec.symbols.clone();
        symbols.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        Ok(Self {
            symbols,
            thousands: spec.thousands.clone(),
            decimal,
        })
    }

    /// Writes the plain number of `text` to `out`; `false` where it is not written as declared.
    pub(crate) fn plain(&self, text: &str, out: &mut String) -> bool {
        out.clear();
        let mut rest = text.trim();
        let mut negative = false;
        if let Some(more) = rest.strip_prefix('-') {
            negative = true;
            rest = more;
        }
        let symbol = self
            .symbols
            .iter()
            .find_map(|s| rest.strip_prefix(s.as_str()));
        if let Some(more) = symbol {
            rest = more.trim_start();
            if let (false, Some(more)) = (negative, rest.strip_prefix('-')) {
                negative = true;
                rest = more;
            }
        }
        if negative {
            out.push('-');
        }
        let (whole, fraction) = match rest.split_once(self.decimal.as_str()) {
            Some((whole, fraction)) => (whole, Some(fraction)),
            None => (rest, None),
        };
        if !self.push_groups(whole, out) {
            return false;
        }
        match fraction {
            None => true,
            Some(digits) if is_digits(digits) => {
                out.push('.');
                out.push_str(digits);
                true
            }
            Some(_) => false,
        }
    }

    /// Digits without marks, or a first group of one to three and groups of exactly three.
    fn push_groups(&self, whole: &str, out: &mut String) -> bool {
        if is_digits(whole) {
            out.push_str(whole);
            return true;
        }
        let Some(mark) = &self.thousands else {
            return false;
        };
        for (i, group) in whole.split(mark.as_str()).enumerate() {
            let length_fits = group.len() == 3 || (i == 0 && group.len() < 3);
            if !length_fits || !is_digits(group) {
                return false;
            }
            out.push_str(group);
        }
        true
    }
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(symbols: &[&str], thousands: Option<&str>, decimal: &str) -> Result<MoneyPlan> {
        MoneyPlan::compile(&MoneySpec {
            symbols: symbols.iter().map(|s| (*s).to_owned()).collect(),
            thousands: thousands.map(str::to_owned),
            decimal: Some(decimal.to_owned()),
        })
    }

    #[test]
    fn amounts_are_read_as_declared() {
        let money = plan(&["$", "NT$", "¥", "N"], Some(","), ".").unwrap();
        let mut out = String::new();
        for (text, wanted) in [
            ("1,299.00", "1299.00"),
            ("$5", "5"),
            ("¥47,712", "47712"),
            ("        1.10", "1.10"),
            ("NT$1,234.50", "1234.50"),
            ("NT$ \u{a0}1234", "1234"),
            ("-$5.00", "-5.00"),
            ("$-5.00", "-5.00"),
            ("\u{3000}1,000,000\u{3000}", "1000000"),
        ] {
            assert!(money.plain(text, &mut out), "{text}");
            assert_eq!(out, wanted);
        }
        for bad in [
            "1.299,00", "free", "", "$", "-", "1,29", "1,2990", ",123", "1,,299", "1234,567",
            "(5.00)", "5-", "5$", "--5", "-$-5", "- 5", "+5", "$$5", "1.", ".5", "1e3", "１",
            "$5 0", "1.2.3",
        ] {
            assert!(!money.plain(bad, &mut out), "{bad}");
        }
    }

    #[test]
    fn the_other_notation_can_be_declared() {
        let money = plan(&["€"], Some("."), ",").unwrap();
        let mut out = String::new();
        assert!(money.plain("€ 1.299,00", &mut out));
        assert_eq!(out, "1299.00");
        assert!(!money.plain("1,299.00", &mut out));
        assert!(plan(&[], Some("."), ".").is_err());
        assert!(plan(&[""], None, ".").is_err());
        assert!(plan(&[], Some("3"), ".").is_err());
    }
}
