// SPDX-License-Identifier: Apache-2.0

package names

import (
	"net/netip"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	label63 := strings.Repeat("a", 63)
	long := strings.Join([]string{label63, label63, label63, strings.Repeat("b", 61)}, ".")
	for _, tt := range []struct{ name, in, want string }{ // want "" means refused
		{"plain", "example.com", "example.com"},
		{"final dot", "example.com.", "example.com"},
		{"upper case", "ExAmPlE.CoM", "example.com"},
		{"one label", "intranet", "intranet"},
		{"underscore", "_dmarc.example.com", "_dmarc.example.com"},
		{"digits first", "1.example.com", "1.example.com"},
		{"digits within the last label", "example.a1", "example.a1"},
		{"punycode stays", "xn--bcher-kva.example", "xn--bcher-kva.example"},
		{"two hyphens within", "r3---sn-a.example", "r3---sn-a.example"},
		{"longest label", label63 + ".com", label63 + ".com"},
		{"longest", long, long},
		{"longest with a final dot", long + ".", long},
		{"too long", "c" + long, ""},
		{"label too long", "a" + label63 + ".com", ""},
		{"empty", "", ""},
		{"root", ".", ""},
		{"two final dots", "example.com..", ""},
		{"empty label", "a..example.com", ""},
		{"first dot", ".example.com", ""},
		{"hyphen first", "-a.example.com", ""},
		{"hyphen last", "a-.example.com", ""},
		{"space", "exa mple.com", ""},
		{"newline", "example.com\nevil.example", ""},
		{"zero byte", "example.com\x00.evil.example", ""},
		{"slash", "example.com/evil", ""},
		{"at", "user@example.com", ""},
		{"colon", "example.com:443", ""},
		{"percent", "example%2ecom", ""},
		{"wildcard", "*.example.com", ""},
		{"letters of another script", "bücher.example", ""},
		{"Kelvin sign", "\u212aelvin.example", ""},
		{"full stop of another script", "example。com", ""},
		{"IPv4", "127.0.0.1", ""},
		{"IPv4 with a final dot", "127.0.0.1.", ""},
		{"IPv4, short", "127.1", ""},
		{"IPv4 as a number", "2130706433", ""},
		{"IPv4 in hex", "0x7f000001", ""},
		{"IPv4 in parts of hex", "0x7f.0x1", ""},
		{"IPv4, hex without digits", "a.0x", ""},
		{"IPv4 in octal", "0177.0.0.01", ""},
		{"last label of digits", "example.123", ""},
		{"IPv6", "::1", ""},
		{"IPv6 in brackets", "[::1]", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Parse(tt.in)
			if got != tt.want || (err != nil) != (tt.want == "") {
				t.Errorf("Parse(%q) = %q, %v; want %q", tt.in, got, err, tt.want)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"example.com", "A.b-C._d.", "127.0.0.1", "0x7f.1", "a..b", "::1", "\u212a.com", "xn--a.b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		name, err := Parse(s)
		if err != nil {
			return
		}
		if again, err := Parse(name); err != nil || again != name {
			t.Errorf("Parse(%q) = %q, which is read as %q, %v", s, name, again, err)
		}
		if !strings.EqualFold(name, strings.TrimSuffix(s, ".")) || len(name) > MaxName {
			t.Errorf("Parse(%q) = %q", s, name)
		}
		if _, err := netip.ParseAddr(name); err == nil {
			t.Errorf("Parse(%q) is an address", s)
		}
	})
}
