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

    /// <summary>How long the task may run. None, or <see cref="System.Threading.Timeout.InfiniteTimeSpan"/>: for ever.</summary>
    public TimeSpan? Timeout { get; init; }

    /// <summary>How long the tree may take to obey the stop signal before it is killed. None: 5 seconds.</summary>
    public TimeSpan? Grace { get; init; }

    /// <summary>The signal to ask with, e.g. <c>SIGINT</c>. None: <c>SIGTERM</c>.</summary>
    public string? StopSignal { get; init; }

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
            Env = { Env },
            EnvRemove = { EnvRemove },
            Labels = { Labels },
        };
        SetCommand(request);
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
