using Microsoft.Extensions.Logging;

namespace Heeler.Client;

/// <summary>Where the daemon is, and how patient a client is with it.</summary>
public sealed class HeelerClientOptions
{
    /// <summary>Where the daemon listens. None: what <c>HEELER_ADDR</c> says, else the user's own socket.</summary>
    public HeelerAddress? Address { get; set; }

    /// <summary>
    /// How long calls are repeated while the daemon, once it has been reached, is away; zero: not at all. A restart takes a
    /// fraction of the default, five seconds.
    /// </summary>
    public TimeSpan RetryFor { get; set; } = TimeSpan.FromSeconds(5);

    /// <summary>Where gRPC logs to. None: nowhere.</summary>
    public ILoggerFactory? LoggerFactory { get; set; }
}
