//! Whether the clock of the machine is synchronised, by what chrony says of it, or systemd where there is no chrony.

use super::finding::{Finding, Status};
use std::io;
use std::process::Command;

const ID: &str = "machine.clock";
const REMEDY: &str = "systemctl restart chronyd; chronyc sources shows whom it asks (169.254.169.123 on AWS)";
const WANTED: &str = "synchronised, within a second: AWS refuses requests that are 5 minutes off, and restores to a time need it";
/// Seconds of difference.
const NOTICED: f64 = 1.0;
const BAD: f64 = 60.0;

/// Asks chrony, or systemd.
pub fn look() -> Finding {
    match output("chronyc", &["-c", "-n", "tracking"]) {
        Ok(Ok(tracking)) => judge(&tracking),
        Ok(Err(said)) => Finding::wrong(Status::Failed, ID, format!("chronyc says: {said}"), WANTED, REMEDY),
        Err(error) if error.kind() == io::ErrorKind::NotFound => ask_systemd(),
        Err(error) => Finding::unknown(ID, format!("cannot run chronyc: {error}"), REMEDY),
    }
}

fn ask_systemd() -> Finding {
    let remedy = "install chrony, or look at the clock in another way";
    match output("timedatectl", &["show", "--property=NTPSynchronized", "--value"]) {
        Ok(Ok(said)) => judge_systemd(said.trim()),
        Ok(Err(said)) => Finding::unknown(ID, format!("no chronyc, and timedatectl says: {said}"), remedy),
        Err(_) => Finding::unknown(ID, "there is neither chronyc nor timedatectl", remedy),
    }
}

fn judge_systemd(said: &str) -> Finding {
    match said {
        "yes" => Finding::ok(ID, "synchronised, says systemd"),
        "no" => Finding::wrong(
            Status::Failed,
            ID,
            "not synchronised, says systemd",
            WANTED,
            "timedatectl set-ntp true",
        ),
        other => Finding::unknown(ID, format!("timedatectl says {other:?}"), ""),
    }
}

/// Runs a program, and returns what it printed, or what it said when it failed.
fn output(program: &str, arguments: &[&str]) -> io::Result<Result<String, String>> {
    let ended = Command::new(program).args(arguments).output()?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if ended.status.success() {
        return Ok(Ok(text(&ended.stdout)));
    }
    let said = format!("{} {}", text(&ended.stderr), text(&ended.stdout));
    // One line, however many the program wrote.
    Ok(Err(said.split_whitespace().collect::<Vec<_>>().join(" ")))
}

/// Judges the line of `chronyc -c tracking`: the source is its second field, the difference of the clock its fifth, and
/// the state its last.
fn judge(tracking: &str) -> Finding {
    let fields: Vec<&str> = tracking.trim().split(',').collect();
    let (Some(source), Some(stratum), Some(difference), Some(&state)) =
        (fields.get(1), fields.get(2), fields.get(4), fields.last())
    else {
        return Finding::unknown(ID, format!("chronyc says {tracking:?}"), REMEDY);
    };
    let Ok(seconds) = difference.parse::<f64>() else {
        return Finding::unknown(ID, format!("chronyc tells no difference: {tracking:?}"), REMEDY);
    };
    let by = if source.is_empty() { "nobody" } else { source };
    let seen = format!("{state}, {:.6} s from {by}, stratum {stratum}", seconds.abs());
    if state == "Not synchronised" || seconds.abs() >= BAD {
        return Finding::wrong(Status::Failed, ID, seen, WANTED, REMEDY);
    }
    if seconds.abs() >= NOTICED {
        return Finding::wrong(Status::Warning, ID, seen, WANTED, REMEDY);
    }
    Finding::ok(ID, seen)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tracking(difference: &str, state: &str) -> Finding {
        judge(&format!(
            "A9FEA97B,169.254.169.123,4,1764144000.123456789,{difference},-0.000000567,0.000012345,-12.345,0.001,0.010,0.000345678,0.000123456,16.2,{state}\n"
        ))
    }

    #[test]
    fn chronys_line_is_judged() {
        let good = tracking("-0.000001234", "Normal");
        assert_eq!(good.status, Status::Ok);
        assert_eq!(good.seen, "Normal, 0.000001 s from 169.254.169.123, stratum 4");
        assert_eq!(tracking("2.5", "Normal").status, Status::Warning);
        assert_eq!(tracking("-75.0", "Normal").status, Status::Failed);
        assert_eq!(tracking("0.0", "Not synchronised").status, Status::Failed);
        for other in ["", "one,two", "a,b,c,d,not a number,Normal"] {
            assert_eq!(judge(other).status, Status::Unknown, "{other}");
        }
    }

    #[test]
    fn systemds_word_is_judged() {
        assert_eq!(judge_systemd("yes").status, Status::Ok);
        assert_eq!(judge_systemd("no").status, Status::Failed);
        assert_eq!(judge_systemd("").status, Status::Unknown);
    }
}
