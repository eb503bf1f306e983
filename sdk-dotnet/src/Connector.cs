using System.Net.Sockets;
using System.Runtime.InteropServices;

namespace Heeler.Client;

/// <summary>
/// Opens connections to a daemon's Unix socket, and refuses a listener that is not to be trusted. A way in by TCP would be
/// another one of these.
/// </summary>
internal sealed class Connector(HeelerAddress address)
{
    /// <summary>The kernel says at once when the daemon's queue of connections is full; about five seconds in all.</summary>
    private const int QueueFullTries = 1000;
    private static readonly TimeSpan _queueFullPause = TimeSpan.FromMilliseconds(5);

    private volatile bool _reached;

    /// <summary>Whether there ever was a connection: then a daemon that is away is restarting.</summary>
    internal bool Reached => _reached;

    internal async ValueTask<Stream> OpenAsync(CancellationToken cancellation)
    {
        var endpoint = new UnixDomainSocketEndPoint(address.Path);
        for (var tries = QueueFullTries; ; tries--)
        {
            var socket = new Socket(AddressFamily.Unix, SocketType.Stream, ProtocolType.Unspecified);
            try
            {
                await socket.ConnectAsync(endpoint, cancellation).ConfigureAwait(false);
                CheckPeer(socket);
                _reached = true;
                return new NetworkStream(socket, ownsSocket: true);
            }
            catch (SocketException error) when (error.SocketErrorCode == SocketError.WouldBlock && tries > 0)
            {
                socket.Dispose();
                await Task.Delay(_queueFullPause, cancellation).ConfigureAwait(false);
            }
            catch
            {
                socket.Dispose();
                throw;
            }
        }
    }

    /// <summary>
    /// What is sent may hold secrets: only this user's daemon, or root's, may have it. Root itself may talk to anybody's.
    /// </summary>
    internal static void CheckListener(uint listener, uint user)
    {
        if (listener == user || listener == 0 || user == 0) return;
        throw new UnauthorizedAccessException($"whoever listens there is user {listener}, not user {user}");
    }

    /// <summary>Asks the kernel who listens.</summary>
    private static void CheckPeer(Socket socket)
    {
        if (!OperatingSystem.IsLinux()) return;
        const int socketLevel = 1;
        const int peerCredentials = 17;
        Span<uint> processUserGroup = stackalloc uint[3];
        socket.GetRawSocketOption(socketLevel, peerCredentials, MemoryMarshal.AsBytes(processUserGroup));
        CheckListener(processUserGroup[1], NativeFile.UserId());
    }
}
