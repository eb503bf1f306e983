using System.ComponentModel;
using System.Runtime.InteropServices;

namespace Heeler.Client;

/// <summary>
/// The owner of a file and the user of this process, which .NET does not expose. Linux only. It calls <c>statx</c>, whose
/// structure is the same on every architecture.
/// </summary>
internal static class NativeFile
{
    private const int CurrentDirectory = -100;
    private const int DoNotFollow = 0x100;
    private const uint BasicFacts = 0x7ff;
    private const int NoSuchFile = 2;
    private const int NotADirectory = 20;
    private const int TypeMask = 0xf000;
    private const int DirectoryType = 0x4000;

    /// <summary>Treatment of a symbolic link at the end of the path.</summary>
    internal enum Links
    {
        Followed,
        NotFollowed,
    }

    /// <summary>The owner and the mode of a file.</summary>
    internal readonly record struct Facts(uint Owner, ushort Mode)
    {
        internal bool IsDirectory => (Mode & TypeMask) == DirectoryType;

        /// <summary>True if only the owner has permissions.</summary>
        internal bool IsPrivate => (Mode & 0x3f) == 0;
    }

    /// <summary>Returns the effective user id of this process.</summary>
    internal static uint UserId() => EffectiveUserId();

    /// <summary>Returns the owner and the mode of a file. Null: there is no such file.</summary>
    /// <exception cref="HeelerAddressException">The file cannot be examined.</exception>
    internal static Facts? Stat(string path, Links links)
    {
        var flags = links == Links.Followed ? 0 : DoNotFollow;
        if (StatX(CurrentDirectory, path, flags, BasicFacts, out var found) == 0) return new Facts(found.Owner, found.Mode);
        var number = Marshal.GetLastPInvokeError();
        if (number is NoSuchFile or NotADirectory) return null;
        throw new HeelerAddressException($"cannot examine {path}", new Win32Exception(number));
    }

    [DllImport("libc", EntryPoint = "geteuid")]
    private static extern uint EffectiveUserId();

    [DllImport("libc", EntryPoint = "statx", SetLastError = true, BestFitMapping = false, ThrowOnUnmappableChar = true)]
    private static extern int StatX(
        int directory, [MarshalAs(UnmanagedType.LPUTF8Str)] string path, int flags, uint mask, out StatXBuffer found);

    [StructLayout(LayoutKind.Explicit, Size = 256)]
    private struct StatXBuffer
    {
        [FieldOffset(20)]
        internal uint Owner;

        [FieldOffset(28)]
        internal ushort Mode;
    }
}
