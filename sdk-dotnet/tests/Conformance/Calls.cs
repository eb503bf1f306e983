using System.Text.Json.Nodes;
using Google.Protobuf;
using Heeler.V1;
using static Heeler.Client.Tests.Conformance.Messages;

namespace Heeler.Client.Tests.Conformance;

/// <summary>Does a step by the method that this client has for it.</summary>
internal sealed class Calls(HeelerClient heeler)
{
    internal async Task<Result> DoAsync(string verb, JsonObject with, CancellationToken soon) => verb switch
    {
        "spawn" => await SpawnAsync(Spawn(Read<SpawnRequest>(with)), soon),
        "run" => await RunAsync(Spawn(Read<SpawnRequest>(with)), soon),
        "attach" => await AttachAsync(Read<AttachRequest>(with), soon),
        "detach" => new Result(Write(await DetachAsync(Read<DetachRequest>(with), soon))),
        "cancel" => new Result(Write(await CancelAsync(Read<CancelRequest>(with), soon))),
        "list" => new Result(await ListAsync(Read<ListRequest>(with), soon)),
        "inspect" => new Result(Write(await heeler.InspectAsync(Read<InspectRequest>(with), soon))),
        "wait" => new Result(Write(await heeler.WaitAsync(Read<WaitRequest>(with), soon))),
        "read" => await ReadAsync(Read<ReadOutputRequest>(with), soon),
        "output" => await OutputAsync(Steps.Only(with, "taskId"), soon),
        "remove" => new Result(Write(await heeler.RemoveAsync(Read<RemoveRequest>(with), soon))),
        "updateQueue" => new Result(Write(await UpdateQueueAsync(Read<UpdateQueueRequest>(with), soon))),
        "listQueues" => new Result(Write(await ListQueuesAsync(Read<ListQueuesRequest>(with), soon))),
        _ => throw new MismatchException($"the runner does not know `{verb}`"),
    };

    internal IAsyncEnumerable<WatchItem> Watch(JsonObject with, CancellationToken soon) =>
        heeler.WatchEventsAsync(Messages.Watch(Read<WatchEventsRequest>(with)), soon);

    private async Task<Result> SpawnAsync(SpawnOptions options, CancellationToken soon)
    {
        var answer = await heeler.SpawnAsync(options.ToRequest(), soon);
        return new Result(Write(answer), answer.Task.Id);
    }

    private async Task<Result> RunAsync(SpawnOptions options, CancellationToken soon)
    {
        var result = await heeler.RunAsync(options, null, soon);
        var released = new Released { Task = result.Task, Reason = result.Reason };
        return new Result(Held(released, result.Stdout, result.Stderr), result.Handle.Id);
    }

    private async Task<Result> AttachAsync(AttachRequest request, CancellationToken soon)
    {
        var chunks = new List<OutputChunk>();
        Released? released = null;
        await foreach (var item in heeler.AttachAsync(request.TaskId, Attach(request), soon))
        {
            if (item is AttachItem.Output(var piece, _)) chunks.AddRange(piece);
            if (item is AttachItem.Released(var task, var reason)) released = new Released { Task = task, Reason = reason };
        }
        return new Result(Held(released!, Text(chunks, OutputStream.Stdout), Text(chunks, OutputStream.Stderr)));
    }

    private Task<DetachResponse> DetachAsync(DetachRequest request, CancellationToken soon) => request.TargetCase switch
    {
        DetachRequest.TargetOneofCase.SessionId => Results(
            heeler.DetachSessionAsync(request.SessionId, Detach(request), soon),
            results => new DetachResponse { Results = { results } }),
        DetachRequest.TargetOneofCase.TaskId => Results(
            heeler.DetachAsync(request.TaskId, Detach(request), soon),
            result => new DetachResponse { Results = { result } }),
        _ => heeler.DetachAsync(request, soon),
    };

    private Task<CancelResponse> CancelAsync(CancelRequest request, CancellationToken soon) => request.TargetCase switch
    {
        CancelRequest.TargetOneofCase.TaskId => Results(
            heeler.CancelBackgroundTaskAsync(request.TaskId, Cancel(request), soon),
            result => new CancelResponse { Results = { result } }),
        CancelRequest.TargetOneofCase.SessionId => Results(
            heeler.CancelSessionAsync(request.SessionId, Cancel(request), soon),
            results => new CancelResponse { Results = { results } }),
        CancelRequest.TargetOneofCase.Filter => Results(
            heeler.CancelMatchingAsync(request.Filter, Cancel(request), soon),
            results => new CancelResponse { Results = { results } }),
        _ => heeler.CancelAsync(request, soon),
    };

    private async Task<JsonObject> ListAsync(ListRequest request, CancellationToken soon)
    {
        var tasks = await heeler.ListAsync(request, soon).ToListAsync(soon);
        return Write(new ListResponse { Tasks = { tasks } });
    }

    private async Task<Result> ReadAsync(ReadOutputRequest request, CancellationToken soon)
    {
        var piece = await heeler.ReadOutputAsync(request, soon);
        var found = Write(piece);
        found.Remove("chunks");
        found["text"] = Text(piece.Chunks, null);
        return new Result(found, Steps.Text(piece.NextOffset));
    }

    private async Task<Result> OutputAsync(string taskId, CancellationToken soon)
    {
        var chunks = await heeler.ReadChunksAsync(taskId, null, soon).ToListAsync(soon);
        return new Result(new JsonObject
        {
            ["stdout"] = Text(chunks, OutputStream.Stdout),
            ["stderr"] = Text(chunks, OutputStream.Stderr),
        });
    }

    private Task<UpdateQueueResponse> UpdateQueueAsync(UpdateQueueRequest request, CancellationToken soon) => Results(
        heeler.UpdateQueueAsync(request.Name, Messages.Queue(request), soon),
        queue => new UpdateQueueResponse { Queue = queue });

    private Task<ListQueuesResponse> ListQueuesAsync(ListQueuesRequest _, CancellationToken soon) => Results(
        heeler.ListQueuesAsync(soon), queues => new ListQueuesResponse { Queues = { queues } });

    private static async Task<TMessage> Results<TResult, TMessage>(Task<TResult> call, Func<TResult, TMessage> written) =>
        written(await call);

    private static JsonObject Held(Released released, string stdout, string stderr) =>
        new() { ["released"] = Write(released), ["stdout"] = stdout, ["stderr"] = stderr };

    private static string Text(IEnumerable<OutputChunk> chunks, OutputStream? only)
    {
        var wanted = chunks.Where(chunk => only is null || only == chunk.Stream);
        return ByteString.CopyFrom([.. wanted.SelectMany(chunk => chunk.Data)]).ToStringUtf8();
    }
}
