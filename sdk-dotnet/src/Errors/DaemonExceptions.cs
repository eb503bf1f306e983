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

/// <summary>The address cannot be reached, or its listener is not trusted.</summary>
public sealed class DaemonUnreachableException : HeelerException
{
    /// <summary>Creates the exception for an address and a cause.</summary>
    public DaemonUnreachableException(HeelerAddress address, Exception inner)
        : base($"cannot connect to {address}: {inner?.Message}", inner) => Address = address;

    /// <summary>The address that was tried.</summary>
    public HeelerAddress Address { get; }
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
