#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{fs::File, os::unix::fs::symlink};

use heeler_shim::{
    log::BLOCKS_START,
    memory_file::MEMORY_FILE_LIMIT,
    record::{SLOT, Stage, Start, position},
};
use nix::fcntl::{Flock, FlockArg};
use tempfile::TempDir;

use super::*;
use crate::process::task_file::TaskDir;

/// A state directory on disk, and a memory directory for a number of tasks.
struct Scene {
    state: TempDir,
    root: TempDir,
    memory: PathBuf,
    dir: TaskDir,
}

impl Scene {
    fn new(tasks: u64) -> Self {
        let state = tempfile::tempdir().unwrap();
        let root = tempfile::tempdir_in(SHARED_MEMORY).unwrap();
        let memory = MemoryDir::of(Uuid::now_v7(), Some(root.path()));
        let dir = task_dir(&state, &memory, tasks * MEMORY_FILE_LIMIT);
        dir.create().unwrap();
        Self {
            state,
            root,
            memory,
            dir,
        }
    }

    /// Writes the task file of an ended task.
    fn end(&self, id: &TaskId) {
        let mut file = vec![0; BLOCKS_START as usize];
        let start = Start::Failed {
            stage: Stage::Exec,
            errno: 2,
        };
        let at = position::START as usize;
        file[at..at + SLOT].copy_from_slice(&start.encode());
        fs::write(self.dir.path(id), file).unwrap();
    }

    /// Reserves memory and writes a memory file.
    fn write(&self, id: &TaskId) -> PathBuf {
        let path = self.dir.reserve_memory(id).unwrap();
        fs::write(&path, "output").unwrap();
        path
    }

    /// Starts another server, with a state directory of its own and the same memory root.
    fn remove_stale(&self) -> Vec<PathBuf> {
        let state = tempfile::tempdir().unwrap();
        let memory = MemoryDir::of(Uuid::now_v7(), Some(self.root.path()));
        MemoryDir::remove_stale(&memory, state.path())
    }
}

fn task_dir(state: &TempDir, memory: &Path, limit: u64) -> TaskDir {
    let memory = MemoryDir::open(memory, state.path(), limit).unwrap();
    TaskDir::new(state.path()).with_memory(memory)
}

fn id(last: char) -> TaskId {
    format!("shell-aaaaaaaaa{last}").parse().unwrap()
}

/// N1
#[test]
fn only_a_private_directory_in_memory_is_used() {
    let disk = tempfile::tempdir_in("/tmp").unwrap();
    let open = |path: &Path| MemoryDir::open(path, disk.path(), 1 << 20);
    if in_memory(disk.path()).is_err() {
        for path in [disk.path(), &disk.path().join("new")] {
            assert!(matches!(open(path), Err(MemoryError::NotInMemory(_))));
        }
    }
    let memory = tempfile::tempdir_in(SHARED_MEMORY).unwrap();
    let link = memory.path().join("link");
    symlink(memory.path(), &link).unwrap();
    let file = memory.path().join("file");
    fs::write(&file, "").unwrap();
    for path in [link, file] {
        assert!(matches!(open(&path), Err(MemoryError::NotOurs(_))));
    }
    let shared = memory.path().join("shared");
    fs::create_dir(&shared).unwrap();
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o777)).unwrap();
    open(&shared).unwrap();
    assert_eq!(fs::metadata(&shared).unwrap().mode() & 0o777, 0o700);
}

/// N1
#[test]
fn a_link_in_place_of_the_directory_is_not_followed() {
    let scene = Scene::new(2);
    let elsewhere = tempfile::tempdir_in(SHARED_MEMORY).unwrap();
    symlink(elsewhere.path(), &scene.memory).unwrap();
    assert_eq!(scene.dir.reserve_memory(&id('a')), None);
    assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
}

#[test]
fn the_directory_exists_only_while_it_has_files() {
    let scene = Scene::new(100);
    assert_eq!(scene.dir.tasks_in_memory().unwrap(), []);
    assert!(!scene.memory.exists());
    let path = scene.write(&id('a'));
    assert_eq!(path, scene.memory.join("shell-aaaaaaaaaa"));
    assert_eq!(fs::metadata(&scene.memory).unwrap().mode() & 0o777, 0o700);
    scene.dir.release_memory_dir();
    assert_eq!(scene.dir.tasks_in_memory().unwrap(), [id('a')]);
    // The next server.
    let dir = task_dir(&scene.state, &scene.memory, 1 << 30);
    dir.remove(&id('a')).unwrap();
    dir.release_memory_dir();
    assert!(!scene.memory.exists());
    assert!(dir.reserve_memory(&id('b')).is_some(), "created again");
}

/// F10
#[test]
fn memory_is_reserved_for_a_limited_number_of_tasks() {
    let scene = Scene::new(2);
    let [a, b, c] = ['a', 'b', 'c'].map(id);
    for id in [&a, &b] {
        scene.write(id);
    }
    assert_eq!(scene.dir.reserve_memory(&c), None);
    // An ended task needs no more than it has, but that is more than nothing.
    scene.end(&a);
    assert_eq!(scene.dir.reserve_memory(&c), None);
    scene.dir.remove(&a).unwrap();
    assert!(scene.dir.reserve_memory(&c).is_some());
    scene.dir.remove(&b).unwrap();
    scene.dir.remove(&c).unwrap();
    // A task whose output is on disk needs nothing.
    for id in [&a, &b] {
        let path = scene.write(id);
        scene.end(id);
        fs::remove_file(path).unwrap();
    }
    assert!(scene.dir.reserve_memory(&c).is_some());
}

/// F12
#[test]
fn evicting_finished_tasks_makes_room_for_new_ones() {
    let scene = Scene::new(2);
    let [a, b, c] = ['a', 'b', 'c'].map(id);
    assert_eq!(scene.dir.memory_shortage(2), 0);
    let path = scene.write(&a);
    scene.write(&b);
    scene.end(&a);
    scene.dir.settle_memory(&a);
    let taken = taken(&fs::metadata(&path).unwrap());
    assert_eq!(scene.dir.memory_shortage(1), taken);
    assert_eq!(scene.dir.reserve_memory(&c), None);
    assert_eq!(scene.dir.evict(&a).unwrap(), taken);
    assert!(!path.exists());
    assert_eq!(scene.dir.evict(&a).unwrap(), 0);
    assert_eq!(scene.dir.memory_shortage(1), 0);
    assert!(scene.dir.reserve_memory(&c).is_some());
    assert_eq!(
        scene.dir.memory_shortage(3),
        0,
        "more than there will ever be room for"
    );
}

/// F12
#[test]
fn the_output_of_a_live_task_is_not_evicted() {
    let scene = Scene::new(2);
    let path = scene.write(&id('a'));
    let file = File::create(scene.dir.path(&id('a'))).unwrap();
    let shim = Flock::lock(file, FlockArg::LockExclusiveNonblock).unwrap();
    let refused = scene.dir.evict(&id('a')).unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::WouldBlock);
    assert!(path.exists());
    // A shim that was killed without a record of the end.
    drop(shim);
    assert!(scene.dir.evict(&id('a')).unwrap() > 0);
    assert!(!path.exists());
}

/// F10
#[test]
fn files_of_an_earlier_server_count() {
    let scene = Scene::new(2);
    let path = scene.dir.reserve_memory(&id('a')).unwrap();
    fs::write(path, vec![1; 1 << 20]).unwrap();
    fs::write(scene.memory.join("something else"), "").unwrap();
    let limit = MEMORY_FILE_LIMIT + (1 << 19);
    let dir = task_dir(&scene.state, &scene.memory, limit);
    assert_eq!(dir.tasks_in_memory().unwrap(), [id('a')]);
    assert!(dir.reserve_memory(&id('b')).is_none());
    dir.remove(&id('a')).unwrap();
    assert!(dir.reserve_memory(&id('b')).is_some());
}

#[test]
fn without_room_output_begins_on_disk() {
    let scene = Scene::new(0);
    assert_eq!(scene.dir.reserve_memory(&id('a')), None);
    let state = tempfile::tempdir().unwrap();
    let dir = TaskDir::new(state.path());
    assert_eq!(dir.reserve_memory(&id('a')), None);
    assert_eq!(dir.memory_shortage(1), 0);
    dir.spill(&id('a')).unwrap();
    assert_eq!(dir.evict(&id('a')).unwrap(), 0);
    assert_eq!(dir.tasks_in_memory().unwrap(), []);
}

/// F12
#[test]
fn the_directory_of_a_deleted_state_directory_is_removed() {
    let scene = Scene::new(2);
    scene.write(&id('a'));
    scene.write(&id('b'));
    assert_eq!(scene.remove_stale(), [] as [PathBuf; 0], "its server runs");
    scene.dir.release_memory_dir();
    assert_eq!(scene.remove_stale(), [] as [PathBuf; 0], "its state exists");
    fs::remove_dir_all(scene.state.path()).unwrap();
    assert_eq!(scene.remove_stale(), [scene.memory.as_path()]);
    assert!(!scene.memory.exists());
}

/// F12
#[test]
fn a_state_directory_that_is_created_again_removes_the_old_memory_directory() {
    let scene = Scene::new(2);
    scene.write(&id('a'));
    scene.dir.release_memory_dir();
    fs::remove_dir_all(scene.state.path()).unwrap();
    fs::create_dir(scene.state.path()).unwrap();
    assert_eq!(scene.remove_stale(), [] as [PathBuf; 0], "another server");
    let new = MemoryDir::of(Uuid::now_v7(), Some(scene.root.path()));
    let removed = MemoryDir::remove_stale(&new, scene.state.path());
    assert_eq!(removed, [scene.memory.as_path()]);
    assert!(!scene.memory.exists());
}

/// F12
#[test]
fn the_directory_of_a_live_server_or_shim_is_kept() {
    let scene = Scene::new(2);
    let path = scene.write(&id('a'));
    fs::remove_dir_all(scene.state.path()).unwrap();
    assert_eq!(scene.remove_stale(), [] as [PathBuf; 0], "its server runs");
    scene.dir.release_memory_dir();
    let file = File::open(&path).unwrap();
    let shim = Flock::lock(file, FlockArg::LockExclusiveNonblock).unwrap();
    assert_eq!(scene.remove_stale(), [] as [PathBuf; 0], "its shim runs");
    assert!(path.exists());
    drop(shim);
    assert_eq!(scene.remove_stale(), [scene.memory.as_path()]);
}

/// N1
#[test]
fn directories_that_are_not_stale_memory_directories_are_kept() {
    let scene = Scene::new(2);
    let make = |name: &str, mode: u32| {
        let path = scene.root.path().join(name);
        fs::create_dir(&path).unwrap();
        symlink("/nonexistent/state", path.join("state-dir")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    };
    let hex = |digit: char| format!("heeler-{}", String::from(digit).repeat(32));
    let foreign_file = make(&hex('a'), 0o700);
    fs::write(foreign_file.join("notes"), "").unwrap();
    let without_link = scene.root.path().join(hex('b'));
    fs::create_dir(&without_link).unwrap();
    fs::set_permissions(&without_link, fs::Permissions::from_mode(0o700)).unwrap();
    fs::write(without_link.join("shell-aaaaaaaaaa"), "").unwrap();
    make(&hex('c'), 0o755);
    make("heeler-1234", 0o700);
    make("other", 0o700);
    let target = make("target", 0o700);
    symlink(&target, scene.root.path().join(hex('d'))).unwrap();
    if nix::unistd::geteuid().is_root() {
        let foreign_user = make(&hex('e'), 0o700);
        std::os::unix::fs::chown(foreign_user, Some(65534), None).unwrap();
    }
    assert_eq!(scene.remove_stale(), [] as [PathBuf; 0]);
    assert!(target.join("state-dir").is_symlink());
    // A crash between the creation of a directory and that of its link.
    fs::remove_file(without_link.join("shell-aaaaaaaaaa")).unwrap();
    assert_eq!(scene.remove_stale(), [without_link]);
}

/// F12
#[test]
fn a_moved_state_directory_keeps_its_memory_directory() {
    let scene = Scene::new(2);
    scene.write(&id('a'));
    scene.dir.release_memory_dir();
    let moved = tempfile::tempdir().unwrap();
    let server = task_dir(&moved, &scene.memory, 1 << 30);
    fs::remove_dir_all(scene.state.path()).unwrap();
    assert_eq!(scene.remove_stale(), [] as [PathBuf; 0]);
    drop(server);
    assert_eq!(scene.remove_stale(), [] as [PathBuf; 0]);
    assert_eq!(
        claimed::state_dir_of(&scene.memory).unwrap(),
        fs::canonicalize(moved.path()).unwrap()
    );
}
