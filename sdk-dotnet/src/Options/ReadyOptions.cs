using Heeler.V1;

namespace Heeler.Client;

/// <summary>
/// The rule by which a task is ready. One of <see cref="Port"/>, <see cref="HttpUrl"/>, <see cref="Command"/> and
/// <see cref="Pattern"/> is required.
/// </summary>
public sealed class ReadyOptions
{
    /// <summary>Ready when a process of the task listens on this TCP port; 0 for any port.</summary>
    public uint? Port { get; init; }

    /// <summary>Ready when a GET of this <c>http:</c> URL is answered with a status from 200 to 399.</summary>
    public string? HttpUrl { get; init; }

    /// <summary>Ready when this program, with its arguments, exits with 0.</summary>
    public IReadOnlyList<string>? Command { get; init; }

    /// <summary>Ready when a line of the output matches this regular expression.</summary>
    public string? Pattern { get; init; }

    /// <summary>
    /// Time between two looks; the first ones follow faster. Null: 1 second. Not with <see cref="Pattern"/>, which
    /// needs no looks.
    /// </summary>
    public TimeSpan? Interval { get; init; }

    /// <summary>
    /// Time from the start within which the task must be ready. Null, or
    /// <see cref="System.Threading.Timeout.InfiniteTimeSpan"/>: no limit.
    /// </summary>
    public TimeSpan? Timeout { get; init; }

    /// <summary>Action when that time is over, besides the event: by default, none.</summary>
    public ReadyTimeoutAction OnTimeout { get; init; }

    internal ReadyPolicy ToPolicy()
    {
        if (new object?[] { Port, HttpUrl, Command, Pattern }.Count(probe => probe is not null) > 1)
        {
            throw new ArgumentException(
                $"{nameof(Port)}, {nameof(HttpUrl)}, {nameof(Command)} and {nameof(Pattern)} exclude one another");
        }
        var policy = new ReadyPolicy
        {
            Interval = Interval is { } interval ? Time.ToProto(interval) : null,
            Timeout = Time.ToLimit(Timeout),
            OnTimeout = OnTimeout,
        };
        if (Port is { } port) policy.Port = port;
        if (HttpUrl is not null) policy.HttpUrl = HttpUrl;
        if (Pattern is not null) policy.Pattern = Pattern;
        if (Command is not null) policy.Command = new ArgvCommand { Args = { Command } };
        return policy;
    }
}
