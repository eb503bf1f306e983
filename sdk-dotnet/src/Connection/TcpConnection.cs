using System.Net.Security;
using System.Net.Sockets;
using System.Security.Cryptography.X509Certificates;

namespace Heeler.Client;

/// <summary>Opens connections to a daemon over TCP, with TLS if the address asks for it.</summary>
internal static class TcpConnection
{
    /// <summary>Maximum time to connect, including the TLS handshake.</summary>
    private static readonly TimeSpan _limit = TimeSpan.FromSeconds(10);

    internal static async ValueTask<Stream> OpenAsync(
        HeelerAddress address, X509ChainPolicy? authorities, CancellationToken cancellation)
    {
        using var limited = CancellationTokenSource.CreateLinkedTokenSource(cancellation);
        limited.CancelAfter(_limit);
        var socket = new Socket(SocketType.Stream, ProtocolType.Tcp) { NoDelay = true };
        try
        {
            await socket.ConnectAsync(address.Host!, address.Port, limited.Token).ConfigureAwait(false);
            var stream = new NetworkStream(socket, ownsSocket: true);
            return address.Kind == HeelerAddressKind.Tls
                ? await SecureAsync(stream, address.Host!, authorities, limited.Token).ConfigureAwait(false)
                : stream;
        }
        catch (OperationCanceledException error) when (!cancellation.IsCancellationRequested)
        {
            socket.Dispose();
            throw new TimeoutException($"no answer within {_limit.TotalSeconds} s", error);
        }
        catch
        {
            socket.Dispose();
            throw;
        }
    }

    private static async ValueTask<Stream> SecureAsync(
        Stream stream, string host, X509ChainPolicy? authorities, CancellationToken cancellation)
    {
        var secure = new SslStream(stream);
        var options = new SslClientAuthenticationOptions
        {
            TargetHost = host,
            ApplicationProtocols = [SslApplicationProtocol.Http2],
            CertificateChainPolicy = authorities,
        };
        try
        {
            await secure.AuthenticateAsClientAsync(options, cancellation).ConfigureAwait(false);
            return secure;
        }
        catch
        {
            await secure.DisposeAsync().ConfigureAwait(false);
            throw;
        }
    }
}
