#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use heeler_shim::{
    memory::MEMORY_FILE_LIMIT,
    record::{Identity, Stage, position},
};
use tempfile::TempDir;

use super::*;

/// A state directory on disk, and a place in memory for so many tasks.
struct Scene {
    _state: TempDir,
    memory: TempDir,
    dir: TaskDir,
}

impl Scene {
    fn new(tasks: u64) -> Self {
        let state = tempfile::tempdir().unwrap();
        let memory = tempfile::tempdir_in(SHARED_MEMORY).unwrap();
        let dir = TaskDir::new(state.path())
            .with_memory(MemoryDir::open(memory.path(), tasks * MEMORY_FILE_LIMIT).unwrap());
        dir.create().unwrap();
        Self {
            _state: state,
            memory,
            dir,
        }
    }

    /// As a shim that has ended leaves it.
    fn ended(&self, id: &TaskId) {
        let mut file = vec![0; BLOCKS_START as usize];
        let start = Start::Failed {
            stage: Stage::Exec,
            errno: 2,
        };
        let at = position::START as usize;
        file[at..at + 1024].copy_from_slice(&start.encode());
        assert!(Identity::decode(file[..1024].try_into().unwrap()).is_none());
        fs::write(self.dir.path(id), file).unwrap();
    }
}

fn id(last: char) -> TaskId {
    format!("shell-aaaaaaaaa{last}").parse().unwrap()
}

/// N1
#[test]
fn only_a_private_directory_in_memory_is_used() {
    let disk = tempfile::tempdir_in("/tmp").unwrap();
    if in_memory(disk.path()).is_err() {
        let refused = MemoryDir::open(disk.path(), 1 << 20);
        assert!(matches!(refused, Err(MemoryError::NotInMemory(_))));
        let refused = MemoryDir::open(&disk.path().join("new"), 1 << 20);
        assert!(matches!(refused, Err(MemoryError::NotInMemory(_))));
    }
    let memory = tempfile::tempdir_in(SHARED_MEMORY).unwrap();
    let link = memory.path().join("link");
    std::os::unix::fs::symlink(memory.path(), &link).unwrap();
    let file = memory.path().join("file");
    fs::write(&file, "").unwrap();
    for path in [link, file] {
        let refused = MemoryDir::open(&path, 1 << 20);
        assert!(matches!(refused, Err(MemoryError::NotOurs(_))));
    }
    let open = memory.path().join("open");
    fs::create_dir(&open).unwrap();
    fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
    MemoryDir::open(&open, 1 << 20).unwrap();
    assert_eq!(fs::metadata(&open).unwrap().mode() & 0o777, 0o700);
}

#[test]
fn the_directory_is_there_only_while_it_is_needed() {
    let memory = tempfile::tempdir_in(SHARED_MEMORY).unwrap();
    let (state, path) = (tempfile::tempdir().unwrap(), memory.path().join("own"));
    let room = MemoryDir::open(&path, 1 << 30).unwrap();
    let dir = TaskDir::new(state.path()).with_memory(room);
    assert_eq!(dir.in_memory().unwrap(), []);
    assert!(!path.exists());
    let place = dir.memory_place(&id('a')).unwrap();
    assert_eq!(place, path.join("shell-aaaaaaaaaa"));
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o700);
    fs::write(&place, "output").unwrap();
    dir.leave_memory();
    assert_eq!(dir.in_memory().unwrap(), [id('a')]);
    dir.remove(&id('a')).unwrap();
    dir.leave_memory();
    assert!(!path.exists());
    assert!(dir.memory_place(&id('b')).is_some(), "it is made anew");
}

/// F10
#[test]
fn there_is_room_for_so_many_and_no_more() {
    let scene = Scene::new(2);
    let [a, b, c] = ['a', 'b', 'c'].map(id);
    for id in [&a, &b] {
        let place = scene.dir.memory_place(id).unwrap();
        fs::write(place, "output").unwrap();
    }
    assert_eq!(scene.dir.memory_place(&c), None);
    // One that is over needs no more than it has, which is more than nothing.
    scene.ended(&a);
    assert_eq!(scene.dir.memory_place(&c), None);
    scene.dir.remove(&a).unwrap();
    assert!(scene.dir.memory_place(&c).is_some());
    scene.dir.remove(&b).unwrap();
    scene.dir.remove(&c).unwrap();
    // One that has gone to the disk needs nothing.
    for id in [&a, &b] {
        let place = scene.dir.memory_place(id).unwrap();
        fs::write(&place, "output").unwrap();
        scene.ended(id);
        fs::remove_file(place).unwrap();
    }
    assert!(scene.dir.memory_place(&c).is_some());
}

/// F10
#[test]
fn what_an_earlier_server_has_left_counts() {
    let scene = Scene::new(2);
    fs::write(scene.memory.path().join(id('a').as_str()), vec![1; 1 << 20]).unwrap();
    fs::write(scene.memory.path().join("something else"), "").unwrap();
    let limit = MEMORY_FILE_LIMIT + (1 << 19);
    let room = MemoryDir::open(scene.memory.path(), limit).unwrap();
    let dir = scene.dir.clone().with_memory(room);
    assert_eq!(dir.in_memory().unwrap(), [id('a')]);
    assert!(dir.memory_place(&id('b')).is_none());
    dir.remove(&id('a')).unwrap();
    assert!(dir.memory_place(&id('b')).is_some());
}

#[test]
fn without_room_everything_begins_on_the_disk() {
    let scene = Scene::new(0);
    assert_eq!(scene.dir.memory_place(&id('a')), None);
    let state = tempfile::tempdir().unwrap();
    let dir = TaskDir::new(state.path());
    assert_eq!(dir.memory_place(&id('a')), None);
    dir.spill(&id('a')).unwrap();
    assert_eq!(dir.in_memory().unwrap(), []);
}
