using System.Text;
using Heeler.V1;

namespace Heeler.Client;

/// <summary>Splits chunks into lines. Pure: each output stream has its own unfinished line, so lines are never mixed.</summary>
internal sealed class LineSplitter
{
    /// <summary>A longer line is returned in parts: a task may never end its line, and memory is bounded.</summary>
    internal const int LongestLine = 1 << 20;

    private readonly SortedDictionary<OutputStream, List<byte>> _unfinished = [];

    /// <summary>Returns the lines that end in this chunk. A gap ends every line.</summary>
    internal IEnumerable<OutputLine> Take(OutputChunk chunk)
    {
        if (chunk.Gap is not null)
        {
            foreach (var cut in Rest().ToList()) yield return cut;
            _unfinished.Clear();
            yield break;
        }
        if (!_unfinished.TryGetValue(chunk.Stream, out var line)) _unfinished[chunk.Stream] = line = [];
        var rest = OutputBytes.Of(chunk);
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

    /// <summary>Returns the unfinished lines.</summary>
    internal IEnumerable<OutputLine> Rest() =>
        _unfinished.Where(line => line.Value.Count > 0)
            .Select(line => Text(line.Key, line.Value, line.Value.Count));

    private static OutputLine Text(OutputStream stream, List<byte> line, int length)
    {
        var bytes = System.Runtime.InteropServices.CollectionsMarshal.AsSpan(line)[..length];
        return new OutputLine(stream, Encoding.UTF8.GetString(bytes is [.. var text, (byte)'\r'] ? text : bytes));
    }

    /// <summary>Returns the length of the longest prefix that cuts no character.</summary>
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
