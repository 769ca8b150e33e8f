//! Text to tokens, by the lexical rules of TinkerPop's `Gremlin.g4`.
//!
//! Tokens borrow from the text and hold the byte offset of their first character. Line and column are computed only for
//! an error. White space and `//` comments are skipped. No text may cause a panic.

use crate::fault::Fault;
use std::borrow::Cow;
use tidegraph_types::{Big, Value};

/// Most decimal digits of a number that 64 bits hold, whatever they are.
const LONG_DIGITS: usize = 18;

/// A token with its place.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Token<'t> {
    /// Byte offset of its first character.
    pub(crate) at: usize,
    /// Its kind.
    pub(crate) kind: TokenKind<'t>,
}

/// Kinds of tokens.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum TokenKind<'t> {
    /// A name; keywords are names too.
    Name(&'t str),
    /// A number, `NaN` and `Infinity` included.
    Number(Value),
    /// A string without its quotes, escapes resolved.
    Text(Cow<'t, str>),
    /// One of `( ) [ ] { } , . : ;`
    Sign(char),
    /// The end of the text.
    End,
}

impl TokenKind<'_> {
    /// Names the token for an error message.
    pub(crate) fn describe(&self) -> String {
        match self {
            Self::Name(name) => format!("\"{}\"", shorten(name)),
            Self::Number(value) => match value.as_i64() {
                Some(int) => format!("number {int}"),
                None => format!("number {}", value.as_f64().unwrap_or(f64::NAN)),
            },
            Self::Text(text) => format!("string '{}'", shorten(text)),
            Self::Sign(sign) => format!("\"{sign}\""),
            Self::End => "the end of the text".into(),
        }
    }
}

/// Returns the beginning of a long text, for error messages.
pub(crate) fn shorten(text: &str) -> Cow<'_, str> {
    const SHOWN: usize = 40;
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]).into(),
        None => text.into(),
    }
}

/// Reads one token at a time.
pub(crate) struct Lexer<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Lexer<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Self { text, at: 0 }
    }

    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn byte(&self, ahead: usize) -> u8 {
        // 0 is the end of the text: no rule below accepts it.
        self.text.as_bytes().get(self.at + ahead).copied().unwrap_or(0)
    }

    fn skip_blank(&mut self) {
        loop {
            match self.byte(0) {
                b' ' | b'\t' | b'\r' | b'\n' | 0x0c => self.at += 1,
                b'/' if self.byte(1) == b'/' => {
                    let end = self.rest().find(['\r', '\n']).unwrap_or(self.rest().len());
                    self.at += end;
                }
                _ => return,
            }
        }
    }

    /// Reads the next token.
    pub(crate) fn next(&mut self) -> Result<Token<'t>, Fault> {
        self.skip_blank();
        let at = self.at;
        let Some(first) = self.rest().chars().next() else {
            return Ok(Token { at, kind: TokenKind::End });
        };
        let kind = match first {
            '(' | ')' | '[' | ']' | '{' | '}' | ',' | '.' | ':' | ';' => {
                self.at += 1;
                TokenKind::Sign(first)
            }
            '\'' | '"' => TokenKind::Text(self.string(first)?),
            '0'..='9' => TokenKind::Number(self.number()?),
            '+' | '-' if self.byte(1).is_ascii_digit() => TokenKind::Number(self.number()?),
            '+' | '-' if self.rest()[1..].starts_with("Infinity") => {
                self.at += "+Infinity".len();
                TokenKind::Number(Value::Double(if first == '-' { f64::NEG_INFINITY } else { f64::INFINITY }))
            }
            c if is_name_start(c) => {
                let rest = self.rest();
                let end = rest.find(|c| !is_name_part(c)).unwrap_or(rest.len());
                self.at += end;
                match &rest[..end] {
                    "NaN" => TokenKind::Number(Value::Double(f64::NAN)),
                    "Infinity" => TokenKind::Number(Value::Double(f64::INFINITY)),
                    name => TokenKind::Name(name),
                }
            }
            other => return Err(Fault::syntax(at, format!("unexpected character {other:?}"))),
        };
        Ok(Token { at, kind })
    }

    /// Reads a string; `self.at` is the offset of the opening quote.
    fn string(&mut self, quote: char) -> Result<Cow<'t, str>, Fault> {
        let start = self.at;
        self.at += 1;
        let mut owned: Option<String> = None;
        loop {
            let rest = self.rest();
            let Some(end) = rest.find([quote, '\\']) else {
                return Err(Fault::syntax(start, "string is not closed".into()));
            };
            let piece = &rest[..end];
            self.at += end;
            if self.byte(0) == b'\\' {
                let text = owned.get_or_insert_with(String::new);
                text.push_str(piece);
                self.escape(text)?;
            } else {
                self.at += 1;
                return Ok(match owned {
                    Some(mut text) => {
                        text.push_str(piece);
                        text.into()
                    }
                    None => piece.into(),
                });
            }
        }
    }

    /// Reads an escape sequence; `self.at` is the offset of the backslash.
    fn escape(&mut self, text: &mut String) -> Result<(), Fault> {
        let at = self.at;
        let bad = |what: &str| Fault::syntax(at, format!("invalid escape sequence {what:?} in a string"));
        self.at += 1;
        let Some(first) = self.rest().chars().next() else {
            return Err(bad("\\"));
        };
        self.at += first.len_utf8();
        match first {
            'b' => text.push('\u{8}'),
            't' => text.push('\t'),
            'n' => text.push('\n'),
            'f' => text.push('\u{c}'),
            'r' => text.push('\r'),
            '"' | '\'' | '\\' => text.push(first),
            '\n' => {}
            '\r' if self.byte(0) == b'\n' => self.at += 1,
            'u' => {
                let unit = self.hex_unit().ok_or_else(|| bad("\\u"))?;
                // A surrogate pair is two escapes.
                if (0xd800..0xdc00).contains(&unit) {
                    let low = (self.byte(0) == b'\\' && self.byte(1) == b'u')
                        .then(|| {
                            self.at += 2;
                            self.hex_unit()
                        })
                        .flatten()
                        .filter(|low| (0xdc00..0xe000).contains(low))
                        .ok_or_else(|| bad("\\u of half a pair"))?;
                    let code = 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
                    text.push(char::from_u32(code).ok_or_else(|| bad("\\u"))?);
                } else {
                    text.push(char::from_u32(unit).ok_or_else(|| bad("\\u of half a pair"))?);
                }
            }
            '0'..='7' => {
                let mut code = first as u32 - 48;
                let more = if first <= '3' { 2 } else { 1 };
                for _ in 0..more {
                    let digit = self.byte(0);
                    if !(b'0'..=b'7').contains(&digit) {
                        break;
                    }
                    code = code * 8 + u32::from(digit - b'0');
                    self.at += 1;
                }
                text.push(char::from_u32(code).ok_or_else(|| bad("octal"))?);
            }
            other => return Err(bad(&format!("\\{other}"))),
        }
        Ok(())
    }

    /// Reads four hexadecimal digits, after any further `u`s.
    fn hex_unit(&mut self) -> Option<u32> {
        while self.byte(0) == b'u' {
            self.at += 1;
        }
        let digits = self.rest().get(..4)?;
        if !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
            return None;
        }
        self.at += 4;
        u32::from_str_radix(digits, 16).ok()
    }

    fn digits(&mut self, radix: u32) {
        // An underscore may stand between digits but not at the end.
        loop {
            let mut ahead = 0;
            while self.byte(ahead) == b'_' {
                ahead += 1;
            }
            if !(self.byte(ahead) as char).is_digit(radix) {
                return;
            }
            self.at += ahead + 1;
        }
    }

    /// Reads a number; `self.at` is the offset of its sign or first digit.
    fn number(&mut self) -> Result<Value, Fault> {
        let start = self.at;
        if matches!(self.byte(0), b'+' | b'-') {
            self.at += 1;
        }
        let body = self.at;
        let (mut radix, mut float) = (10, false);
        if self.byte(0) == b'0' && matches!(self.byte(1), b'x' | b'X') && self.byte(2).is_ascii_hexdigit() {
            radix = 16;
            self.at += 2;
            self.digits(16);
        } else {
            self.digits(10);
            if self.byte(0) == b'.' && self.byte(1).is_ascii_digit() {
                float = true;
                self.at += 1;
                self.digits(10);
            }
            if matches!(self.byte(0), b'e' | b'E') {
                let sign = usize::from(matches!(self.byte(1), b'+' | b'-'));
                if self.byte(1 + sign).is_ascii_digit() {
                    float = true;
                    self.at += 1 + sign;
                    self.digits(10);
                }
            }
        }
        let end = self.at;
        let mut suffix = self.byte(0).to_ascii_lowercase();
        if suffix.is_ascii_alphabetic()
            && !is_name_part(self.text[self.at + 1..].chars().next().unwrap_or(' '))
        {
            self.at += 1;
        } else {
            suffix = 0;
        }
        if is_name_part(self.rest().chars().next().unwrap_or(' ')) {
            return Err(self.bad_number(start));
        }
        if radix == 10 && !float && matches!(suffix, b'f' | b'd' | b'm') {
            float = true;
        }
        let negative = self.text.as_bytes()[start] == b'-';
        let clean = |from: usize, to: usize| self.text[from..to].replace('_', "");
        if float {
            return self.float(start, &clean(start, end), suffix);
        }
        let digits = if radix == 16 {
            clean(body + 2, end)
        } else {
            let text = clean(body, end);
            if text.len() > 1 && text.starts_with('0') {
                radix = 8;
            }
            text
        };
        if radix == 10 && (suffix == b'n' || suffix == 0 && digits.len() > LONG_DIGITS) {
            let sign = if negative { "-" } else { "" };
            let big = Big::parse_integer(&format!("{sign}{digits}")).ok_or_else(|| self.too_large(start))?;
            return Ok(match &big {
                Value::Big(number) if suffix == 0 => number.as_i64().map_or(big, Value::Long),
                _ => big,
            });
        }
        let magnitude = i128::from_str_radix(&digits, radix).map_err(|_| {
            if radix == 8 && digits.bytes().any(|b| b > b'7') {
                self.bad_number(start)
            } else {
                self.too_large(start)
            }
        })?;
        let number = if negative { -magnitude } else { magnitude };
        let value = match suffix {
            b'b' => i8::try_from(number).ok().map(Value::Byte),
            b's' => i16::try_from(number).ok().map(Value::Short),
            b'i' => i32::try_from(number).ok().map(Value::Int),
            b'l' => i64::try_from(number).ok().map(Value::Long),
            b'n' => Big::parse_integer(&number.to_string()),
            0 => {
                i32::try_from(number).map(Value::Int).or_else(|_| i64::try_from(number).map(Value::Long)).ok()
            }
            _ => return Err(self.bad_number(start)),
        };
        match value {
            Some(value) => Ok(value),
            None if matches!(suffix, 0 | b'n') => Err(self.too_large(start)),
            None => Err(Fault::syntax(
                start,
                format!("number {} does not fit the type of its suffix", &self.text[start..self.at]),
            )),
        }
    }

    fn float(&self, start: usize, digits: &str, suffix: u8) -> Result<Value, Fault> {
        let bad = || self.bad_number(start);
        match suffix {
            b'f' => digits.parse().map(Value::Float).map_err(|_| bad()),
            0 | b'd' => digits.parse().map(Value::Double).map_err(|_| bad()),
            b'm' => Big::parse_decimal(digits).ok_or_else(|| {
                let text = shorten(&self.text[start..self.at]);
                Fault::unsupported(start, format!("decimal number of more than 1,200 digits ({text})"))
            }),
            _ => Err(bad()),
        }
    }

    fn bad_number(&self, start: usize) -> Fault {
        let rest = &self.text[start..];
        let end = rest
            .char_indices()
            .find(|(i, c)| *i > 0 && !is_name_part(*c) && *c != '.')
            .map_or(rest.len(), |(i, _)| i);
        Fault::syntax(start, format!("invalid number \"{}\"", shorten(&rest[..end])))
    }

    fn too_large(&self, start: usize) -> Fault {
        let text = shorten(&self.text[start..self.at]);
        Fault::unsupported(start, format!("integer of more than 4,096 bits ({text})"))
    }
}

fn is_name_start(c: char) -> bool {
    c == '_' || c == '$' || c.is_alphabetic()
}

fn is_name_part(c: char) -> bool {
    is_name_start(c) || c.is_alphanumeric()
}
