using System.Net.Sockets;
using System.Security.Authentication;
using Grpc.Core;

namespace Heeler.Client;

/// <summary>Converts gRPC's one exception to the exceptions of this client.</summary>
internal static class CallFailure
{
    internal static Exception From(RpcException error, HeelerAddress address, CancellationToken cancellation)
    {
        if (error.StatusCode == StatusCode.Cancelled)
        {
            // The caller cancelled, or the stream was cut off.
            return cancellation.IsCancellationRequested
                ? new OperationCanceledException(error.Message, error, cancellation)
                : new DaemonDisconnectedException(address, error);
        }
        // Only a failure on this side has a cause; a status that the daemon sent has none.
        return error.Status.DebugException is { } cause
            ? FromCause(cause, error, address)
            : new HeelerRefusedException(Refusal.From(error), error);
    }

    /// <summary>Returns true unless the attempt failed to connect.</summary>
    internal static bool WasConnected(Exception error) => error is not (DaemonNotRunningException or DaemonUnreachableException);

    private static HeelerException FromCause(Exception cause, RpcException error, HeelerAddress address)
    {
        if (cause is not HttpRequestException
            {
                HttpRequestError: HttpRequestError.ConnectionError or HttpRequestError.SecureConnectionError
                    or HttpRequestError.NameResolutionError,
            })
            return new DaemonDisconnectedException(address, error);
        return Innermost(cause) switch
        {
            // AddressNotAvailable is .NET's name for a missing socket file.
            SocketException { SocketErrorCode: SocketError.ConnectionRefused or SocketError.AddressNotAvailable } away =>
                new DaemonNotRunningException(address, away),
            var other => new DaemonUnreachableException(address, other),
        };
    }

    /// <summary>Returns the error of the system or of the connector.</summary>
    private static Exception Innermost(Exception error)
    {
        for (var next = error; next is not null; next = next.InnerException)
        {
            if (next is SocketException or UnauthorizedAccessException or AuthenticationException or TimeoutException)
                return next;
        }
        return error;
    }
}
