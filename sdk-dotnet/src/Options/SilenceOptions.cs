using Heeler.V1;

namespace Heeler.Client;

/// <summary>The rules for a task that has stopped writing output.</summary>
public sealed class SilenceOptions
{
    /// <summary>Time without output after which the task is stale.</summary>
    public required TimeSpan StaleAfter { get; init; }

    /// <summary>Action when the task becomes stale, besides the event: by default, none.</summary>
    public StaleAction OnStale { get; init; }

    internal SilencePolicy ToPolicy() => new() { StaleAfter = Time.ToProto(StaleAfter), OnStale = OnStale };
}
