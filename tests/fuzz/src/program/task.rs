//! A description of a task, as the server sends it and as anything else might.

#[path = "../../../../shim/src/program/task/assignment.rs"]
#[allow(dead_code, reason = "the shim uses the rest")]
mod assignment;
mod connection;

use std::ffi::{CStr, c_char};

use assignment::{AfterFailure, Assignment, Size};
use connection::Connection;
use heeler_server::fuzz::{Description, description};
use heeler_shim::wire::{MESSAGE, Order};

/// Descriptions of both kinds: one of the server is understood as it was meant, and any other one is
/// refused or has as many texts as its order says.
pub fn orders(bytes: &[u8]) {
    let Some((kind, rest)) = bytes.split_first() else {
        return;
    };
    match kind % 2 {
        0 => anything(rest),
        _ => {
            if let Some(sent) = description(rest) {
                from_the_server(&sent);
            }
        }
    }
}

fn anything(bytes: &[u8]) {
    let Some((head, body)) = bytes.split_first_chunk::<MESSAGE>() else {
        return;
    };
    let Ok(Order::Begin {
        bytes,
        arguments,
        variables,
    }) = Order::decode(head)
    else {
        return;
    };
    let size = Size {
        bytes,
        arguments,
        variables,
    };
    if let Some(received) = Assignment::receive(size, AfterFailure::End, &mut Connection(body)) {
        let task = received.task().expect("what was received whole is a task");
        assert_eq!(texts(task.arguments).len() as u64, arguments);
        assert_eq!(texts(task.environment).len() as u64, variables);
    }
}

fn from_the_server(sent: &Description) {
    let (head, body) = sent.sent.split_first_chunk::<MESSAGE>().expect("an order");
    let Ok(Order::Begin {
        bytes,
        arguments,
        variables,
    }) = Order::decode(head)
    else {
        panic!("not the order to begin");
    };
    let size = Size {
        bytes,
        arguments,
        variables,
    };
    let received = Assignment::receive(size, AfterFailure::End, &mut Connection(body));
    let received = received.expect("the server's own description");
    let task = received.task().expect("the server's own description");
    let optional = |text: Option<&CStr>| text.map_or(Vec::new(), |text| text.to_bytes().to_vec());
    let paths = [
        task.file.to_bytes().to_vec(),
        optional(task.memory),
        optional(task.cgroup),
        task.directory.to_bytes().to_vec(),
        task.program.to_bytes().to_vec(),
    ];
    assert_eq!(paths, sent.texts);
    assert_eq!(texts(task.arguments), sent.arguments);
    assert_eq!(texts(task.environment), sent.variables);
}

/// The texts of a list that ends in a null pointer.
fn texts(mut list: *const *const c_char) -> Vec<Vec<u8>> {
    let mut texts = Vec::new();
    loop {
        // SAFETY: the list is in the assignment's memory and ends in a null pointer, which is what is
        // tested here.
        let text = unsafe { *list };
        if text.is_null() {
            return texts;
        }
        // SAFETY: each entry points to a text of the description, which ends in a NUL.
        texts.push(unsafe { CStr::from_ptr(text) }.to_bytes().to_vec());
        list = list.wrapping_add(1);
    }
}
