using System.Runtime.CompilerServices;
using Grpc.Core;
using Heeler.V1;

namespace Heeler.Client;

/// <content>Work, ReportProgress and SendMessage.</content>
public partial class HeelerClient
{
    /// <summary>
    /// Opens the stream of a worker: sends the requests and returns the responses. The first request registers a hosted task or
    /// joins a task. It does not reconnect.
    /// </summary>
    public virtual async IAsyncEnumerable<WorkResponse> WorkAsync(
        IAsyncEnumerable<WorkRequest> requests, [EnumeratorCancellation] CancellationToken cancellationToken = default)
    {
        ArgumentNullException.ThrowIfNull(requests);
        using var ended = CancellationTokenSource.CreateLinkedTokenSource(cancellationToken);
        using var call = Connection.Raw.Work(cancellationToken: ended.Token);
        var sending = SendAllAsync(call.RequestStream, requests, ended.Token);
        try
        {
            while (await NextAsync(call.ResponseStream, cancellationToken).ConfigureAwait(false)) yield return call.ResponseStream.Current;
        }
        finally
        {
            await ended.CancelAsync().ConfigureAwait(false);
            await sending.ConfigureAwait(ConfigureAwaitOptions.SuppressThrowing);
        }
    }

    /// <summary>
    /// Reports progress of a task; null only asks. Returns the request to stop, if the task is being stopped. With
    /// <paramref name="listens"/>, a cancel in the next minute begins softly.
    /// </summary>
    public virtual async Task<WorkCancel?> ReportProgressAsync(
        string taskId, ProgressUpdate? update, bool listens = false, CancellationToken cancellationToken = default)
    {
        ArgumentNullException.ThrowIfNull(taskId);
        var request = new ReportProgressRequest { TaskId = taskId, Update = update, Listens = listens };
        return (await ReportProgressAsync(request, cancellationToken).ConfigureAwait(false)).Cancel;
    }

    /// <summary>Makes the report of the request.</summary>
    public virtual Task<ReportProgressResponse> ReportProgressAsync(
        ReportProgressRequest request, CancellationToken cancellationToken = default) =>
        Connection.CallAsync(Retry.IfUnprocessed, (raw, call) => raw.ReportProgressAsync(request, call), cancellationToken);

    /// <summary>Puts a message into the mailbox of a task, for its worker. Returns its number.</summary>
    public virtual async Task<ulong> SendMessageAsync(string taskId, string text, CancellationToken cancellationToken = default)
    {
        ArgumentNullException.ThrowIfNull(taskId);
        ArgumentNullException.ThrowIfNull(text);
        var request = new SendMessageRequest { TaskId = taskId, Text = text };
        return (await SendMessageAsync(request, cancellationToken).ConfigureAwait(false)).Number;
    }

    /// <summary>Sends the message of the request. With a message id it is safe to repeat.</summary>
    public virtual Task<SendMessageResponse> SendMessageAsync(
        SendMessageRequest request, CancellationToken cancellationToken = default)
    {
        ArgumentNullException.ThrowIfNull(request);
        var retry = request.MessageId.Length > 0 ? Retry.Always : Retry.IfUnprocessed;
        return Connection.CallAsync(retry, (raw, call) => raw.SendMessageAsync(request, call), cancellationToken);
    }

    private async Task<bool> NextAsync(IAsyncStreamReader<WorkResponse> responses, CancellationToken cancellation)
    {
        try
        {
            return await responses.MoveNext(cancellation).ConfigureAwait(false);
        }
        catch (RpcException error)
        {
            throw CallFailure.From(error, Connection.Address, cancellation);
        }
    }

    private static async Task SendAllAsync(
        IClientStreamWriter<WorkRequest> writer, IAsyncEnumerable<WorkRequest> requests, CancellationToken cancellation)
    {
        await foreach (var request in requests.WithCancellation(cancellation).ConfigureAwait(false))
            await writer.WriteAsync(request, cancellation).ConfigureAwait(false);
        await writer.CompleteAsync().ConfigureAwait(false);
    }
}
