using Grpc.Core;
using Heeler.V1;

namespace Heeler.Client;

/// <summary>One open stream of a worker, after the daemon has answered its first message.</summary>
internal sealed class WorkConnection : IDisposable
{
    private readonly CancellationTokenSource _lifetime;
    private readonly AsyncDuplexStreamingCall<WorkRequest, WorkResponse> _call;
    private readonly HeelerAddress _address;

    private WorkConnection(Connection connection)
    {
        _lifetime = new CancellationTokenSource();
        _address = connection.Address;
        _call = connection.Raw.Work(cancellationToken: _lifetime.Token);
    }

    /// <summary>The latest message of the daemon.</summary>
    internal WorkResponse Current => _call.ResponseStream.Current;

    /// <summary>Opens a stream with its first message, and returns it with the answer.</summary>
    internal static async Task<(WorkConnection Open, WorkJoined Joined)> OpenAsync(
        Connection connection, WorkRequest first, CancellationToken cancellation)
    {
        var open = new WorkConnection(connection);
        try
        {
            using var cancelling = cancellation.UnsafeRegister(static call => ((WorkConnection)call!).Cancel(), open);
            await open.TrySendAsync(first).ConfigureAwait(false);
            if (await open.NextAsync(cancellation).ConfigureAwait(false) is { } error) throw error;
            return (open, open.Current.Joined ?? throw new IncompleteAnswerException("joined"));
        }
        catch
        {
            open.Dispose();
            throw;
        }
    }

    /// <summary>Reads the next message into <see cref="Current"/>. Returns the error if the stream has ended.</summary>
    internal async Task<Exception?> NextAsync(CancellationToken cancellation = default)
    {
        try
        {
            if (await _call.ResponseStream.MoveNext(CancellationToken.None).ConfigureAwait(false)) return null;
            var cause = new EndOfStreamException("the stream ended without its last message");
            return new DaemonDisconnectedException(_address, cause);
        }
        catch (RpcException error)
        {
            return CallFailure.From(error, _address, cancellation);
        }
    }

    /// <summary>Sends a message. False: the stream is broken, and the reader gets the cause.</summary>
    internal async Task<bool> TrySendAsync(WorkRequest request)
    {
        try
        {
            await _call.RequestStream.WriteAsync(request, _lifetime.Token).ConfigureAwait(false);
            return true;
        }
        catch (Exception error) when (IsBroken(error))
        {
            return false;
        }
    }

    /// <summary>Says that no further message follows.</summary>
    internal async Task CompleteAsync()
    {
        try
        {
            await _call.RequestStream.CompleteAsync().ConfigureAwait(false);
        }
        catch (Exception error) when (IsBroken(error))
        {
            // The reader gets the cause.
        }
    }

    internal void Cancel() => _lifetime.Cancel();

    public void Dispose()
    {
        _call.Dispose();
        _lifetime.Dispose();
    }

    private static bool IsBroken(Exception error) =>
        error is RpcException or InvalidOperationException or OperationCanceledException;
}
