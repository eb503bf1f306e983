//! The tasks of all pages of a list, as one stream.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use heeler_proto::v1::{BackgroundTask, ListRequest};
use tokio_stream::Stream;

use super::batches::{Batch, Batches};
use crate::{client::Client, error::Error};

/// The tasks of a list: live tasks first, then newest first.
#[derive(Debug)]
pub struct Tasks {
    batches: Batches<String, BackgroundTask>,
}

impl Tasks {
    pub(crate) fn new(client: Client, mut request: ListRequest) -> Self {
        let first = std::mem::take(&mut request.page_token);
        let fetch = move |page_token| {
            let (client, request) = (client.clone(), request.clone());
            async move {
                let page = client
                    .list_page(ListRequest {
                        page_token,
                        ..request
                    })
                    .await?;
                let next = Some(page.next_page_token).filter(|token| !token.is_empty());
                Ok(Batch {
                    items: page.tasks.into(),
                    next,
                })
            }
        };
        Self {
            batches: Batches::new(first, fetch),
        }
    }
}

impl Stream for Tasks {
    type Item = Result<BackgroundTask, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Pin::new(&mut self.batches).poll_next(cx)
    }
}
