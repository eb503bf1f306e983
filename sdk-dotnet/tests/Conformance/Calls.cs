using System.Text.Json.Nodes;
using Google.Protobuf;
using Heeler.Client.Tests.Contract;
using Heeler.V1;
using static Heeler.Client.Tests.Conformance.Messages;

namespace Heeler.Client.Tests.Conformance;

/// <summary>
/// Makes the call of a step. A step with the name of a unary RPC calls the method of that name with the contract's request. Steps
/// for which this client has a richer method are listed here.
/// </summary>
internal sealed class Calls(HeelerClient heeler)
{
    internal async Task<Result> DoAsync(string step, JsonObject with, CancellationToken soon) => step switch
    {
        "spawn" => await SpawnAsync(OptionsFromMessage.Spawn(Read<SpawnRequest>(with)), soon),
        "run" => await RunAsync(OptionsFromMessage.Spawn(Read<SpawnRequest>(with)), soon),
        "attach" => await AttachAsync(Read<AttachRequest>(with), soon),
        "detach" => await DetachAsync(Read<DetachRequest>(with), soon),
        "cancel" => await CancelAsync(Read<CancelRequest>(with), soon),
        "list" => await ListAsync(Read<ListRequest>(with), soon),
        "readOutput" => await ReadOutputAsync(Read<ReadOutputRequest>(with), soon),
        "followOutput" => await FollowOutputAsync(Read<FollowOutputRequest>(with), soon),
        "updateTask" => await UpdateTaskAsync(Read<UpdateTaskRequest>(with), soon),
        "updateQueue" => await UpdateQueueAsync(Read<UpdateQueueRequest>(with), soon),
        _ => await UnaryAsync(step, with, soon),
    };

    internal IAsyncEnumerable<WatchItem> WatchEvents(JsonObject with, CancellationToken soon) =>
        heeler.WatchEventsAsync(OptionsFromMessage.Watch(Read<WatchEventsRequest>(with)), soon);

    internal IAsyncEnumerable<OutputChunk> Output(string taskId, CancellationToken soon) =>
        heeler.ReadChunksAsync(taskId, null, soon);

    internal Task<RunResult> RunAsync(JsonObject with, RunOptions options, CancellationToken stop) =>
        heeler.RunAsync(OptionsFromMessage.Spawn(Read<SpawnRequest>(with)), options, stop);

    internal IAsyncEnumerable<WorkResponse> Work(IAsyncEnumerable<WorkRequest> requests, CancellationToken soon) =>
        heeler.WorkAsync(requests, soon);

    private async Task<Result> UnaryAsync(string step, JsonObject with, CancellationToken soon)
    {
        var name = char.ToUpperInvariant(step[0]) + step[1..];
        var call = BackgroundTasks.Descriptor.FindMethodByName(name)
            ?? throw new MismatchException($"unknown step `{step}`");
        var method = typeof(HeelerClient).GetMethod($"{name}Async", [call.InputType.ClrType, typeof(CancellationToken)])
            ?? throw new MismatchException($"the client has no method for `{step}`");
        dynamic answer = method.Invoke(heeler, [Read(call.InputType, with), soon])!;
        return new Result(Write((IMessage)await answer));
    }

    private async Task<Result> SpawnAsync(SpawnOptions options, CancellationToken soon)
    {
        var answer = await heeler.SpawnAsync(options.ToRequest(), soon);
        return new Result(Write(answer), answer.Task.Id);
    }

    private async Task<Result> RunAsync(SpawnOptions options, CancellationToken soon)
    {
        var result = await heeler.RunAsync(options, null, soon);
        var ended = new AttachEnded { Task = result.Task, Reason = result.Reason };
        return new Result(Attachment(ended, result.Stdout, result.Stderr), result.Handle.Id);
    }

    private async Task<Result> AttachAsync(AttachRequest request, CancellationToken soon)
    {
        var chunks = new List<OutputChunk>();
        AttachEnded? ended = null;
        await foreach (var item in heeler.AttachAsync(request.TaskId, OptionsFromMessage.Attach(request), soon))
        {
            if (item is AttachItem.Output(var piece, _)) chunks.AddRange(piece);
            if (item is AttachItem.Ended(var task, var reason)) ended = new AttachEnded { Task = task, Reason = reason };
        }
        return new Result(Attachment(ended!, Text(chunks, OutputStream.Stdout), Text(chunks, OutputStream.Stderr)));
    }

    private async Task<Result> DetachAsync(DetachRequest request, CancellationToken soon)
    {
        var options = OptionsFromMessage.Detach(request);
        return new Result(Write(request.Filter is { } filter
            ? new DetachResponse { Results = { await heeler.DetachAsync(filter, options, soon) } }
            : await heeler.DetachAsync(request, soon)));
    }

    private async Task<Result> CancelAsync(CancelRequest request, CancellationToken soon)
    {
        var options = OptionsFromMessage.Cancel(request);
        return new Result(Write(request.Filter is { } filter
            ? new CancelResponse { Results = { await heeler.CancelAsync(filter, options, soon) } }
            : await heeler.CancelAsync(request, soon)));
    }

    private async Task<Result> ListAsync(ListRequest request, CancellationToken soon)
    {
        var tasks = await heeler.ListAsync(request, soon).ToListAsync(soon);
        return new Result(new JsonObject { ["tasks"] = new JsonArray([.. tasks.Select(Write)]) });
    }

    private async Task<Result> ReadOutputAsync(ReadOutputRequest request, CancellationToken soon)
    {
        var piece = await heeler.ReadOutputAsync(request, soon);
        var found = Write(piece);
        found.Remove("chunks");
        found["text"] = Text(piece.Chunks, null);
        return new Result(found, Steps.Text(piece.NextOffset));
    }

    private async Task<Result> FollowOutputAsync(FollowOutputRequest request, CancellationToken soon)
    {
        var tasks = new OrderedDictionary<string, JsonObject>();
        await foreach (var item in heeler.FollowOutputAsync(OptionsFromMessage.Follow(request), soon))
        {
            switch (item)
            {
                case FollowItem.Begun({ Id: var id }):
                    tasks.Add(id, new JsonObject { ["id"] = id, ["text"] = "" });
                    break;
                case FollowItem.Output(var id, var chunks, _):
                    tasks[id]["text"] = (string)tasks[id]["text"]! + Text(chunks, null);
                    break;
                case FollowItem.Ended(var task):
                    tasks[task.Id]["ended"] = Write(task);
                    break;
                case FollowItem.Gone(var id):
                    throw new MismatchException($"gone: {id}");
            }
        }
        return new Result(new JsonObject { ["tasks"] = new JsonArray([.. tasks.Values]) });
    }

    private async Task<Result> UpdateTaskAsync(UpdateTaskRequest request, CancellationToken soon)
    {
        var task = await heeler.UpdateTaskAsync(request.TaskId, OptionsFromMessage.UpdateTask(request), soon);
        return new Result(Write(new UpdateTaskResponse { Task = task }));
    }

    internal static JsonObject Texts(IReadOnlyList<OutputChunk> chunks) => new()
    {
        ["stdout"] = Text(chunks, OutputStream.Stdout),
        ["stderr"] = Text(chunks, OutputStream.Stderr),
    };

    private async Task<Result> UpdateQueueAsync(UpdateQueueRequest request, CancellationToken soon)
    {
        var queue = await heeler.UpdateQueueAsync(request.Name, OptionsFromMessage.UpdateQueue(request), soon);
        return new Result(Write(new UpdateQueueResponse { Queue = queue }));
    }

    private static JsonObject Attachment(AttachEnded ended, string stdout, string stderr) =>
        new() { ["ended"] = Write(ended), ["stdout"] = stdout, ["stderr"] = stderr };

    private static string Text(IEnumerable<OutputChunk> chunks, OutputStream? only)
    {
        var wanted = chunks.Where(chunk => only is null || only == chunk.Stream);
        return ByteString.CopyFrom([.. wanted.SelectMany(chunk => OutputBytes.Of(chunk).ToArray())]).ToStringUtf8();
    }
}
