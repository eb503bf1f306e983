using Google.Protobuf;
using Heeler.V1;
using Xunit;

namespace Heeler.Client.Tests;

/// <summary>Splitting chunks of output into lines.</summary>
public sealed class LineSplitterTests
{
    private readonly LineSplitter _splitter = new();

    [Fact]
    public void Lines_are_joined_from_chunks_and_returned_without_their_ends()
    {
        Assert.Empty(Take("on"));
        Assert.Equal(["one", "two", ""], Take("e\ntwo\r\n\nthr"));
        Assert.Empty(Take("ee"));
        Assert.Equal(["three"], _splitter.Rest().Select(line => line.Text));
    }

    /// <summary>O4</summary>
    [Fact]
    public void Lines_of_the_two_streams_are_never_mixed()
    {
        Assert.Empty(Take("out", OutputStream.Stdout));
        var error = Assert.Single(_splitter.Take(Chunk("err\n"u8.ToArray(), OutputStream.Stderr)));
        Assert.Equal(new OutputLine(OutputStream.Stderr, "err"), error);
        Assert.Equal(["out"], Take("\n", OutputStream.Stdout));
    }

    /// <summary>O5</summary>
    [Fact]
    public void A_character_split_over_two_chunks_is_kept_whole()
    {
        var bytes = "ü€\n"u8.ToArray();
        var lines = bytes.SelectMany(one => _splitter.Take(Chunk([one], OutputStream.Stdout))).ToList();
        Assert.Equal("ü€", Assert.Single(lines).Text);
    }

    /// <summary>O9</summary>
    [Fact]
    public void A_line_without_an_end_is_returned_in_parts_that_cut_no_character()
    {
        var text = "x" + string.Concat(Enumerable.Repeat("€", LineSplitter.LongestLine));
        var parts = Take(text).Concat(_splitter.Rest().Select(line => line.Text)).ToList();
        Assert.Equal(4, parts.Count);
        Assert.Equal(text, string.Concat(parts));
    }

    private List<string> Take(string text, OutputStream stream = OutputStream.Stdout) =>
        [.. _splitter.Take(Chunk(System.Text.Encoding.UTF8.GetBytes(text), stream)).Select(line => line.Text)];

    private static OutputChunk Chunk(byte[] data, OutputStream stream) =>
        new() { Data = ByteString.CopyFrom(data), Stream = stream };
}
