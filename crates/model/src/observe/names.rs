//! What a field's name tells: its style, and what it is likely to hold.

/// How a name of several words is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Style {
    /// `orderNumber`
    Camel,
    /// `order_number`
    Snake,
    /// `OrderNumber`
    Pascal,
    /// `order-number`
    Kebab,
}

impl Style {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Style::Camel => "camelCase",
            Style::Snake => "snake_case",
            Style::Pascal => "PascalCase",
            Style::Kebab => "kebab-case",
        }
    }

    /// The style of a name; `None` for one lower-case word, which fits every style.
    pub fn of(name: &str) -> Option<Style> {
        let name = name.trim_matches('_');
        let starts_upper = name.starts_with(|first: char| first.is_uppercase());
        let has_lower = name.contains(|c: char| c.is_lowercase());
        if name.contains('-') {
            Some(Style::Kebab)
        } else if name.contains('_') {
            Some(Style::Snake)
        } else if starts_upper && has_lower {
            Some(Style::Pascal)
        } else if has_lower && name.contains(|c: char| c.is_uppercase()) {
            Some(Style::Camel)
        } else {
            None
        }
    }
}

/// The words of a name, in lower case.
pub fn words(name: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut was_lower = false;
    for c in name.chars() {
        let splits = !c.is_alphanumeric() || (c.is_uppercase() && was_lower);
        if splits && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if c.is_alphanumeric() {
            word.extend(c.to_lowercase());
        }
        was_lower = c.is_lowercase() || c.is_numeric();
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

const MONEY: &[&str] = &[
    "price", "prices", "amount", "amounts", "total", "subtotal", "cost", "costs", "balance", "fee", "fees", "salary",
    "discount", "refund", "payment", "paid", "spent", "tax", "money", "budget", "revenue", "payable", "credit",
    "debit",
];
const NOT_MONEY: &[&str] = &["count", "number", "id", "rate", "percent", "ratio", "status", "at", "time", "method"];
const TIME: &[&str] = &[
    "at",
    "date",
    "time",
    "timestamp",
    "created",
    "updated",
    "deleted",
    "expires",
    "expiry",
    "expire",
    "expiration",
    "birthday",
    "since",
    "until",
    "deadline",
    "modified",
    "on",
];
const NOT_TIME: &[&str] = &["zone", "ms", "seconds", "minutes", "hours", "days", "duration", "count", "timeout"];

/// Whether a name speaks of money.
pub fn is_money(name: &str) -> bool {
    let words = words(name);
    words.iter().any(|word| MONEY.contains(&word.as_str()))
        && words.last().is_none_or(|last| !NOT_MONEY.contains(&last.as_str()))
}

/// Whether a name speaks of a point in time.
pub fn is_time(name: &str) -> bool {
    let words = words(name);
    words.last().is_some_and(|last| TIME.contains(&last.as_str()))
        && !words.iter().any(|word| NOT_TIME.contains(&word.as_str()))
}

/// Whether a name is data, not a name: a date, a number, an id.
pub fn is_data(name: &str) -> bool {
    let digits = name.chars().filter(char::is_ascii_digit).count();
    let hex = name.len() >= 24 && name.chars().all(|c| c.is_ascii_hexdigit() || c == '-');
    hex || (digits > 0 && digits * 2 >= name.chars().filter(|c| c.is_alphanumeric()).count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn styles() {
        for (name, style) in [
            ("orderNumber", Some(Style::Camel)),
            ("order_number", Some(Style::Snake)),
            ("OrderNumber", Some(Style::Pascal)),
            ("order-number", Some(Style::Kebab)),
            ("total", None),
            ("_id", None),
            ("SKU", None),
        ] {
            assert_eq!(Style::of(name), style, "{name}");
        }
    }

    #[test]
    fn meanings() {
        assert_eq!(words("unitPriceUSD_2"), ["unit", "price", "usd", "2"]);
        assert!(is_money("unitPrice") && is_money("total_amount") && !is_money("priceCount") && !is_money("name"));
        assert!(is_time("createdAt") && is_time("created_at") && !is_time("timeZone") && !is_time("status"));
        assert!(is_data("2024-01-05") && is_data("65f1c0ffee65f1c0ffee65f1") && !is_data("address2"));
    }
}
