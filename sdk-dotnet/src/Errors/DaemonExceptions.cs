using System.Net.Sockets;
using System.Security.Authentication;

namespace Heeler.Client;

/// <summary>No daemon listens at the address. The message says how to start one there.</summary>
public sealed class DaemonNotRunningException : HeelerException
{
    /// <summary>Creates the exception for an address.</summary>
    public DaemonNotRunningException(HeelerAddress address, Exception? inner = null)
        : base($"no daemon answers at {address}: start one with `{address?.StartCommand}`", inner) => Address = address!;

    /// <summary>The address that was tried.</summary>
    public HeelerAddress Address { get; }

    /// <inheritdoc/>
    public override bool IsUnprocessed => true;
}

/// <summary>The daemon was to be started, and did not start.</summary>
public class DaemonStartException : HeelerException
{
    /// <summary>Creates the exception with the message of the program.</summary>
    public DaemonStartException(string program, string message)
        : base($"`{program} start` failed: {message}") => Program = program;

    private protected DaemonStartException(string message, string program, Exception? inner)
        : base(message, inner) => Program = program;

    /// <summary>The program that was executed or looked for: a path, or a name on <c>PATH</c>.</summary>
    public string Program { get; }
}

/// <summary>No daemon runs, and the program that would start one is not there. The message says how to install it.</summary>
public sealed class NotInstalledException : DaemonStartException
{
    /// <summary>Creates the exception for a program and the address of the daemon that it would start.</summary>
    public NotInstalledException(string program, HeelerAddress address, Exception? inner = null)
        : base(
            $"no daemon answers at {address}, and `{program}` cannot be executed to start one ({inner?.Message}): "
            + "install it with `cargo install --path cli` in a checkout of Heeler, or set HEELER_BINARY to its path",
            program,
            inner)
    {
    }
}

/// <summary>The address cannot be reached, or its listener is not trusted.</summary>
public sealed class DaemonUnreachableException : HeelerException
{
    /// <summary>Creates the exception for an address and a cause.</summary>
    public DaemonUnreachableException(HeelerAddress address, Exception inner)
        : base($"cannot connect to {address}: {inner?.Message}", inner) => Address = address;

    /// <summary>The address that was tried.</summary>
    public HeelerAddress Address { get; }

    /// <summary>True for a failure of the network. False if the listener is not trusted, or may not be connected to.</summary>
    public override bool IsUnprocessed => InnerException
        is not (UnauthorizedAccessException or AuthenticationException or SocketException { SocketErrorCode: SocketError.AccessDenied });
}

/// <summary>The connection broke. The daemon may have processed the call.</summary>
public sealed class DaemonDisconnectedException : HeelerException
{
    /// <summary>Creates the exception for an address.</summary>
    public DaemonDisconnectedException(HeelerAddress address, Exception? inner = null)
        : base($"the connection to {address} broke", inner) => Address = address;

    /// <summary>The address of the daemon.</summary>
    public HeelerAddress Address { get; }

    /// <inheritdoc/>
    public override bool IsTransient => true;
}
