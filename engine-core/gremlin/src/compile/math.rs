//! `math()`: expressions in the language of exp4j, as TinkerPop reads them.
//!
//! ```text
//! sum      = product (("+" | "-") product)*
//! product  = sign (("*" | "/" | "%") sign)*
//! sign     = ("+" | "-") sign | power
//! power    = operand ("^" sign)?
//! operand  = number | variable | "(" sum ")" | function "(" sum ("," sum)* ")" | function sum
//! ```
//!
//! A function without parentheses takes everything up to the end of its group: `sin _ + 1` is `sin(_ + 1)`. Brackets and
//! braces are parentheses too. All numbers are doubles.

use super::{Compiler, Cursor, Flow, ObjectKind, Result, call, is_null, not, wrong_arguments};
use crate::ast::{Arg, ArgKind, Step, StepName};
use crate::compile::by::By;
use crate::compile::filter::Subject;
use crate::fault::Fault;
use crate::lexer::shorten;
use std::f64::consts;
use tidegraph_plan::{Arithmetic, Expr, Function, Slot};
use tidegraph_types::Str;

/// Largest depth to which groups, functions, signs and powers nest.
const MAX_DEPTH: usize = 64;
/// Largest number of operators, functions and operands of an expression. Plans are walked by recursion, and a sum of many
/// parts is as deep as it has parts.
const MAX_PARTS: usize = 128;

impl Compiler {
    /// `math(expression)`: a traverser for which one of the variables has no value is dropped.
    pub(super) fn math(
        &mut self,
        flow: &mut Flow,
        cursor: &mut Cursor<'_, '_>,
        step: &Step<'_>,
        dest: Option<Slot>,
    ) -> Result<()> {
        let [Arg { kind: ArgKind::Text(text), at }] = step.args.as_slice() else {
            return Err(wrong_arguments(step));
        };
        let Subject { expr: object, kind, .. } = Subject::current(flow, step)?;
        let bys = self.bys(cursor.take_all(StepName::By))?;
        let mut formula =
            Formula { text, at: 0, place: *at, depth: 0, parts: 0, variables: vec![], compiler: self };
        let result = formula.whole()?;
        let variables = formula.variables;
        for (index, (name, slot)) in variables.into_iter().enumerate() {
            let by = bys.get(index % bys.len().max(1)).unwrap_or(&By::Identity);
            let (value, kind) = if name == "_" {
                (object.clone(), kind)
            } else {
                let (value, _, kind) = self.labelled(flow, &Str::from(name), *at)?;
                match constant(name) {
                    Some(constant) => {
                        (call(Function::Coalesce, vec![value, Expr::literal(constant)]), ObjectKind::Unknown)
                    }
                    None => (value, kind),
                }
            };
            let value = if matches!(by, By::Identity) {
                value
            } else {
                let object = self.slot_of(flow, value);
                flow.filter(not(is_null(Expr::Slot(object))));
                self.by_value(flow, by, Expr::Slot(object), kind)?.expr
            };
            flow.bind(slot, call(Function::MathOperand, vec![value]));
            flow.filter(not(is_null(Expr::Slot(slot))));
        }
        let out = self.or_fresh(dest);
        flow.bind(out, result);
        flow.set_current(out, ObjectKind::Scalar);
        Ok(())
    }
}

/// A function of `math()`, from its operands.
type Make = fn(Vec<Expr>) -> Expr;

/// Returns the number of operands of a function, and the function.
fn function(name: &str) -> Option<(usize, Make)> {
    macro_rules! unary {
        ($function:ident) => {
            (1, |operands| call(Function::$function, operands))
        };
    }
    Some(match name {
        "abs" => unary!(Abs),
        "acos" => unary!(Acos),
        "asin" => unary!(Asin),
        "atan" => unary!(Atan),
        "cbrt" => unary!(Cbrt),
        "ceil" => unary!(Ceil),
        "cos" => unary!(Cos),
        "cosh" => unary!(Cosh),
        "cot" => (1, |operands| quotient(Expr::literal(1.0), call(Function::Tan, operands))),
        "exp" => unary!(Exp),
        "expm1" => unary!(Expm1),
        "floor" => unary!(Floor),
        "log" => unary!(Log),
        "log10" => unary!(Log10),
        "log1p" => unary!(Log1p),
        "log2" => (1, |operands| quotient(call(Function::Log, operands), Expr::literal(consts::LN_2))),
        "pow" => (2, |mut operands| {
            let exponent = operands.pop().unwrap_or(Expr::literal(1.0));
            let base = operands.pop().unwrap_or(Expr::literal(1.0));
            binary(Arithmetic::Power, base, exponent)
        }),
        "signum" => (1, |operands| call(Function::MathOperand, vec![call(Function::Sign, operands)])),
        "sin" => unary!(Sin),
        "sinh" => unary!(Sinh),
        "sqrt" => unary!(Sqrt),
        "tan" => unary!(Tan),
        "tanh" => unary!(Tanh),
        _ => return None,
    })
}

/// Returns the value of a name where it is not a label, a side effect or a key.
fn constant(name: &str) -> Option<f64> {
    match name {
        "pi" | "π" => Some(consts::PI),
        "e" => Some(consts::E),
        "φ" => Some(1.618_033_988_74),
        _ => None,
    }
}

fn binary(operator: Arithmetic, a: Expr, b: Expr) -> Expr {
    Expr::Arithmetic(operator, Box::new(a), Box::new(b))
}

/// Division; by zero it is an error.
fn quotient(a: Expr, b: Expr) -> Expr {
    binary(Arithmetic::Divide, a, call(Function::MathDivisor, vec![b]))
}

/// An expression that is being parsed.
struct Formula<'f, 'c> {
    text: &'f str,
    /// Byte offset of the next character.
    at: usize,
    /// Byte offset of the string in the request.
    place: usize,
    depth: usize,
    parts: usize,
    /// The variables in the order of their first occurrence, with the slots of their values.
    variables: Vec<(&'f str, Slot)>,
    compiler: &'c mut Compiler,
}

impl<'f> Formula<'f, '_> {
    fn error(&self, at: usize, problem: &str) -> Fault {
        let position = self.text[..self.text.floor_char_boundary(at)].chars().count() + 1;
        let text = shorten(self.text);
        Fault::syntax(self.place, format!("math(): {problem} at position {position} of '{text}'"))
    }

    /// Returns the next character that is not white space.
    fn next(&mut self) -> Option<char> {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
        self.text[self.at..].chars().next()
    }

    fn accept(&mut self, signs: &[char]) -> Option<char> {
        let found = self.next().filter(|c| signs.contains(c))?;
        self.at += found.len_utf8();
        Some(found)
    }

    fn unexpected(&mut self, wanted: &str) -> Fault {
        let found = match self.next() {
            Some(c) => format!("{c:?}"),
            None => "the end".to_owned(),
        };
        self.error(self.at, &format!("expected {wanted}, found {found}"))
    }

    /// Counts a part of the expression.
    fn part(&mut self) -> Result<()> {
        self.parts += 1;
        if self.parts > MAX_PARTS {
            let problem = format!("more than {MAX_PARTS} operators and operands");
            return Err(self.error(self.at, &problem));
        }
        Ok(())
    }

    fn nested(&mut self, parse: impl FnOnce(&mut Self) -> Result<Expr>) -> Result<Expr> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            let problem = format!("nested deeper than {MAX_DEPTH} levels");
            return Err(self.error(self.at, &problem));
        }
        let parsed = parse(self)?;
        self.depth -= 1;
        Ok(parsed)
    }

    fn whole(&mut self) -> Result<Expr> {
        let parsed = self.sum()?;
        match self.next() {
            None => Ok(parsed),
            Some(_) => Err(self.unexpected("an operator")),
        }
    }

    fn sum(&mut self) -> Result<Expr> {
        let mut left = self.product()?;
        while let Some(sign) = self.accept(&['+', '-']) {
            self.part()?;
            let operator = if sign == '+' { Arithmetic::Add } else { Arithmetic::Subtract };
            left = binary(operator, left, self.product()?);
        }
        Ok(left)
    }

    fn product(&mut self) -> Result<Expr> {
        let mut left = self.sign()?;
        while let Some(sign) = self.accept(&['*', '/', '%']) {
            self.part()?;
            let right = self.sign()?;
            left = match sign {
                '*' => binary(Arithmetic::Multiply, left, right),
                '/' => quotient(left, right),
                _ => binary(Arithmetic::Modulo, left, call(Function::MathDivisor, vec![right])),
            };
        }
        Ok(left)
    }

    fn sign(&mut self) -> Result<Expr> {
        match self.accept(&['+', '-']) {
            None => self.power(),
            Some(sign) => {
                self.part()?;
                let operand = self.nested(Self::sign)?;
                Ok(if sign == '-' { Expr::Negate(Box::new(operand)) } else { operand })
            }
        }
    }

    fn power(&mut self) -> Result<Expr> {
        let base = self.operand()?;
        if self.accept(&['^']).is_none() {
            return Ok(base);
        }
        self.part()?;
        let exponent = self.nested(Self::sign)?;
        Ok(binary(Arithmetic::Power, base, exponent))
    }

    fn operand(&mut self) -> Result<Expr> {
        self.part()?;
        if let Some(open) = self.accept(&['(', '[', '{']) {
            let inner = self.nested(Self::sum)?;
            self.close(open)?;
            return Ok(inner);
        }
        match self.next() {
            Some(c) if c.is_ascii_digit() || c == '.' => self.number(),
            Some(c) if is_name(c) => self.named(),
            _ => Err(self.unexpected("a number, a variable or a function")),
        }
    }

    fn close(&mut self, open: char) -> Result<()> {
        let close = match open {
            '(' => ')',
            '[' => ']',
            _ => '}',
        };
        match self.accept(&[close]) {
            Some(_) => Ok(()),
            None => Err(self.unexpected(&format!("{close:?}"))),
        }
    }

    fn number(&mut self) -> Result<Expr> {
        let rest = &self.text[self.at..];
        let mut end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        if rest[end..].starts_with(['e', 'E']) {
            let sign = usize::from(rest[end + 1..].starts_with(['+', '-']));
            let digits = &rest[end + 1 + sign..];
            let len = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
            if len > 0 {
                end += 1 + sign + len;
            }
        }
        let number = rest[..end].parse::<f64>();
        let number =
            number.map_err(|_| self.error(self.at, &format!("{} is not a number", shorten(&rest[..end]))))?;
        self.at += end;
        Ok(Expr::literal(number))
    }

    /// A variable, or a function with its operands.
    fn named(&mut self) -> Result<Expr> {
        let rest: &'f str = &self.text[self.at..];
        let start = self.at;
        let end = rest.find(|c: char| !is_name(c) && !c.is_ascii_digit()).unwrap_or(rest.len());
        let name = &rest[..end];
        self.at += end;
        let Some((count, make)) = function(name) else {
            if let Some((_, slot)) = self.variables.iter().find(|(known, _)| *known == name) {
                return Ok(Expr::Slot(*slot));
            }
            let slot = self.compiler.fresh();
            self.variables.push((name, slot));
            return Ok(Expr::Slot(slot));
        };
        let mut operands = vec![];
        if let Some(open) = self.accept(&['(', '[', '{']) {
            operands.push(self.nested(Self::sum)?);
            while self.accept(&[',']).is_some() {
                operands.push(self.nested(Self::sum)?);
            }
            self.close(open)?;
        } else {
            operands.push(self.nested(Self::sum)?);
        }
        if operands.len() != count {
            let given = operands.len();
            return Err(self.error(start, &format!("{name}() takes {count} operand(s), not {given},")));
        }
        Ok(make(operands))
    }
}

fn is_name(c: char) -> bool {
    c == '_' || c.is_ascii_alphabetic() || matches!(c, 'π' | 'φ')
}
