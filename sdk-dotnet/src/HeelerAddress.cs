using System.Text;

namespace Heeler.Client;

/// <summary>
/// Where a daemon listens: <c>unix:</c> and the absolute path of its socket. Checked once, when it is made; it opens nothing.
/// </summary>
public sealed record HeelerAddress
{
    /// <summary>The environment variable that overrides the default address.</summary>
    public const string EnvironmentVariable = "HEELER_ADDR";

    /// <summary>What a socket address has room for, less its closing NUL.</summary>
    private const int MaxPathBytes = 107;

    private HeelerAddress(string path) => Path = path;

    /// <summary>The path of the socket.</summary>
    public string Path { get; }

    /// <summary>The command that would start a daemon here.</summary>
    public string StartCommand
    {
        get
        {
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
        return new HeelerAddress(path);
    }

    /// <summary>Reads <c>unix:/absolute/path</c>, or gRPC's spelling of it, <c>unix:///absolute/path</c>.</summary>
    /// <exception cref="HeelerAddressException">It is no address, or its path cannot be used.</exception>
    public static HeelerAddress Parse(string address)
    {
        ArgumentNullException.ThrowIfNull(address);
        foreach (var scheme in (string[])["unix://", "unix:"])
        {
            if (address.StartsWith(scheme, StringComparison.Ordinal)) return Unix(address[scheme.Length..]);
        }
        throw new HeelerAddressException($"`{address}` is no address: write unix:/absolute/path");
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
    public override string ToString() => $"unix:{Path}";
}
