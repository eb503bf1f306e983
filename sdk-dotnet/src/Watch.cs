using System.Diagnostics;
using System.Runtime.CompilerServices;
using Grpc.Core;
using Heeler.V1;

namespace Heeler.Client;

/// <summary>
/// The event stream as it should be consumed: it reconnects, and resumes without a loss and without a repeat. What has been
/// seen, and so what to ask for next, is decided by the <see cref="WatchCursor"/> alone.
/// </summary>
internal sealed class Watch(HeelerClient client, WatchOptions options)
{
    private readonly WatchCursor _cursor = new(options.ToRequest());
    private readonly Backoff _backoff = new(options.GiveUpAfter);

    /// <summary>Each enumeration is a watch of its own.</summary>
    internal static async IAsyncEnumerable<WatchItem> Items(
        HeelerClient client, WatchOptions options, [EnumeratorCancellation] CancellationToken cancellation)
    {
        var watch = new Watch(client, options);
        await foreach (var item in watch.ItemsAsync(cancellation).ConfigureAwait(false)) yield return item;
    }

    private async IAsyncEnumerable<WatchItem> ItemsAsync([EnumeratorCancellation] CancellationToken cancellation)
    {
        while (true)
        {
            using var call = client.Raw.WatchEvents(_cursor.Request(), cancellationToken: cancellation);
            var attempt = new Attempt(Stopwatch.GetTimestamp());
            while (await ReadAsync(call.ResponseStream, attempt, cancellation).ConfigureAwait(false))
            {
                while (_cursor.Give() is { } item) yield return item;
            }
            await PauseAsync(attempt, cancellation).ConfigureAwait(false);
        }
    }

    /// <summary>Takes one message in; false: the stream is over, and the attempt knows why.</summary>
    private async Task<bool> ReadAsync(
        IAsyncStreamReader<WatchEventsResponse> stream, Attempt attempt, CancellationToken cancellation)
    {
        try
        {
            if (await stream.MoveNext(cancellation).ConfigureAwait(false))
            {
                _backoff.Reset();
                attempt.Answered = true;
                _cursor.Take(stream.Current);
                return true;
            }
            // The stream has no end of its own: the daemon is shutting down.
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
        _cursor.Broke();
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
