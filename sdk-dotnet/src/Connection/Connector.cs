using System.Net.Sockets;
using System.Runtime.InteropServices;
using System.Security.Cryptography.X509Certificates;

namespace Heeler.Client;

/// <summary>
/// Opens connections to a daemon and refuses a Unix socket whose listener is another user. Over TLS only these certificate
/// authorities are trusted. Null: those of the system.
/// </summary>
internal sealed class Connector(HeelerAddress address, X509ChainPolicy? authorities)
{
    /// <summary>The kernel refuses a connection at once while the daemon's backlog is full: try for about five seconds.</summary>
    private const int BacklogFullTries = 1000;
    private static readonly TimeSpan _backlogFullPause = TimeSpan.FromMilliseconds(5);

    private volatile bool _reached;

    /// <summary>True once a connection succeeded.</summary>
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
        for (var tries = BacklogFullTries; ; tries--)
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
                await Task.Delay(_backlogFullPause, cancellation).ConfigureAwait(false);
            }
            catch
            {
                socket.Dispose();
                throw;
            }
        }
    }

    /// <summary>
    /// Requests may contain secrets: only a daemon of this user or of root receives them. Root may call any daemon.
    /// </summary>
    internal static void CheckListener(uint listener, uint user)
    {
        if (listener == user || listener == 0 || user == 0) return;
        throw new UnauthorizedAccessException($"the listener runs as user {listener}, not as user {user}");
    }

    /// <summary>Reads the listener's user from the kernel.</summary>
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
