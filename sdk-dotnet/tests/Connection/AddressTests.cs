using System.Runtime.Versioning;
using Xunit;

namespace Heeler.Client.Tests;

/// <summary>Addresses, and the default socket of a user.</summary>
[SupportedOSPlatform("linux")]
public sealed class AddressTests : IDisposable
{
    private readonly DirectoryInfo _root = Directory.CreateTempSubdirectory("heeler-net-");

    public void Dispose() => _root.Delete(recursive: true);

    [Theory]
    [InlineData("unix:/run/x.sock")]
    [InlineData("unix:///run/x.sock")]
    public void Absolute_unix_paths_are_accepted_in_both_spellings(string text)
    {
        var address = HeelerAddress.Parse(text);
        Assert.Equal("/run/x.sock", address.Path);
        Assert.Equal("unix:/run/x.sock", address.ToString());
        Assert.Equal("heeler serve --listen unix:/run/x.sock", address.StartCommand);
    }

    [Theory]
    [InlineData("https://127.0.0.1:1")]
    [InlineData("tcp:")]
    [InlineData("tcp:localhost")]
    [InlineData("tcp:localhost:0")]
    [InlineData("tls:host:65536")]
    [InlineData("tls:[host]:1")]
    [InlineData("tls://host:1")]
    [InlineData("tls:a b:1")]
    [InlineData("/run/x.sock")]
    [InlineData("http://x")]
    [InlineData("")]
    [InlineData("unix:")]
    [InlineData("unix:run/x.sock")]
    [InlineData("unix:/a\0b")]
    public void Any_other_text_is_refused_and_named(string text)
    {
        var error = Assert.Throws<HeelerAddressException>(() => HeelerAddress.Parse(text));
        var named = text.Replace("unix:", "", StringComparison.Ordinal).Split('\0')[0];
        Assert.Contains(named, error.Message, StringComparison.Ordinal);
    }

    [Theory]
    [InlineData("tcp:127.0.0.1:7117", "127.0.0.1")]
    [InlineData("tcp:[::1]:7117", "::1")]
    [InlineData("tcp:localhost:7117", "localhost")]
    [InlineData("tls:build.example.com:7117", "build.example.com")]
    [InlineData("tls:[fe80::1]:7117", "fe80::1")]
    public void Hosts_are_accepted_by_name_and_by_number(string text, string host)
    {
        var address = HeelerAddress.Parse(text);
        Assert.Equal((host, 7117, null), (address.Host, address.Port, address.Path));
        Assert.Equal(text, address.ToString());
    }

    /// <summary>N2</summary>
    [Theory]
    [InlineData("10.0.0.1")]
    [InlineData("example.com")]
    [InlineData("0.0.0.0")]
    [InlineData("[fe80::1]")]
    public void Another_machine_is_never_called_without_encryption(string host)
    {
        var error = Assert.Throws<HeelerAddressException>(() => HeelerAddress.Parse($"tcp:{host}:7117"));
        Assert.Contains("write tls:HOST:PORT", error.Message, StringComparison.Ordinal);
    }

    [Fact]
    public void The_longest_possible_path_is_accepted_and_one_more_byte_is_not()
    {
        var fits = "/" + new string('x', 104) + "ü";
        Assert.Equal(fits, HeelerAddress.Unix(fits).Path);
        var error = Assert.Throws<HeelerAddressException>(() => HeelerAddress.Unix(fits + "x"));
        Assert.Contains("108 bytes: at most 107 are possible", error.Message, StringComparison.Ordinal);
    }

    [Fact]
    public void The_runtime_directory_comes_first_unless_it_is_relative()
    {
        Assert.Equal("/run/here/heeler/heeler.sock", Socket("/run/here"));
        Assert.StartsWith(_root.FullName + "/tmp/", Socket("here"), StringComparison.Ordinal);
    }

    [Fact]
    public void The_users_run_directory_comes_second()
    {
        var run = Make("run/" + NativeFile.UserId(), UnixFileMode.UserRead | UnixFileMode.UserWrite | UnixFileMode.UserExecute);
        Assert.Equal(run + "/heeler/heeler.sock", Socket(null));
    }

    [Fact]
    public void A_fallback_that_other_users_can_enter_is_refused()
    {
        const UnixFileMode own = UnixFileMode.UserRead | UnixFileMode.UserWrite | UnixFileMode.UserExecute;
        var fallback = Make("tmp/heeler-" + NativeFile.UserId(), own | UnixFileMode.OtherExecute);
        var error = Assert.Throws<HeelerAddressException>(() => Socket(null));
        Assert.Contains(fallback, error.Message, StringComparison.Ordinal);
        Make("tmp/heeler-" + NativeFile.UserId(), own);
        Assert.Equal(fallback + "/heeler.sock", Socket(null));
    }

    [Fact]
    public void A_fallback_that_is_a_link_is_refused()
    {
        var real = Make("real", UnixFileMode.UserRead | UnixFileMode.UserWrite | UnixFileMode.UserExecute);
        _root.CreateSubdirectory("tmp");
        Directory.CreateSymbolicLink($"{_root.FullName}/tmp/heeler-{NativeFile.UserId()}", real);
        Assert.Throws<HeelerAddressException>(() => Socket(null));
    }

    private string Socket(string? runtimeDirectory) =>
        DefaultSocket.Among(_root.FullName + "/run", _root.FullName + "/tmp", runtimeDirectory);

    private string Make(string name, UnixFileMode mode)
    {
        var path = _root.CreateSubdirectory(name).FullName;
        File.SetUnixFileMode(path, mode);
        return path;
    }
}
