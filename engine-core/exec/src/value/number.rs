//! Functions over numbers. The caller has handled null.

use super::error::Error;
use tidegraph_plan::Function;
use tidegraph_types::Value;

fn number(name: &'static str, value: &Value) -> Result<f64, Error> {
    value.as_f64().ok_or_else(|| Error::of_type(name, "a number", value))
}

/// Calls a function of one number; `atan2` takes two, and `round` also places and a mode.
pub(crate) fn call(function: Function, name: &'static str, args: &[Value]) -> Result<Value, Error> {
    let value = &args[0];
    let x = number(name, value)?;
    let result = match function {
        Function::Abs => return absolute(value),
        Function::Sign => {
            return Ok(Value::Long(if x > 0.0 {
                1
            } else if x < 0.0 {
                -1
            } else {
                0
            }));
        }
        Function::Round => match args.get(1) {
            Some(digits) => round_to(name, x, digits, args.get(2))?,
            None => round(x),
        },
        Function::Atan2 => x.atan2(number(name, &args[1])?),
        Function::Ceil => x.ceil(),
        Function::Floor => x.floor(),
        Function::Sqrt => x.sqrt(),
        Function::Exp => x.exp(),
        Function::Log => x.ln(),
        Function::Log10 => x.log10(),
        Function::Sin => x.sin(),
        Function::Cos => x.cos(),
        Function::Tan => x.tan(),
        Function::Asin => x.asin(),
        Function::Acos => x.acos(),
        Function::Atan => x.atan(),
        Function::Sinh => x.sinh(),
        Function::Cosh => x.cosh(),
        Function::Tanh => x.tanh(),
        Function::Coth if x == 0.0 => f64::NAN,
        Function::Coth => 1.0 / x.tanh(),
        Function::Cbrt => x.cbrt(),
        Function::Log1p => x.ln_1p(),
        Function::Expm1 => x.exp_m1(),
        Function::Degrees => x.to_degrees(),
        _ => x.to_radians(),
    };
    Ok(Value::Double(result))
}

/// Returns an operand of `math()` as a double; a divisor must not be zero.
pub(crate) fn of_math(function: Function, name: &'static str, value: &Value) -> Result<Value, Error> {
    let x = number(name, value)?;
    if function == Function::MathDivisor && x == 0.0 {
        return Err(Error::DivisionByZero(name.to_owned()));
    }
    Ok(Value::Double(x))
}

fn absolute(value: &Value) -> Result<Value, Error> {
    let overflow = || Error::Overflow(format!("abs({})", super::error::plain(value)));
    Ok(match value {
        Value::Byte(v) => v.checked_abs().map_or(Value::Int(128), Value::Byte),
        Value::Short(v) => v.checked_abs().map_or(Value::Int(32_768), Value::Short),
        Value::Int(v) => v.checked_abs().map_or(Value::Long(2_147_483_648), Value::Int),
        Value::Long(v) => Value::Long(v.checked_abs().ok_or_else(overflow)?),
        Value::Float(v) => Value::Float(v.abs()),
        other => Value::Double(other.as_f64().unwrap_or(f64::NAN).abs()),
    })
}

/// Rounds to the nearest integer; a half towards positive infinity.
fn round(x: f64) -> f64 {
    let floor = x.floor();
    if x - floor >= 0.5 { floor + 1.0 } else { floor }
}

/// Rounds to decimal places, judged by the shortest decimal text of the number. Without a mode, a half is rounded away
/// from zero.
fn round_to(name: &'static str, x: f64, digits: &Value, mode: Option<&Value>) -> Result<f64, Error> {
    let mode = match mode {
        None => "HALF_UP",
        Some(mode) => mode.as_str().ok_or_else(|| Error::of_type(name, "a mode such as 'HALF_UP'", mode))?,
    };
    let Some(places) = digits.as_i64() else {
        return Err(Error::of_type(name, "an integer precision", digits));
    };
    let Ok(places) = u8::try_from(places) else {
        return Err(Error::argument(name, "takes a precision from 0 to 255", digits));
    };
    // A double has at most 17 significant digits; scaling by more would only lose them.
    let scale = 10_f64.powi(i32::from(places));
    let scaled = x * scale;
    if !scaled.is_finite() || scaled.abs() >= 4_503_599_627_370_496.0 {
        return Ok(x);
    }
    // 1.005 * 100 is 100.49999…, but its decimal text says that it is a half.
    let nearest = (scaled * 2.0).round() / 2.0;
    let exact = if (scaled - nearest).abs() < scaled.abs() * f64::EPSILON * 2.0 { nearest } else { scaled };
    let is_half = exact.abs().fract() == 0.5;
    let rounded = match mode.to_ascii_uppercase().as_str() {
        "UP" => exact.abs().ceil().copysign(exact),
        "DOWN" => exact.trunc(),
        "CEILING" => exact.ceil(),
        "FLOOR" => exact.floor(),
        "HALF_UP" => exact.round(),
        "HALF_DOWN" if is_half => exact.trunc(),
        "HALF_DOWN" => exact.round(),
        "HALF_EVEN" => exact.round_ties_even(),
        _ => {
            let problem = "knows the modes UP, DOWN, CEILING, FLOOR, HALF_UP, HALF_DOWN and HALF_EVEN";
            return Err(Error::argument(name, problem, &Value::string(mode)));
        }
    };
    Ok(rounded / scale)
}
