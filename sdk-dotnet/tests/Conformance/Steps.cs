using System.Globalization;
using System.Text.Json.Nodes;
using System.Text.RegularExpressions;
using Heeler.V1;

namespace Heeler.Client.Tests.Conformance;

/// <summary>Does the steps of one case, one after the other, and keeps what they name.</summary>
internal sealed partial class Steps
{
    private static readonly TimeSpan _deadline = TimeSpan.FromSeconds(30);

    private readonly Daemon _daemon;
    private readonly Calls _calls;
    private readonly Dictionary<string, string> _kept = [];
    private readonly HashSet<string> _touched = [];

    internal Steps(Daemon daemon)
    {
        _daemon = daemon;
        _calls = new Calls(daemon.Client());
        _kept["DIR"] = Directory.CreateDirectory(daemon.Path("dir")).FullName;
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
        // The steps within a watch are filled in when it is their turn: they use what those before them keep.
        var during = step["with"]?["during"]?.DeepClone();
        var with = (JsonObject)Filled(step["with"] ?? new JsonObject())!;
        if (during is not null) with["during"] = during;
        try
        {
            var (result, keeps) = await ResultAsync(verb, with, soon.Token);
            if (step["error"] is not null) throw new MismatchException($"{path} is not refused: {result}");
            if ((string?)step["as"] is { } name) _kept[name] = keeps ?? throw new MismatchException($"{path} keeps nothing");
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
            case "watch":
                return await WatchAsync(with, soon);
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
                    if (Directory.Exists($"/proc/{pid}")) throw new MismatchException($"process {pid} is there");
                return new Result([]);
            default:
                return await _calls.DoAsync(verb, with, soon);
        }
    }

    private async Task<Result> WatchAsync(JsonObject with, CancellationToken soon)
    {
        var count = (int)with["count"]!;
        var during = with["during"]?.AsArray();
        with.Remove("count");
        with.Remove("during");
        var events = new List<TaskEvent>();
        var doing = Task.CompletedTask;
        await foreach (var item in _calls.Watch(with, soon))
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
                throw new MismatchException($"the runner does not know the signal {signal}");
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

    /// <summary>With every name that was kept in its place. What is no such name is the script's own.</summary>
    private JsonNode? Filled(JsonNode? node) => node switch
    {
        JsonObject fields => new JsonObject(fields.Select(field => KeyValuePair.Create(field.Key, Filled(field.Value)))),
        JsonArray items => new JsonArray([.. items.Select(Filled)]),
        JsonValue value when value.TryGetValue<string>(out var text) => Name().Replace(
            text, found => _kept.TryGetValue(found.Groups[1].Value, out var kept) ? kept : found.Value),
        _ => node?.DeepClone(),
    };

    internal static string Text(ulong number) => number.ToString(CultureInfo.InvariantCulture);

    [GeneratedRegex(@"\$([A-Za-z]\w*)")]
    private static partial Regex Name();
}

/// <summary>What a step gave, and what of it can be kept.</summary>
internal sealed record Result(JsonObject Found, string? Keeps = null)
{
    public void Deconstruct(out JsonObject found, out string? keeps) => (found, keeps) = (Found, Keeps);
}
