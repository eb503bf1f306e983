using Heeler.AgentStory;
using Heeler.Client;
using Heeler.V1;

// dotnet run --project examples/dotnet/story -- idle | fleet | parent
using var heeler = await HeelerClient.ConnectOrStartAsync();
var session = $"story-{Environment.ProcessId}";
switch (args)
{
    case ["idle"]:
        await DeferIdleAsync();
        return 0;
    case ["fleet"]:
        await ManageFleetAsync();
        return 0;
    case ["parent"]:
        await SuperviseAsync();
        return 0;
    default:
        Console.Error.WriteLine("which story: idle, fleet or parent?");
        return 2;
}

// A host whose turn ends while a subagent, a shell and a zombie are in its background.
async Task DeferIdleAsync()
{
    var conversation = new Conversation(heeler, session, TimeSpan.FromSeconds(1));
    conversation.ZombieStopped += (_, zombie) => Console.WriteLine($"stopped {zombie.Spec.Name}: {zombie.Stop.Reason}");
    var reader = conversation.StartAsync(new Subagent("reader", Quick("read", "README"), Quick("read", "LICENSE")));
    _ = conversation.StartAsync(new Subagent("zombie", new ToolCall("fetch", "a page", _ => new TaskCompletionSource<string>().Task)));
    await conversation.StartShellAsync("sleep 0.2");
    Console.WriteLine("the turn is over; the background is not quiet yet");
    foreach (var task in await conversation.EndTurnAsync())
        Console.WriteLine($"{task.Spec.Name}: {task.State}");
    await reader;
    Console.WriteLine("idle");
}

// A fleet whose member gets better things to do.
async Task ManageFleetAsync()
{
    var fleet = new Fleet(heeler, session);
    var begun = new TaskCompletionSource();
    var slow = new ToolCall("search", "everything", cancelled =>
    {
        begun.TrySetResult();
        return SlowAsync("much", cancelled);
    });
    var first = fleet.AssignAsync("scout", new Subagent("search", slow, slow));
    await begun.Task;
    var second = fleet.AssignAsync("scout", new Subagent("report", Quick("write", "a report")));
    var other = fleet.AssignAsync("builder", new Subagent("build", Quick("make", "all")));
    foreach (var task in await Task.WhenAll(first, second, other))
        Console.WriteLine($"{task.Spec.Name}: {task.State}, {task.EndReason}, result: {task.Result?.Text}");
}

// A parent that stops a subagent once it begins to delete files.
async Task SuperviseAsync()
{
    var deleting = new ToolCall("delete", "build/", cancelled => SlowAsync("deleted build/", cancelled));
    var agent = new Subagent("cleaner", Quick("list", "."), deleting, Quick("delete", "src/"));
    var work = await heeler.RegisterAsync(new HostOptions { SessionId = session, Name = agent.Name });
    await using (work)
    {
        var parent = new ParentAgent(heeler, blocks => blocks.Any(block => block.Name == "delete") ? "do not delete" : null);
        var supervising = parent.SuperviseAsync(work.Handle.Id);
        await work.FinishAsync(await agent.RunAsync(work, work.Cancelled));
        var ended = await supervising;
        Console.WriteLine($"{ended.Spec.Name}: {ended.State}, {ended.Stop.Reason}, result: {ended.Result.Text}");
    }
}

static ToolCall Quick(string tool, string arguments) =>
    new(tool, arguments, _ => Task.FromResult($"{tool} {arguments}: done"));

static async Task<string> SlowAsync(string result, CancellationToken cancelled)
{
    await Task.Delay(TimeSpan.FromSeconds(2), cancelled);
    return result;
}
