using System.Text.Json.Nodes;
using Xunit;

namespace Heeler.Client.Tests.Conformance;

/// <summary>
/// The conformance cases of <c>tests/conformance</c>, which every client runs: each case has its own daemon.
/// </summary>
public sealed class ConformanceTests(ConformanceReport report) : IClassFixture<ConformanceReport>
{
    private static readonly Dictionary<string, JsonObject> _cases = Read();

    public static TheoryData<string> Names => [.. _cases.Keys];

    [Theory]
    [MemberData(nameof(Names))]
    public async Task Case(string name)
    {
        var error = await Record.ExceptionAsync(() => RunAsync(_cases[name]));
        report.Add(name, error);
        if (report.HasAll(_cases.Keys)) report.Write(_cases.Keys);
        Assert.True(error is null, $"{name}: {error}");
    }

    [Fact]
    public void A_wrong_expectation_fails()
    {
        var found = JsonNode.Parse("""{"id": "shell-a", "names": ["x"], "count": "7", "some": true}""");
        Expectation.Check(JsonNode.Parse("""{"id": "~shell-[a-z]", "names": ["x"], "count": 7, "other": null}"""), found, "it");
        foreach (var wrong in (string[])["""{"id": "~shell"}""", """{"names": []}""", """{"other": 1}""", """{"some": null}"""])
            Assert.Throws<MismatchException>(() => Expectation.Check(JsonNode.Parse(wrong), found, "it"));
    }

    [Fact]
    public async Task Unknown_steps_keys_and_fields_fail()
    {
        await using var daemon = await Daemon.StartAsync();
        string[] wrong =
        [
            """{"do": "dance"}""",
            """{"do": "list", "whith": {}}""",
            """{"do": "spawn", "with": {"spec": {"shell": {"script": "true"}, "colour": "red"}}}""",
            """{"do": "output", "with": {"taskId": "shell-aaaaaaaaaa", "offset": 1}}""",
            """{"do": "restart", "with": {"signal": "HUP"}}""",
            """{"do": "list", "as": "t"}""",
            """{"do": "list", "error": {"code": "NOT_FOUND"}}""",
            """{"do": "inspect", "with": {"taskId": "shell-aaaaaaaaaa"}}""",
            """
            {"do": "inspect", "with": {"taskId": "shell-aaaaaaaaaa"},
             "error": {"code": "NOT_FOUND", "reason": "EPOCH_MISMATCH"}}
            """,
        ];
        foreach (var step in wrong)
            await Assert.ThrowsAsync<MismatchException>(() => new Steps(daemon).DoAllAsync([JsonNode.Parse(step)]));
    }

    private static async Task RunAsync(JsonObject written)
    {
        Expectation.OnlyKnows(written, "name", "shows", "serve", "steps");
        var serve = written["serve"]?.AsArray().Select(argument => (string)argument!) ?? [];
        await using var daemon = await Daemon.StartAsync([.. serve]);
        await new Steps(daemon).DoAllAsync(written["steps"]!.AsArray());
    }

    private static Dictionary<string, JsonObject> Read() =>
        JsonNode.Parse(File.ReadAllText(Repository.Path("tests/conformance/cases.json")))!.AsArray()
            .ToDictionary(written => (string)written!["name"]!, written => written!.AsObject());
}

/// <summary>The result of each case, written for the table in <c>docs/sdk</c> once all have run.</summary>
public sealed class ConformanceReport
{
    private readonly Dictionary<string, string> _results = [];

    internal void Add(string name, Exception? error) =>
        _results[name] = error is null ? "passed" : "failed: " + error.Message.Split('\n')[0];

    internal bool HasAll(IEnumerable<string> names) => names.All(_results.ContainsKey);

    internal void Write(IEnumerable<string> names)
    {
        var results = names.Select(name => KeyValuePair.Create(name, (JsonNode?)_results[name]));
        var report = new JsonObject { ["client"] = "dotnet", ["results"] = new JsonObject(results) };
        Directory.CreateDirectory(Repository.Path("target/conformance"));
        File.WriteAllText(Repository.Path("target/conformance/dotnet.json"), report.ToString() + "\n");
    }
}
