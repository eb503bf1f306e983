using System.Net.Sockets;
using System.Security.Authentication;
using Grpc.Core;

namespace Heeler.Client;

/// <summary>Tells what gRPC's one exception stands for.</summary>
internal static class Failure
{
    internal static Exception From(RpcException error, HeelerAddress address, CancellationToken cancellation)
    {
        if (error.StatusCode == StatusCode.Cancelled)
        {
            // It is what the caller asked for, or a stream that was cut off.
            return cancellation.IsCancellationRequested
                ? new OperationCanceledException(error.Message, error, cancellation)
                : new DaemonDisconnectedException(address, error);
        }
        // Only what went wrong on this side has a cause; a status that was sent has none.
        return error.Status.DebugException is { } cause
            ? FromCause(cause, error, address)
            : new HeelerRefusedException(Refusal.From(error), error);
    }

    private static HeelerException FromCause(Exception cause, RpcException error, HeelerAddress address)
    {
        if (cause is not HttpRequestException
            {
                HttpRequestError: HttpRequestError.ConnectionError or HttpRequestError.SecureConnectionError
                    or HttpRequestError.NameResolutionError,
            })
            return new DaemonDisconnectedException(address, error);
        return Within(cause) switch
        {
            // The second is .NET's name for a file that is not there.
            SocketException { SocketErrorCode: SocketError.ConnectionRefused or SocketError.AddressNotAvailable } away =>
                new DaemonNotRunningException(address, away),
            var other => new DaemonUnreachableException(address, other),
        };
    }

    /// <summary>What the system, or the connector, said.</summary>
    private static Exception Within(Exception error)
    {
        for (var next = error; next is not null; next = next.InnerException)
        {
            if (next is SocketException or UnauthorizedAccessException or AuthenticationException or TimeoutException)
                return next;
        }
        return error;
    }
}
