using Heeler.V1;

namespace Heeler.Client;

/// <summary>The rules for a task's output. Offsets count every byte that the task has written, kept or not.</summary>
public sealed class OutputPolicyOptions
{
    /// <summary>The most disk space for the output, in bytes: 64 MiB by default, at least 256 KiB.</summary>
    public ulong MaxBytes { get; init; }

    /// <summary>
    /// Bytes that are kept from the beginning when the rest rotates. Null: 1 MiB, or a quarter of a smaller limit.
    /// </summary>
    public ulong? HeadBytes { get; init; }

    /// <summary>Action at the limit: by default, the beginning and the latest output are kept.</summary>
    public OutputLimitAction OnLimit { get; init; }

    /// <summary>
    /// Patterns to look for, which <c>Matched</c> events tell of: at most 16. <c>UpdateTaskAsync</c> can change them.
    /// </summary>
    public IList<OutputPattern> Patterns { get; init; } = [];

    internal OutputPolicy ToPolicy()
    {
        var policy = new OutputPolicy { MaxBytes = MaxBytes, OnLimit = OnLimit, Patterns = { Patterns } };
        if (HeadBytes is { } head) policy.HeadBytes = head;
        return policy;
    }
}
