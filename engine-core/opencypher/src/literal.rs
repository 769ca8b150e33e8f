//! Values of literals: the text of a number or string token to its value.

use crate::fault::{Fault, Result};
use std::borrow::Cow;
use tidegraph_types::Str;

/// Returns at most 40 characters of a text, for error messages.
pub(crate) fn excerpt(text: &str) -> String {
    match text.char_indices().nth(40) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.into(),
    }
}

/// Reads an integer token. `negative`: a minus precedes it.
pub(crate) fn integer(text: &str, negative: bool, offset: u32) -> Result<i64> {
    let sign = if negative { "-" } else { "" };
    let plain = without_underscores(text);
    let text = &*plain;
    let (digits, radix) = match text.as_bytes() {
        [b'0', b'x' | b'X', ..] => (&text[2..], 16),
        [b'0', b'o' | b'O', ..] => (&text[2..], 8),
        [b'0', b'0'..=b'9', ..] => {
            let message =
                format!("invalid number '{}', expected no leading zero (octal is 0o17)", excerpt(text));
            return Err(Fault::syntax(offset, message));
        }
        _ => (text, 10),
    };
    // The negative range has one value more, so that the range is checked with the sign.
    let magnitude = i128::from_str_radix(digits, radix).ok();
    magnitude
        .and_then(|m| i64::try_from(if negative { -m } else { m }).ok())
        .ok_or_else(|| Fault::syntax(offset, format!("integer {sign}{} is too large", excerpt(text))))
}

/// Reads a float token.
pub(crate) fn float(text: &str, negative: bool, offset: u32) -> Result<f64> {
    let value = without_underscores(text).parse::<f64>().ok().filter(|v| v.is_finite());
    let value =
        value.ok_or_else(|| Fault::syntax(offset, format!("float {} is too large", excerpt(text))))?;
    Ok(if negative { -value } else { value })
}

/// Removes the underscores between the digits of a number.
fn without_underscores(text: &str) -> Cow<'_, str> {
    if text.contains('_') { text.replace('_', "").into() } else { text.into() }
}

/// Reads a string token, which includes its quotes.
pub(crate) fn string(token: &str, offset: u32) -> Result<Str> {
    let inner = token.get(1..token.len().saturating_sub(1)).unwrap_or_default();
    if !inner.contains('\\') {
        return Ok(Str::from(inner));
    }
    let mut out = String::with_capacity(inner.len());
    let mut rest = inner;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let place = offset + 1 + (inner.len() - rest.len() + at) as u32;
        let mut chars = rest[at + 1..].chars();
        let escape = chars.next().unwrap_or('\\');
        rest = chars.as_str();
        out.push(match escape {
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            'b' => '\u{8}',
            'f' => '\u{c}',
            '\\' | '\'' | '"' | '`' => escape,
            'u' => unicode(&mut rest, 4, place)?,
            'U' => unicode(&mut rest, 8, place)?,
            other => {
                let message = format!("invalid escape '\\{other}' in a string");
                return Err(Fault::syntax(place, message));
            }
        });
    }
    out.push_str(rest);
    Ok(Str::from(out))
}

fn unicode(rest: &mut &str, digits: usize, place: u32) -> Result<char> {
    let code = hex(rest, digits, place)?;
    let code = match code {
        // A surrogate pair is one character.
        0xd800..=0xdbff if digits == 4 && rest.starts_with("\\u") => {
            *rest = &rest[2..];
            let low = hex(rest, 4, place)?;
            if (0xdc00..=0xdfff).contains(&low) {
                0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00)
            } else {
                code
            }
        }
        other => other,
    };
    char::from_u32(code)
        .ok_or_else(|| Fault::syntax(place, format!("invalid character U+{code:04X} in a string")))
}

fn hex(rest: &mut &str, digits: usize, place: u32) -> Result<u32> {
    let text = rest.get(..digits).filter(|t| t.bytes().all(|b| b.is_ascii_hexdigit()));
    let code = text.and_then(|t| u32::from_str_radix(t, 16).ok());
    let code = code.ok_or_else(|| {
        Fault::syntax(place, format!("invalid escape in a string, expected {digits} hexadecimal digits"))
    })?;
    *rest = &rest[digits..];
    Ok(code)
}

/// Returns the text of a name without its backticks.
pub(crate) fn name(token: &str) -> Str {
    match token.strip_prefix('`').and_then(|t| t.strip_suffix('`')) {
        Some(inner) if inner.contains('`') => Str::from(inner.replace("``", "`")),
        Some(inner) => Str::from(inner),
        None => Str::from(token),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_of_every_base_up_to_the_ends_of_the_range() {
        let value = |t, n| integer(t, n, 0).map_err(|f| f.locate(t).to_string());
        assert_eq!(value("9223372036854775807", false), Ok(i64::MAX));
        assert_eq!(value("9223372036854775808", true), Ok(i64::MIN));
        assert_eq!(value("0x7FFFFFFFFFFFFFFF", false), Ok(i64::MAX));
        assert_eq!(value("0o17", true), Ok(-15));
        assert_eq!(value("0", false), Ok(0));
        assert_eq!(
            value("9223372036854775808", false),
            Err("integer 9223372036854775808 is too large at 1:1".into())
        );
        assert!(value("0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF", false).is_err());
        assert!(value("017", false).is_err());
        assert_eq!(value("1_000_000", false), Ok(1_000_000));
        assert_eq!(value("0xFF_FF", false), Ok(0xFFFF));
    }

    #[test]
    fn escapes() {
        let value = |t| string(t, 0).map_err(|f| f.locate(t).to_string());
        assert_eq!(value(r#"'a\n\t\\\'\"b'"#), Ok(Str::from("a\n\t\\'\"b")));
        assert_eq!(value(r"'\u00e9\uD83D\uDE00\U0001F600'"), Ok(Str::from("é😀😀")));
        assert_eq!(
            value(r"'ab\uZZZZ'"),
            Err("invalid escape in a string, expected 4 hexadecimal digits at 1:4".into())
        );
        assert_eq!(value(r"'\uD800'"), Err("invalid character U+D800 in a string at 1:2".into()));
        assert_eq!(value(r"'\q'"), Err(r"invalid escape '\q' in a string at 1:2".into()));
    }

    #[test]
    fn names_lose_their_backticks() {
        assert_eq!(name("`a``b`"), "a`b");
        assert_eq!(name("`~id`"), "~id");
        assert_eq!(name("n"), "n");
    }
}
