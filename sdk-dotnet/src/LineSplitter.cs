using System.Text;
using Heeler.V1;

namespace Heeler.Client;

/// <summary>Makes lines of pieces. Pure: each stream has a line of its own under way, so that they are never mixed.</summary>
internal sealed class LineSplitter
{
    /// <summary>A line longer than this is given in parts: a task may never end its line, and memory is bounded.</summary>
    internal const int LongestLine = 1 << 20;

    private readonly SortedDictionary<OutputStream, List<byte>> _begun = [];

    /// <summary>The lines that end with this piece.</summary>
    internal IEnumerable<OutputLine> Take(OutputChunk chunk)
    {
        if (!_begun.TryGetValue(chunk.Stream, out var line)) _begun[chunk.Stream] = line = [];
        var rest = chunk.Data.Memory;
        while (!rest.IsEmpty)
        {
            var room = LongestLine - line.Count;
            var end = rest.Span.IndexOf((byte)'\n');
            if (end >= 0 && end <= room)
            {
                line.AddRange(rest.Span[..end]);
                yield return Text(chunk.Stream, line, line.Count);
                line.Clear();
                rest = rest[(end + 1)..];
                continue;
            }
            var taken = Math.Min(room, rest.Length);
            line.AddRange(rest.Span[..taken]);
            rest = rest[taken..];
            if (line.Count < LongestLine) continue;
            var part = WholeCharacters(line);
            yield return Text(chunk.Stream, line, part);
            line.RemoveRange(0, part);
        }
    }

    /// <summary>What was begun and never ended.</summary>
    internal IEnumerable<OutputLine> Rest() =>
        _begun.Where(begun => begun.Value.Count > 0)
            .Select(begun => Text(begun.Key, begun.Value, begun.Value.Count));

    private static OutputLine Text(OutputStream stream, List<byte> line, int length)
    {
        var bytes = System.Runtime.InteropServices.CollectionsMarshal.AsSpan(line)[..length];
        return new OutputLine(stream, Encoding.UTF8.GetString(bytes is [.. var text, (byte)'\r'] ? text : bytes));
    }

    /// <summary>How much of the line to give, so that no character is cut.</summary>
    private static int WholeCharacters(List<byte> line)
    {
        const int longestCharacter = 4;
        for (var back = 1; back < longestCharacter; back++)
        {
            var lead = line[^back];
            if ((lead & 0xc0) == 0x80) continue;
            var length = lead switch { >= 0xf0 => 4, >= 0xe0 => 3, >= 0xc0 => 2, _ => 1 };
            return length > back ? line.Count - back : line.Count;
        }
        return line.Count;
    }
}
