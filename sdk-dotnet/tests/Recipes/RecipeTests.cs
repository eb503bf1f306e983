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
        var compiled = Region().Matches(Read("sdk-dotnet/tests/Recipes/Recipe.cs"))
            .ToDictionary(found => found.Groups["name"].Value, found => Dedented(found.Groups["body"].Value));
        foreach (var readme in (string[])["README.md", "sdk-dotnet/README.md"])
            Assert.Contains(compiled["readme"], Read(readme), StringComparison.Ordinal);
        compiled.Remove("readme");
        var shown = Snippet().Matches(Read("docs/sdk/dotnet.md"))
            .ToDictionary(found => found.Groups["name"].Value, found => found.Groups["body"].Value);
        Assert.Equal(compiled, shown);
        Assert.Equal(9, shown.Count);
    }

    [Fact]
    public async Task A_client_connects_to_the_address_in_the_environment()
    {
        await using var daemon = await Daemon.StartAsync();
        var task = await daemon.Client().SpawnAsync(new SpawnOptions { Argv = ["sleep", "600"], Name = "zzz" }, daemon.Soon);
        System.Environment.SetEnvironmentVariable(HeelerAddress.EnvironmentVariable, daemon.Address.ToString());
        try
        {
            await Recipe.ConnectAsync(_console);
            await Recipe.FirstStepsAsync(_console);
        }
        finally
        {
            System.Environment.SetEnvironmentVariable(HeelerAddress.EnvironmentVariable, null);
        }
        // There is no makefile, and perhaps no make.
        Assert.Matches($"^{task} Running zzz\nFailed: exit code [0-9]+\n$", _console.ToString());
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
        Assert.StartsWith("spec.command: ", await Spawn(new SpawnOptions()), StringComparison.Ordinal);
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
