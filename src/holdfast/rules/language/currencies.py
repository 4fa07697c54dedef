"""The currencies of ISO 4217, each with its exponent: how many decimals an amount in it has."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from holdfast.spelling import did_you_mean

_BY_EXPONENT = {
    0: "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF",
    2: """
       AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BMD BND BOB BOV BRL BSD BTN BWP BYN BZD CAD CDF CHE CHF
       CHW CNY COP COU CRC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GTQ GYD HKD HNL HTG HUF
       IDR ILS INR IRR JMD KES KGS KHR KPW KYD KZT LAK LBP LKR LRD LSL MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN
       MXV MYR MZN NAD NGN NIO NOK NPR NZD PAB PEN PGK PHP PKR PLN QAR RON RSD RUB SAR SBD SCR SDG SEK SGD SHP SLE SOS
       SRD SSP STN SVC SYP SZL THB TJS TMT TOP TRY TTD TWD TZS UAH USD USN UYU UZS VED VES WST XCD XCG YER ZAR ZMW ZWG
       """,
    3: "BHD IQD JOD KWD LYD OMR TND",
    4: "CLF UYW",
}
EXPONENTS: Mapping[str, int] = MappingProxyType(
    {code: exponent for exponent, codes in _BY_EXPONENT.items() for code in sorted(codes.split())}
)


def complaint(currency: object) -> tuple[str, str] | None:
    """Return why a value is not a currency, and what to use; None if it is one."""
    if isinstance(currency, str) and currency in EXPONENTS:
        return None
    hint = "use a code of ISO 4217 such as EUR"
    if isinstance(currency, str) and currency.upper() in EXPONENTS:
        hint = did_you_mean(currency.upper(), [currency.upper()])
    return f"there is no currency {currency!r:.40}", hint
