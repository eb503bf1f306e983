using System.Diagnostics;
using Heeler.V1;

namespace Heeler.Client;

/// <summary>
/// Keeps the stream of a worker: it reconnects, keeps the lease, and sends again what the daemon has not acknowledged. The
/// <see cref="WorkState"/> alone knows what there is to send.
/// </summary>
internal sealed class WorkStream(Connection connection, WorkState state) : IDisposable
{
    /// <summary>Signs of presence in the time of one lease.</summary>
    private const int SignsInLease = 3;

    /// <summary>A worker must be back within its lease, so it tries several times in it.</summary>
    private const int TriesInLease = 4;

    /// <summary>A sign that keeps the lease and is no activity.</summary>
    private static readonly WorkRequest _present = new() { Heartbeat = new WorkHeartbeat { LeaseOnly = true } };

    private readonly CancellationTokenSource _closing = new();
    private Task _running = Task.CompletedTask;

    /// <summary>Opens the first stream and returns when the task is joined; it runs in the background from then on.</summary>
    /// <param name="first">The first message.</param>
    /// <param name="retry">The repetition of an attempt that fails.</param>
    /// <param name="cancellation">Ends the repetition. An attempt is not ended: it may have created a task.</param>
    internal async Task StartAsync(WorkRequest first, Retry retry, CancellationToken cancellation)
    {
        var (open, joined) = await connection.RepeatAsync(
            retry,
            connection.RetryFor,
            () => WorkConnection.OpenAsync(connection, first, CancellationToken.None),
            cancellation).ConfigureAwait(false);
        state.Joined(joined);
        _running = RunAsync(open);
    }

    /// <summary>Ends when the worker has nothing more to say or, at the latest, after this time.</summary>
    internal async Task CloseAsync(TimeSpan limit)
    {
        try
        {
            await _running.WaitAsync(limit).ConfigureAwait(false);
        }
        catch (TimeoutException)
        {
            await _closing.CancelAsync().ConfigureAwait(false);
            await _running.ConfigureAwait(false);
        }
    }

    public void Dispose() => _closing.Dispose();

    /// <summary>Serves one stream after the other, until the worker has no task any more. It does not throw.</summary>
    private async Task RunAsync(WorkConnection open)
    {
        while (true)
        {
            Exception? error;
            using (open) error = await ServeAsync(open).ConfigureAwait(false);
            if (error is null) return;
            try
            {
                open = await ReconnectAsync(error).ConfigureAwait(false);
            }
            catch (Exception final)
            {
                state.Fail(final is OperationCanceledException ? error : final);
                return;
            }
        }
    }

    /// <summary>Serves one stream to its end. Returns null if it was the last one, else the error.</summary>
    private async Task<Exception?> ServeAsync(WorkConnection open)
    {
        using var serving = CancellationTokenSource.CreateLinkedTokenSource(_closing.Token);
        using var closing = _closing.Token.UnsafeRegister(static call => ((WorkConnection)call!).Cancel(), open);
        var sending = SendAsync(open, serving.Token);
        Exception? error = null;
        while (!state.Over.IsCompleted && error is null)
        {
            error = await open.NextAsync().ConfigureAwait(false);
            if (error is null) error = Take(open.Current);
        }
        if (error is not null) open.Cancel();
        await serving.CancelAsync().ConfigureAwait(false);
        await sending.ConfigureAwait(ConfigureAwaitOptions.SuppressThrowing);
        if (error is not null) return Left() ? null : error;
        // Disposing the call without its status would cancel the call, and gRPC would log a failure.
        await open.CompleteAsync().ConfigureAwait(false);
        await open.NextAsync().ConfigureAwait(false);
        return null;
    }

    private IncompleteAnswerException? Take(WorkResponse response)
    {
        try
        {
            state.Take(response);
            return null;
        }
        catch (IncompleteAnswerException error)
        {
            return error;
        }
    }

    /// <summary>Returns true if the stream ended because the worker leaves its task.</summary>
    private bool Left()
    {
        if (!state.MayLeave) return false;
        state.Fail(new ObjectDisposedException(nameof(HeelerWork)));
        return true;
    }

    /// <summary>Sends what there is to send, and the signs that keep the lease.</summary>
    private async Task SendAsync(WorkConnection open, CancellationToken cancellation)
    {
        var sign = state.Lease is { } lease ? lease / SignsInLease : Timeout.InfiniteTimeSpan;
        var isDue = false;
        while (true)
        {
            while (state.NextRequest() is { } request)
            {
                isDue = false;
                if (!await open.TrySendAsync(request).ConfigureAwait(false)) return;
            }
            if (isDue && !await open.TrySendAsync(_present).ConfigureAwait(false)) return;
            if (state.MayLeave)
            {
                await open.CompleteAsync().ConfigureAwait(false);
                return;
            }
            isDue = !await state.WaitForRequestAsync(sign, cancellation).ConfigureAwait(false);
        }
    }

    /// <summary>Opens the next stream, or throws if that cannot help.</summary>
    private async Task<WorkConnection> ReconnectAsync(Exception error)
    {
        var backoff = new Backoff(null) { LongestDelay = LongestDelay() };
        var away = Stopwatch.GetTimestamp();
        while (true)
        {
            if (IsFinal(error)) throw error;
            if (state.IsLeaving && Stopwatch.GetElapsedTime(away) >= connection.RetryFor) throw error;
            var begun = Stopwatch.GetTimestamp();
            try
            {
                var (open, joined) = await WorkConnection.OpenAsync(connection, state.Join(), _closing.Token).ConfigureAwait(false);
                state.Joined(joined);
                return open;
            }
            catch (HeelerException failed)
            {
                error = failed;
            }
            var pause = backoff.AfterFailure(Stopwatch.GetElapsedTime(begun), error) ?? Backoff.Longest;
            await Task.Delay(pause, _closing.Token).ConfigureAwait(false);
        }
    }

    private TimeSpan LongestDelay()
    {
        if (state.Lease is not { } lease) return Backoff.Longest;
        var part = lease / TriesInLease;
        return part < Backoff.Longest ? part : Backoff.Longest;
    }

    /// <summary>Returns true if joining again would fail again.</summary>
    private static bool IsFinal(Exception error) => error switch
    {
        HeelerRefusedException refused => refused.IsFinal || refused.Is(ErrorReason.WorkerReplaced),
        DaemonNotRunningException or DaemonUnreachableException or DaemonDisconnectedException => false,
        _ => true,
    };
}
