using System.Diagnostics;
using System.Runtime.CompilerServices;
using Grpc.Core;
using Heeler.V1;

namespace Heeler.Client;

/// <summary>What a stream has given, and so what to ask for next. Pure, but for the asking: messages in, items out.</summary>
/// <typeparam name="TMessage">What the daemon sends.</typeparam>
/// <typeparam name="TItem">What the consumer gets.</typeparam>
internal interface IResumable<TMessage, TItem>
    where TItem : class
{
    /// <summary>How long a pause before asking again may be.</summary>
    TimeSpan LongestPause { get; }

    /// <summary>Whether the last message has been taken in: there is nothing left to ask for.</summary>
    bool IsOver { get; }

    /// <summary>Asks, now or after a break, for what has not been seen.</summary>
    AsyncServerStreamingCall<TMessage> Ask(BackgroundTasks.BackgroundTasksClient daemon, CancellationToken cancellation);

    /// <summary>Takes a message in.</summary>
    void Take(TMessage message);

    /// <summary>The next item for the consumer; none: there is nothing yet.</summary>
    TItem? Give();

    /// <summary>The connection broke.</summary>
    void Broke();
}

/// <summary>
/// A stream of the daemon's as it should be consumed: it reconnects, and is taken up again where it broke. What has been seen,
/// and so what to ask for next, is decided by the <see cref="IResumable{TMessage, TItem}"/> alone.
/// </summary>
internal sealed class Resuming<TMessage, TItem>(
    HeelerClient client, IResumable<TMessage, TItem> cursor, TimeSpan? giveUpAfter)
    where TItem : class
{
    private readonly Backoff _backoff = new(giveUpAfter);

    internal async IAsyncEnumerable<TItem> ItemsAsync([EnumeratorCancellation] CancellationToken cancellation)
    {
        while (true)
        {
            using var call = cursor.Ask(client.Raw, cancellation);
            var attempt = new Attempt(Stopwatch.GetTimestamp());
            while (await ReadAsync(call.ResponseStream, attempt, cancellation).ConfigureAwait(false))
            {
                while (cursor.Give() is { } item) yield return item;
                if (cursor.IsOver) yield break;
            }
            await PauseAsync(attempt, cancellation).ConfigureAwait(false);
        }
    }

    /// <summary>Takes one message in; false: the stream is over, and the attempt knows why.</summary>
    private async Task<bool> ReadAsync(
        IAsyncStreamReader<TMessage> stream, Attempt attempt, CancellationToken cancellation)
    {
        try
        {
            if (await stream.MoveNext(cancellation).ConfigureAwait(false))
            {
                _backoff.Reset();
                attempt.Answered = true;
                cursor.Take(stream.Current);
                return true;
            }
            // It ends by its last message alone: the daemon is shutting down.
            attempt.Error = new DaemonDisconnectedException(client.Address, new EndOfStreamException("the stream ended"));
        }
        catch (RpcException error)
        {
            attempt.Error = client.Explain(error, cancellation);
        }
        return false;
    }

    /// <summary>What comes after a failure: a pause, or the end.</summary>
    private async Task PauseAsync(Attempt attempt, CancellationToken cancellation)
    {
        cursor.Broke();
        var error = attempt.Error ?? throw new UnreachableException("only a failure ends an attempt");
        var curable = error switch
        {
            HeelerRefusedException refused => !refused.IsFinal,
            DaemonNotRunningException => client.Reached,
            DaemonUnreachableException => client.Reached,
            DaemonDisconnectedException => true,
            _ => false,
        };
        var lasted = attempt.Answered ? TimeSpan.Zero : Stopwatch.GetElapsedTime(attempt.Begun);
        _backoff.LongestDelay = cursor.LongestPause;
        if (!curable || _backoff.AfterFailure(lasted) is not { } pause) throw error;
        await Task.Delay(pause, cancellation).ConfigureAwait(false);
    }

    private sealed class Attempt(long begun)
    {
        internal long Begun { get; } = begun;

        internal bool Answered { get; set; }

        internal Exception? Error { get; set; }
    }
}
