using Heeler.V1;

namespace Heeler.Client;

/// <summary>What to start, and how. One of <see cref="Shell"/> and <see cref="Argv"/> is required.</summary>
/// <example>
/// <code>
/// var task = await heeler.SpawnAsync(new SpawnOptions
/// {
///     Shell = "npm run dev",
///     SessionId = "s1",
///     WorkingDirectory = "/srv/app",
///     Env = { ["PORT"] = "3000" },
///     Timeout = TimeSpan.FromHours(1),
/// });
/// </code>
/// </example>
public sealed class SpawnOptions
{
    /// <summary>A script, run by a shell.</summary>
    public string? Shell { get; init; }

    /// <summary>
    /// Which shell runs the script: an absolute path. None: <c>bash</c> where the task's <c>PATH</c> has it, else <c>/bin/sh</c>.
    /// </summary>
    public string? ShellProgram { get; init; }

    /// <summary>A program and its arguments, run as they are.</summary>
    public IReadOnlyList<string>? Argv { get; init; }

    /// <summary>The conversation that the task belongs to: any text up to 256 bytes.</summary>
    public string? SessionId { get; init; }

    /// <summary>A name for people.</summary>
    public string? Name { get; init; }

    /// <summary>What kind of work it is: a shell unless told otherwise.</summary>
    public TaskKind Kind { get; init; }

    /// <summary>The absolute path to start in. None: the daemon's configured directory, else the user's home.</summary>
    public string? WorkingDirectory { get; init; }

    /// <summary>Variables of the task's environment, laid over the daemon's own.</summary>
    public IDictionary<string, string> Env { get; init; } = new Dictionary<string, string>();

    /// <summary>Variables to take out of the environment that the task would otherwise inherit.</summary>
    public IList<string> EnvRemove { get; init; } = [];

    /// <summary>Whether the task is told by its environment that nobody is looking.</summary>
    public EnvDefaults EnvDefaults { get; init; }

    /// <summary>Data for the client's own filters.</summary>
    public IDictionary<string, string> Labels { get; init; } = new Dictionary<string, string>();

    /// <summary>The live task that spawns this one.</summary>
    public string? ParentId { get; init; }

    /// <summary>
    /// How long the task may run in the background, from its start or from its release. None, or
    /// <see cref="System.Threading.Timeout.InfiniteTimeSpan"/>: for ever.
    /// </summary>
    public TimeSpan? Timeout { get; init; }

    /// <summary>How long the tree may take to obey the stop signal before it is killed. None: 5 seconds.</summary>
    public TimeSpan? Grace { get; init; }

    /// <summary>The signal to ask with, e.g. <c>SIGINT</c>. None: <c>SIGTERM</c>.</summary>
    public string? StopSignal { get; init; }

    /// <summary>
    /// Whether it holds whoever attaches to it: in the background, unless told otherwise.
    /// <see cref="HeelerClient.RunAsync"/> starts in the foreground whatever stands here.
    /// </summary>
    public Placement Placement { get; init; }

    /// <summary>
    /// How long it may stay in the foreground, from its start. None: 60 seconds;
    /// <see cref="System.Threading.Timeout.InfiniteTimeSpan"/>: for as long as it takes. Only in the foreground, as the next
    /// three.
    /// </summary>
    public TimeSpan? ForegroundTimeout { get; init; }

    /// <summary>What happens then: it goes on in the background, unless told otherwise.</summary>
    public ForegroundTimeoutAction OnForegroundTimeout { get; init; }

    /// <summary>What happens when nobody holds it any more and it was not detached: it is stopped, unless told otherwise.</summary>
    public HolderGoneAction OnHolderGone { get; init; }

    /// <summary>How long nobody may hold it before that happens. None: 10 seconds.</summary>
    public TimeSpan? HolderWindow { get; init; }

    /// <summary>
    /// What happens when its first process exits and others do not: the task lives until all are gone, unless told otherwise.
    /// </summary>
    public LingeringPolicy Lingering { get; init; }

    /// <summary>
    /// How long it may write nothing before it is stopped. None, or
    /// <see cref="System.Threading.Timeout.InfiniteTimeSpan"/>: for ever.
    /// </summary>
    public TimeSpan? IdleTimeout { get; init; }

    /// <summary>
    /// How long it may write nothing before an event says that it is stale. None, or
    /// <see cref="System.Threading.Timeout.InfiniteTimeSpan"/>: for ever.
    /// </summary>
    public TimeSpan? StaleAfter { get; init; }

    /// <summary>What else happens then: nothing, unless told otherwise. Only with <see cref="StaleAfter"/>.</summary>
    public StaleAction StaleAction { get; init; }

    /// <summary>Of the tasks with the same key, one is live at a time: any text up to 256 bytes.</summary>
    public string? ExclusiveKey { get; init; }

    /// <summary>
    /// What happens when another task has the key: this one is refused, unless told otherwise. Only with
    /// <see cref="ExclusiveKey"/>.
    /// </summary>
    public ExclusiveMode ExclusiveMode { get; init; }

    /// <summary>
    /// The queue in which it waits for its turn: any text up to 256 bytes. One that nobody used before runs one task at a time.
    /// </summary>
    public string? Queue { get; init; }

    /// <summary>
    /// By what the daemon knows this request again, up to 128 bytes: spawning the same options twice gives the same task. A
    /// fresh one unless chosen; a chosen one also holds across crashes of the caller. Empty: every call starts a task, and is
    /// repeated only while it cannot have been heard.
    /// </summary>
    public string RequestId { get; init; } = Guid.CreateVersion7().ToString();

    /// <summary>The contract's message.</summary>
    /// <exception cref="ArgumentException">There is both a script and a program.</exception>
    public SpawnRequest ToRequest()
    {
        var request = new SpawnRequest
        {
            RequestId = RequestId,
            SessionId = SessionId ?? "",
            Name = Name ?? "",
            Kind = Kind,
            WorkingDirectory = WorkingDirectory ?? "",
            EnvDefaults = EnvDefaults,
            ParentId = ParentId ?? "",
            Timeout = Time.ToLimit(Timeout),
            Placement = Placement,
            OnForegroundTimeout = OnForegroundTimeout,
            OnHolderGone = OnHolderGone,
            Lingering = Lingering,
            IdleTimeout = Time.ToLimit(IdleTimeout),
            StaleAfter = Time.ToLimit(StaleAfter),
            StaleAction = StaleAction,
            ExclusiveKey = ExclusiveKey ?? "",
            ExclusiveMode = ExclusiveMode,
            Queue = Queue ?? "",
            Env = { Env },
            EnvRemove = { EnvRemove },
            Labels = { Labels },
        };
        SetCommand(request);
        if (ForegroundTimeout is { } foreground) request.ForegroundTimeout = Time.ToProto(foreground);
        if (HolderWindow is { } window) request.HolderWindow = Time.ToProto(window);
        if (Grace is not null || StopSignal is not null)
        {
            request.StopPolicy = new StopPolicy { Signal = StopSignal ?? "" };
            if (Grace is { } grace) request.StopPolicy.Grace = Time.ToProto(grace);
        }
        return request;
    }

    /// <summary>No command at all is for the daemon to refuse, as for every client.</summary>
    private void SetCommand(SpawnRequest request)
    {
        if (Shell is not null && Argv is not null)
            throw new ArgumentException($"{nameof(Shell)} and {nameof(Argv)} exclude one another");
        if (Shell is not null) request.Shell = new ShellCommand { Script = Shell, Program = ShellProgram ?? "" };
        if (Argv is not null) request.Argv = new ArgvCommand { Args = { Argv } };
    }
}
