using System.Runtime.CompilerServices;
using Heeler.V1;

namespace Heeler.Client;

/// <content>WatchEvents.</content>
public partial class HeelerClient
{
    /// <summary>
    /// Streams every event from a point on, across every restart of the daemon, until the enumeration stops. No event is lost or
    /// repeated.
    /// </summary>
    /// <remarks>
    /// It fails only if reconnecting cannot help: the revision is no longer kept, the epoch is another one, the daemon belongs to
    /// another user, or an argument is bad. A slow consumer costs the daemon nothing and misses nothing. Each enumeration begins
    /// where the options say.
    /// </remarks>
    public virtual async IAsyncEnumerable<WatchItem> WatchEventsAsync(
        WatchOptions? options = null, [EnumeratorCancellation] CancellationToken cancellationToken = default)
    {
        options ??= new WatchOptions();
        var cursor = new WatchCursor(options.ToRequest());
        var stream = new ResumingStream<WatchEventsResponse, WatchItem>(Connection, cursor, options.GiveUpAfter);
        await foreach (var item in stream.ItemsAsync(cancellationToken).ConfigureAwait(false)) yield return item;
    }
}
