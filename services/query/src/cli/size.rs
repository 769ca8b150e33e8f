//! Amounts of memory as users write them.

use std::str::FromStr;

/// An amount of memory.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum MemorySize {
    /// A number of bytes.
    Bytes(u64),
    /// A percentage of the memory of the machine, or of the control group that the process runs in.
    Percent(f64),
}

/// Units and their bytes.
const UNITS: [(&str, u64); 7] = [
    ("B", 1),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
];

impl MemorySize {
    /// Returns the amount in bytes.
    ///
    /// # Errors
    ///
    /// If this is a percentage and the system does not report the memory of the machine.
    pub fn bytes(self) -> anyhow::Result<u64> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            Self::Percent(percent) => {
                let all = tidegraph_platform::memory::machine_bytes();
                let all = all.ok_or_else(|| {
                    anyhow::anyhow!(
                        "the system does not report the memory of the machine: give an amount in bytes"
                    )
                })?;
                Ok((all as f64 * percent / 100.0) as u64)
            }
        }
    }
}

impl FromStr for MemorySize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("`{text}` is not an amount of memory: write it like 12GiB, 500MB, 1000000 or 75%");
        let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        let number: f64 = number.parse().map_err(|_| wrong())?;
        let unit = unit.trim();
        if unit == "%" {
            let some = number > 0.0 && number <= 100.0;
            return if some { Ok(Self::Percent(number)) } else { Err(wrong()) };
        }
        let named = |(name, _): &&(&str, u64)| name.eq_ignore_ascii_case(unit);
        let one = if unit.is_empty() { 1 } else { UNITS.iter().find(named).ok_or_else(wrong)?.1 };
        let bytes = number * one as f64;
        if bytes >= 1.0 && bytes < u64::MAX as f64 { Ok(Self::Bytes(bytes as u64)) } else { Err(wrong()) }
    }
}

/// A number of bytes, which may be 0.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ByteSize(pub u64);

impl FromStr for ByteSize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.parse()) {
            ("0", _) => Ok(Self(0)),
            (_, Ok(MemorySize::Bytes(bytes))) => Ok(Self(bytes)),
            _ => Err(format!("`{text}` is not a number of bytes: write it like 20GiB, 500MB, 1000000 or 0")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_they_are_written() {
        for (text, bytes) in
            [("1", 1), ("2kb", 2_000), ("1.5 GiB", 3 << 29), ("12GIB", 12 << 30), ("500MB", 500_000_000)]
        {
            assert_eq!(text.parse(), Ok(MemorySize::Bytes(bytes)), "{text}");
        }
        assert_eq!("75%".parse(), Ok(MemorySize::Percent(75.0)));
        for wrong in ["", "GiB", "-1", "0", "0%", "101%", "1 TiBB", "1.2.3", "9e9"] {
            let error = wrong.parse::<MemorySize>().unwrap_err();
            assert!(error.contains(&format!("`{wrong}`")), "{error}");
        }
    }

    #[test]
    fn numbers_of_bytes_may_be_zero() {
        for (text, bytes) in [("0", 0), ("1", 1), ("20GiB", 20 << 30)] {
            assert_eq!(text.parse(), Ok(ByteSize(bytes)), "{text}");
        }
        for wrong in ["", "50%", "00GiB", "-1"] {
            assert!(wrong.parse::<ByteSize>().is_err(), "{wrong}");
        }
    }
}
