using System.Text;
using Google.Protobuf;
using Heeler.V1;
using Xunit;

namespace Heeler.Client.Tests.Work;

/// <summary>Progress and results are checked and cut before they are sent.</summary>
public sealed class WorkProgressTests
{
    /// <summary>P1</summary>
    [Fact]
    public void A_long_text_is_cut_at_a_character_and_its_length_is_told()
    {
        var block = Assert.Single(new WorkProgress().Note(new string('é', 4096)).Blocks);
        Assert.Equal((4096, 8192ul), (Encoding.UTF8.GetByteCount(block.Text), block.TextBytes));
        var wide = Assert.Single(new WorkProgress().Text("x" + string.Concat(Enumerable.Repeat("😀", 2000))).Blocks);
        Assert.Equal(4093, Encoding.UTF8.GetByteCount(wide.Text));
        Assert.EndsWith("😀", wide.Text, StringComparison.Ordinal);
    }

    /// <summary>P1</summary>
    [Fact]
    public void Half_of_a_surrogate_pair_is_replaced()
    {
        var update = Assert.Single(new WorkProgress { Intent = "a\ud800b" }.ToolCall("\udc00", "x\ud83d").ToUpdates());
        Assert.Equal(("a\ufffdb", "\ufffd", "x\ufffd"), (update.Intent, update.Blocks[0].Name, update.Blocks[0].Text));
        Assert.Equal(update, ProgressUpdate.Parser.ParseFrom(update.ToByteArray()));
        Assert.Equal("\ufffd", WorkResult.Ok("\ud800").Text);
    }

    [Fact]
    public void Many_blocks_are_sent_in_parts()
    {
        var progress = new WorkProgress { Percent = 7, Counts = { ["n"] = 3 } };
        for (var n = 0; n < 2500; n++) progress.Note($"{n}");
        var updates = progress.ToUpdates();
        Assert.Equal(2500, updates.Sum(update => update.Blocks.Count));
        Assert.All(updates, update => Assert.InRange(update.CalculateSize(), 1, 1 << 20));
        Assert.Equal(7u, Assert.Single(updates, update => update.HasPercent).Percent);
        Assert.Equal(3ul, updates[^1].Counts["n"]);
    }

    /// <summary>S2</summary>
    [Fact]
    public void Values_out_of_range_are_refused()
    {
        Assert.Throws<ArgumentException>(() => new WorkProgress { Percent = 101 }.ToUpdates());
        Assert.Throws<ArgumentException>(() => new WorkProgress { Percent = -1 }.ToUpdates());
        Assert.Throws<ArgumentException>(() => new WorkProgress { Counts = { ["x"] = -1 } }.ToUpdates());
        Assert.Throws<ArgumentException>(() => new WorkProgress { Counts = { [new string('é', 33)] = 1 } }.ToUpdates());
        var many = new WorkProgress { Counts = Enumerable.Range(0, 33).ToDictionary(n => $"{n}", n => (long)n) };
        Assert.Throws<ArgumentException>(many.ToUpdates);
        Assert.Throws<ArgumentException>(() => WorkResult.Ok(new string('é', 32 * 1024 + 1)));
        Assert.Throws<ArgumentException>(() => WorkResult.Ok("", new byte[64 * 1024 + 1]));
        Assert.Throws<ArgumentException>(() => new WorkResult(WorkerStatus.Unspecified, ""));
        Assert.Throws<ArgumentNullException>(() => new WorkProgress().Note(null!));
    }
}
