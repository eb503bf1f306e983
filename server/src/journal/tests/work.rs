//! The progress of tasks and their mailboxes.

use std::collections::BTreeMap;

use uuid::Uuid;

use super::*;
use crate::{
    journal::{MessageEntry, WorkRecord},
    task::{
        Actor, Block, BlockKind, LATEST_BLOCKS, MESSAGE_RECEIPTS, MessageDraft, NewBlock, Progress,
        ProgressUpdate, TaskMessage,
    },
};

async fn live_task(journal: &Journal) -> Task {
    let task = new_task(journal);
    append(journal, EventKind::Created, &task).await;
    task
}

/// Adds notes to a task's progress, as its owner does.
async fn note(journal: &Journal, seq: Seq, progress: &mut Progress, texts: &[String]) {
    let note = |text: &String| NewBlock::new(BlockKind::Note, text.clone(), 0, String::new());
    let blocks = texts.iter().map(note).collect();
    let update = ProgressUpdate::new(blocks, None, None, BTreeMap::new());
    let blocks = update.apply(progress, Timestamp(7));
    let record = record_of(progress, 1);
    journal.report(seq, record, blocks).await.unwrap();
}

fn record_of(progress: &Progress, sequence: u64) -> WorkRecord {
    WorkRecord {
        progress: Some(Arc::new(progress.clone())),
        worker: Some(Uuid::from_u128(5)),
        sequence,
    }
}

fn texts(blocks: &[Block]) -> Vec<(u64, &str)> {
    let blocks = blocks.iter();
    blocks
        .map(|block| (block.number, &*block.block.text))
        .collect()
}

/// P1
#[tokio::test]
async fn a_task_keeps_its_latest_blocks_and_no_others() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path());
    let (task, other) = (live_task(&journal).await, live_task(&journal).await);
    let (mut progress, mut of_other) = (Progress::default(), Progress::default());
    note(&journal, other.seq, &mut of_other, &["other".to_owned()]).await;
    for number in 1..=2 * LATEST_BLOCKS + 3 {
        note(&journal, task.seq, &mut progress, &[number.to_string()]).await;
    }
    assert_eq!(progress.blocks, 131);
    let latest = journal.blocks(task.seq, 2).await.unwrap();
    assert_eq!(texts(&latest), [(130, "130"), (131, "131")]);
    let all = journal.blocks(task.seq, 1000).await.unwrap();
    assert_eq!(all.len(), LATEST_BLOCKS);
    assert_eq!(all[0].number, 68);
    let rows: i64 = raw(dir.path())
        .query_row("SELECT count(*) FROM blocks", [], |row| row.get(0))
        .unwrap();
    assert_eq!(
        rows,
        LATEST_BLOCKS as i64 + 1,
        "the ring is bounded on disk"
    );
}

/// P1, R1
#[tokio::test]
async fn progress_is_there_after_the_journal_is_opened_again() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path());
    let mut task = live_task(&journal).await;
    let mut progress = Progress {
        intent: "reads".to_owned(),
        percent: Some(40),
        counts: BTreeMap::from([("tokens".to_owned(), u64::MAX)]),
        ..Progress::default()
    };
    note(&journal, task.seq, &mut progress, &["one".to_owned()]).await;
    let other = live_task(&journal).await;
    drop(journal);
    let journal = open(dir.path());
    let work = journal.live_work().await.unwrap();
    assert_eq!(work.len(), 1, "only those with a worker");
    assert_eq!(work[&task.seq], record_of(&progress, 1));
    assert_eq!(journal.work_of(other.seq).await.unwrap(), None);
    end(&mut task, EndState::Completed);
    append(&journal, EventKind::Ended, &task).await;
    assert!(journal.live_work().await.unwrap().is_empty());
    assert_eq!(journal.blocks(task.seq, 10).await.unwrap().len(), 1);
}

fn draft(text: &str, message_id: Option<&str>) -> MessageDraft {
    MessageDraft {
        text: text.to_owned(),
        sender: Actor {
            name: Some("host".to_owned()),
            uid: Some(1),
            pid: Some(2),
        },
        message_id: message_id.map(Into::into),
    }
}

async fn put(journal: &Journal, seq: Seq, number: u64, text: &str) {
    let message = TaskMessage {
        number,
        message: draft(text, Some(text)),
        at: Timestamp(number),
    };
    let digest = journal.digest(text);
    journal.put_message(seq, message, digest).await.unwrap();
}

/// P8
#[tokio::test]
async fn messages_are_read_in_order_until_they_are_received() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path());
    let task = live_task(&journal).await;
    for number in 1..=3 {
        put(&journal, task.seq, number, &format!("m{number}")).await;
    }
    let first = journal.messages_after(task.seq, 0, 2).await.unwrap();
    let numbers: Vec<u64> = first.iter().map(|message| message.number).collect();
    assert_eq!(numbers, [1, 2]);
    assert_eq!(first[0].message, draft("m1", Some("m1")));
    journal.receive_messages(task.seq, 2).await.unwrap();
    drop(journal);
    let journal = open(dir.path());
    let left = journal.messages_after(task.seq, 0, 9).await.unwrap();
    assert_eq!(left.len(), 1);
    assert_eq!((left[0].number, &*left[0].message.text), (3, "m3"));
    let entries = journal.mailbox(task.seq).await.unwrap();
    let entry = |number: u64, bytes| MessageEntry {
        number,
        message_id: Some(format!("m{number}")),
        digest: journal.digest(&format!("m{number}")),
        bytes,
    };
    assert_eq!(
        entries,
        [entry(1, None), entry(2, None), entry(3, Some(2))],
        "received ones are known by their ids"
    );
}

/// P8
#[tokio::test]
async fn receipts_are_bounded() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path());
    let task = live_task(&journal).await;
    let last = MESSAGE_RECEIPTS + 5;
    for number in 1..=last {
        put(&journal, task.seq, number, &number.to_string()).await;
        journal.receive_messages(task.seq, number).await.unwrap();
    }
    let entries = journal.mailbox(task.seq).await.unwrap();
    assert_eq!(entries.len() as u64, MESSAGE_RECEIPTS);
    assert_eq!(entries.last().map(|entry| entry.number), Some(last));
}

/// L6
#[tokio::test]
async fn a_removed_task_leaves_no_progress_and_no_message() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path());
    let (mut task, other) = (live_task(&journal).await, live_task(&journal).await);
    for seq in [task.seq, other.seq] {
        note(
            &journal,
            seq,
            &mut Progress::default(),
            &["note".to_owned()],
        )
        .await;
        put(&journal, seq, 1, "message").await;
    }
    end(&mut task, EndState::Completed);
    append(&journal, EventKind::Ended, &task).await;
    journal.remove(vec![task.id.clone()]).await.unwrap();
    for table in ["work", "blocks", "messages"] {
        let rows: i64 = raw(dir.path())
            .query_row(&format!("SELECT count(*) FROM {table}"), [], |row| {
                row.get(0)
            })
            .unwrap();
        assert_eq!(rows, 1, "{table}: that of the other task");
    }
}

/// R4
#[tokio::test]
async fn a_damaged_row_of_a_worker_costs_itself() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path());
    let (task, other) = (live_task(&journal).await, live_task(&journal).await);
    for seq in [task.seq, other.seq] {
        let notes = ["a".to_owned(), "b".to_owned()];
        note(&journal, seq, &mut Progress::default(), &notes).await;
        put(&journal, seq, 1, "one").await;
        put(&journal, seq, 2, "two").await;
    }
    let seq = task.seq.0;
    let file = raw(dir.path());
    for damage in [
        format!("UPDATE work SET progress = '{{' WHERE task_seq = {seq}"),
        format!("UPDATE blocks SET kind = 'mood' WHERE place / 64 = {seq} AND number = 1"),
        format!("UPDATE messages SET sender = '[' WHERE task_seq = {seq} AND number = 1"),
    ] {
        assert_eq!(file.execute(&damage, []).unwrap(), 1, "{damage}");
    }
    let work = journal.live_work().await.unwrap();
    assert!(!work.contains_key(&task.seq) && work.contains_key(&other.seq));
    let blocks = journal.blocks(task.seq, 10).await.unwrap();
    assert_eq!(texts(&blocks), [(2, "b")]);
    let messages = journal.messages_after(task.seq, 0, 10).await.unwrap();
    assert_eq!(messages.len(), 1);
    assert_eq!(messages[0].number, 2);
}
