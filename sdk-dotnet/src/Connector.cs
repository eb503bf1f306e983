using System.Net.Sockets;
using System.Runtime.InteropServices;
using System.Security.Cryptography.X509Certificates;

namespace Heeler.Client;

/// <summary>
/// Opens connections to a daemon, and refuses a listener on a Unix socket that is not to be trusted. Over TLS only these
/// authorities are believed; none: those of the system.
/// </summary>
internal sealed class Connector(HeelerAddress address, X509ChainPolicy? authorities)
{
    /// <summary>The kernel says at once when the daemon's queue of connections is full; about five seconds in all.</summary>
    private const int QueueFullTries = 1000;
    private static readonly TimeSpan _queueFullPause = TimeSpan.FromMilliseconds(5);

    private volatile bool _reached;

    /// <summary>Whether there ever was a connection: then a daemon that is away is restarting.</summary>
    internal bool Reached => _reached;

    internal async ValueTask<Stream> OpenAsync(CancellationToken cancellation)
    {
        var stream = address.Path is { } path
            ? await OpenUnixAsync(path, cancellation).ConfigureAwait(false)
            : await TcpConnection.OpenAsync(address, authorities, cancellation).ConfigureAwait(false);
        _reached = true;
        return stream;
    }

    private static async ValueTask<Stream> OpenUnixAsync(string path, CancellationToken cancellation)
    {
        var endpoint = new UnixDomainSocketEndPoint(path);
        for (var tries = QueueFullTries; ; tries--)
        {
            var socket = new Socket(AddressFamily.Unix, SocketType.Stream, ProtocolType.Unspecified);
            try
            {
                await socket.ConnectAsync(endpoint, cancellation).ConfigureAwait(false);
                CheckPeer(socket);
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
