using Heeler.V1;

namespace Heeler.Client;

/// <content>ListSessions.</content>
public partial class HeelerClient
{
    /// <summary>Returns the sessions that have live tasks, by id.</summary>
    public virtual async Task<IReadOnlyList<SessionInfo>> ListSessionsAsync(CancellationToken cancellationToken = default)
    {
        var sessions = new List<SessionInfo>();
        var request = new ListSessionsRequest();
        do
        {
            var page = await ListSessionsAsync(request, cancellationToken).ConfigureAwait(false);
            sessions.AddRange(page.Sessions);
            request = new ListSessionsRequest { PageToken = page.NextPageToken };
        } while (request.PageToken.Length > 0);
        return sessions;
    }

    /// <summary>Returns one page of the sessions that the request asks for.</summary>
    public virtual Task<ListSessionsResponse> ListSessionsAsync(
        ListSessionsRequest request, CancellationToken cancellationToken = default) =>
        Connection.CallAsync(Retry.Always, (raw, call) => raw.ListSessionsAsync(request, call), cancellationToken);
}
