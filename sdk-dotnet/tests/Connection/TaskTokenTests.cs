using Heeler.V1;
using Xunit;

namespace Heeler.Client.Tests;

/// <summary>The token that a task finds in its environment.</summary>
[Collection(nameof(EnvironmentTests))]
public sealed class TaskTokenTests
{
    /// <summary>K4</summary>
    [Theory]
    [InlineData(null)]
    [InlineData("")]
    [InlineData("unix:/nowhere")]
    [InlineData("nonsense")]
    public async Task The_token_of_a_task_comes_before_that_of_the_user_on_loopback(string? own)
    {
        await using var daemon = await Daemon.StartAsync("--listen", "tcp:127.0.0.1:0");
        var address = await daemon.TcpAddressAsync();
        using var variables = new Variables(
            ("HEELER_TOKEN", "of-a-task"), ("HEELER_STATE_DIR", daemon.Path("state")), ("HEELER_ADDR", own ?? address.ToString()));
        using var heeler = HeelerClient.Connect(address);
        var refused = await Assert.ThrowsAsync<HeelerRefusedException>(() => heeler.ListPageAsync(new ListRequest(), daemon.Soon));
        Assert.True(refused.Is(ErrorReason.TokenRefused));
    }

    /// <summary>K4</summary>
    [Theory]
    [InlineData("tls:build.example.com:7117", "of-a-task")]
    [InlineData("unix:/nowhere", null)]
    public void The_token_of_a_task_is_shown_to_no_other_machine(string own, string? shown)
    {
        using var variables = new Variables(("HEELER_TOKEN", "of-a-task"), ("HEELER_ADDR", own));
        var remote = HeelerAddress.Parse("tls:build.example.com:7117");
        Assert.Equal(shown, Credentials.TokenFor(remote, new HeelerClientOptions()));
    }

    /// <summary>Variables of this process, until they are disposed.</summary>
    private sealed class Variables : IDisposable
    {
        private readonly (string Name, string Value)[] _set;

        internal Variables(params (string Name, string Value)[] set)
        {
            _set = set;
            foreach (var (name, value) in set) Environment.SetEnvironmentVariable(name, value);
        }

        public void Dispose()
        {
            foreach (var (name, _) in _set) Environment.SetEnvironmentVariable(name, null);
        }
    }
}
