//! Generated scripts, compared with bash.

use std::process::{Command, Output};

use proptest::{prelude::*, sample::select};

use super::trailing;

fn bash(options: &[&str], script: &str) -> Output {
    let mut bash = Command::new("bash");
    bash.args(options).arg(script);
    bash.output().expect("bash is there")
}

/// The result of bash parsing a script without running it.
#[derive(Debug, PartialEq)]
enum Reading {
    /// The script as bash prints it when it is the body of a function.
    Understood(String),
    /// Accepted although the end of a here-document is missing.
    Doubted,
    /// A syntax error.
    Refused,
}

fn reading(script: &str) -> Reading {
    let checked = bash(&["-n", "-c", "--"], script);
    if !checked.status.success() {
        return Reading::Refused;
    }
    // Nothing could be found to run, if it came to that.
    let define = "PATH=; eval \"f() {\n$1\n}\" && declare -f f";
    let printed = bash(&["-c", define, "bash"], script);
    let text = String::from_utf8(printed.stdout).expect("what went in was UTF-8");
    match text.strip_suffix("\n}\n") {
        Some(body) if checked.stderr.is_empty() => Reading::Understood(body.to_owned()),
        Some(_) | None => Reading::Doubted,
    }
}

fn fragments(pieces: &'static [&'static str]) -> impl Strategy<Value = String> {
    prop::collection::vec(select(pieces), 1..8).prop_map(|all| all.concat())
}

/// Words, operators, and parts of them.
#[rustfmt::skip]
const PIECES: &[&str] = &[
    "a", "b ", "a", "b ", " c", " ", "\t", "\n", ";", " & ", "&", " && ", " || ", " | ", " |& ",
    "\\", "\\\n", "'", "\"", "`", "'x &'", "\"y & $z\"", "$'q'", "$(a &)", "$(", "(", ")", "(a &)",
    "{ a & }", "{ ", "; }", "}", "$((1 & 2))", "((", "))", "${x:-", "${x# &}", " 2>&1", " &>f",
    ">&", " <", "<<<x", " # c &\n", "#", "cat <<E\n", "cat <<-'E'\n", "E\n", "E", "\tE\n", "x &\n",
    "if a; then ", "; fi", "while ", "; do ", "; done", "case x in x) ", ";; esac", "[[ ", " ]]",
    "f() ", "x=", "x=(", "é", "! ",
];

/// Complete commands.
#[rustfmt::skip]
const COMMANDS: &[&str] = &[
    "a", "a -b 'c &'", "x=1 a \"$b &\"", "a | b", "a && b || c", "a >f 2>&1", "a &>f", "(a & b)",
    "{ a; b & }", "if a; then b & fi", "for i in 1 2; do a & done", "while a; do b; done <f",
    "case x in x) a & ;; esac", "a $(b & c) `d`", "a $((1 & 2))", "! a", "a \\& \\\n b",
    "é ${x:-y}", "[[ a && b ]]", "f() { a & }", "cat <<E\nx &\n$y\nE\nb",
    "cat <<-'E' >f\n\tx &\n\tE\nb", "a <<<b",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, failure_persistence: None, ..Default::default() })]

    /// A2, A3, A4: for bash, a rewritten script had its last command in the background and is otherwise
    /// unchanged; or it was an error and still is.
    #[test]
    fn a_rewritten_script_means_the_same_to_bash(
        soup in fragments(PIECES),
        end in select(&["", "&", " &", " &\n", " & # n", "&# n &"][..]),
    ) {
        let script = soup + end;
        if let Some(rewritten) = trailing(&script, None) {
            let expected = match reading(&script) {
                Reading::Understood(body) => body.strip_suffix(" &").map(|body| Reading::Understood(body.to_owned())),
                Reading::Doubted => None,
                Reading::Refused => Some(Reading::Refused),
            };
            prop_assert_eq!(expected, Some(reading(&rewritten)), "{:?} became {:?}", script, rewritten);
            prop_assert_eq!(trailing(&rewritten, None), None);
        }
    }

    /// A1: the operator after the last command is found, and no other.
    #[test]
    fn the_trailing_operator_of_any_list_is_found(
        commands in prop::collection::vec((select(COMMANDS), select(&["\n", ";", " &", " &\n"][..])), 0..4),
        last in select(COMMANDS),
        end in select(&["", "\n", " # n &", "\n# n\n"][..]),
    ) {
        let mut list: String = commands.iter().flat_map(|(command, end)| [*command, *end]).collect();
        list.push_str(last);
        prop_assert_eq!(trailing(&format!("{list}{end}"), None), None);
        prop_assert_eq!(trailing(&format!("{list} &{end}"), None), Some(format!("{list}{end}")));
    }
}
