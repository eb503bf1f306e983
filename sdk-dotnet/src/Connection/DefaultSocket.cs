using System.Globalization;

namespace Heeler.Client;

/// <summary>
/// The path of the socket of a user's daemon, by the same rules as the daemon's own. It creates nothing. A directory in a place
/// where other users can write is used only if this user alone has access: the listener there receives commands to run.
/// </summary>
internal static class DefaultSocket
{
    private const string RuntimeDirectory = "XDG_RUNTIME_DIR";

    /// <summary>
    /// <c>$XDG_RUNTIME_DIR/heeler/heeler.sock</c>; without that variable the same under <c>/run/user/UID</c> where this user
    /// owns it, else <c>/tmp/heeler-UID/heeler.sock</c>.
    /// </summary>
    internal static string Path() =>
        Among("/run/user", "/tmp", Environment.GetEnvironmentVariable(RuntimeDirectory));

    internal static string Among(string runUser, string tmp, string? runtimeDirectory)
    {
        // The XDG specification says to ignore relative paths.
        if (runtimeDirectory is ['/', ..]) return $"{runtimeDirectory.TrimEnd('/')}/heeler/heeler.sock";
        if (!OperatingSystem.IsLinux())
            throw new HeelerAddressException($"this system has no default address: set {HeelerAddress.EnvironmentVariable}");
        var user = NativeFile.UserId();
        var run = $"{runUser}/{user.ToString(CultureInfo.InvariantCulture)}";
        if (NativeFile.Stat(run, NativeFile.Links.Followed) is { IsDirectory: true } found && found.Owner == user)
            return $"{run}/heeler/heeler.sock";
        var fallback = $"{tmp}/heeler-{user.ToString(CultureInfo.InvariantCulture)}";
        CheckPrivate(fallback, user);
        return $"{fallback}/heeler.sock";
    }

    /// <summary>Another user may have created the directory in <c>/tmp</c>. A missing one is accepted.</summary>
    private static void CheckPrivate(string directory, uint user)
    {
        if (NativeFile.Stat(directory, NativeFile.Links.NotFollowed) is not { } found) return;
        if (found.IsDirectory && found.Owner == user && found.IsPrivate) return;
        throw new HeelerAddressException(
            $"{directory} is not a directory that only user {user} can enter: remove it, or set {RuntimeDirectory}");
    }
}
