using Heeler.V1;

namespace Heeler.Client;

/// <content>Shutdown.</content>
public partial class HeelerClient
{
    /// <summary>Ends the daemon. The answer comes when it begins to close; it exits a moment later.</summary>
    /// <param name="request">The treatment of live tasks. Null: they run on.</param>
    /// <param name="cancellationToken">Ends the call, not the shutdown.</param>
    public virtual Task<ShutdownResponse> ShutdownAsync(
        ShutdownRequest? request = null, CancellationToken cancellationToken = default) =>
        Connection.CallAsync(
            Retry.Never, (raw, call) => raw.ShutdownAsync(request ?? new ShutdownRequest(), call), cancellationToken);
}
