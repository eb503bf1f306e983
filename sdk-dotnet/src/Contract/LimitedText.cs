using System.Text;

namespace Heeler.Client;

/// <summary>Text up to a number of bytes in UTF-8. The daemon has the same limits: what it would drop does not travel.</summary>
internal static class LimitedText
{
    /// <summary>Maximum length of a block's text.</summary>
    internal const int Block = 4 << 10;

    /// <summary>Maximum length of a tool's name.</summary>
    internal const int Name = 256;

    /// <summary>Maximum length of an intent.</summary>
    internal const int Intent = 1 << 10;

    /// <summary>Maximum length of the reason for a stop.</summary>
    internal const int Reason = 4 << 10;

    /// <summary>Maximum length of a result's text, and of its data.</summary>
    internal const int Result = 64 << 10;

    /// <summary>
    /// Returns the beginning of the text, cut between two characters. Half of a surrogate pair becomes U+FFFD: protobuf could not
    /// carry it.
    /// </summary>
    internal static string Cut(string text, int limit)
    {
        var (bytes, units) = (0, 0);
        var valid = true;
        foreach (var character in text.EnumerateRunes())
        {
            bytes += character.Utf8SequenceLength;
            if (bytes > limit) break;
            // A broken unit is enumerated as U+FFFD, which is one unit as well.
            valid &= character != Rune.ReplacementChar;
            units += character.Utf16SequenceLength;
        }
        var cut = text[..units];
        return valid ? cut : Encoding.UTF8.GetString(Encoding.UTF8.GetBytes(cut));
    }
}
