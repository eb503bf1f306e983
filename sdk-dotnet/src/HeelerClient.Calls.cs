using System.Diagnostics;
using System.Runtime.CompilerServices;
using Grpc.Core;
using Heeler.V1;

namespace Heeler.Client;

/// <content>A method for every call of the service but those that are about output, the foreground or queues.</content>
public sealed partial class HeelerClient
{
    /// <summary>
    /// Starts a task and returns when its leader runs or, if it has to wait for its turn, at once. What the daemon did
    /// differently from what was asked for is in <see cref="HeelerTask.Notices"/>.
    /// </summary>
    /// <exception cref="HeelerRefusedException">The daemon said no; nothing was started.</exception>
    public async Task<HeelerTask> SpawnAsync(SpawnOptions options, CancellationToken cancellationToken = default)
    {
        ArgumentNullException.ThrowIfNull(options);
        var answer = await SpawnAsync(options.ToRequest(), cancellationToken).ConfigureAwait(false);
        return new HeelerTask(this, Present(answer.Task).Id, answer.Notices);
    }

    /// <summary>Starts a task, and gives its first state and the revision of it.</summary>
    public Task<SpawnResponse> SpawnAsync(SpawnRequest request, CancellationToken cancellationToken = default)
    {
        ArgumentNullException.ThrowIfNull(request);
        var repeat = request.RequestId.Length > 0 ? Repeat.Always : Repeat.IfUnheard;
        return CallAsync(repeat, call => Raw.SpawnAsync(request, call), cancellationToken);
    }

    /// <summary>The handle of a task. Nothing is asked: the id may be unknown.</summary>
    public HeelerTask GetTask(string taskId)
    {
        ArgumentNullException.ThrowIfNull(taskId);
        return new HeelerTask(this, taskId, []);
    }

    /// <summary>
    /// Stops a task and its whole tree, and returns when it is proven gone. A task that is over already is no error: the result
    /// says so.
    /// </summary>
    /// <param name="taskId">Which task.</param>
    /// <param name="options">How. None: gracefully, with the task's own grace.</param>
    /// <param name="cancellationToken">Ends the call, and not the stopping of the task.</param>
    public async Task<CancelResult> CancelBackgroundTaskAsync(
        string taskId, CancelOptions? options = null, CancellationToken cancellationToken = default)
    {
        var request = (options ?? new CancelOptions()).ForTask(taskId);
        return CancelOptions.ResultOf(taskId, await CancelAsync(request, cancellationToken).ConfigureAwait(false));
    }

    /// <summary>Stops every live task of a session. None there: an empty list.</summary>
    public async Task<IReadOnlyList<CancelResult>> CancelSessionAsync(
        string sessionId, CancelOptions? options = null, CancellationToken cancellationToken = default)
    {
        var request = (options ?? new CancelOptions()).ForSession(sessionId);
        return (await CancelAsync(request, cancellationToken).ConfigureAwait(false)).Results;
    }

    /// <summary>Stops every live task that matches. A filter that matches all is refused.</summary>
    public async Task<IReadOnlyList<CancelResult>> CancelMatchingAsync(
        TaskFilter filter, CancelOptions? options = null, CancellationToken cancellationToken = default)
    {
        var request = (options ?? new CancelOptions()).ForMatching(filter);
        return (await CancelAsync(request, cancellationToken).ConfigureAwait(false)).Results;
    }

    /// <summary>Stops what the request names.</summary>
    public Task<CancelResponse> CancelAsync(CancelRequest request, CancellationToken cancellationToken = default) =>
        CallAsync(Repeat.Always, call => Raw.CancelAsync(request, call), cancellationToken);

    /// <summary>Every task that is asked for, page after page: live ones first, then newest first.</summary>
    /// <param name="request">What to list. None: the tasks that are not over.</param>
    /// <param name="cancellationToken">Ends the listing.</param>
    public async IAsyncEnumerable<BackgroundTask> ListAsync(
        ListRequest? request = null, [EnumeratorCancellation] CancellationToken cancellationToken = default)
    {
        var next = request?.Clone() ?? new ListRequest();
        do
        {
            var page = await ListPageAsync(next, cancellationToken).ConfigureAwait(false);
            foreach (var task in page.Tasks) yield return task;
            next.PageToken = page.NextPageToken;
        }
        while (next.PageToken.Length > 0);
    }

    /// <summary>One page of tasks, and the revision at which it was true.</summary>
    public Task<ListResponse> ListPageAsync(ListRequest request, CancellationToken cancellationToken = default) =>
        CallAsync(Repeat.Always, call => Raw.ListAsync(request, call), cancellationToken);

    /// <summary>One task whole, with its processes, its resource use and the end of its output.</summary>
    public Task<InspectResponse> InspectAsync(string taskId, CancellationToken cancellationToken = default)
    {
        ArgumentNullException.ThrowIfNull(taskId);
        return InspectAsync(new InspectRequest { TaskId = taskId }, cancellationToken);
    }

    /// <summary>One task whole, with as much of its output as the request says.</summary>
    public Task<InspectResponse> InspectAsync(InspectRequest request, CancellationToken cancellationToken = default) =>
        CallAsync(Repeat.Always, call => Raw.InspectAsync(request, call), cancellationToken);

    /// <summary>
    /// Every event from a point on, for as long as it is enumerated, across every restart of the daemon: none is lost and none
    /// comes twice.
    /// </summary>
    /// <remarks>
    /// It ends only with an error that reconnecting cannot cure: a revision that the daemon no longer has, another state
    /// directory, another user's daemon, a bad argument. A watcher that pauses costs the daemon nothing and misses nothing.
    /// Each enumeration begins where the options say.
    /// </remarks>
    public async IAsyncEnumerable<WatchItem> WatchEventsAsync(
        WatchOptions? options = null, [EnumeratorCancellation] CancellationToken cancellationToken = default)
    {
        var cursor = new WatchCursor((options ?? new WatchOptions()).ToRequest());
        var watch = new Resuming<WatchEventsResponse, WatchItem>(this, cursor, options?.GiveUpAfter);
        await foreach (var item in watch.ItemsAsync(cancellationToken).ConfigureAwait(false)) yield return item;
    }

    /// <summary>Waits until a task is over, for as long as it takes, and gives its last state.</summary>
    public async Task<BackgroundTask> WaitAsync(string taskId, CancellationToken cancellationToken = default) =>
        (await WaitAllAsync([taskId], null, cancellationToken).ConfigureAwait(false)).Met is [var task, ..]
            ? task
            : throw new IncompleteAnswerException("met");

    /// <summary>Waits until a task is over, or this long; none: it is not over yet.</summary>
    public async Task<BackgroundTask?> WaitAsync(
        string taskId, TimeSpan timeout, CancellationToken cancellationToken = default) =>
        (await WaitAllAsync([taskId], timeout, cancellationToken).ConfigureAwait(false)).Met.FirstOrDefault();

    /// <summary>Waits until all of these are over, or this long.</summary>
    public Task<WaitResponse> WaitAllAsync(
        IEnumerable<string> taskIds, TimeSpan? timeout = null, CancellationToken cancellationToken = default) =>
        WaitAsync(new WaitRequest { TaskIds = { taskIds }, Timeout = Time.ToLimit(timeout) }, cancellationToken);

    /// <summary>Waits until one of these is over, or this long.</summary>
    public Task<WaitResponse> WaitAnyAsync(
        IEnumerable<string> taskIds, TimeSpan? timeout = null, CancellationToken cancellationToken = default) =>
        WaitAsync(new WaitRequest { TaskIds = { taskIds }, Count = 1, Timeout = Time.ToLimit(timeout) }, cancellationToken);

    /// <summary>Waits until every task of a session is over, those included that start meanwhile, or this long.</summary>
    public Task<WaitResponse> WaitSessionAsync(
        string sessionId, TimeSpan? timeout = null, CancellationToken cancellationToken = default) =>
        WaitAsync(new WaitRequest { SessionId = sessionId, Timeout = Time.ToLimit(timeout) }, cancellationToken);

    /// <summary>
    /// Waits for tasks to be over. The timeout counts across restarts of the daemon. Ending a wait, however it ends, ends no
    /// task.
    /// </summary>
    public Task<WaitResponse> WaitAsync(WaitRequest request, CancellationToken cancellationToken = default)
    {
        ArgumentNullException.ThrowIfNull(request);
        var begun = Stopwatch.GetTimestamp();
        return CallAsync(Repeat.Always, Attempt, cancellationToken);

        AsyncUnaryCall<WaitResponse> Attempt(CallOptions call)
        {
            var rest = request.Clone();
            if (rest.Timeout is not null) rest.Timeout = Time.Less(rest.Timeout, Stopwatch.GetElapsedTime(begun));
            return Raw.WaitAsync(rest, call);
        }
    }

    /// <summary>Forgets these tasks and their output: all of them or, if one is not over or not known, none.</summary>
    public Task<RemoveResponse> RemoveAsync(IEnumerable<string> taskIds, CancellationToken cancellationToken = default) =>
        RemoveAsync(new RemoveRequest { Tasks = new TaskIds { TaskIds_ = { taskIds } } }, cancellationToken);

    /// <summary>Forgets a task and its output. It must be over.</summary>
    public Task<RemoveResponse> RemoveAsync(string taskId, CancellationToken cancellationToken = default) =>
        RemoveAsync([taskId], cancellationToken);

    /// <summary>Forgets every finished task that matches, and gives their ids.</summary>
    public async Task<IReadOnlyList<string>> RemoveFinishedAsync(
        TaskFilter? filter = null, CancellationToken cancellationToken = default)
    {
        var request = new RemoveRequest { Finished = filter ?? new TaskFilter() };
        return (await RemoveAsync(request, cancellationToken).ConfigureAwait(false)).RemovedTaskIds;
    }

    /// <summary>Forgets what the request names.</summary>
    public Task<RemoveResponse> RemoveAsync(RemoveRequest request, CancellationToken cancellationToken = default) =>
        CallAsync(Repeat.IfUnheard, call => Raw.RemoveAsync(request, call), cancellationToken);

    /// <summary>Ends the daemon. The answer comes as it begins to close: it is gone a moment later.</summary>
    /// <param name="request">What becomes of the tasks. None: they run on.</param>
    /// <param name="cancellationToken">Ends the call, and not the shutdown.</param>
    public async Task<ShutdownResponse> ShutdownAsync(
        ShutdownRequest? request = null, CancellationToken cancellationToken = default)
    {
        try
        {
            // Unlike others it is not repeated until somebody hears it, for that would be the next daemon.
            using var call = Raw.ShutdownAsync(request ?? new ShutdownRequest(), cancellationToken: cancellationToken);
            return await call.ResponseAsync.ConfigureAwait(false);
        }
        catch (RpcException error)
        {
            throw Explain(error, cancellationToken);
        }
    }
}
