//! Examples of scripts that change and scripts that do not.

mod generated;

use std::{
    path::Path,
    thread,
    time::{Duration, Instant},
};

use super::{LONGEST, may_end_in_operator, trailing};

fn assert_becomes(script: &str, expected: &str) {
    assert_eq!(
        trailing(script, None).as_deref(),
        Some(expected),
        "{script:?}"
    );
}

fn assert_left_alone(scripts: &[&str]) {
    for script in scripts {
        assert_eq!(trailing(script, None), None, "{script:?}");
    }
}

/// A1
#[test]
fn a_trailing_ampersand_is_removed_with_the_blanks_before_it() {
    assert_becomes("cmd &", "cmd");
    assert_becomes("cmd&", "cmd");
    assert_becomes("cmd\t  &", "cmd");
    assert_becomes("  cmd é &  ", "  cmd é  ");
    assert_becomes("a && b &", "a && b");
    assert_becomes("a || b | c &", "a || b | c");
    assert_becomes("cmd >f 2>&1 &", "cmd >f 2>&1");
    assert_becomes("cmd &>f &", "cmd &>f");
    assert_becomes("A=1 cmd \"x &\" 'y &' \\& &", "A=1 cmd \"x &\" 'y &' \\&");
    assert_becomes("nohup cmd </dev/null &", "nohup cmd </dev/null");
    assert_becomes("time cmd &", "time cmd");
    assert_becomes("! cmd &", "! cmd");
    assert_becomes("cmd $(a & b) $((1 & 2)) &", "cmd $(a & b) $((1 & 2))");
}

/// A1
#[test]
fn comments_after_the_ampersand_stay() {
    assert_becomes("cmd & # note", "cmd # note");
    assert_becomes("cmd & # note & more", "cmd # note & more");
    assert_becomes("cmd &\n", "cmd\n");
    assert_becomes("cmd & \n\n  # note\n\n", "cmd \n\n  # note\n\n");
}

/// A1: text next to the operator must not become part of the last word, or the other way round.
#[test]
fn the_last_word_does_not_change() {
    assert_becomes("cmd&# note", "cmd # note");
    assert_becomes("cmd &#note", "cmd #note");
    assert_becomes("cmd \\\n&", "cmd \\\n");
    // The grammar takes the end of the line before it for a part of the operator.
    assert_left_alone(&["cmd *$$$\\\n&"]);
    assert_becomes("cmd \\\n & # note", "cmd \\\n # note");
    assert_becomes("cmd a\\ b &", "cmd a\\ b");
    assert_becomes("cmd a\\\\ &", "cmd a\\\\ ");
}

/// A1
#[test]
fn the_ampersand_after_a_compound_command_is_removed() {
    assert_becomes("(cd x && cmd) &", "(cd x && cmd)");
    assert_becomes("{ a; b & } &", "{ a; b & }");
    assert_becomes(
        "for i in 1 2; do cmd $i & done &",
        "for i in 1 2; do cmd $i & done",
    );
    assert_becomes(
        "while true; do a\nsleep 1; done >f &",
        "while true; do a\nsleep 1; done >f",
    );
    assert_becomes("if a; then b & fi &", "if a; then b & fi");
    assert_becomes("case x in x) a & ;; esac &", "case x in x) a & ;; esac");
    assert_becomes("[[ a && b ]] &", "[[ a && b ]]");
}

/// A1: only the last command would run in the background. As a task, the script runs until it ends.
#[test]
fn a_script_of_several_commands_waits_for_its_last_one() {
    assert_becomes("cd x; cmd &", "cd x; cmd");
    assert_becomes("cd x\n\n# go\ncmd &\n", "cd x\n\n# go\ncmd\n");
    assert_becomes("a & b &", "a & b");
    assert_becomes("a &\nb &\n", "a &\nb\n");
    assert_becomes(
        "cat >f <<'EOF'\nx &\nEOF\ncmd f &",
        "cat >f <<'EOF'\nx &\nEOF\ncmd f",
    );
    assert_becomes(
        "x=$(cat <<-EOF\n\t$y\n\tEOF\n)\ncmd &",
        "x=$(cat <<-EOF\n\t$y\n\tEOF\n)\ncmd",
    );
}

/// A2
#[test]
fn an_ampersand_that_is_part_of_something_else_is_left_alone() {
    assert_left_alone(&[
        "cmd &&",
        "cmd |& tee x",
        "cmd |&",
        "cmd 2>&1",
        "cmd &> f",
        "cmd &>",
        "cmd >&",
        "cmd <&",
        "echo \"a &\"",
        "echo 'a &'",
        "echo 'a\nb &\n'",
        "echo \"a\n# b\nc &\n# d\"",
        "cmd \\&",
        "cmd \\\\\\&",
        "cmd a&b",
        "cmd # a &",
        "# cmd &",
        "echo $((a & b))",
        "echo $((a &\nb))",
        "((a & b))",
        "echo $(cmd &)",
        "echo `cmd &`",
        "x=(a\n&\n)",
        "echo ${x:-a &}",
        "echo $'it\\'s &'",
    ]);
}

/// A2
#[test]
fn an_ampersand_in_a_here_document_is_left_alone() {
    assert_left_alone(&[
        "cat <<EOF\ncmd &\nEOF",
        "cat <<EOF\ncmd &\nEOF\n",
        "cat <<'EOF'\ncmd &\nEOF\n# note\n",
        // It lacks its end: a shell warns, and goes on with what is there.
        "cat <<EOF\ncmd &",
        "cat <<EOF\n$x\n&",
        "cat <<EOF\n EOF\ncmd &",
        "cat <<EOF\nEOF&\n",
        "cat <<EOF\nEOF \ncmd &",
        "cat <<EOF\nx\\\nEOF\ncmd &",
        "cat <<-EOF\n  EOF\ncmd &",
        // The command does end in the operator; the script does not.
        "cat <<EOF &\ncmd\nEOF",
    ]);
}

/// A3
#[test]
fn background_commands_elsewhere_are_left_alone() {
    assert_left_alone(&[
        "(cmd &)",
        "{ cmd & }",
        "nohup cmd & disown",
        "nohup cmd & disown $!",
        "a & b",
        "a &\nb",
        "a & wait",
        "f() { cmd & }",
        "for i in 1 2; do cmd & done",
        "if a; then b & fi",
        "case x in x) cmd & esac",
    ]);
}

/// A4
#[test]
fn scripts_that_do_not_parse_are_left_alone() {
    assert_left_alone(&[
        "",
        "&",
        "&\n",
        "# &",
        "a & &",
        "a ; &",
        "a\n&",
        "a\n\\\n&",
        "a # note\n&",
        "a &\\\n&",
        "a &;",
        "a ;& ",
        "a ;; &",
        "( a &",
        "a ) &",
        "{ a; &",
        "a; } &",
        "if a; then b &",
        "b; fi &",
        "done &",
        "a; then &",
        "! ! &",
        "time &",
        "b && time &",
        "echo 'a &",
        "echo \"a &",
        "echo $(a &",
        "echo ${a &",
        "echo `a &",
        "a | &",
        "a && &",
        "a > &",
        "a <<EOF &",
    ]);
}

/// A4: characters that only some programs treat as blanks, and quotes on which shells differ.
#[test]
fn scripts_that_shells_read_differently_are_left_alone() {
    assert_left_alone(&[
        "cmd &\r\n",
        "cmd & \u{a0}# note",
        "x \u{a0}# '\ny & # '",
        "cmd \u{b}&",
        "echo $'\\'' & # '",
    ]);
}

/// A4
#[test]
fn scripts_for_other_shells_are_left_alone() {
    for shell in ["/bin/sh", "/usr/bin/bash", "/opt/dash", "/x/ksh", "/x/zsh"] {
        let found = trailing("cmd &", Some(Path::new(shell)));
        assert_eq!(found.as_deref(), Some("cmd"), "{shell}");
    }
    for other in ["/usr/bin/fish", "/usr/bin/python3", "/x/bash/..", "/"] {
        assert_eq!(trailing("cmd &", Some(Path::new(other))), None, "{other}");
    }
}

#[test]
fn scripts_without_a_trailing_ampersand_are_not_parsed() {
    for script in ["cmd", "a & b", "a &&\nb", "cmd 2>&1", "cmd &>f", "(cmd &)"] {
        assert!(!may_end_in_operator(script), "{script:?}");
    }
}

#[test]
fn a_script_that_is_too_long_is_left_alone() {
    let padded = |length: usize| format!("{} &", "x".repeat(length - 2));
    assert!(trailing(&padded(LONGEST), None).is_some());
    assert!(trailing(&padded(LONGEST + 1), None).is_none());
}

/// Scripts that make parsers recurse or backtrack.
#[rustfmt::skip]
const HOSTILE: &[&str] = &[
    "(", "((", "$(", "$((", "`", "\"`", "{ ", "{", "if ", "case x in (x) ", "${", "${x:-",
    "\"${x:-", "$[", "[[ ( ", "((1?", "x=(", "a[", "<(", "<>", ">", "! ", "time ", "f() ", "a | ",
    "a && ", "a & ", "& # ", "<<E ", "<<E\n", "$(<<E\n", "\"", "'", "\\", "\\\n", "# &\n", "&",
    " ", "\n", "é",
];

/// The thread's stack is an eighth of that of the server's threads.
#[test]
fn hostile_scripts_are_parsed_in_bounded_time_and_stack() {
    for (unit, length) in HOSTILE.iter().flat_map(|u| [(u, LONGEST), (u, 128 << 10)]) {
        let script = unit.repeat((length - 2) / unit.len()) + " &";
        let began = Instant::now();
        let look = move || trailing(&script, None);
        let small = thread::Builder::new().stack_size(256 << 10);
        let looked = small.spawn(look).expect("start a thread").join();
        assert!(looked.is_ok(), "{unit:?} x {length}");
        let took = began.elapsed();
        assert!(took < Duration::from_secs(5), "{unit:?}: {took:?}");
    }
}
