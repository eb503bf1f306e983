using Heeler.V1;

namespace Heeler.Client;

/// <summary>The rule by which a task whose leader fails is started again, under the same id.</summary>
public sealed class RestartOptions
{
    /// <summary>
    /// Time from a failure to the next attempt. It doubles with every further failure in a row. Null: 1 second.
    /// </summary>
    public TimeSpan? Delay { get; init; }

    /// <summary>The longest such time. Null: 30 seconds.</summary>
    public TimeSpan? MaxDelay { get; init; }

    /// <summary>The most restarts in a row; 0 for no limit. Null: 5.</summary>
    public uint? MaxRestarts { get; init; }

    /// <summary>The run of an attempt after which its failure is the first one in a row again. Null: 60 seconds.</summary>
    public TimeSpan? ResetAfter { get; init; }

    internal RestartPolicy ToPolicy()
    {
        var policy = new RestartPolicy
        {
            Delay = Delay is { } delay ? Time.ToProto(delay) : null,
            MaxDelay = MaxDelay is { } longest ? Time.ToProto(longest) : null,
            ResetAfter = ResetAfter is { } run ? Time.ToProto(run) : null,
        };
        if (MaxRestarts is { } max) policy.MaxRestarts = max;
        return policy;
    }
}
