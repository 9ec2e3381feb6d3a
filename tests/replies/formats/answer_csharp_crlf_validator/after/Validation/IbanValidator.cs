using System;
using System.Text.RegularExpressions;

namespace Acme.Validation;

/// <summary>Checks format and checksum (mod 97) of an IBAN.</summary>
public sealed partial class IbanValidator : IValidator
{
    [GeneratedRegex(@"^[A-Z]{2}\d{2}[A-Z0-9]{11,30}$")]
    private static partial Regex Pattern();

    public string Name => "iban";

    public bool IsValid(string? value, out string? error)
    {
        var iban = value?.Replace(" ", string.Empty).ToUpperInvariant();
        if (iban is not null && Pattern().IsMatch(iban) && HasValidChecksum(iban))
        {
            error = null;
            return true;
        }
        error = $"\"{value}\" ist keine gültige IBAN.";
        return false;
    }

    private static bool HasValidChecksum(string iban)
    {
        // Move the country code and check digits to the end,
        // then read letters as numbers (A = 10, ..., Z = 35).
        var rearranged = iban[4..] + iban[..4];
        var remainder = 0;
        foreach (var c in rearranged)
        {
            remainder = char.IsDigit(c)
                ? (remainder * 10 + (c - '0')) % 97
                : (remainder * 100 + (c - 'A' + 10)) % 97;
        }
        return remainder == 1;
    }
}
