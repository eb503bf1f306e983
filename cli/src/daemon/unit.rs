//! The systemd user unit of the daemon.

use std::env;

use crate::{exit::Exit, failure::Failure, out::Out};

/// The flag that prints the unit, and is not part of it.
const FLAG: &str = "--print-unit";

/// Prints a unit that runs this program with these arguments.
pub(crate) fn print() -> Result<Exit, Failure> {
    let program = env::current_exe().map_err(Failure::setup)?;
    let program = program.to_string_lossy().into_owned();
    let args = env::args().skip(1).filter(|arg| arg != FLAG);
    let command: Vec<String> = std::iter::once(program)
        .chain(args)
        .map(|word| quote(&word))
        .collect();
    let mut out = Out::new();
    out.bytes(unit(&command.join(" ")).as_bytes())?;
    out.flush()?;
    Ok(Exit::Success)
}

fn unit(command: &str) -> String {
    format!(
        "[Unit]
Description=Heeler, a supervisor of background tasks
Documentation=https://heeler.dev

[Service]
ExecStart={command}
Restart=on-failure
# A stop or a restart of the daemon leaves its tasks running.
KillMode=process
# The daemon makes a cgroup for each task.
Delegate=yes

[Install]
WantedBy=default.target
"
    )
}

/// Quotes a word for systemd, which expands % and $.
fn quote(word: &str) -> String {
    let escaped = word.replace('%', "%%").replace('$', "$$");
    let is_plain = |c: char| c.is_alphanumeric() || "%$+,-./:=@_".contains(c);
    match !escaped.is_empty() && escaped.chars().all(is_plain) {
        true => escaped,
        false => format!("\"{}\"", escaped.replace('\\', "\\\\").replace('"', "\\\"")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_for_systemd() {
        assert_eq!(
            quote("--listen=tcp:127.0.0.1:0"),
            "--listen=tcp:127.0.0.1:0"
        );
        assert_eq!(quote("/a b/%h"), "\"/a b/%%h\"");
        assert_eq!(quote("a\"b\\c"), r#""a\"b\\c""#);
        assert_eq!(quote(""), "\"\"");
    }

    #[test]
    fn a_stop_of_the_unit_spares_the_tasks() {
        let unit = unit("/usr/bin/heeler serve");
        assert!(unit.contains("\nExecStart=/usr/bin/heeler serve\n"));
        assert!(unit.contains("\nKillMode=process\n") && unit.contains("\nDelegate=yes\n"));
    }
}
