//! Text to tokens, in one pass, without copying: the parser reads names and literals from the text when it needs them.
//!
//! The lexer always returns tokens. Where it cannot read the text, it stops with a token of kind `Bad` and keeps the
//! fault beside it, so that a grammar error earlier in the text is reported first.

use crate::fault::Fault;
use crate::token::{Keyword, Token, TokenKind};
use tidegraph_plan::{Limits, Stopped};

/// The tokens of a text.
pub(crate) struct Tokens {
    /// At least one; the last is `End` or `Bad`.
    pub tokens: Vec<Token>,
    /// Why the last token is `Bad`.
    pub fault: Option<Fault>,
}

/// Splits the text. The caller must refuse texts of 4 GB and more.
pub(crate) fn tokenize(text: &str, limits: &Limits<'_>) -> Result<Tokens, Stopped> {
    let mut lexer = Lexer { text, bytes: text.as_bytes(), at: 0 };
    let expected = text.len() / 3 + 2;
    limits.charge(expected * size_of::<Token>())?;
    let mut tokens = Vec::with_capacity(expected);
    loop {
        limits.charge(if tokens.len() < expected { 0 } else { 2 * size_of::<Token>() })?;
        let (kind, start, fault) = match lexer.skip_blanks().and_then(|()| {
            let start = lexer.at;
            lexer.next_kind().map(|kind| (kind, start))
        }) {
            Ok((kind, start)) => (kind, start, None),
            Err(fault) => (TokenKind::Bad, lexer.at, Some(fault)),
        };
        tokens.push(Token { kind, start: start as u32, end: lexer.at as u32 });
        if matches!(kind, TokenKind::End | TokenKind::Bad) {
            return Ok(Tokens { tokens, fault });
        }
    }
}

struct Lexer<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
}

impl Lexer<'_> {
    fn byte(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn char(&self) -> Option<char> {
        self.text.get(self.at..).and_then(|rest| rest.chars().next())
    }

    fn fault<T>(&self, start: usize, message: impl Into<String>) -> Result<T, Fault> {
        Err(Fault::syntax(start as u32, message))
    }

    /// Skips white space and comments.
    fn skip_blanks(&mut self) -> Result<(), Fault> {
        loop {
            match self.byte(0) {
                b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c | 0x1c..=0x1f => self.at += 1,
                b'/' if self.byte(1) == b'/' => {
                    let rest = &self.bytes[self.at..];
                    self.at += rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len());
                }
                b'/' if self.byte(1) == b'*' => match self.text[self.at + 2..].find("*/") {
                    Some(length) => self.at += length + 4,
                    None => return self.fault(self.at, "comment without end, expected '*/'"),
                },
                0x80.. => match self.char() {
                    Some(c) if c.is_whitespace() || c == '\u{feff}' || c == '\u{180e}' => {
                        self.at += c.len_utf8();
                    }
                    _ => return Ok(()),
                },
                _ => return Ok(()),
            }
        }
    }

    fn next_kind(&mut self) -> Result<TokenKind, Fault> {
        let start = self.at;
        if start >= self.bytes.len() {
            return Ok(TokenKind::End);
        }
        let (kind, length) = match (self.byte(0), self.byte(1)) {
            (b'a'..=b'z' | b'A'..=b'Z' | b'_', _) => return Ok(self.word()),
            (b'0'..=b'9', _) => return self.number(),
            (b'.', b'0'..=b'9') => return self.number(),
            (b'\'' | b'"', _) => return self.string(),
            (b'`', _) => return self.quoted(),
            (b'.', b'.') => (TokenKind::DotDot, 2),
            (b'+', b'=') => (TokenKind::PlusEqual, 2),
            (b'=', b'~') => (TokenKind::Matches, 2),
            (b'<', b'>') => (TokenKind::NotEqual, 2),
            (b'<', b'=') => (TokenKind::LessOrEqual, 2),
            (b'>', b'=') => (TokenKind::GreaterOrEqual, 2),
            (b'(', _) => (TokenKind::LeftParen, 1),
            (b')', _) => (TokenKind::RightParen, 1),
            (b'[', _) => (TokenKind::LeftBracket, 1),
            (b']', _) => (TokenKind::RightBracket, 1),
            (b'{', _) => (TokenKind::LeftBrace, 1),
            (b'}', _) => (TokenKind::RightBrace, 1),
            (b',', _) => (TokenKind::Comma, 1),
            (b':', _) => (TokenKind::Colon, 1),
            (b';', _) => (TokenKind::Semicolon, 1),
            (b'$', _) => (TokenKind::Dollar, 1),
            (b'.', _) => (TokenKind::Dot, 1),
            (b'|', _) => (TokenKind::Bar, 1),
            (b'&', _) => (TokenKind::Ampersand, 1),
            (b'!', _) => (TokenKind::Exclamation, 1),
            (b'+', _) => (TokenKind::Plus, 1),
            (b'-', _) => (TokenKind::Minus, 1),
            (b'*', _) => (TokenKind::Star, 1),
            (b'/', _) => (TokenKind::Slash, 1),
            (b'%', _) => (TokenKind::Percent, 1),
            (b'^', _) => (TokenKind::Caret, 1),
            (b'=', _) => (TokenKind::Equal, 1),
            (b'<', _) => (TokenKind::Less, 1),
            (b'>', _) => (TokenKind::Greater, 1),
            _ => match self.char() {
                Some(c) if c.is_alphabetic() => return Ok(self.word()),
                Some(c) => return self.fault(start, format!("unexpected character {c:?}")),
                None => return self.fault(start, "unexpected character"),
            },
        };
        self.at += length;
        Ok(kind)
    }

    fn word(&mut self) -> TokenKind {
        let start = self.at;
        loop {
            match self.byte(0) {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' => self.at += 1,
                0x80.. => match self.char() {
                    Some(c) if c.is_alphanumeric() => self.at += c.len_utf8(),
                    _ => break,
                },
                _ => break,
            }
        }
        Keyword::of(&self.bytes[start..self.at]).map_or(TokenKind::Word, TokenKind::Keyword)
    }

    fn number(&mut self) -> Result<TokenKind, Fault> {
        let start = self.at;
        let mut kind = TokenKind::Integer;
        if self.byte(0) == b'0' && matches!(self.byte(1), b'x' | b'X' | b'o' | b'O') {
            let hex = matches!(self.byte(1), b'x' | b'X');
            self.at += 2;
            let digits = self.at;
            let is_digit =
                |byte: u8| if hex { byte.is_ascii_hexdigit() } else { matches!(byte, b'0'..=b'7') };
            while is_digit(self.byte(0)) || (self.byte(0) == b'_' && is_digit(self.byte(1))) {
                self.at += 1;
            }
            if self.at == digits {
                return self.fault(start, "number without digits");
            }
        } else {
            self.digits();
            if self.byte(0) == b'.' && self.byte(1).is_ascii_digit() {
                kind = TokenKind::Float;
                self.at += 1;
                self.digits();
            }
            let exponent = match (self.byte(0), self.byte(1), self.byte(2)) {
                (b'e' | b'E', b'0'..=b'9', _) => 1,
                (b'e' | b'E', b'+' | b'-', b'0'..=b'9') => 2,
                _ => 0,
            };
            if exponent > 0 {
                kind = TokenKind::Float;
                self.at += exponent;
                self.digits();
            }
        }
        if self.char().is_some_and(|c| c.is_alphanumeric() || c == '_') {
            while let Some(c) = self.char().filter(|c| c.is_alphanumeric() || *c == '_') {
                self.at += c.len_utf8();
            }
            let text = &self.text[start..self.at];
            self.at = start;
            return self.fault(start, format!("invalid number '{}'", crate::literal::excerpt(text)));
        }
        Ok(kind)
    }

    fn digits(&mut self) {
        while self.byte(0).is_ascii_digit() || (self.byte(0) == b'_' && self.byte(1).is_ascii_digit()) {
            self.at += 1;
        }
    }

    fn string(&mut self) -> Result<TokenKind, Fault> {
        let (start, quote) = (self.at, self.byte(0));
        self.at += 1;
        loop {
            match self.bytes.get(self.at) {
                None => {
                    self.at = start;
                    return self.fault(start, "string without end");
                }
                Some(b'\\') => self.at = (self.at + 2).min(self.bytes.len()),
                Some(b) => {
                    self.at += 1;
                    if *b == quote {
                        return Ok(TokenKind::String);
                    }
                }
            }
        }
    }

    fn quoted(&mut self) -> Result<TokenKind, Fault> {
        let start = self.at;
        self.at += 1;
        loop {
            match (self.bytes.get(self.at), self.bytes.get(self.at + 1)) {
                (None, _) => {
                    self.at = start;
                    return self.fault(start, "name in backticks without end");
                }
                (Some(b'`'), Some(b'`')) => self.at += 2,
                (Some(b'`'), _) if self.at == start + 1 => {
                    self.at = start;
                    return self.fault(start, "empty name in backticks");
                }
                (Some(b'`'), _) => {
                    self.at += 1;
                    return Ok(TokenKind::Quoted);
                }
                _ => self.at += 1,
            }
        }
    }
}
