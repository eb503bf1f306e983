using Heeler.V1;

namespace Heeler.Client;

/// <summary>
/// The worker of one task: its stop requests, its progress, its messages and its result. It is thread-safe. Disposing it leaves
/// the task.
/// </summary>
/// <remarks>
/// <para>
/// The connection is kept by itself, across restarts of the daemon, and so is the lease of a hosted task. That is no sign of
/// activity: a worker that hangs becomes stale. <see cref="ReportAsync"/> and <see cref="HeartbeatAsync"/> are.
/// </para>
/// <para>Every member is virtual, so that a test of your own worker can replace it, without a daemon.</para>
/// </remarks>
public abstract partial class HeelerWork : IAsyncDisposable
{
    /// <summary>Creates a worker without a stream, as the base of a fake.</summary>
    protected HeelerWork()
    {
    }

    /// <summary>A handle on the task.</summary>
    public virtual HeelerTask Handle => throw NotOverridden();

    /// <summary>Cancelled when the task is asked to stop: finish the present tool call and begin no new one.</summary>
    public virtual CancellationToken Stopping => CancellationToken.None;

    /// <summary>
    /// Cancelled when the work must stop now: the soft phase of a stop is over, the task has ended, or another worker has taken
    /// its place.
    /// </summary>
    public virtual CancellationToken Cancelled => CancellationToken.None;

    /// <summary>The latest request to stop, with its reason and its deadline. Null: there was none.</summary>
    public virtual WorkCancel? CancelRequest => null;

    /// <summary>Waits until a queued task may begin. Returns null then, and the task if it has ended instead.</summary>
    /// <param name="cancellationToken">Ends the wait.</param>
    public virtual Task<BackgroundTask?> AdmittedAsync(CancellationToken cancellationToken = default) => throw NotOverridden();

    /// <summary>
    /// Streams the messages to the task, in order, up to its end. A message is received once it was returned, and is returned
    /// once, also across restarts of the daemon.
    /// </summary>
    /// <param name="cancellationToken">Ends the stream. The next one continues after the last message that was returned.</param>
    public virtual IAsyncEnumerable<TaskMessage> MessagesAsync(CancellationToken cancellationToken = default) =>
        throw NotOverridden();

    /// <summary>
    /// Delivers the result, and returns when it is durable. It ends a hosted task; the processes of any other task go on until
    /// they exit. After the end of the task it does nothing.
    /// </summary>
    /// <param name="result">The result. A task has one.</param>
    /// <param name="cancellationToken">Ends the wait. The result is delivered nevertheless, as long as the worker exists.</param>
    /// <exception cref="InvalidOperationException">Another result was delivered.</exception>
    public virtual Task DeliverAsync(WorkResult result, CancellationToken cancellationToken = default) => throw NotOverridden();

    /// <summary>Waits for the end of the task and returns its last state.</summary>
    /// <param name="cancellationToken">Ends the wait, not the task.</param>
    /// <exception cref="HeelerRefusedException">
    /// The daemon refused the worker; the reason is <see cref="ErrorReason.WorkerReplaced"/> if another one took its place.
    /// </exception>
    public virtual Task<BackgroundTask> EndedAsync(CancellationToken cancellationToken = default) => throw NotOverridden();

    /// <summary>Delivers the result of a hosted task, and returns the finished task.</summary>
    /// <param name="result">The result.</param>
    /// <param name="cancellationToken">Ends the wait. The result is delivered nevertheless, as long as the worker exists.</param>
    public virtual async Task<BackgroundTask> FinishAsync(WorkResult result, CancellationToken cancellationToken = default)
    {
        await DeliverAsync(result, cancellationToken).ConfigureAwait(false);
        return await EndedAsync(cancellationToken).ConfigureAwait(false);
    }

    /// <summary>
    /// Leaves the task, once all progress is delivered. A hosted task without a result would be lost after its lease: it gets
    /// one with the status <see cref="WorkerStatus.Cancelled"/>. A daemon that is away is waited for only for
    /// <see cref="HeelerClientOptions.RetryFor"/>.
    /// </summary>
    public virtual ValueTask DisposeAsync()
    {
        GC.SuppressFinalize(this);
        return ValueTask.CompletedTask;
    }

    private static InvalidOperationException NotOverridden() =>
        new("this worker has no stream: override the member that was called");
}
