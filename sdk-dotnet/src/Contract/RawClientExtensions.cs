using Heeler.Client;

namespace Heeler.V1;

/// <summary>Short forms for the generated client.</summary>
public static class RawClientExtensions
{
    /// <summary>Stops a task and its whole tree by its own stop policy, and returns when the tree is proven empty.</summary>
    /// <param name="client">The generated client.</param>
    /// <param name="taskId">The task.</param>
    /// <param name="cancellationToken">Ends the call, not the stop.</param>
    /// <exception cref="Grpc.Core.RpcException">As for every call of the generated client.</exception>
    public static Task<CancelResult> CancelBackgroundTaskAsync(
        this BackgroundTasks.BackgroundTasksClient client, string taskId, CancellationToken cancellationToken) =>
        client.CancelBackgroundTaskAsync(taskId, null, cancellationToken);

    /// <summary>Stops a task and its whole tree, and returns when the tree is proven empty or a kill has lasted 10 s.</summary>
    /// <param name="client">The generated client.</param>
    /// <param name="taskId">The task.</param>
    /// <param name="options">The way to stop. Null: the task's own stop policy.</param>
    /// <param name="cancellationToken">Ends the call, not the stop.</param>
    /// <exception cref="Grpc.Core.RpcException">As for every call of the generated client.</exception>
    public static async Task<CancelResult> CancelBackgroundTaskAsync(
        this BackgroundTasks.BackgroundTasksClient client,
        string taskId,
        CancelOptions? options = null,
        CancellationToken cancellationToken = default)
    {
        ArgumentNullException.ThrowIfNull(client);
        ArgumentNullException.ThrowIfNull(taskId);
        var request = (options ?? new CancelOptions()).ToRequest(new TaskFilter { TaskIds = { taskId } });
        using var call = client.CancelAsync(request, cancellationToken: cancellationToken);
        return CancelOptions.ResultOf(taskId, await call.ResponseAsync.ConfigureAwait(false));
    }
}
