//! The containments that a test runs on.

use std::{
    fs,
    os::unix::{
        fs::{PermissionsExt, chown},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::Command,
};

use heeler_proto::v1::{Containment, ProofMethod};

use crate::{Daemon, binary, skipped};

/// A containment, and the user of the daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Setting {
    /// A cgroup per task.
    Cgroup,
    /// The shim as subreaper, chosen by the configuration.
    Subreaper,
    /// The shim as subreaper, because the user may not make cgroups.
    Unprivileged,
}

impl Setting {
    /// Starts a daemon. Returns `None`, after reporting a skip, where the machine lacks the setting.
    pub async fn start(self) -> Option<Daemon> {
        let daemon = match self {
            Self::Cgroup if !cgroups_are_usable() => {
                skipped("no cgroup v2 that this user may use");
                return None;
            }
            Self::Cgroup => Daemon::builder().containment("cgroup").start().await,
            Self::Subreaper => Daemon::builder().containment("subreaper").start().await,
            // The user `nobody` has no cgroup, and the daemon detects that; another user may have one.
            Self::Unprivileged if is_rerun() => Daemon::start().await,
            Self::Unprivileged => Daemon::builder().containment("subreaper").start().await,
        };
        let server = daemon.api().await.server().await;
        assert_eq!(server.containment(), self.containment(), "{server:?}");
        Some(daemon)
    }

    pub fn containment(self) -> Containment {
        match self {
            Self::Cgroup => Containment::Cgroup,
            Self::Subreaper | Self::Unprivileged => Containment::Subreaper,
        }
    }

    /// The method by which an empty tree is proven.
    pub fn proof(self) -> ProofMethod {
        match self {
            Self::Cgroup => ProofMethod::CgroupEmpty,
            Self::Subreaper | Self::Unprivileged => ProofMethod::NoChildren,
        }
    }
}

/// Makes three tests of each function `async fn(Daemon, Setting)`: one per setting.
#[macro_export]
macro_rules! in_each_setting {
    ($($behaviour:ident),* $(,)?) => { $(
        mod $behaviour {
            use heeler_tests::Setting;

            async fn on(setting: Setting) {
                if let Some(daemon) = setting.start().await {
                    super::$behaviour(daemon, setting).await;
                }
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
            async fn on_cgroups() {
                on(Setting::Cgroup).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
            async fn on_the_subreaper() {
                on(Setting::Subreaper).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
            async fn on_an_unprivileged_user() {
                if !heeler_tests::containment::reruns_as_nobody(concat!(
                    module_path!(),
                    "::on_an_unprivileged_user"
                )) {
                    on(Setting::Unprivileged).await;
                }
            }
        }
    )* };
}

/// The uid of the user without rights.
pub const NOBODY: u32 = 65534;

/// Set in a test that root reruns as nobody.
const RERUN: &str = "HEELER_TESTS_AS_NOBODY";

/// The value of [`RERUN`] if the daemon is a copy of the one that the tests have built.
const OWN_BUILD: &str = "own build";

/// True in a test that root reruns as nobody.
pub fn is_rerun() -> bool {
    std::env::var_os(RERUN).is_some()
}

/// True in such a test if its daemon is a copy of the one that the tests have built.
pub fn is_rerun_of_own_build() -> bool {
    std::env::var(RERUN).is_ok_and(|value| value == OWN_BUILD)
}

/// If root runs the tests, reruns the test `crate::module::test` as a user without rights and without a
/// cgroup, and returns true. The whole test runs as that user, since a daemon serves only its own.
pub fn reruns_as_nobody(test: &str) -> bool {
    rerun_as_nobody(test, None).is_some()
}

/// As [`reruns_as_nobody`], in a cgroup that was given to that user, if there is one. Returns the test's
/// output; `None` if the test is to run here.
pub fn rerun_as_nobody(test: &str, cgroup: Option<&Delegated>) -> Option<String> {
    if !nix::unistd::geteuid().is_root() {
        return None;
    }
    let (_, name) = test.split_once("::").expect("a test is in a crate");
    let dir = tempfile::Builder::new()
        .prefix("heeler-")
        .tempdir_in("/tmp")
        .unwrap();
    let deps = dir.path().join("debug/deps");
    fs::create_dir_all(&deps).unwrap();
    fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o755)).unwrap();
    // Only the owner may be able to enter the directory of the build.
    let heeler = binary::copy(binary::heeler(), &dir.path().join("debug/heeler"));
    binary::copy(
        &binary::sibling("heeler-fixture"),
        &dir.path().join("debug/heeler-fixture"),
    );
    let program = binary::copy(&std::env::current_exe().unwrap(), &deps.join("test"));
    let mut command = match cgroup {
        None => {
            let mut command = Command::new(program);
            command.uid(NOBODY).gid(NOBODY);
            command
        }
        Some(Delegated { path }) => {
            let mut command = Command::new("sh");
            let enter = r#"echo 0 > "$0/cgroup.procs" && exec setpriv --reuid "$1" --regid "$1" --clear-groups "$2" "$3" "$4" "$5""#;
            command.args(["-c", enter]).arg(path);
            command.arg(NOBODY.to_string()).arg(program);
            command
        }
    };
    let build = match std::env::var_os("HEELER_TEST_BINARY") {
        Some(_) => "another build",
        None => OWN_BUILD,
    };
    let output = command
        .args(["--exact", name, "--nocapture"])
        .env("HEELER_TEST_BINARY", heeler)
        .env(RERUN, build)
        .current_dir("/")
        .output()
        .unwrap();
    let output_text =
        String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && output_text.contains("1 passed"),
        "as nobody:\n{output_text}"
    );
    Some(output_text.into_owned())
}

/// A cgroup that belongs to the user without rights, as a service manager gives one to a user.
#[derive(Debug)]
pub struct Delegated {
    path: PathBuf,
}

impl Delegated {
    /// Makes one. Returns `None`, after reporting a skip, where there are no cgroups to give away.
    pub fn to_nobody() -> Option<Self> {
        if !cgroups_are_usable() {
            skipped("no cgroup v2 that this user may use");
            return None;
        }
        let path = own_cgroup()?.join(format!("heeler-delegated-{}", std::process::id()));
        fs::create_dir(&path).unwrap();
        for name in [
            "",
            "cgroup.procs",
            "cgroup.threads",
            "cgroup.subtree_control",
        ] {
            chown(path.join(name), Some(NOBODY), Some(NOBODY)).unwrap();
        }
        Some(Self { path })
    }
}

impl Drop for Delegated {
    fn drop(&mut self) {
        let below = fs::read_dir(&self.path).into_iter().flatten().flatten();
        for entry in below.filter(|entry| entry.path().is_dir()) {
            let _ = fs::remove_dir(entry.path());
        }
        let _ = fs::remove_dir(&self.path);
    }
}

/// True if a cgroup can be made below that of the tests.
pub fn cgroups_are_usable() -> bool {
    let Some(own) = own_cgroup() else {
        return false;
    };
    let probe = own.join(format!("heeler-tests-{}", std::process::id()));
    let thread = format!("{:?}", std::thread::current().id());
    let probe = probe.with_extension(thread.replace(['(', ')'], ""));
    let usable = fs::create_dir(&probe).is_ok() && probe.join("cgroup.kill").exists();
    let _ = fs::remove_dir(&probe);
    usable
}

/// The cgroup v2 directory of this process.
pub fn own_cgroup() -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let mount = mounts.lines().find_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        after
            .starts_with("cgroup2 ")
            .then(|| before.split(' ').nth(4))?
    })?;
    let own = fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = own.lines().find_map(|line| line.strip_prefix("0::/"))?;
    Some(Path::new(mount).join(path))
}
