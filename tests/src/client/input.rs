//! Writes to the input of tasks.

use heeler_proto::v1::*;
use tonic::{Response, Status};

use crate::Api;

impl Api {
    pub async fn write_input(
        &self,
        request: WriteInputRequest,
    ) -> Result<WriteInputResponse, Status> {
        let answer = self.raw().write_input(request).await;
        answer.map(Response::into_inner)
    }

    /// Writes at an offset, without a wait.
    pub async fn write(
        &self,
        id: &str,
        offset: u64,
        data: impl AsRef<[u8]>,
    ) -> Result<WriteInputResponse, Status> {
        self.write_input(at(id, offset, data)).await
    }

    /// Writes to the end of the input, all of which must be taken.
    pub async fn type_in(&self, id: &str, data: impl AsRef<[u8]>) {
        let data = data.as_ref();
        let request = WriteInputRequest {
            offset: None,
            wait: Some(crate::secs(60)),
            ..at(id, 0, data)
        };
        let answer = self.write_input(request).await.unwrap();
        assert_eq!(answer.taken_bytes as usize, data.len(), "{answer:?}");
    }

    /// Closes the input.
    pub async fn close_input(&self, id: &str) {
        let request = WriteInputRequest {
            close: true,
            ..status(id)
        };
        let answer = self.write_input(request).await.unwrap();
        assert!(answer.closed, "{answer:?}");
    }

    pub async fn resize(&self, id: &str, columns: u32, rows: u32) -> Result<(), Status> {
        let request = ResizeTerminalRequest {
            task_id: id.to_owned(),
            columns,
            rows,
        };
        self.raw().resize_terminal(request).await.map(drop)
    }
}

/// A write at an offset.
pub fn at(id: &str, offset: u64, data: impl AsRef<[u8]>) -> WriteInputRequest {
    WriteInputRequest {
        offset: Some(offset),
        data: data.as_ref().to_vec().into(),
        ..status(id)
    }
}

/// A question for the state of the input.
pub fn status(id: &str) -> WriteInputRequest {
    WriteInputRequest {
        task_id: id.to_owned(),
        ..WriteInputRequest::default()
    }
}
