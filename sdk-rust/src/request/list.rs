//! The options of List.

use heeler_proto::v1::ListRequest;

use super::Filter;

/// The options of a list.
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
    /// Live tasks.
    pub fn live() -> Self {
        Self {
            message: ListRequest::default(),
        }
    }

    /// Live and finished tasks.
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

    /// The ports on which the live tasks listen, too.
    pub fn with_ports(mut self) -> Self {
        self.message.include_ports = true;
        self
    }

    /// Only these.
    pub fn matching(mut self, filter: Filter) -> Self {
        self.message.filter = Some(filter.into());
        self
    }

    /// Tasks per page: 50 unless set, at most 1000.
    pub fn page_size(mut self, size: u16) -> Self {
        self.message.page_size = size.into();
        self
    }

    /// The page after the one with this `next_page_token`.
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
