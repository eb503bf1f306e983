using Heeler.Client;

namespace Heeler.V1;

/// <summary>What the generated client has beside the calls of the service.</summary>
public static class RawClientExtensions
{
    /// <summary>Stops a task and its whole tree, and returns when it is proven gone.</summary>
    /// <param name="client">The generated client.</param>
    /// <param name="taskId">Which task.</param>
    /// <param name="options">How. None: gracefully, with the task's own grace.</param>
    /// <param name="cancellationToken">Ends the call, and not the stopping of the task.</param>
    /// <exception cref="Grpc.Core.RpcException">As for every call of the generated client.</exception>
    public static async Task<CancelResult> CancelBackgroundTaskAsync(
        this BackgroundTasks.BackgroundTasksClient client,
        string taskId,
        CancelOptions? options = null,
        CancellationToken cancellationToken = default)
    {
        ArgumentNullException.ThrowIfNull(client);
        var request = (options ?? new CancelOptions()).ForTask(taskId);
        using var call = client.CancelAsync(request, cancellationToken: cancellationToken);
        return CancelOptions.ResultOf(taskId, await call.ResponseAsync.ConfigureAwait(false));
    }
}
