using System.Globalization;
using System.Text.Json.Nodes;
using System.Text.RegularExpressions;
using Heeler.V1;

namespace Heeler.Client.Tests.Conformance;

/// <summary>Runs the steps of one case in order, and stores the values that later steps use.</summary>
internal sealed partial class Steps
{
    private static readonly TimeSpan _deadline = TimeSpan.FromSeconds(30);

    private readonly Daemon _daemon;
    private readonly Calls _calls;
    private readonly Dictionary<string, string> _stored = [];
    private readonly HashSet<string> _touched = [];

    internal Steps(Daemon daemon)
    {
        _daemon = daemon;
        _calls = new Calls(daemon.Client());
        _stored["DIR"] = Directory.CreateDirectory(daemon.Path("dir")).FullName;
    }

    internal async Task DoAllAsync(JsonArray steps)
    {
        for (var i = 0; i < steps.Count; i++) await DoAsync(steps[i]!.AsObject(), $"step {i + 1}");
    }

    private async Task DoAsync(JsonObject step, string path)
    {
        Expectation.OnlyKnows(step, "do", "with", "as", "expect", "error");
        var verb = (string)step["do"]!;
        path = $"{path}, {verb}";
        using var soon = new CancellationTokenSource(_deadline);
        // The steps of `during` are filled in later: they use values that earlier ones store.
        var during = step["with"]?["during"]?.DeepClone();
        var with = (JsonObject)Filled(step["with"] ?? new JsonObject())!;
        if (during is not null) with["during"] = during;
        try
        {
            var (result, stores) = await ResultAsync(verb, with, soon.Token);
            if (step["error"] is not null) throw new MismatchException($"{path} was not refused: {result}");
            if ((string?)step["as"] is { } name)
                _stored[name] = stores ?? throw new MismatchException($"{path} has nothing to store");
            if (step["expect"] is { } expected) Expectation.Check(Filled(expected), result, path);
        }
        catch (HeelerRefusedException refused) when (step["error"] is not null)
        {
            Expectation.CheckRefusal((JsonObject)Filled(step["error"])!, refused, path);
        }
        catch (Exception error) when (error is not MismatchException)
        {
            throw new MismatchException($"{path}: {error.GetType().Name}: {error.Message}");
        }
    }

    private async Task<Result> ResultAsync(string verb, JsonObject with, CancellationToken soon)
    {
        switch (verb)
        {
            case "watchEvents":
                return await WatchEventsAsync(with, soon);
            case "output":
                return await OutputAsync(with, soon);
            case "abortedRun":
                return await AbortedRunAsync(with, soon);
            case "work":
                return await WorkAsync(with, soon);
            case "restart":
                await RestartAsync(Only(with, "signal"));
                return new Result([]);
            case "touch":
                await File.WriteAllTextAsync(Only(with, "file"), "", soon);
                _touched.Add(Only(with, "file"));
                return new Result([]);
            case "await":
                await AwaitAsync(Only(with, "file"), soon);
                return new Result([]);
            case "gone":
                foreach (var pid in await File.ReadAllLinesAsync(Only(with, "file"), soon))
                    if (Directory.Exists($"/proc/{pid}")) throw new MismatchException($"process {pid} still exists");
                return new Result([]);
            default:
                return await _calls.DoAsync(verb, with, soon);
        }
    }

    private async Task<Result> WatchEventsAsync(JsonObject with, CancellationToken soon)
    {
        var count = (int)with["count"]!;
        var during = with["during"]?.AsArray();
        with.Remove("count");
        with.Remove("during");
        var events = new List<TaskEvent>();
        var doing = Task.CompletedTask;
        await foreach (var item in _calls.WatchEvents(with, soon))
        {
            if (item is WatchItem.Reached && during is not null)
            {
                doing = DoAllAsync(during);
                during = null;
            }
            if (item is WatchItem.Happened(var happened)) events.Add(happened);
            if (doing.IsFaulted || events.Count >= count) break;
        }
        await doing;
        var written = new JsonArray([.. events.Select(Messages.Write)]);
        return new Result(new JsonObject { ["events"] = written }, Text(events[^1].Revision));
    }

    private async Task<Result> OutputAsync(JsonObject with, CancellationToken soon)
    {
        var during = with["during"]?.AsArray();
        with.Remove("during");
        var chunks = new List<OutputChunk>();
        await foreach (var chunk in _calls.Output(Only(with, "taskId"), soon))
        {
            if (chunks.Count == 0 && during is not null) await DoAllAsync(during);
            chunks.Add(chunk);
        }
        return new Result(Calls.Texts(chunks));
    }

    private async Task<Result> AbortedRunAsync(JsonObject with, CancellationToken soon)
    {
        var (once, reason) = ((string)with["once"]!, (string)with["reason"]!);
        with.Remove("once");
        with.Remove("reason");
        var options = new RunOptions();
        using var stop = CancellationTokenSource.CreateLinkedTokenSource(soon);
        var run = _calls.RunAsync(with, options, stop.Token);
        await AwaitAsync(once, soon);
        options.Reason = reason;
        await stop.CancelAsync();
        try
        {
            await run;
        }
        catch (OperationCanceledException) when (!soon.IsCancellationRequested)
        {
            return new Result([]);
        }
        throw new MismatchException("the run was not cancelled");
    }

    private async Task<Result> WorkAsync(JsonObject with, CancellationToken soon)
    {
        Expectation.OnlyKnows(with, "requests", "during", "then");
        var joined = new TaskCompletionSource();
        var found = new JsonObject { ["cancels"] = new JsonArray(), ["messages"] = new JsonArray() };
        await foreach (var response in _calls.Work(Requests(), soon))
        {
            switch (response.ItemCase)
            {
                case WorkResponse.ItemOneofCase.Joined:
                    found["joined"] = Messages.Write(response.Joined);
                    joined.TrySetResult();
                    break;
                case WorkResponse.ItemOneofCase.Cancel:
                    found["cancels"]!.AsArray().Add(Messages.Write(response.Cancel));
                    break;
                case WorkResponse.ItemOneofCase.Message:
                    found["messages"]!.AsArray().Add(Messages.Write(response.Message));
                    break;
                case WorkResponse.ItemOneofCase.Acknowledged:
                    found["acknowledged"] = Text(response.Acknowledged.Sequence);
                    break;
                case WorkResponse.ItemOneofCase.Ended:
                    found["ended"] = Messages.Write(response.Ended);
                    break;
            }
        }
        return new Result(found, (string?)found["joined"]?["task"]?["id"]);

        async IAsyncEnumerable<WorkRequest> Requests()
        {
            foreach (var request in with["requests"]!.AsArray()) yield return Messages.Read<WorkRequest>(request!.AsObject());
            await joined.Task.WaitAsync(soon);
            if (with["during"] is JsonArray during) await DoAllAsync(during);
            foreach (var request in with["then"]?.AsArray() ?? []) yield return Messages.Read<WorkRequest>(request!.AsObject());
        }
    }

    private async Task RestartAsync(string signal)
    {
        switch (signal)
        {
            case "KILL":
                await _daemon.KillAsync();
                break;
            case "TERM":
                await _daemon.TerminateAsync();
                break;
            default:
                throw new MismatchException($"unknown signal {signal}");
        }
        await _daemon.RestartAsync();
    }

    private async Task AwaitAsync(string file, CancellationToken soon)
    {
        while (!_touched.Contains(file) && !(File.Exists(file) && new FileInfo(file).Length > 0))
            await Task.Delay(10, soon);
    }

    internal static string Only(JsonObject with, string key)
    {
        Expectation.OnlyKnows(with, key);
        return (string)with[key]!;
    }

    /// <summary>Replaces every stored name. Any other `$name` belongs to the script.</summary>
    private JsonNode? Filled(JsonNode? node) => node switch
    {
        JsonObject fields => new JsonObject(fields.Select(field => KeyValuePair.Create(field.Key, Filled(field.Value)))),
        JsonArray items => new JsonArray([.. items.Select(Filled)]),
        JsonValue value when value.TryGetValue<string>(out var text) => Name().Replace(
            text, found => _stored.TryGetValue(found.Groups[1].Value, out var stored) ? stored : found.Value),
        _ => node?.DeepClone(),
    };

    internal static string Text(ulong number) => number.ToString(CultureInfo.InvariantCulture);

    [GeneratedRegex(@"\$([A-Za-z]\w*)")]
    private static partial Regex Name();
}

/// <summary>The result of a step, and the value that `as` stores.</summary>
internal sealed record Result(JsonObject Found, string? Stores = null);
