using System.Text.RegularExpressions;
using Heeler.V1;
using Xunit;

namespace Heeler.Client.Tests.Recipes;

/// <summary>The recipes of the docs page: the page has the code that is tested here.</summary>
public sealed partial class RecipeTests : IDisposable
{
    private readonly Transcript _console = new() { NewLine = "\n" };

    public void Dispose() => _console.Dispose();

    [Fact]
    public void The_page_and_the_readmes_have_the_tested_code()
    {
        string[] files =
            [.. Directory.GetFiles(Repository.Path("sdk-dotnet/tests/Recipes"), "*Recipe.cs"), Repository.Path("examples/dotnet/worker/AgentHost.cs")];
        var sources = string.Concat(files.Select(File.ReadAllText));
        var compiled = Region().Matches(sources)
            .ToDictionary(found => found.Groups["name"].Value, found => Dedented(found.Groups["body"].Value));
        foreach (var readme in (string[])["README.md", "sdk-dotnet/README.md"])
            Assert.Contains(compiled["readme"], Read(readme), StringComparison.Ordinal);
        compiled.Remove("readme");
        var page = Read("docs/sdk/dotnet.md");
        var shown = Snippet().Matches(page)
            .ToDictionary(found => found.Groups["name"].Value, found => found.Groups["body"].Value);
        Assert.Equal(compiled, shown);
        Assert.Equal(page.Split("```csharp").Length - 1, shown.Count);
    }

    [Fact]
    public async Task Tasks_are_listed_by_a_filter()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        var options = new SpawnOptions { Shell = "exit 3", SessionId = "demo", Labels = { ["team"] = "blue" } };
        var failed = await heeler.SpawnAsync(options, daemon.Soon);
        await failed.WaitAsync(daemon.Soon);
        await (await heeler.SpawnAsync(options with { Shell = "exit 0" }, daemon.Soon)).WaitAsync(daemon.Soon);
        await Recipe.ListAsync(heeler, _console, daemon.Soon);
        Assert.Equal($"{failed} exited with 3\n", _console.ToString());
    }

    [Fact]
    public async Task A_task_is_inspected()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        var task = await heeler.SpawnAsync(new SpawnOptions { Shell = "echo up; exec sleep 600" }, daemon.Soon);
        await task.ReadLinesAsync(cancellationToken: daemon.Soon).FirstAsync(daemon.Soon);
        await Recipe.InspectAsync(heeler, task.Id, _console, daemon.Soon);
        Assert.Matches("^[0-9]+ [A-Z] .+\nStdout: up\n\n$", _console.ToString());
    }

    [Fact]
    public async Task A_program_is_run_without_a_shell()
    {
        await using var daemon = await Daemon.StartAsync();
        await File.WriteAllTextAsync(daemon.Path("a file; with $signs"), "1\n2\n", daemon.Soon);
        var task = await Recipe.ArgvAsync(daemon.Client(), daemon.Path("a file; with $signs"), daemon.Soon);
        Assert.Equal(0, (await task.WaitAsync(daemon.Soon)).ExitCode);
        await Recipe.ReadNowAsync(task, _console, daemon.Soon);
        Assert.StartsWith("2 ", _console.ToString(), StringComparison.Ordinal);
    }

    /// <summary>C4, E9</summary>
    [Fact]
    public async Task A_silent_agent_is_found_and_stopped()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        var agent = await Recipe.SpawnAgentAsync(heeler, ["sleep", "600"], TimeSpan.FromMilliseconds(100), daemon.Soon);
        var shell = await heeler.Session("demo").SpawnAsync(new SpawnOptions { Argv = ["sleep", "600"] }, daemon.Soon);
        Assert.True(await agent.EventsAsync(daemon.Soon).AnyAsync(happened => happened.Type == TaskEventType.Stale, daemon.Soon));
        await Recipe.ListSessionsAsync(heeler, _console, daemon.Soon);
        Assert.Equal($"demo: {agent}, {shell}\n", _console.ToString());
        var stopping = Recipe.StopSilentAgentsAsync(heeler, heeler.Session("demo"), _console, daemon.Soon);
        await daemon.UntilAsync(() => _console.Has("0 agents and 1 shells are left\n"));
        Assert.Matches($"\n{agent}: Cancelled, proof: (CgroupEmpty|NoChildren)\n", _console.ToString());
        Assert.False(stopping.IsCompleted);
        await shell.CancelAsync(daemon.Soon);
        await stopping;
    }

    [Fact]
    public async Task A_wait_returns_the_exit_code()
    {
        await using var daemon = await Daemon.StartAsync();
        Assert.Equal(3, await Recipe.RunAndWaitAsync(daemon.Client(), daemon.Soon));
    }

    [Fact]
    public async Task A_cancel_returns_its_proof()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        var task = await heeler.SpawnAsync(new SpawnOptions { Shell = "setsid sleep 600 & sleep 600" }, daemon.Soon);
        await Recipe.CancelAsync(heeler, task.Id, _console, daemon.Soon);
        Assert.Matches("^Requested: Cancelled, proof: (CgroupEmpty|NoChildren)\n$", _console.ToString());
    }

    [Fact]
    public async Task Output_is_followed_to_its_end()
    {
        await using var daemon = await Daemon.StartAsync();
        var task = await daemon.Client().SpawnAsync(new SpawnOptions { Shell = "echo out; echo err >&2" }, daemon.Soon);
        using var file = new MemoryStream();
        await Recipe.FollowAsync(task, file, _console, daemon.Soon);
        Assert.True(_console.Has("Stdout: out\n") && _console.Has("Stderr: err\n"));
        Assert.Equal("out\n"u8.ToArray(), file.ToArray());
    }

    [Fact]
    public async Task A_server_is_waited_for_by_its_line()
    {
        await using var daemon = await Daemon.StartAsync();
        await Recipe.ServeAsync(daemon.Client(), _console, daemon.Soon);
        Assert.Equal("ready: listening on 8080\n", _console.ToString());
    }

    [Fact]
    public async Task A_session_is_followed_to_its_end()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        var options = new SpawnOptions
        {
            Shell = "echo debug: x; echo one; until [ -e go ]; do sleep 0.01; done; exit 3",
            SessionId = "demo",
            WorkingDirectory = daemon.Path(""),
        };
        var task = await heeler.SpawnAsync(options, daemon.Soon);
        var following = Recipe.FollowSessionAsync(heeler, _console, daemon.Soon);
        await daemon.UntilAsync(() => _console.Has("one\n"));
        await File.WriteAllTextAsync(daemon.Path("go"), "", daemon.Soon);
        await following;
        Assert.Equal($"{task}: one\n{task} Failed\n", _console.ToString());
    }

    [Fact]
    public async Task A_watch_stores_its_bookmark()
    {
        await using var daemon = await Daemon.StartAsync();
        using var end = CancellationTokenSource.CreateLinkedTokenSource(daemon.Soon);
        var heeler = daemon.Client();
        Task<HeelerTask> SpawnAsync() =>
            heeler.SpawnAsync(new SpawnOptions { Argv = ["true"], SessionId = "demo" }, daemon.Soon);
        var first = await heeler.ListPageAsync(new ListRequest(), daemon.Soon);
        var stored = new Bookmark { Revision = first.Revision, Epoch = first.Server.Epoch };
        var watching = Recipe.WatchAsync(heeler, stored, _console, end.Token);
        var before = await SpawnAsync();
        await daemon.KillAsync();
        await daemon.RestartAsync();
        var after = await SpawnAsync();
        await daemon.UntilAsync(() => _console.Has($"{before} Ended") && _console.Has($"{after} Ended"));
        await end.CancelAsync();
        Assert.NotNull(await watching);
    }

    [Fact]
    public async Task Errors_are_handled_by_reason()
    {
        await using var daemon = await Daemon.StartAsync();
        Task<string> Spawn(SpawnOptions options) => Recipe.ErrorsAsync(daemon.Client(), options, daemon.Soon);
        var nowhere = new SpawnOptions { Shell = "x", WorkingDirectory = "/no/such" };
        Assert.StartsWith("create /no/such first: ", await Spawn(nowhere), StringComparison.Ordinal);
        Assert.StartsWith("Shell or Argv (spec.command): ", await Spawn(new SpawnOptions()), StringComparison.Ordinal);
        await daemon.KillAsync();
        Assert.Contains("heeler serve", await Spawn(new SpawnOptions { Shell = "x" }), StringComparison.Ordinal);
    }

    [Fact]
    public async Task A_run_ends_with_the_command_or_with_a_detach()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        using var file = new MemoryStream();
        await Recipe.RunAsync(heeler, "echo out; echo err >&2; exit 3", file, _console, daemon.Soon);
        Assert.Equal("exit code 3, stderr: err\n\n", _console.ToString());
        Assert.Equal("out\n"u8.ToArray(), file.ToArray());

        var running = Recipe.RunAsync(heeler, "sleep 600", file, _console, daemon.Soon);
        while (!_console.Has(" Detached\n")) await Recipe.DetachAsync(heeler, _console, daemon.Soon);
        await running;
        var task = Assert.Single(await heeler.ListAsync(null, daemon.Soon).ToListAsync(daemon.Soon));
        Assert.True(_console.Has($"{task.Id} Detached\n") && _console.Has($"{task.Id} continues in the background\n"));
        Assert.Equal(3600, task.Detachment.Timeout.Seconds);
    }

    [Fact]
    public async Task A_fake_client_needs_no_daemon() => Assert.Equal(3, await Recipe.WaitWithFakeAsync());

    private static string Read(string name) => File.ReadAllText(Repository.Path(name));

    private static string Dedented(string body)
    {
        var lines = body.TrimEnd().Split('\n');
        var margin = lines.Where(line => line.Length > 0).Min(line => line.Length - line.TrimStart().Length);
        return string.Join('\n', lines.Select(line => line.Length > 0 ? line[margin..] : line));
    }

    [GeneratedRegex(@"#region (?<name>\w+)\n(?<body>.*?)#endregion", RegexOptions.Singleline)]
    private static partial Regex Region();

    [GeneratedRegex(@"<!-- (?<name>\w+) -->\n```csharp\n(?<body>.*?)\n```", RegexOptions.Singleline)]
    private static partial Regex Snippet();
}
