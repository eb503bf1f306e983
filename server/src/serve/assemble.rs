//! The parts of the daemon, built from its configuration.

use std::path::PathBuf;

use crate::{
    config::Config,
    journal::{Boot, Durability, Journal},
    process::{
        self, BootId, allocate,
        containment::ChosenContainment,
        file_system_size,
        launch::{BaseEnv, ServerAddress},
        shim::{RecordSync, ShimPool},
        task_file::{MemoryDir, TaskDir},
        tree::sweep::Sweeper,
    },
    supervisor::{Parts, SearchThreads, Supervisor},
};

use super::RunError;

/// Opens the journal, and builds the supervisor. `reach` tells tasks how to reach this server.
pub(super) fn assemble(
    config: &Config,
    reach: ServerAddress,
) -> Result<(Supervisor, Journal), RunError> {
    let descriptors = process::raise_descriptor_limit();
    let task_dir = TaskDir::new(&config.state_dir);
    let journal = open_journal(config, &task_dir)?;
    task_dir
        .create()
        .map_err(RunError::io("make the task directories"))?;
    let task_dir = with_memory(task_dir, config, &journal);
    let records = match config.durability {
        Durability::Process => RecordSync::Cached,
        Durability::Power => RecordSync::Synced,
    };
    let shims = ShimPool::unpack(&task_dir, records, descriptors)
        .map_err(RunError::io("unpack the shim"))?;
    let name = journal.directory_id().simple().to_string();
    let containment = ChosenContainment::choose(config.containment, &name, &shims)?;
    process::ignore_child_signals().map_err(RunError::io("ignore SIGCHLD"))?;
    let base_env = BaseEnv::from_process(reach);
    let home = base_env
        .home()
        .map_or_else(|| PathBuf::from("/"), PathBuf::from);
    let sweeper = Sweeper::start().map_err(RunError::io("start a thread"))?;
    let search_threads = SearchThreads::start().map_err(RunError::io("start a thread"))?;
    let parts = Parts {
        journal: journal.clone(),
        shims,
        containment,
        base_env,
        task_dir,
        working_directory: config.working_directory.clone().unwrap_or(home),
        limits: config.limits.clone(),
        max_output: max_output(config),
        probe_hosts: config.probe_hosts,
    };
    Ok((Supervisor::new(parts, sweeper, search_threads), journal))
}

fn max_output(config: &Config) -> u64 {
    let by_default = || match file_system_size(&config.state_dir) {
        Ok(size) => {
            let part = (size / Config::OUTPUT_PART).max(Config::MIN_DEFAULT_MAX_OUTPUT);
            Config::DEFAULT_MAX_OUTPUT.min(part)
        }
        Err(error) => {
            tracing::warn!(%error, "cannot tell the size of the file system");
            Config::DEFAULT_MAX_OUTPUT
        }
    };
    let max_output = config.max_output.unwrap_or_else(by_default);
    max_output.max(Config::MIN_MAX_OUTPUT)
}

fn open_journal(config: &Config, task_dir: &TaskDir) -> Result<Journal, RunError> {
    if Journal::is_missing(&config.state_dir) && !task_dir.is_empty() {
        let state_dir = config.state_dir.clone();
        return Err(RunError::JournalMissing { state_dir });
    }
    let BootId(boot) = BootId::current().map_err(RunError::io("read the boot id"))?;
    let journal = Journal::open(&config.state_dir, config.durability, Boot(boot))?;
    if let Err(error) = journal.keep_reserve(allocate) {
        tracing::warn!(%error, "no space is reserved: a full disk takes no stop and no end of a task");
    }
    Ok(journal)
}

/// Adds the directory in memory, after those of deleted state directories are removed. Where there is
/// none, output goes to disk.
fn with_memory(task_dir: TaskDir, config: &Config, journal: &Journal) -> TaskDir {
    let path = MemoryDir::of(journal.directory_id(), config.memory_dir.as_deref());
    for stale in MemoryDir::remove_stale(&path, &config.state_dir) {
        tracing::info!(path = %stale.display(), "removed output in memory: its state directory is gone");
    }
    match MemoryDir::open(&path, &config.state_dir, config.memory_output) {
        Ok(memory) => task_dir.with_memory(memory),
        Err(error) => {
            if config.memory_output > 0 {
                tracing::warn!(%error, "no memory directory; foreground output goes to disk");
            }
            task_dir
        }
    }
}
