using System.Text;
using Heeler.V1;

namespace Heeler.Client;

/// <summary>
/// A command in the foreground, from its start until the attachment ends. A caller that leaves early, by the token or because its
/// own code failed, first cancels or detaches the task and disconnects only then: for the daemon, a client that just disconnects
/// is a different case.
/// </summary>
internal sealed class ForegroundRun(HeelerClient client, HeelerTask task, RunOptions options)
{
    /// <summary>The contract's limit. A longer reason would be refused, and the task would run on.</summary>
    private const int MaxReasonBytes = 4096;

    private readonly RunOutput _output = new(options);
    private volatile Exception? _callerError;

    internal async Task<RunResult> ToEndAsync(CancellationToken cancellation)
    {
        using var disconnect = new CancellationTokenSource();
        var attached = AttachAsync(disconnect.Token);
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
                detach.Reason = Shortened(reason ?? options.Detach?.Reason);
                await client.DetachAsync(detach, CancellationToken.None).ConfigureAwait(false);
                break;
            case RunCancellation.Cancel:
                var cancel = (options.Cancel ?? new CancelOptions()).ToRequest(filter);
                cancel.Reason = Shortened(reason ?? options.Cancel?.Reason);
                var answer = await client.CancelAsync(cancel, CancellationToken.None).ConfigureAwait(false);
                var stopped = CancelOptions.ResultOf(task.Id, answer).Task;
                if (stopped.Survivors.Count > 0) throw new TaskSurvivedException(stopped);
                break;
            default:
                throw new InvalidOperationException($"unknown {nameof(RunCancellation)}: {options.WhenCancelled}");
        }
    }

    private static string Shortened(string? reason)
    {
        var bytes = Encoding.UTF8.GetBytes(reason ?? "");
        if (bytes.Length <= MaxReasonBytes) return reason ?? "";
        var end = MaxReasonBytes;
        while ((bytes[end] & 0xc0) == 0x80) end--;
        return Encoding.UTF8.GetString(bytes.AsSpan(0, end));
    }
}
