using Grpc.Core;
using Heeler.V1;

namespace Heeler.Client;

/// <summary>
/// The position of a consumer in a stream of the daemon: messages in, items out, and the request for the rest. It does no I/O of
/// its own.
/// </summary>
/// <typeparam name="TMessage">A message from the daemon.</typeparam>
/// <typeparam name="TItem">An item for the consumer.</typeparam>
internal interface IResumable<TMessage, TItem>
    where TItem : class
{
    /// <summary>Maximum pause before the next attempt.</summary>
    TimeSpan LongestPause { get; }

    /// <summary>True once the last message was taken.</summary>
    bool IsEnded { get; }

    /// <summary>Requests the rest of the stream.</summary>
    AsyncServerStreamingCall<TMessage> Open(BackgroundTasks.BackgroundTasksClient raw, CancellationToken cancellation);

    /// <summary>Accepts a message.</summary>
    void Take(TMessage message);

    /// <summary>Returns the next item. Null: there is none yet.</summary>
    TItem? Next();

    /// <summary>Reports that the connection broke.</summary>
    void Disconnected();
}
