using System.ComponentModel;
using System.Globalization;

namespace Heeler.Client;

/// <summary>Converts an address from text, so that options can be bound from configuration.</summary>
internal sealed class HeelerAddressConverter : TypeConverter
{
    public override bool CanConvertFrom(ITypeDescriptorContext? context, Type sourceType) =>
        sourceType == typeof(string) || base.CanConvertFrom(context, sourceType);

    public override object? ConvertFrom(ITypeDescriptorContext? context, CultureInfo? culture, object value) =>
        value is string text ? HeelerAddress.Parse(text) : base.ConvertFrom(context, culture, value);
}
