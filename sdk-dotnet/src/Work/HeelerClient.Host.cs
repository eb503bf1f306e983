using Heeler.V1;

namespace Heeler.Client;

/// <content>Work, as the worker of a task.</content>
public partial class HeelerClient
{
    /// <summary>The variable that names the task of a process.</summary>
    private const string OwnTask = "HEELER_TASK_ID";

    /// <summary>
    /// Registers a hosted task, runs the body as its worker once the task is admitted, and delivers the result of the body.
    /// Returns the finished task.
    /// </summary>
    /// <remarks>
    /// <para>
    /// <see cref="HeelerWork.Stopping"/> tells the body to begin nothing new, and its own token to return now. A body that throws
    /// an <see cref="OperationCanceledException"/> then has an empty result with the status
    /// <see cref="WorkerStatus.Cancelled"/>. For any other exception, the task fails with its message, and the call throws it
    /// again. The task may end before the body does, because it did not stop in time or because this program was away for longer
    /// than the lease: then the result is dropped, and the call returns the task as it ended.
    /// </para>
    /// <para>The daemon may be away meanwhile: the body goes on, and the result is delivered when the daemon is back.</para>
    /// </remarks>
    /// <param name="options">The task.</param>
    /// <param name="body">The work. Its token is cancelled when the work must stop now.</param>
    /// <param name="cancellationToken">
    /// Stops the task, with <see cref="HostOptions.Reason"/> as its reason, and cancels the body's token at once. The task is
    /// <see cref="TaskState.Cancelled"/> and keeps the result of the body, and the call throws an
    /// <see cref="OperationCanceledException"/>.
    /// </param>
    /// <exception cref="HeelerRefusedException">
    /// The task was refused, or the worker was: with <see cref="ErrorReason.WorkerReplaced"/>, another one took its place.
    /// </exception>
    public virtual async Task<BackgroundTask> HostAsync(
        HostOptions options,
        Func<HeelerWork, CancellationToken, Task<WorkResult>> body,
        CancellationToken cancellationToken = default)
    {
        ArgumentNullException.ThrowIfNull(options);
        ArgumentNullException.ThrowIfNull(body);
        var work = await RegisterToHostAsync(options, cancellationToken).ConfigureAwait(false);
        await using (work.ConfigureAwait(false))
        {
            var stop = new CallerStop(work, options, cancellationToken);
            await using (stop.ConfigureAwait(false))
            {
                return await work.AdmittedAsync(cancellationToken).ConfigureAwait(false)
                    ?? await RunBodyAsync(work, body, stop, cancellationToken).ConfigureAwait(false);
            }
        }
    }

    /// <summary>Hosts a body without a result of its own: when it returns, the work is done.</summary>
    /// <inheritdoc cref="HostAsync(HostOptions, Func{HeelerWork, CancellationToken, Task{WorkResult}}, CancellationToken)"/>
    public virtual Task<BackgroundTask> HostAsync(
        HostOptions options, Func<HeelerWork, CancellationToken, Task> body, CancellationToken cancellationToken = default)
    {
        ArgumentNullException.ThrowIfNull(body);
        return HostAsync(options, DoneAsync, cancellationToken);

        async Task<WorkResult> DoneAsync(HeelerWork work, CancellationToken cancelled)
        {
            await body(work, cancelled).ConfigureAwait(false);
            return WorkResult.Ok();
        }
    }

    /// <summary>
    /// Registers a hosted task and returns its worker. The task exists then; <see cref="HeelerWork.AdmittedAsync"/> waits until it
    /// may begin.
    /// </summary>
    /// <param name="options">The task.</param>
    /// <param name="cancellationToken">Ends the call. A task that is created nevertheless is ended.</param>
    public virtual Task<HeelerWork> RegisterAsync(HostOptions options, CancellationToken cancellationToken = default)
    {
        ArgumentNullException.ThrowIfNull(options);
        return RegisterAsync(options.ToRequest(), cancellationToken);
    }

    /// <summary>Registers the hosted task of the request.</summary>
    public virtual Task<HeelerWork> RegisterAsync(WorkRegister request, CancellationToken cancellationToken = default)
    {
        ArgumentNullException.ThrowIfNull(request);
        var retry = request.RequestId.Length > 0 ? Retry.Always : Retry.IfUnprocessed;
        return Worker.StartAsync(this, Connection, new WorkRequest { Register = request }, retry, cancellationToken);
    }

    /// <summary>Joins a task that exists as its worker.</summary>
    /// <exception cref="HeelerRefusedException">
    /// There is no such task or, with <see cref="ErrorReason.WorkerConnected"/>, it has a worker.
    /// </exception>
    public virtual Task<HeelerWork> JoinAsync(string taskId, CancellationToken cancellationToken = default)
    {
        ArgumentNullException.ThrowIfNull(taskId);
        return JoinAsync(new WorkJoin { TaskId = taskId }, cancellationToken);
    }

    /// <summary>Joins the task of the request, which may take the place of another worker.</summary>
    public virtual Task<HeelerWork> JoinAsync(WorkJoin request, CancellationToken cancellationToken = default)
    {
        ArgumentNullException.ThrowIfNull(request);
        return Worker.StartAsync(this, Connection, new WorkRequest { Join = request }, Retry.Always, cancellationToken);
    }

    /// <summary>Joins the task that this process runs in. Null: it runs in none.</summary>
    public virtual async Task<HeelerWork?> CurrentAsync(CancellationToken cancellationToken = default)
    {
        var taskId = Environment.GetEnvironmentVariable(OwnTask);
        return string.IsNullOrEmpty(taskId) ? null : await JoinAsync(taskId, cancellationToken).ConfigureAwait(false);
    }

    /// <summary>Registers the task of a body. If the caller does not wait for it any more, it is stopped.</summary>
    private async Task<HeelerWork> RegisterToHostAsync(HostOptions options, CancellationToken cancellation)
    {
        cancellation.ThrowIfCancellationRequested();
        var registering = RegisterAsync(options, CancellationToken.None);
        try
        {
            return await registering.WaitAsync(cancellation).ConfigureAwait(false);
        }
        catch (OperationCanceledException) when (!registering.IsFaulted)
        {
            _ = CallerStop.AbandonAsync(registering, options);
            throw;
        }
    }

    private static async Task<BackgroundTask> RunBodyAsync(
        HeelerWork work,
        Func<HeelerWork, CancellationToken, Task<WorkResult>> body,
        CallerStop stop,
        CancellationToken cancellation)
    {
        using var cancelled = CancellationTokenSource.CreateLinkedTokenSource(work.Cancelled, cancellation);
        WorkResult result;
        try
        {
            // A task that was stopped meanwhile does not begin.
            cancelled.Token.ThrowIfCancellationRequested();
            result = await body(work, cancelled.Token).ConfigureAwait(false)
                ?? throw new InvalidOperationException("the body of the hosted task returned no result");
        }
        catch (OperationCanceledException)
            when (work.Stopping.IsCancellationRequested || cancellation.IsCancellationRequested)
        {
            result = WorkResult.Cancelled();
        }
        catch (Exception error)
        {
            await stop.RecordedAsync().ConfigureAwait(false);
            var failed = work.DeliverAsync(WorkResult.Failed(error), cancellation);
            await failed.ConfigureAwait(ConfigureAwaitOptions.SuppressThrowing);
            throw;
        }
        await stop.RecordedAsync().ConfigureAwait(false);
        return await work.FinishAsync(result, cancellation).ConfigureAwait(false);
    }
}
