using System.Globalization;

namespace Heeler.Client;

/// <summary>
/// Where a user's daemon has its socket: the same answer as the daemon's. Nothing is created here. A directory in a place
/// that others may write to is used only if it is this user's alone: whoever listens there is handed commands to run.
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
        // The XDG specification has relative paths ignored.
        if (runtimeDirectory is ['/', ..]) return $"{runtimeDirectory.TrimEnd('/')}/heeler/heeler.sock";
        if (!OperatingSystem.IsLinux())
            throw new HeelerAddressException($"there is no default address here: set {HeelerAddress.EnvironmentVariable}");
        var user = NativeFile.UserId();
        var run = $"{runUser}/{user.ToString(CultureInfo.InvariantCulture)}";
        if (NativeFile.Look(run, NativeFile.Links.Followed) is { IsDirectory: true } found && found.Owner == user)
            return $"{run}/heeler/heeler.sock";
        var fallback = $"{tmp}/heeler-{user.ToString(CultureInfo.InvariantCulture)}";
        CheckPrivate(fallback, user);
        return $"{fallback}/heeler.sock";
    }

    /// <summary>Anybody may have made a directory of that name in <c>/tmp</c>; one that is not there yet is fine.</summary>
    private static void CheckPrivate(string directory, uint user)
    {
        if (NativeFile.Look(directory, NativeFile.Links.NotFollowed) is not { } found) return;
        if (found.IsDirectory && found.Owner == user && found.IsPrivate) return;
        throw new HeelerAddressException(
            $"{directory} is not a directory that only user {user} may enter: remove it, or set {RuntimeDirectory}");
    }
}
