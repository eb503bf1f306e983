//! Completion by the shells themselves.

use heeler_tests::{Daemon, cli::CommandResult, not_installed};

/// U4
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn every_shell_has_a_completion_script() {
    let daemon = Daemon::start().await;
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let result = daemon.heeler(["completions", shell]).await.ok();
        assert!(
            result.stdout.contains("HEELER_COMPLETE"),
            "{shell}: {result:?}"
        );
    }
}

/// A shell, and a script that presses tab in it after `heeler WORDS…` and prints the candidates.
struct Shell {
    program: &'static str,
    script: &'static str,
}

const BASH: Shell = Shell {
    program: "bash",
    script: r#"
        eval "$(heeler completions bash)"
        COMP_WORDS=(heeler "$@"); COMP_CWORD=$#; COMP_TYPE=9
        _clap_complete_heeler heeler "${!#}" ""
        printf '%s\n' "${COMPREPLY[@]}"
    "#,
};

const FISH: Shell = Shell {
    program: "fish",
    script: r#"
        heeler completions fish | source
        complete --do-complete "heeler $argv[2..]"
    "#,
};

/// Completion is a part of its line editor, which needs a terminal. The candidate is the last word of the
/// line that the tab key has completed: the line is put between brackets and printed.
const ZSH: Shell = Shell {
    program: "zsh",
    script: r#"
        zmodload zsh/zpty
        zpty shell "TERM=dumb zsh -f -i"
        zpty -w shell 'PS1="> "; autoload -Uz compinit; compinit -u -D'
        zpty -w shell 'source <(heeler completions zsh); echo load"ed"'
        zpty -r shell ignored "*loaded*> "
        zpty -w -n shell "heeler $*"$'\t'
        zpty -w -n shell $'\C-aprint -r -- "<\C-e>" end"ed"\n'
        zpty -r shell typed "*> ended*"
        line=${typed##*<}; line=${line%%>*}
        print -r -- "${line##* }"
    "#,
};

impl Shell {
    /// The shell, unless the machine has none.
    fn if_installed(self) -> Option<Self> {
        let mut asked = std::process::Command::new(self.program);
        match asked.args(["-c", "true"]).status() {
            Ok(_) => Some(self),
            Err(_) => {
                not_installed(self.program);
                None
            }
        }
    }

    /// The candidates for the last of these words.
    async fn complete(&self, daemon: &Daemon, words: &[&str]) -> Vec<String> {
        let mut shell = daemon.wrapper(self.program);
        let programs = daemon.program();
        let programs = programs.parent().unwrap().to_owned();
        let path = format!("{}:/usr/bin:/bin", programs.display());
        shell.env("PATH", path).arg("-c").arg(self.script);
        // The first one is the name of the script; for fish it is an argument.
        shell.arg("heeler").args(words);
        let result = CommandResult::of(shell).await.ok();
        // fish prints a description after a tab.
        let candidates = result
            .stdout
            .lines()
            .filter_map(|line| line.split('\t').next());
        candidates.map(|one| one.trim_end().to_owned()).collect()
    }

    /// Completes commands, flags and the names that a running daemon knows.
    async fn completes_everything(&self) {
        let daemon = Daemon::start().await;
        let flags = [
            "--name",
            "devserver",
            "--session",
            "s-one",
            "--queue",
            "builds",
        ];
        let id = daemon
            .spawned(&[&flags[..], &["sleep", "60"]].concat())
            .await;
        let completes = async |words: &[&str], expected: &str| {
            let found = self.complete(&daemon, words).await;
            let has = found.iter().any(|one| one == expected);
            assert!(has, "{} {words:?}: {found:?}", self.program);
        };
        completes(&["insp"], "inspect").await;
        completes(&["ps", "--sess"], "--session").await;
        for command in [
            "inspect", "cancel", "logs", "wait", "rm", "restart", "attach", "detach",
        ] {
            completes(&[command, "shell-"], &id).await;
            completes(&[command, "dev"], "devserver").await;
        }
        for command in ["ps", "cancel", "wait", "events", "spawn"] {
            completes(&[command, "--session", "s-"], "s-one").await;
        }
        completes(&["queue", "b"], "builds").await;
        completes(&["run", "--queue", "b"], "builds").await;
    }
}

/// U4
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn bash_completes_commands_ids_names_sessions_and_queues() {
    BASH.completes_everything().await;
}

/// U4
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn zsh_completes_commands_ids_names_sessions_and_queues() {
    if let Some(zsh) = ZSH.if_installed() {
        zsh.completes_everything().await;
    }
}

/// U4
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn fish_completes_commands_ids_names_sessions_and_queues() {
    if let Some(fish) = FISH.if_installed() {
        fish.completes_everything().await;
    }
}

/// U4
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn completion_starts_no_daemon() {
    let daemon = Daemon::builder().own_program().prepare();
    let found = BASH.complete(&daemon, &["inspect", "shell-"]).await;
    assert_eq!(found.concat(), "");
    assert!(daemon.processes().is_empty());
    assert!(!daemon.socket().exists());
}
