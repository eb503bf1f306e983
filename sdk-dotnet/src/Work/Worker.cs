using System.Runtime.CompilerServices;
using System.Runtime.ExceptionServices;
using Heeler.V1;

namespace Heeler.Client;

/// <summary>A worker with a stream.</summary>
internal sealed class Worker : HeelerWork
{
    private readonly Connection _connection;
    private readonly WorkState _state;
    private readonly WorkStream _stream;
    private readonly Lazy<Task> _left;

    private Worker(HeelerClient client, Connection connection, WorkState state, WorkStream stream)
    {
        (_connection, _state, _stream) = (connection, state, stream);
        Handle = client.GetTask(state.TaskId);
        _left = new Lazy<Task>(LeaveAsync);
    }

    /// <inheritdoc/>
    public override HeelerTask Handle { get; }

    /// <inheritdoc/>
    public override CancellationToken Stopping => _state.Stopping;

    /// <inheritdoc/>
    public override CancellationToken Cancelled => _state.Cancelled;

    /// <inheritdoc/>
    public override WorkCancel? CancelRequest => _state.Cancel;

    /// <summary>Registers or joins a task.</summary>
    internal static async Task<HeelerWork> StartAsync(
        HeelerClient client, Connection connection, WorkRequest first, Retry retry, CancellationToken cancellation)
    {
        cancellation.ThrowIfCancellationRequested();
        var starting = JoinedAsync(client, connection, first, retry, cancellation);
        try
        {
            return await starting.WaitAsync(cancellation).ConfigureAwait(false);
        }
        catch (OperationCanceledException) when (!starting.IsFaulted)
        {
            // The daemon may have created the task: it must not wait for a worker.
            _ = AbandonAsync(starting);
            throw;
        }
    }

    /// <inheritdoc/>
    public override async Task<BackgroundTask?> AdmittedAsync(CancellationToken cancellationToken = default)
    {
        await Task.WhenAny(_state.Admitted, _state.Over).WaitAsync(cancellationToken).ConfigureAwait(false);
        return _state.Admitted.IsCompleted ? null : await EndedAsync(cancellationToken).ConfigureAwait(false);
    }

    /// <inheritdoc/>
    public override async Task ReportAsync(WorkProgress progress, CancellationToken cancellationToken = default)
    {
        ArgumentNullException.ThrowIfNull(progress);
        ThrowIfDisposed();
        foreach (var update in progress.ToUpdates()) await _state.ReportAsync(update, cancellationToken).ConfigureAwait(false);
    }

    /// <inheritdoc/>
    public override Task HeartbeatAsync(CancellationToken cancellationToken = default)
    {
        ThrowIfDisposed();
        _state.Beat();
        return Task.CompletedTask;
    }

    /// <inheritdoc/>
    public override async IAsyncEnumerable<TaskMessage> MessagesAsync(
        [EnumeratorCancellation] CancellationToken cancellationToken = default)
    {
        await foreach (var message in _state.Messages.ReadAllAsync(cancellationToken).ConfigureAwait(false))
        {
            _state.Received(message.Number);
            yield return message;
        }
    }

    /// <inheritdoc/>
    public override async Task DeliverAsync(WorkResult result, CancellationToken cancellationToken = default)
    {
        ArgumentNullException.ThrowIfNull(result);
        ThrowIfDisposed();
        _state.Deliver(result);
        await Task.WhenAny(_state.Delivered, _state.Over).WaitAsync(cancellationToken).ConfigureAwait(false);
        if (!_state.Delivered.IsCompleted && _state.Over.Result.Error is { } error) ExceptionDispatchInfo.Throw(error);
    }

    /// <inheritdoc/>
    public override async Task<BackgroundTask> EndedAsync(CancellationToken cancellationToken = default)
    {
        var end = await _state.Over.WaitAsync(cancellationToken).ConfigureAwait(false);
        if (end.Error is not null) ExceptionDispatchInfo.Throw(end.Error);
        return end.Task ?? throw new IncompleteAnswerException("task");
    }

    /// <inheritdoc/>
    public override async ValueTask DisposeAsync()
    {
        await _left.Value.ConfigureAwait(false);
        await base.DisposeAsync().ConfigureAwait(false);
    }

    private static async Task<HeelerWork> JoinedAsync(
        HeelerClient client, Connection connection, WorkRequest first, Retry retry, CancellationToken cancellation)
    {
        var state = new WorkState();
        var stream = new WorkStream(connection, state);
        try
        {
            await stream.StartAsync(first, retry, cancellation).ConfigureAwait(false);
            return new Worker(client, connection, state, stream);
        }
        catch
        {
            stream.Dispose();
            state.Dispose();
            throw;
        }
    }

    /// <summary>Leaves a task whose caller does not wait for it any more.</summary>
    private static async Task AbandonAsync(Task<HeelerWork> starting)
    {
        try
        {
            var work = await starting.ConfigureAwait(false);
            await work.DisposeAsync().ConfigureAwait(false);
        }
        catch (Exception error) when (error is HeelerException or OperationCanceledException)
        {
            // There is no task to leave.
        }
    }

    private void ThrowIfDisposed() => ObjectDisposedException.ThrowIf(_left.IsValueCreated, this);

    private async Task LeaveAsync()
    {
        _state.Leave();
        // After its lease, a hosted task is lost in any case.
        await _stream.CloseAsync(_state.Lease ?? _connection.RetryFor).ConfigureAwait(false);
        _stream.Dispose();
        _state.Dispose();
    }
}
