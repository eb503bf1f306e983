using System.Text;
using Google.Protobuf.Collections;
using Heeler.V1;

namespace Heeler.Client;

/// <summary>A change of a task's progress. What is null or empty changes nothing.</summary>
/// <example>
/// <code>
/// await work.ReportAsync(new WorkProgress { Intent = "reads the tests", Percent = 40 }.ToolCall("grep", "-rn TODO"));
/// </code>
/// </example>
public sealed class WorkProgress
{
    /// <summary>The most blocks in one message: a larger change is sent in parts.</summary>
    private const int BlocksInMessage = 100;
    private const int MostCounts = 32;
    private const int LongestCountName = 64;

    private readonly List<Block> _blocks = [];

    /// <summary>The present activity in one line, cut beyond 1 KiB. Empty: none.</summary>
    public string? Intent { get; init; }

    /// <summary>The part that is done, from 0 to 100.</summary>
    public int? Percent { get; init; }

    /// <summary>
    /// Counters such as <c>tool_calls</c>, which replace all earlier ones: up to 32, with names up to 64 bytes.
    /// </summary>
    public IDictionary<string, long> Counts { get; init; } = new Dictionary<string, long>();

    /// <summary>The blocks to append, in order. The task keeps the latest 64 and counts all.</summary>
    public IReadOnlyList<Block> Blocks => _blocks;

    /// <summary>Appends text that the worker has written. Beyond 4 KiB it is cut, as that of every block.</summary>
    /// <returns>The same object.</returns>
    public WorkProgress Text(string text) => Add(BlockKind.Text, "", text);

    /// <summary>Appends reasoning of the worker.</summary>
    /// <returns>The same object.</returns>
    public WorkProgress Thought(string text) => Add(BlockKind.Thought, "", text);

    /// <summary>Appends the call of a tool.</summary>
    /// <returns>The same object.</returns>
    public WorkProgress ToolCall(string name, string arguments) => Add(BlockKind.ToolCall, name, arguments);

    /// <summary>Appends the result of a tool.</summary>
    /// <returns>The same object.</returns>
    public WorkProgress ToolResult(string name, string text) => Add(BlockKind.ToolResult, name, text);

    /// <summary>Appends anything else.</summary>
    /// <returns>The same object.</returns>
    public WorkProgress Note(string text) => Add(BlockKind.Note, "", text);

    /// <summary>Returns the contract's messages: more than one if there are many blocks.</summary>
    /// <exception cref="ArgumentException">The percent or a counter is out of range.</exception>
    public IReadOnlyList<ProgressUpdate> ToUpdates()
    {
        var updates = _blocks.Chunk(BlocksInMessage).Select(part => new ProgressUpdate { Blocks = { part } }).ToList();
        if (updates.Count == 0) updates.Add(new ProgressUpdate());
        var last = updates[^1];
        if (Intent is not null) last.Intent = LimitedText.Cut(Intent, LimitedText.Intent);
        if (Percent is { } percent) last.Percent = InRange(percent);
        AddCounts(last.Counts);
        return updates;
    }

    private WorkProgress Add(BlockKind kind, string name, string text)
    {
        ArgumentNullException.ThrowIfNull(name);
        ArgumentNullException.ThrowIfNull(text);
        _blocks.Add(new Block
        {
            Kind = kind,
            Name = LimitedText.Cut(name, LimitedText.Name),
            Text = LimitedText.Cut(text, LimitedText.Block),
            TextBytes = (ulong)Encoding.UTF8.GetByteCount(text),
        });
        return this;
    }

    private static uint InRange(int percent)
    {
        if (percent is < 0 or > 100) throw new ArgumentException($"{nameof(Percent)} is {percent}: it goes from 0 to 100");
        return (uint)percent;
    }

    private void AddCounts(MapField<string, ulong> counts)
    {
        if (Counts.Count > MostCounts)
            throw new ArgumentException($"{nameof(Counts)} has {Counts.Count} counters: {MostCounts} are allowed");
        foreach (var (name, count) in Counts)
        {
            var whole = LimitedText.Cut(name, int.MaxValue);
            if (Encoding.UTF8.GetByteCount(whole) > LongestCountName)
                throw new ArgumentException($"{nameof(Counts)} has a name of more than {LongestCountName} bytes");
            if (count < 0) throw new ArgumentException($"{nameof(Counts)}[{whole}] is {count}: a counter is not negative");
            counts[whole] = (ulong)count;
        }
    }
}
