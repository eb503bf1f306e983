using System.Diagnostics;
using System.Runtime.CompilerServices;
using Grpc.Core;

namespace Heeler.Client;

/// <summary>
/// A server stream that reconnects and resumes where it broke. The <see cref="IResumable{TMessage, TItem}"/> alone knows the
/// position.
/// </summary>
internal sealed class ResumingStream<TMessage, TItem>(
    Connection connection, IResumable<TMessage, TItem> cursor, TimeSpan? giveUpAfter)
    where TItem : class
{
    private readonly Backoff _backoff = new(giveUpAfter);

    internal async IAsyncEnumerable<TItem> ItemsAsync([EnumeratorCancellation] CancellationToken cancellation)
    {
        while (true)
        {
            using var call = cursor.Open(connection.Raw, cancellation);
            var attempt = new Attempt(Stopwatch.GetTimestamp());
            while (await ReadAsync(call.ResponseStream, attempt, cancellation).ConfigureAwait(false))
            {
                if (cursor.IsEnded) await EndAsync(call.ResponseStream, cancellation).ConfigureAwait(false);
                while (cursor.Next() is { } item) yield return item;
                if (cursor.IsEnded) yield break;
            }
            await PauseAsync(attempt, cancellation).ConfigureAwait(false);
        }
    }

    /// <summary>Takes one message. False: the attempt failed and has the error.</summary>
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
            // Only its last message ends a stream: otherwise the daemon is shutting down.
            attempt.Error = new DaemonDisconnectedException(
                connection.Address, new EndOfStreamException("the stream ended without its last message"));
        }
        catch (RpcException error)
        {
            attempt.Error = CallFailure.From(error, connection.Address, cancellation);
        }
        return false;
    }

    /// <summary>
    /// Reads the status that follows the last message. Disposing the call without it would cancel the call, and gRPC would log a
    /// failure.
    /// </summary>
    private static async Task EndAsync(IAsyncStreamReader<TMessage> stream, CancellationToken cancellation)
    {
        try
        {
            await stream.MoveNext(cancellation).ConfigureAwait(false);
        }
        catch (RpcException)
        {
            // The last message has come: a connection that breaks now costs nothing.
        }
    }

    /// <summary>Pauses before the next attempt, or throws the error if another attempt cannot help.</summary>
    private async Task PauseAsync(Attempt attempt, CancellationToken cancellation)
    {
        cursor.Disconnected();
        var error = attempt.Error ?? throw new UnreachableException("only a failure ends an attempt");
        var curable = error switch
        {
            HeelerRefusedException refused => !refused.IsFinal,
            DaemonNotRunningException => connection.Reached,
            DaemonUnreachableException => connection.Reached,
            DaemonDisconnectedException => true,
            _ => false,
        };
        var lasted = attempt.Answered ? TimeSpan.Zero : Stopwatch.GetElapsedTime(attempt.Begun);
        _backoff.LongestDelay = cursor.LongestPause;
        if (!curable || _backoff.AfterFailure(lasted, error) is not { } pause) throw error;
        await Task.Delay(pause, cancellation).ConfigureAwait(false);
    }

    private sealed class Attempt(long begun)
    {
        internal long Begun { get; } = begun;

        internal bool Answered { get; set; }

        internal Exception? Error { get; set; }
    }
}
