using System.Globalization;
using System.Net;
using System.Net.Sockets;
using System.Text;
using System.Text.RegularExpressions;

namespace Heeler.Client;

/// <summary>
/// Where a daemon listens: <c>unix:/absolute/path</c>, <c>tcp:HOST:PORT</c> on this machine's loopback, or
/// <c>tls:HOST:PORT</c>. Checked once, when it is made; it opens nothing.
/// </summary>
public sealed partial record HeelerAddress
{
    /// <summary>The environment variable that overrides the default address.</summary>
    public const string EnvironmentVariable = "HEELER_ADDR";

    /// <summary>What a socket address has room for, less its closing NUL.</summary>
    private const int MaxPathBytes = 107;

    private HeelerAddress(HeelerAddressKind kind) => Kind = kind;

    /// <summary>How the daemon is reached.</summary>
    public HeelerAddressKind Kind { get; }

    /// <summary>The path of the socket; none if it is no Unix socket.</summary>
    public string? Path { get; private init; }

    /// <summary>The host, by name or by number without brackets; none if it is a Unix socket.</summary>
    public string? Host { get; private init; }

    /// <summary>The port of the host; 0 if it is a Unix socket.</summary>
    public int Port { get; private init; }

    /// <summary>The command that would start a daemon here.</summary>
    public string StartCommand
    {
        get
        {
            if (Kind == HeelerAddressKind.Tls)
                return $"heeler serve --listen tcp:0.0.0.0:{Port} --tls-cert FILE --tls-key FILE";
            try
            {
                if (this == DefaultForUser()) return "heeler serve";
            }
            catch (HeelerAddressException)
            {
                // No default: then this is another address.
            }
            return $"heeler serve --listen {this}";
        }
    }

    /// <summary>Whether it is a TCP address that only this machine can reach.</summary>
    internal bool IsLoopback => Host switch
    {
        null => false,
        _ when IPAddress.TryParse(Host, out var number) => IPAddress.IsLoopback(number),
        _ => Host.Equals("localhost", StringComparison.OrdinalIgnoreCase),
    };

    /// <summary>The socket at this path.</summary>
    /// <exception cref="HeelerAddressException">The path is relative, or too long for a socket.</exception>
    public static HeelerAddress Unix(string path)
    {
        ArgumentNullException.ThrowIfNull(path);
        if (!path.StartsWith('/'))
            throw new HeelerAddressException($"the socket path `{path}` is not absolute: write unix:/absolute/path");
        if (path.Contains('\0'))
            throw new HeelerAddressException($"the socket path `{path.Replace("\0", "\\0", StringComparison.Ordinal)}` contains a NUL");
        var length = Encoding.UTF8.GetByteCount(path);
        if (length > MaxPathBytes)
            throw new HeelerAddressException($"the socket path `{path}` has {length} bytes, and at most {MaxPathBytes} fit");
        return new HeelerAddress(HeelerAddressKind.Unix) { Path = path };
    }

    /// <summary>A port of this machine's loopback, in the clear.</summary>
    /// <exception cref="HeelerAddressException">It names no host and port, or another machine's.</exception>
    public static HeelerAddress Tcp(string host, int port)
    {
        var address = Remote(HeelerAddressKind.Tcp, host, port);
        return address.IsLoopback
            ? address
            : throw new HeelerAddressException(
                $"`{address}` is not on this machine's loopback, and tcp: is in the clear: write tls:HOST:PORT");
    }

    /// <summary>A port of any machine, by TLS.</summary>
    /// <exception cref="HeelerAddressException">It names no host and port.</exception>
    public static HeelerAddress Tls(string host, int port) => Remote(HeelerAddressKind.Tls, host, port);

    /// <summary>
    /// Reads <c>unix:/absolute/path</c>, also in gRPC's spelling, <c>unix:///absolute/path</c>; <c>tcp:HOST:PORT</c>; or
    /// <c>tls:HOST:PORT</c>.
    /// </summary>
    /// <exception cref="HeelerAddressException">It is no address, or cannot be used.</exception>
    public static HeelerAddress Parse(string address)
    {
        ArgumentNullException.ThrowIfNull(address);
        foreach (var scheme in (string[])["unix://", "unix:"])
        {
            if (address.StartsWith(scheme, StringComparison.Ordinal)) return Unix(address[scheme.Length..]);
        }
        return address.Split(':')[0] switch
        {
            "tcp" => Remote(address) is var (host, port) ? Tcp(host, port) : throw NoHostAndPort(address),
            "tls" => Remote(address) is var (host, port) ? Tls(host, port) : throw NoHostAndPort(address),
            _ => throw new HeelerAddressException(
                $"`{address}` is no address: write unix:/absolute/path, tcp:HOST:PORT or tls:HOST:PORT"),
        };
    }

    /// <summary>The calling user's own socket, whatever the environment says of another.</summary>
    /// <exception cref="HeelerAddressException">There is no place for it that is this user's alone.</exception>
    public static HeelerAddress DefaultForUser() => Unix(DefaultSocket.Path());

    /// <summary>What <c>HEELER_ADDR</c> says, else the user's own socket.</summary>
    /// <exception cref="HeelerAddressException">What it says is no address, or there is no default.</exception>
    public static HeelerAddress FromEnvironmentOrDefault() =>
        Environment.GetEnvironmentVariable(EnvironmentVariable) is { Length: > 0 } address
            ? Parse(address)
            : DefaultForUser();

    /// <summary>As <see cref="Parse"/> reads it.</summary>
    public override string ToString() => Kind switch
    {
        HeelerAddressKind.Unix => $"unix:{Path}",
        HeelerAddressKind.Tcp => $"tcp:{HostAndPort}",
        HeelerAddressKind.Tls => $"tls:{HostAndPort}",
        _ => throw new InvalidOperationException($"{Kind} is no kind of address"),
    };

    private string HostAndPort =>
        Host?.Contains(':', StringComparison.Ordinal) == true ? $"[{Host}]:{Port}" : $"{Host}:{Port}";

    private static HeelerAddress Remote(HeelerAddressKind kind, string host, int port)
    {
        ArgumentNullException.ThrowIfNull(host);
        var address = new HeelerAddress(kind) { Host = host, Port = port };
        var number = !host.Contains(':', StringComparison.Ordinal)
            || (IPAddress.TryParse(host, out var found) && found.AddressFamily == AddressFamily.InterNetworkV6);
        return number && HostName().IsMatch(host) && port is > 0 and <= IPEndPoint.MaxPort
            ? address
            : throw NoHostAndPort(address.ToString());
    }

    private static (string Host, int Port)? Remote(string address)
    {
        var found = SchemeHostAndPort().Match(address);
        return found.Success
            ? (found.Groups["host"].Value, int.Parse(found.Groups["port"].ValueSpan, CultureInfo.InvariantCulture))
            : null;
    }

    private static HeelerAddressException NoHostAndPort(string address) => new(
        $"`{address}` names no host and port: write e.g. tcp:127.0.0.1:7117, tcp:[::1]:7117 or tls:build.example.com:7117");

    [GeneratedRegex(@"^t(cp|ls):(\[(?<host>[0-9A-Fa-f:.]+)\]|(?<host>[\w.-]+)):(?<port>[0-9]{1,5})\z")]
    private static partial Regex SchemeHostAndPort();

    [GeneratedRegex(@"^[A-Za-z0-9_.:-]+\z")]
    private static partial Regex HostName();
}

/// <summary>How a daemon is reached.</summary>
public enum HeelerAddressKind
{
    /// <summary>By a Unix socket.</summary>
    Unix,

    /// <summary>By TCP in the clear, on this machine's loopback.</summary>
    Tcp,

    /// <summary>By TCP and TLS.</summary>
    Tls,
}
