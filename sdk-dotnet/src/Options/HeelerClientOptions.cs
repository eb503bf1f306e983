using Microsoft.Extensions.Logging;

namespace Heeler.Client;

/// <summary>Options of a client: the daemon's address, the credentials and the time to wait for it.</summary>
public sealed class HeelerClientOptions
{
    /// <summary>The address of the daemon. Null: <c>HEELER_ADDR</c>, else the socket of the user's own daemon.</summary>
    public HeelerAddress? Address { get; set; }

    /// <summary>The token for a daemon over TCP. Null: the content of <see cref="TokenFile"/>.</summary>
    public string? Token { get; set; }

    /// <summary>
    /// The file that has the token. Null: <c>HEELER_TOKEN_FILE</c>; else, on loopback and at the address in <c>HEELER_ADDR</c>, the token of the task
    /// that the program runs in (<c>HEELER_TOKEN</c>); else, on loopback, the token of the user's own daemon.
    /// </summary>
    public string? TokenFile { get; set; }

    /// <summary>
    /// The PEM file with the certificate authorities to trust over TLS. Null: <c>HEELER_TLS_CA</c>, else those of the system.
    /// </summary>
    public string? TlsCaFile { get; set; }

    /// <summary>
    /// Maximum time to repeat a call while a daemon that was reached before is away. Zero: calls are not repeated. A restart
    /// takes a fraction of the default, five seconds.
    /// </summary>
    public TimeSpan RetryFor { get; set; } = TimeSpan.FromSeconds(5);

    /// <summary>
    /// The <c>heeler</c> program with which <see cref="HeelerClient.ConnectOrStartAsync"/> starts a daemon. Null:
    /// <c>HEELER_BINARY</c>, else <c>heeler</c> on <c>PATH</c>.
    /// </summary>
    public string? Program { get; set; }

    /// <summary>The destination of gRPC's logs. Null: none.</summary>
    public ILoggerFactory? LoggerFactory { get; set; }
}
