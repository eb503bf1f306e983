using Heeler.V1;

namespace Heeler.Client;

/// <summary>
/// A command in the foreground, from its start to its release. Whoever leaves, by the token or because output cannot be
/// written, first says what becomes of the command, and lets go of it only then: to the daemon a holder that is just gone is
/// another matter.
/// </summary>
internal sealed class Run(HeelerClient client, HeelerTask task, RunOptions options)
{
    private readonly RunOutput _output = new(options);
    private volatile bool _callerFailed;

    /// <summary>Holds the command until it is released.</summary>
    internal async Task<RunResult> ToReleaseAsync(CancellationToken cancellation)
    {
        using var letGo = new CancellationTokenSource();
        var holding = HoldAsync(letGo.Token);
        try
        {
            return await holding.WaitAsync(cancellation).ConfigureAwait(false);
        }
        catch (OperationCanceledException) when (cancellation.IsCancellationRequested && !_callerFailed)
        {
            await LeaveAsync().ConfigureAwait(false);
            if (options.WhenCancelled == RunCancellation.Detach) return await holding.ConfigureAwait(false);
            throw;
        }
        catch when (_callerFailed)
        {
            await LeaveAsync().ConfigureAwait(false);
            throw;
        }
        finally
        {
            await letGo.CancelAsync().ConfigureAwait(false);
            await ((Task)holding).ConfigureAwait(ConfigureAwaitOptions.SuppressThrowing);
        }
    }

    private async Task<RunResult> HoldAsync(CancellationToken letGo)
    {
        await CallerAsync(() =>
        {
            options.OnStarted?.Invoke(task);
            return ValueTask.CompletedTask;
        }).ConfigureAwait(false);
        var attach = new AttachOptions { ForegroundOnly = true, GiveUpAfter = options.GiveUpAfter };
        await foreach (var item in task.AttachAsync(attach, letGo).ConfigureAwait(false))
        {
            if (item is AttachItem.Output(var chunks, _))
            {
                foreach (var chunk in chunks)
                    await CallerAsync(() => _output.WriteAsync(chunk, letGo)).ConfigureAwait(false);
            }
            if (item is not AttachItem.Released released) continue;
            await CallerAsync(() => new ValueTask(_output.FlushAsync(letGo))).ConfigureAwait(false);
            return new RunResult(task, released, _output);
        }
        throw new IncompleteAnswerException("released");
    }

    /// <summary>What is the caller's own may fail: then nobody takes the command's output any more.</summary>
    private async Task CallerAsync(Func<ValueTask> step)
    {
        try
        {
            await step().ConfigureAwait(false);
        }
        catch
        {
            _callerFailed = true;
            throw;
        }
    }

    /// <summary>Not to be cancelled: it is what a cancel does.</summary>
    private Task LeaveAsync() => options.WhenCancelled switch
    {
        RunCancellation.Detach => client.DetachAsync(task.Id, options.Detach, CancellationToken.None),
        RunCancellation.Cancel => client.CancelBackgroundTaskAsync(task.Id, options.Cancel, CancellationToken.None),
        _ => throw new ArgumentOutOfRangeException(nameof(RunOptions.WhenCancelled), options.WhenCancelled, null),
    };
}
