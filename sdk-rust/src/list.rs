//! Listing tasks: what to list, and all pages as one stream.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use heeler_proto::v1::{BackgroundTask, ListRequest};
use tokio_stream::Stream;

use crate::{
    batches::{Batch, Batches},
    client::Client,
    error::Error,
    filter::Filter,
};

/// What to list.
///
/// ```
/// use heeler_client::{Filter, ListOptions};
///
/// let history = ListOptions::all().matching(Filter::all().session("s1")).page_size(200);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct ListOptions {
    message: ListRequest,
}

impl ListOptions {
    /// Tasks that are not over.
    pub fn live() -> Self {
        Self {
            message: ListRequest::default(),
        }
    }

    /// Tasks that are over, too.
    pub fn all() -> Self {
        Self {
            message: ListRequest {
                include_finished: true,
                ..ListRequest::default()
            },
        }
    }

    /// Tasks that finished in the foreground, too, which are otherwise hidden unless named by id.
    pub fn with_finished_foreground(mut self) -> Self {
        self.message.include_finished_foreground = true;
        self
    }

    /// Only these.
    pub fn matching(mut self, filter: Filter) -> Self {
        self.message.filter = Some(filter.into());
        self
    }

    /// How many to a page: 50 if not said, at most 1000.
    pub fn page_size(mut self, size: u16) -> Self {
        self.message.page_size = size.into();
        self
    }

    /// The page that another page's `next_page_token` stands for.
    pub fn page_token(mut self, token: impl Into<String>) -> Self {
        self.message.page_token = token.into();
        self
    }
}

impl From<ListOptions> for ListRequest {
    fn from(options: ListOptions) -> Self {
        options.message
    }
}

/// Tasks, page after page: live ones first, then newest first.
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
