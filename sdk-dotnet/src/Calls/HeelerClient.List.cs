using System.Runtime.CompilerServices;
using Heeler.V1;

namespace Heeler.Client;

/// <content>List.</content>
public partial class HeelerClient
{
    /// <summary>Lists tasks, page after page: live ones first, then newest first.</summary>
    /// <param name="request">The tasks to list. Null: every live task.</param>
    /// <param name="cancellationToken">Ends the listing.</param>
    public virtual async IAsyncEnumerable<BackgroundTask> ListAsync(
        ListRequest? request = null, [EnumeratorCancellation] CancellationToken cancellationToken = default)
    {
        var next = request?.Clone() ?? new ListRequest();
        do
        {
            var page = await ListPageAsync(next, cancellationToken).ConfigureAwait(false);
            foreach (var task in page.Tasks) yield return task;
            next.PageToken = page.NextPageToken;
        }
        while (next.PageToken.Length > 0);
    }

    /// <summary>Returns one page of tasks and the revision at which it was true.</summary>
    public virtual Task<ListResponse> ListPageAsync(ListRequest request, CancellationToken cancellationToken = default) =>
        Connection.CallAsync(Retry.Always, (raw, call) => raw.ListAsync(request, call), cancellationToken);
}
