using System.Runtime.ExceptionServices;
using Heeler.V1;

namespace Heeler.Client;

/// <summary>
/// A command in the foreground, from its start until the attachment ends. A caller that leaves early, by the token or because its
/// own code failed, first cancels or detaches the task and disconnects only then: for the daemon, a client that just disconnects
/// is a different case.
/// </summary>
internal sealed class ForegroundRun(HeelerClient client, HeelerTask task, RunOptions options)
{
    private readonly RunOutput _output = new(options);
    private volatile Exception? _callerError;

    internal async Task<RunResult> ToEndAsync(CancellationToken cancellation)
    {
        using var disconnect = new CancellationTokenSource();
        var attached = AttachAsync(disconnect.Token);
        // It is not waited for: a read of the caller's stream may have no end.
        _ = FeedAsync(disconnect);
        try
        {
            return await attached.WaitAsync(cancellation).ConfigureAwait(false);
        }
        catch (OperationCanceledException) when (cancellation.IsCancellationRequested && _callerError is null)
        {
            await LeaveAsync(options.Reason).ConfigureAwait(false);
            if (options.WhenCancelled == RunCancellation.Detach) return await attached.ConfigureAwait(false);
            throw;
        }
        catch when (_callerError is not null)
        {
            await LeaveAsync(_callerError.Message).ConfigureAwait(false);
            ExceptionDispatchInfo.Throw(_callerError);
            throw;
        }
        finally
        {
            await disconnect.CancelAsync().ConfigureAwait(false);
            await ((Task)attached).ConfigureAwait(ConfigureAwaitOptions.SuppressThrowing);
        }
    }

    private async Task<RunResult> AttachAsync(CancellationToken disconnect)
    {
        await CallerAsync(() =>
        {
            options.OnStarted?.Invoke(task);
            return ValueTask.CompletedTask;
        }).ConfigureAwait(false);
        var attach = new AttachOptions { ForegroundOnly = true, GiveUpAfter = options.GiveUpAfter };
        await foreach (var item in task.AttachAsync(attach, disconnect).ConfigureAwait(false))
        {
            if (item is AttachItem.Output(var chunks, _))
            {
                foreach (var chunk in chunks)
                    await CallerAsync(() => _output.WriteAsync(chunk, disconnect)).ConfigureAwait(false);
            }
            if (item is not AttachItem.Ended(var last, var reason)) continue;
            await CallerAsync(() => new ValueTask(_output.FlushAsync(disconnect))).ConfigureAwait(false);
            return _output.ToResult(task, last, reason);
        }
        throw new IncompleteAnswerException("ended");
    }

    /// <summary>Writes the caller's stream to the command's stdin. A command that does not read to its end is no failure.</summary>
    private async Task FeedAsync(CancellationTokenSource disconnect)
    {
        if (options.Stdin is null) return;
        try
        {
            // Closed only at the end of the stream: a command that is detached keeps its stdin.
            var input = task.OpenInput();
            await options.Stdin.CopyToAsync(input, disconnect.Token).ConfigureAwait(false);
            if (input is InputWriter writer) await writer.CloseAsync(disconnect.Token).ConfigureAwait(false);
            else await input.DisposeAsync().ConfigureAwait(false);
        }
        catch (Exception) when (disconnect.IsCancellationRequested)
        {
            // The run has ended.
        }
        catch (HeelerException error) when (InputWriter.IsOver(error))
        {
            // The command has ended, or does not read on.
        }
        catch (Exception error)
        {
            // A command that waits for the rest of its stdin would wait for ever.
            _callerError = error;
            await disconnect.CancelAsync().ConfigureAwait(false);
        }
    }

    /// <summary>Runs the caller's code. If it fails, the run ends: the output has no destination any more.</summary>
    private async Task CallerAsync(Func<ValueTask> step)
    {
        try
        {
            await step().ConfigureAwait(false);
        }
        catch (Exception error)
        {
            _callerError = error;
            throw;
        }
    }

    /// <summary>Cancels or detaches the task. It takes no token: it is the effect of one.</summary>
    private async Task LeaveAsync(string? reason)
    {
        var filter = new TaskFilter { TaskIds = { task.Id } };
        switch (options.WhenCancelled)
        {
            case RunCancellation.Detach:
                var detach = (options.Detach ?? new DetachOptions()).ToRequest(filter);
                detach.Reason = Reason(reason ?? options.Detach?.Reason);
                await client.DetachAsync(detach, CancellationToken.None).ConfigureAwait(false);
                break;
            case RunCancellation.Cancel:
                var cancel = (options.Cancel ?? new CancelOptions()).ToRequest(filter);
                cancel.Reason = Reason(reason ?? options.Cancel?.Reason);
                var answer = await client.CancelAsync(cancel, CancellationToken.None).ConfigureAwait(false);
                var stopped = CancelOptions.ResultOf(task.Id, answer).Task;
                if (stopped.Survivors.Count > 0) throw new TaskSurvivedException(stopped);
                break;
            default:
                throw new InvalidOperationException($"unknown {nameof(RunCancellation)}: {options.WhenCancelled}");
        }
    }

    /// <summary>A reason that is too long would be refused, and the task would run on.</summary>
    private static string Reason(string? reason) => LimitedText.Cut(reason ?? "", LimitedText.Reason);
}
