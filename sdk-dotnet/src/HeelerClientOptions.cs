using Microsoft.Extensions.Logging;

namespace Heeler.Client;

/// <summary>Where the daemon is, what is shown to it, and how patient a client is with it.</summary>
public sealed class HeelerClientOptions
{
    /// <summary>Where the daemon listens. None: what <c>HEELER_ADDR</c> says, else the user's own socket.</summary>
    public HeelerAddress? Address { get; set; }

    /// <summary>The token that a daemon over TCP wants to see. None: what is in <see cref="TokenFile"/>.</summary>
    public string? Token { get; set; }

    /// <summary>
    /// The file with the token. None: the one that <c>HEELER_TOKEN_FILE</c> names, else, on loopback, that of the user's own
    /// daemon.
    /// </summary>
    public string? TokenFile { get; set; }

    /// <summary>
    /// The file, in PEM form, with the certificate of the authority to believe over TLS. None: the one that
    /// <c>HEELER_TLS_CA</c> names, else those of the system.
    /// </summary>
    public string? TlsCaFile { get; set; }

    /// <summary>
    /// How long calls are repeated while the daemon, once it has been reached, is away; zero: not at all. A restart takes a
    /// fraction of the default, five seconds.
    /// </summary>
    public TimeSpan RetryFor { get; set; } = TimeSpan.FromSeconds(5);

    /// <summary>Where gRPC logs to. None: nowhere.</summary>
    public ILoggerFactory? LoggerFactory { get; set; }
}
