using Heeler.V1;

namespace Heeler.Client.Tests.Recipes;

/// <summary>
/// The recipes of <c>docs/sdk/dotnet.md</c> and the first steps of the READMEs: each region is, line by line, a code block there.
/// They print to a parameter named like the console.
/// </summary>
internal static class Recipe
{
    internal static async Task FirstStepsAsync(TextWriter Console)
    {
        #region readme
        using var heeler = await HeelerClient.ConnectOrStartAsync();
        var task = await heeler.SpawnAsync(new SpawnOptions { Shell = "make test", SessionId = "demo" });
        var ended = await task.WaitAsync();
        Console.WriteLine($"{ended.State}: {ended.Outcome}");
        #endregion
    }

    internal static async Task ConnectAsync(TextWriter Console)
    {
        #region connect
        using var heeler = await HeelerClient.ConnectOrStartAsync();
        await foreach (var task in heeler.ListAsync())
            Console.WriteLine($"{task.Id} {task.State} {task.Spec.Name}");
        #endregion
    }

    internal static async Task ListAsync(HeelerClient heeler, TextWriter Console, CancellationToken cancellationToken)
    {
        #region list
        var failed = new ListRequest
        {
            Filter = new TaskFilter { SessionId = "demo", States = { TaskState.Failed }, Labels = { ["team"] = "blue" } },
            IncludeFinished = true,
        };
        await foreach (var task in heeler.ListAsync(failed, cancellationToken))
            Console.WriteLine($"{task.Id} exited with {task.ExitCode}");
        #endregion
    }

    internal static async Task InspectAsync(
        HeelerClient heeler, string taskId, TextWriter Console, CancellationToken cancellationToken)
    {
        #region inspect
        var seen = await heeler.InspectAsync(taskId, cancellationToken);
        foreach (var process in seen.Processes)
            Console.WriteLine($"{process.Pid} {process.State} {process.Command}");
        foreach (var chunk in seen.OutputTail.Chunks)
            Console.WriteLine($"{chunk.Stream}: {chunk.Data.ToStringUtf8()}");
        #endregion
    }

    internal static async Task<HeelerTask> ArgvAsync(HeelerClient heeler, string file, CancellationToken cancellationToken)
    {
        #region argv
        var task = await heeler.SpawnAsync(
            new SpawnOptions { Argv = ["wc", "-l", file], WorkingDirectory = "/tmp", Environment = { ["LC_ALL"] = "C" } },
            cancellationToken);
        #endregion
        return task;
    }

    internal static async Task<HeelerTask> SpawnAgentAsync(
        HeelerClient heeler, string[] command, TimeSpan limit, CancellationToken cancellationToken)
    {
        #region agent
        var session = heeler.Session("demo");
        var agent = await session.SpawnAsync(
            new SpawnOptions { Argv = command, Kind = TaskKind.Agent, Silence = new() { StaleAfter = limit } },
            cancellationToken);
        #endregion
        return agent;
    }

    internal static async Task StopSilentAgentsAsync(
        HeelerClient heeler, HeelerSession session, TextWriter Console, CancellationToken cancellationToken)
    {
        #region silent
        var silent = new ListRequest { Filter = new TaskFilter { Kinds = { TaskKind.Agent }, Stale = true } };
        await foreach (var agent in session.ListAsync(silent, cancellationToken))
        {
            var result = await heeler.CancelBackgroundTaskAsync(agent.Id, cancellationToken);
            Console.WriteLine($"{agent.Id}: {result.Task.State}, proof: {result.Task.Stop.Proof.Proven}");
        }
        var live = await session.CountsAsync(cancellationToken);
        Console.WriteLine($"{live.Agents} agents and {live.Shells} shells are left");
        await session.WaitUntilIdleAsync(cancellationToken);
        #endregion
    }

    internal static async Task ListSessionsAsync(HeelerClient heeler, TextWriter Console, CancellationToken cancellationToken)
    {
        #region sessions
        foreach (var session in await heeler.ListSessionsAsync(cancellationToken))
        {
            Console.WriteLine($"{session.Activity.SessionId}: {string.Join(", ", session.Activity.TaskIds)}");
            if (session.OnlyStale) Console.WriteLine($"silent since {session.ActivityTime}");
        }
        #endregion
    }

    internal static async Task ReadNowAsync(HeelerTask task, TextWriter Console, CancellationToken cancellationToken)
    {
        #region now
        var now = new OutputOptions { TailBytes = 4096, Follow = false };
        await foreach (var line in task.ReadLinesAsync(now, cancellationToken))
            Console.WriteLine(line.Text);
        #endregion
    }

    internal static async Task<int> RunAndWaitAsync(HeelerClient heeler, CancellationToken cancellationToken)
    {
        #region wait
        var task = await heeler.SpawnAsync(
            new SpawnOptions { Shell = "echo working; exit 3", SessionId = "demo" },
            cancellationToken);
        var ended = await task.WaitAsync(cancellationToken);
        var code = ended.ExitCode ?? throw new InvalidOperationException($"{task} {ended.State}: {ended.Outcome}");
        #endregion
        return code;
    }

    internal static async Task CancelAsync(
        HeelerClient heeler, string taskId, TextWriter Console, CancellationToken cancellationToken)
    {
        #region cancel
        var result = await heeler.CancelBackgroundTaskAsync(
            taskId,
            new CancelOptions { Stop = new() { Grace = TimeSpan.FromSeconds(2) }, Reason = "superseded" },
            cancellationToken);
        Console.WriteLine($"{result.Outcome}: {result.Task.State}, proof: {result.Task.Stop?.Proof?.Proven}");
        foreach (var survivor in result.Task.Survivors)
            Console.WriteLine($"still there: {survivor.Pid} {survivor.Command}");
        #endregion
    }

    internal static async Task FollowAsync(
        HeelerTask task, Stream file, TextWriter Console, CancellationToken cancellationToken)
    {
        #region follow
        await foreach (var line in task.ReadLinesAsync(cancellationToken: cancellationToken))
            Console.WriteLine($"{line.Stream}: {line.Text}");

        // The same as bytes, from an offset. Any number of readers can do this.
        await using var output = task.OpenOutput(new OutputOptions { Offset = 0, Only = OutputStream.Stdout });
        await output.CopyToAsync(file, cancellationToken);
        #endregion
    }

    internal static async Task ServeAsync(HeelerClient heeler, TextWriter Console, CancellationToken cancellationToken)
    {
        #region line
        var server = await heeler.SpawnAsync(
            new SpawnOptions
            {
                Shell = "echo warming up; echo listening on 8080; exec sleep 600",
                SessionId = "demo",
                Output = new() { Patterns = { new OutputPattern { Name = "errors", Regex = "(?i)error" } } },
            },
            cancellationToken);
        var line = await server.WaitForLineAsync("^listening", TimeSpan.FromMinutes(1), cancellationToken);
        Console.WriteLine(line is null ? "it never listened" : $"ready: {line.Text}");
        #endregion
    }

    internal static async Task FollowSessionAsync(HeelerClient heeler, TextWriter Console, CancellationToken cancellationToken)
    {
        #region many
        var options = new FollowOptions
        {
            Filter = new TaskFilter { SessionId = "demo" },
            TailLines = 10,
            OutputFilter = new OutputFilter { Exclude = "^debug" },
            View = OutputView.Plain,
            Until = FollowUntil.Finished,
        };
        await foreach (var item in heeler.FollowOutputAsync(options, cancellationToken))
        {
            switch (item)
            {
                case FollowItem.Output(var id, var chunks, _):
                    foreach (var chunk in chunks) Console.Write($"{id}: {chunk.Text}");
                    break;
                case FollowItem.Ended(var task):
                    Console.WriteLine($"{task.Id} {task.State}");
                    break;
            }
        }
        #endregion
    }

    internal static async Task<Bookmark?> WatchAsync(
        HeelerClient heeler, Bookmark? stored, TextWriter Console, CancellationToken cancellationToken)
    {
        #region watch
        var options = new WatchOptions { AfterBookmark = stored, Filter = new TaskFilter { SessionId = "demo" } };
        try
        {
            await foreach (var item in heeler.WatchEventsAsync(options, cancellationToken))
            {
                switch (item)
                {
                    case WatchItem.Happened(var happened):
                        Console.WriteLine($"{happened.Revision}: {happened.Task?.Id} {happened.Type}");
                        break;
                    case WatchItem.Reached(var bookmark):
                        stored = bookmark;
                        break;
                }
            }
        }
        catch (OperationCanceledException) when (cancellationToken.IsCancellationRequested)
        {
            // The next watch starts at `stored`, also after a crash of this program.
        }
        #endregion
        return stored;
    }

    internal static async Task<string> ErrorsAsync(
        HeelerClient heeler, SpawnOptions options, CancellationToken cancellationToken)
    {
        #region errors
        try
        {
            return (await heeler.SpawnAsync(options, cancellationToken)).Id;
        }
        catch (HeelerRefusedException error) when (error.Is(ErrorReason.WorkingDirectoryUnusable))
        {
            return $"create {error.Metadata["path"]} first: {error.Metadata["os_error"]}";
        }
        catch (HeelerRefusedException error) when (error.FieldViolations is [var bad, ..])
        {
            return $"{bad.Option} ({bad.Field}): {bad.Description}";
        }
        catch (DaemonNotRunningException error)
        {
            return error.Message; // ... start one with `heeler serve`
        }
        #endregion
    }

    internal static async Task RunAsync(
        HeelerClient heeler, string script, Stream file, TextWriter Console, CancellationToken cancellationToken)
    {
        #region run
        var result = await heeler.RunAsync(
            new SpawnOptions { Shell = script, SessionId = "demo", Foreground = new() { Timeout = TimeSpan.FromMinutes(2) } },
            new RunOptions { Stdout = file },
            cancellationToken);
        Console.WriteLine(result.Reason == AttachEndReason.Detached
            ? $"{result.Handle} continues in the background"
            : $"exit code {result.ExitCode}, stderr: {result.Stderr}");
        #endregion
    }

    internal static async Task DetachAsync(HeelerClient heeler, TextWriter Console, CancellationToken cancellationToken)
    {
        #region detach
        var options = new DetachOptions { Timeout = TimeSpan.FromHours(1), Reason = "Ctrl-B" };
        var filter = new TaskFilter { SessionId = "demo" };
        foreach (var result in await heeler.DetachAsync(filter, options, cancellationToken))
            Console.WriteLine($"{result.Task.Id} {result.Outcome}");
        #endregion
    }

    #region fake
    private sealed class FakeHeeler : HeelerClient
    {
        public override Task<WaitResponse> WaitAsync(WaitRequest request, CancellationToken cancellationToken = default) =>
            Task.FromResult(new WaitResponse { Satisfied = true, Met = { HeelerModelFactory.BackgroundTask(exitCode: 3) } });
    }
    #endregion

    internal static async Task<int?> WaitWithFakeAsync()
    {
        using var heeler = new FakeHeeler();
        return (await heeler.GetTask("shell-a").WaitAsync()).ExitCode;
    }
}
