using System.ComponentModel;
using System.Globalization;
using System.Net;
using System.Net.Sockets;
using System.Text;
using System.Text.RegularExpressions;

namespace Heeler.Client;

/// <summary>
/// The address of a daemon: <c>unix:/absolute/path</c>, <c>tcp:HOST:PORT</c> on this machine's loopback, or
/// <c>tls:HOST:PORT</c>. It is checked when it is created; it opens nothing.
/// </summary>
[TypeConverter(typeof(HeelerAddressConverter))]
public sealed partial record HeelerAddress
{
    /// <summary>The environment variable that overrides the default address.</summary>
    public const string EnvironmentVariable = "HEELER_ADDR";

    /// <summary>The room in a socket address without its final NUL.</summary>
    private const int MaxPathBytes = 107;

    private HeelerAddress(HeelerAddressKind kind) => Kind = kind;

    /// <summary>The transport.</summary>
    public HeelerAddressKind Kind { get; }

    /// <summary>The path of the Unix socket. Null for the other kinds.</summary>
    public string? Path { get; private init; }

    /// <summary>The host: a name, or a number without brackets. Null for a Unix socket.</summary>
    public string? Host { get; private init; }

    /// <summary>The port of the host. 0 for a Unix socket.</summary>
    public int Port { get; private init; }

    /// <summary>The command that starts a daemon at this address.</summary>
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
                // There is no default, so this address is not it.
            }
            return $"heeler serve --listen {this}";
        }
    }

    /// <summary>True for a host that only this machine can reach.</summary>
    internal bool IsLoopback => Host switch
    {
        null => false,
        _ when IPAddress.TryParse(Host, out var number) => IPAddress.IsLoopback(number),
        _ => Host.Equals("localhost", StringComparison.OrdinalIgnoreCase),
    };

    /// <summary>True for the address in <c>HEELER_ADDR</c>, which inside of a task is that of the daemon that runs it.</summary>
    internal bool IsFromEnvironment
    {
        get
        {
            try
            {
                return this == FromEnvironment();
            }
            catch (HeelerAddressException)
            {
                return false;
            }
        }
    }

    /// <summary>Returns the address of a Unix socket.</summary>
    /// <exception cref="HeelerAddressException">The path is relative or too long for a socket.</exception>
    public static HeelerAddress Unix(string path)
    {
        ArgumentNullException.ThrowIfNull(path);
        if (!path.StartsWith('/'))
            throw new HeelerAddressException($"the socket path `{path}` is not absolute: write unix:/absolute/path");
        if (path.Contains('\0'))
        {
            var shown = path.Replace("\0", "\\0", StringComparison.Ordinal);
            throw new HeelerAddressException($"the socket path `{shown}` contains a NUL");
        }
        var length = Encoding.UTF8.GetByteCount(path);
        if (length > MaxPathBytes)
            throw new HeelerAddressException($"the socket path `{path}` has {length} bytes: at most {MaxPathBytes} are possible");
        return new HeelerAddress(HeelerAddressKind.Unix) { Path = path };
    }

    /// <summary>Returns the address of a port on this machine's loopback, without encryption.</summary>
    /// <exception cref="HeelerAddressException">The host or the port is invalid, or the host is another machine.</exception>
    public static HeelerAddress Tcp(string host, int port)
    {
        var address = Remote(HeelerAddressKind.Tcp, host, port);
        return address.IsLoopback
            ? address
            : throw new HeelerAddressException(
                $"`{address}` is not on this machine's loopback, and tcp: is not encrypted: write tls:HOST:PORT");
    }

    /// <summary>Returns the address of a port on any machine, with TLS.</summary>
    /// <exception cref="HeelerAddressException">The host or the port is invalid.</exception>
    public static HeelerAddress Tls(string host, int port) => Remote(HeelerAddressKind.Tls, host, port);

    /// <summary>
    /// Parses <c>unix:/absolute/path</c>, also in gRPC's spelling, <c>unix:///absolute/path</c>; <c>tcp:HOST:PORT</c>; or
    /// <c>tls:HOST:PORT</c>.
    /// </summary>
    /// <exception cref="HeelerAddressException">The text is not a valid address.</exception>
    public static HeelerAddress Parse(string address)
    {
        ArgumentNullException.ThrowIfNull(address);
        foreach (var scheme in (string[])["unix://", "unix:"])
        {
            if (address.StartsWith(scheme, StringComparison.Ordinal)) return Unix(address[scheme.Length..]);
        }
        return address.Split(':')[0] switch
        {
            "tcp" => Remote(address) is var (host, port) ? Tcp(host, port) : throw InvalidHostOrPort(address),
            "tls" => Remote(address) is var (host, port) ? Tls(host, port) : throw InvalidHostOrPort(address),
            _ => throw new HeelerAddressException(
                $"`{address}` is not an address: write unix:/absolute/path, tcp:HOST:PORT or tls:HOST:PORT"),
        };
    }

    /// <summary>Returns the socket of the user's own daemon. It ignores <c>HEELER_ADDR</c>.</summary>
    /// <exception cref="HeelerAddressException">No directory for it is private to this user.</exception>
    public static HeelerAddress DefaultForUser() => Unix(DefaultSocket.Path());

    /// <summary>Returns the address in <c>HEELER_ADDR</c>, else the socket of the user's own daemon.</summary>
    /// <exception cref="HeelerAddressException">The variable is not a valid address, or there is no default.</exception>
    public static HeelerAddress FromEnvironmentOrDefault() => FromEnvironment() ?? DefaultForUser();

    /// <summary>Returns the address in <c>HEELER_ADDR</c>. Null: there is none.</summary>
    internal static HeelerAddress? FromEnvironment() =>
        Environment.GetEnvironmentVariable(EnvironmentVariable) is { Length: > 0 } address ? Parse(address) : null;

    /// <summary>Returns the form that <see cref="Parse"/> accepts.</summary>
    public override string ToString() => Kind switch
    {
        HeelerAddressKind.Unix => $"unix:{Path}",
        HeelerAddressKind.Tcp => $"tcp:{HostAndPort}",
        HeelerAddressKind.Tls => $"tls:{HostAndPort}",
        _ => throw new InvalidOperationException($"unknown kind of address: {Kind}"),
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
            : throw InvalidHostOrPort(address.ToString());
    }

    private static (string Host, int Port)? Remote(string address)
    {
        var found = SchemeHostAndPort().Match(address);
        return found.Success
            ? (found.Groups["host"].Value, int.Parse(found.Groups["port"].ValueSpan, CultureInfo.InvariantCulture))
            : null;
    }

    private static HeelerAddressException InvalidHostOrPort(string address) => new(
        $"`{address}` has no valid host and port: write for example tcp:127.0.0.1:7117, tcp:[::1]:7117 or tls:example.com:7117");

    [GeneratedRegex(@"^t(cp|ls):(\[(?<host>[0-9A-Fa-f:.]+)\]|(?<host>[\w.-]+)):(?<port>[0-9]{1,5})\z")]
    private static partial Regex SchemeHostAndPort();

    [GeneratedRegex(@"^[A-Za-z0-9_.:-]+\z")]
    private static partial Regex HostName();
}

/// <summary>The transport to a daemon.</summary>
public enum HeelerAddressKind
{
    /// <summary>A Unix socket.</summary>
    Unix,

    /// <summary>TCP without encryption, on this machine's loopback.</summary>
    Tcp,

    /// <summary>TCP with TLS.</summary>
    Tls,
}
