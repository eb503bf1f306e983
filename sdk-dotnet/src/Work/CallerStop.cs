namespace Heeler.Client;

/// <summary>
/// The stop of a hosted task by the token of its caller. The daemon records it, with the caller's reason, before it gets the
/// worker's result, which would end the task without it.
/// </summary>
internal sealed class CallerStop : IAsyncDisposable
{
    /// <summary>Time for the daemon to record the stop. After that the result ends the task, or its lease.</summary>
    private static readonly TimeSpan _limit = TimeSpan.FromSeconds(5);

    private readonly CancellationToken _cancellation;
    private readonly CancellationTokenRegistration _registration;
    private readonly Lazy<Task> _recorded;

    /// <summary>Records the stop as soon as the token is cancelled.</summary>
    internal CallerStop(HeelerWork work, HostOptions options, CancellationToken cancellation)
    {
        _cancellation = cancellation;
        _recorded = new Lazy<Task>(() => RecordAsync(work, options));
        _registration = cancellation.UnsafeRegister(static recorded => _ = ((Lazy<Task>)recorded!).Value, _recorded);
    }

    /// <summary>Waits until the stop is recorded, if the token is cancelled.</summary>
    internal Task RecordedAsync() => _cancellation.IsCancellationRequested ? _recorded.Value : Task.CompletedTask;

    /// <summary>Stops and leaves a task whose caller did not wait for its registration.</summary>
    internal static async Task AbandonAsync(Task<HeelerWork> registering, HostOptions options)
    {
        try
        {
            var work = await registering.ConfigureAwait(false);
            await RecordAsync(work, options).ConfigureAwait(false);
            await work.DisposeAsync().ConfigureAwait(false);
        }
        catch (Exception error) when (error is HeelerException or OperationCanceledException)
        {
            // There is no task to leave.
        }
    }

    public async ValueTask DisposeAsync()
    {
        await _registration.DisposeAsync().ConfigureAwait(false);
        await RecordedAsync().ConfigureAwait(false);
    }

    private static async Task RecordAsync(HeelerWork work, HostOptions options)
    {
        using var limit = new CancellationTokenSource(_limit);
        try
        {
            var cancel = new CancelOptions
            {
                Reason = LimitedText.Cut((options.Original ?? options).Reason ?? "", LimitedText.Reason),
                // The body knows by its token: there is no soft phase.
                Stop = new StopOptions { SoftGrace = TimeSpan.Zero },
                Wait = false,
            };
            await work.Handle.CancelAsync(cancel, limit.Token).ConfigureAwait(false);
        }
        catch (Exception error) when (error is HeelerException or OperationCanceledException or InvalidOperationException)
        {
            // The daemon is away, or the worker is a fake without a task.
        }
    }
}
