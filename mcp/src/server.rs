//! The requests of the protocol. rmcp has both lifecycles: with `initialize`, up to 2025-11-25, and without,
//! from 2026-07-28 on.

#![expect(
    deprecated,
    reason = "log messages and resources/subscribe are for clients of the older lifecycle"
)]

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use heeler_client::{CancellationToken, Code};
use rmcp::{
    ErrorData, Peer, RoleServer, ServerHandler, ServiceExt,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, CancelTaskParams, ContentBlock,
        CustomRequest, CustomResult, ErrorCode, GetTaskParams, GetTaskResult, Implementation,
        ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, LoggingLevel,
        PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse,
        ServerCapabilities, ServerConfig, SetLevelRequestParams, SubscribeRequestParams,
        SubscriptionFilter, Tool, UnsubscribeRequestParams, UpdateTaskParams,
    },
    service::{NotificationContext, RequestContext, SubscriptionContext},
    transport::stdio_pipes,
};

use crate::{
    connection::{Call, Connection, Options},
    mcp_task, notices,
    problem::Problem,
    resources::{self, Subscriptions},
    stdio::Input,
    time_limit::answered,
    tools,
};

/// The text that every model gets once.
const INSTRUCTIONS: &str = "Heeler runs shell commands as supervised tasks that outlive this connection, can be \
watched and are stopped with their whole process tree. heeler_run: a command whose result you need now; it moves to \
the background by itself if it takes long. heeler_spawn: what should go on in the background. heeler_ensure: a server \
that should run once. Then heeler_wait (never sleep or poll), heeler_output, heeler_cancel. Never start background \
work with `&`, nohup or setsid. Tasks belong to this session; heeler_list shows them, also after a restart.";

/// The required parameters of the methods that have some.
const PARAMETERS: [(&str, &str); 11] = [
    (
        "initialize",
        "`protocolVersion`, a string, and `capabilities` and `clientInfo`, objects",
    ),
    ("server/discover", "`_meta`, an object"),
    (
        "logging/setLevel",
        "`level`, one of debug, info, notice, warning, error, critical, alert and emergency",
    ),
    ("tools/call", "`name`, a string, and `arguments`, an object"),
    ("tasks/get", "`taskId`, a string"),
    (
        "tasks/update",
        "`taskId`, a string, and `inputResponses`, an object",
    ),
    ("tasks/cancel", "`taskId`, a string"),
    ("resources/read", "`uri`, a string"),
    ("resources/subscribe", "`uri`, a string"),
    ("resources/unsubscribe", "`uri`, a string"),
    ("subscriptions/listen", "`notifications`, an object"),
];

/// The reason why a server ended early.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the first message is not a request of the Model Context Protocol: {0}")]
    Begin(#[from] Box<rmcp::service::ServerInitializeError>),
    #[error("the server failed: {0}")]
    Failed(#[from] tokio::task::JoinError),
}

/// Serves one client on stdin and stdout, until it closes stdin.
pub async fn serve(options: Options) -> Result<(), Error> {
    let closed = CancellationToken::new();
    let server = Server::new(options, closed.clone());
    let (input, output) = stdio_pipes();
    let running = match server
        .serve((Input::new(input, closed.clone()), output))
        .await
    {
        Ok(running) => running,
        // A client that looks whether the program can be started, and says nothing.
        Err(_) if closed.is_cancelled() => return Ok(()),
        Err(error) => return Err(Box::new(error).into()),
    };
    running.waiting().await?;
    Ok(())
}

/// The handler of one connection's requests.
#[derive(Debug)]
struct Server {
    connection: Arc<Connection>,
    subscriptions: Subscriptions,
    log_level: Arc<Mutex<LoggingLevel>>,
    is_watching: Arc<AtomicBool>,
}

impl Server {
    fn new(options: Options, closed: CancellationToken) -> Self {
        Self {
            connection: Arc::new(Connection::new(options, closed)),
            subscriptions: Subscriptions::default(),
            log_level: Arc::new(Mutex::new(LoggingLevel::Info)),
            is_watching: Arc::default(),
        }
    }

    async fn call(
        &self,
        request: CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, Problem> {
        let arguments = request.arguments.unwrap_or_default();
        if !tools::names().contains(&&*request.name) {
            return Err(Problem::NoTool(request.name.chars().take(60).collect()));
        }
        let call = Call::begin(&self.connection, context).await?;
        if mcp_task::is_negotiated(context) && request.name == <tools::Run as tools::Tool>::NAME {
            return Ok(mcp_task::create(arguments, &call).await?.into());
        }
        Ok(tools::call(&request.name, arguments, &call).await?.into())
    }

    /// Watches for ends of tasks, unless that is done already. Only clients of the older lifecycle are
    /// told of them by log messages.
    fn watch(&self, peer: &Peer<RoleServer>) {
        if peer.peer_info().is_none() || self.is_watching.swap(true, Ordering::Relaxed) {
            return;
        }
        let (connection, peer) = (Arc::clone(&self.connection), peer.clone());
        let (level, is_watching) = (Arc::clone(&self.log_level), Arc::clone(&self.is_watching));
        tokio::spawn(async move {
            notices::tell_of_ends(&connection, &peer, &level).await;
            is_watching.store(false, Ordering::Relaxed);
        });
    }

    /// Completes a request that is no tool call.
    async fn respond<T>(
        &self,
        context: &RequestContext<RoleServer>,
        work: impl AsyncFnOnce(&Call<'_>) -> Result<T, Problem>,
    ) -> Result<T, ErrorData> {
        let work = async { work(&Call::begin(&self.connection, context).await?).await };
        let answer = answered(work).await;
        answer.map_err(|problem| self.protocol_error(problem))
    }

    /// The error of a request that is no tool call.
    fn protocol_error(&self, problem: Problem) -> ErrorData {
        let problem = self.connection.noted(problem);
        match &problem {
            Problem::NoTask { .. } | Problem::Ambiguous { .. } | Problem::Arguments(_) => {
                ErrorData::invalid_params(problem.text(), None)
            }
            Problem::Daemon(error)
                if error
                    .refusal()
                    .is_some_and(|refusal| refusal.code == Code::InvalidArgument) =>
            {
                ErrorData::invalid_params(problem.text(), None)
            }
            Problem::NoTool(_)
            | Problem::Cursor { .. }
            | Problem::Cancelled(_)
            | Problem::NotStarted
            | Problem::Defect
            | Problem::TooLong(..)
            | Problem::Away(_)
            | Problem::MaybeStarted(_)
            | Problem::Started { .. }
            | Problem::NoAnswer
            | Problem::Daemon(_) => ErrorData::internal_error(problem.text(), None),
        }
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_logging()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_tools()
            .enable_tasks()
            .build();
        let server = Implementation::new("heeler", env!("CARGO_PKG_VERSION")).with_title("Heeler");
        ServerConfig::new(capabilities)
            .with_server_info(server)
            .with_instructions(INSTRUCTIONS)
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        self.watch(&context.peer);
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tools::all()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        tools::all().into_iter().find(|tool| tool.name == name)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.watch(&context.peer);
        let result = answered(self.call(request, &context)).await;
        Ok(result.unwrap_or_else(|problem| {
            let text = self.connection.noted(problem).text();
            CallToolResult::error(vec![ContentBlock::text(text)]).into()
        }))
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        let get = async |call: &Call<'_>| mcp_task::get(&request.task_id, call).await;
        self.respond(&context, get).await
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        // A task asks for nothing, so there is no response that it could wait for.
        let find = async |call: &Call<'_>| mcp_task::find(&request.task_id, call).await;
        self.respond(&context, find).await.map(drop)
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let cancel = async |call: &Call<'_>| mcp_task::cancel(&request.task_id, call).await;
        self.respond(&context, cancel).await
    }

    async fn list_resources(
        &self,
        page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let cursor = page.and_then(|page| page.cursor);
        let list = async |call: &Call<'_>| resources::list(cursor, call).await;
        self.respond(&context, list).await
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(
            resources::templates(),
        ))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let uri = resources::Uri::parse(&request.uri)?;
        let read = async |call: &Call<'_>| resources::read(&uri, call).await;
        Ok(self.respond(&context, read).await?.into())
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let uri = resources::Uri::parse(&request.uri)?;
        let source = async |call: &Call<'_>| uri.source(call).await;
        let source = self.respond(&context, source).await?;
        self.subscriptions
            .add(source, context.peer.clone(), &self.connection.closed)
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.subscriptions.remove(&request.uri);
        Ok(())
    }

    fn accepted_subscription_filter(
        &self,
        asked: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        Some(resources::accepted(asked))
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let sources = async |call: &Call<'_>| resources::sources(context.accepted(), call).await;
        let sources = self.respond(context.request_context(), sources).await?;
        tokio::select! {
            () = resources::listen(sources, context.sink()) => {}
            () = context.cancelled() => {}
            () = self.connection.closed.cancelled() => {}
        }
        Ok(())
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        *self
            .log_level
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = request.level;
        Ok(())
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        // rmcp takes a request with malformed parameters for one that it does not know.
        let method = request.method;
        let known = PARAMETERS.iter().find(|(known, _)| *known == method);
        Err(match known {
            Some((_, parameters)) => {
                ErrorData::invalid_params(format!("{method} takes {parameters}"), None)
            }
            None => ErrorData::new(ErrorCode::METHOD_NOT_FOUND, method, None),
        })
    }
}
