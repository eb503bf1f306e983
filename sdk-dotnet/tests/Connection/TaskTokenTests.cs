using Heeler.V1;
using Xunit;

namespace Heeler.Client.Tests;

/// <summary>The token that a task finds in its environment.</summary>
[Collection(nameof(EnvironmentTests))]
public sealed class TaskTokenTests
{
    /// <summary>K4</summary>
    [Theory]
    [InlineData(null, false)]
    [InlineData("", true)]
    [InlineData("tcp:127.0.0.1:1", true)]
    [InlineData("nonsense", true)]
    public async Task The_token_of_a_task_is_shown_at_the_address_of_its_daemon_alone(string? named, bool isServed)
    {
        await using var daemon = await Daemon.StartAsync("--listen", "tcp:127.0.0.1:0");
        var address = await daemon.TcpAddressAsync();
        (string Name, string Value)[] variables =
        [
            ("HEELER_TOKEN", "of-a-task"), ("HEELER_STATE_DIR", daemon.Path("state")), ("HEELER_ADDR", named ?? address.ToString()),
        ];
        foreach (var (name, value) in variables) Environment.SetEnvironmentVariable(name, value);
        try
        {
            // Where the token of the task is not shown, that of the user's own daemon is, on loopback.
            using var heeler = HeelerClient.Connect(address);
            var listing = heeler.ListPageAsync(new ListRequest(), daemon.Soon);
            if (isServed) await listing;
            else Assert.True((await Assert.ThrowsAsync<HeelerRefusedException>(() => listing)).Is(ErrorReason.TokenRefused));
        }
        finally
        {
            foreach (var (name, _) in variables) Environment.SetEnvironmentVariable(name, null);
        }
    }
}
