// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

func TestCanonical(t *testing.T) {
	for _, test := range []struct{ name, in, want string }{
		{"white space", " { \"a\" : [ 1 ,\t2 ] \r\n} ", `{"a":[1,2]}`},
		{"empty", `{"a":{},"b":[ ]}`, `{"a":{},"b":[]}`},
		{"words", `[true,false,null]`, `[true,false,null]`},
		{"sorted", `{"b":1,"a":{"d":4,"c":3},"":0}`, `{"":0,"a":{"c":3,"d":4},"b":1}`},
		{"sorted, RFC 8785 §3.2.3", `{"\u20ac":"Euro Sign","\r":"Carriage Return","\ufb33":"Hebrew Letter Dalet With Dagesh","1":"One","\ud83d\ude00":"Emoji: Grinning Face","\u0080":"Control","\u00f6":"Latin Small Letter O With Diaeresis"}`,
			`{"\r":"Carriage Return","1":"One","` + "\u0080" + `":"Control","` + "\u00f6" + `":"Latin Small Letter O With Diaeresis","` + "\u20ac" + `":"Euro Sign","` + "\U0001f600" + `":"Emoji: Grinning Face","` + "\ufb33" + `":"Hebrew Letter Dalet With Dagesh"}`},
		{"values, RFC 8785 §3.2.2", `{"numbers":[1E30,4.50,2e-3,0.000000000000000000000000001],"string":"\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/","literals":[null,true,false]}`,
			`{"literals":[null,true,false],"numbers":[1e+30,4.5,0.002,1e-27],"string":"` + "\u20ac" + `$\u000f\nA'B\"\\\\\"/"}`},
		{"escapes", `"\b\f\n\r\t\u0000\u001f\u007f<>&\u2028"`, `"\b\f\n\r\t\u0000\u001f` + "\u007f<>&\u2028" + `"`},
		{"surrogates", `"\uD834\uDD1E"`, "\"\U0001d11e\""},
		{"noncharacter", `"\uFFFF\uFFFD"`, "\"\uffff\ufffd\""},
		{"numbers", `[0,-0,-0.0,0e5,1.0,-1.50,10e2,9007199254740991,-9007199254740991,123456789012345]`, `[0,0,0,0,1,-1.5,1000,9007199254740991,-9007199254740991,123456789012345]`},
		{"number forms", `[1e21,1e-6,1e-7,1.5e-10,5e-324,1.7976931348623157e308,-1E+22]`, `[1e+21,0.000001,1e-7,1.5e-10,5e-324,1.7976931348623157e+308,-1e+22]`},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := canonicalOf([]byte(test.in))
			if err != nil || string(got) != test.want {
				t.Fatalf("Canonical = %s, %v\nwant %s", got, err, test.want)
			}
			if again, err := canonicalOf(got); err != nil || !bytes.Equal(again, got) {
				t.Errorf("again = %s, %v", again, err)
			}
		})
	}
}

func TestCanonicalRefuses(t *testing.T) {
	for name, in := range map[string]string{
		"nothing":            ``,
		"two values":         `1 2`,
		"open object":        `{"a":1`,
		"open array":         `[1`,
		"comma":              `[1,]`,
		"member comma":       `{"a":1,}`,
		"no colon":           `{"a" 1}`,
		"name no string":     `{1:1}`,
		"repeated":           `{"a":1,"a":1}`,
		"repeated, escaped":  `{"a":1,"\u0061":1}`,
		"repeated, apart":    `{"b":1,"a":1,"b":1}`,
		"newline in string":  "\"a\nb\"",
		"open string":        `"a`,
		"open escape":        `"\`,
		"open unicode":       `"\u12"`,
		"bad hex":            `"\u12g4"`,
		"bad hex below 0":    `"\u12` + "\x11" + `4"`,
		"bad escape":         `"\x41"`,
		"lone high":          `"\ud800"`,
		"lone low":           `"\udc00"`,
		"two highs":          `"\ud800\ud800"`,
		"high and letter":    `"\ud800a"`,
		"not UTF-8":          "\"\xff\"",
		"overlong UTF-8":     "\"\xc0\x80\"",
		"surrogate in UTF-8": "\"\xed\xa0\x80\"",
		"leading zero":       `01`,
		"plus":               `+1`,
		"point":              `1.`,
		"no digit":           `-`,
		"hexadecimal":        `0x10`,
		"infinite":           `1e999`,
		"inexact":            `9007199254740992`,
		"inexact, negative":  `-9007199254740993`,
		"inexact, fraction":  `9007199254740993.0`,
		"huge":               `1000000000000000000000000`,
		"word":               `nul`,
		"NaN":                `NaN`,
		"too deep":           strings.Repeat("[", maxDepth+1) + strings.Repeat("]", maxDepth+1),
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := canonicalOf([]byte(in)); err == nil {
				t.Errorf("canonicalOf(%q) = %s", in, got)
			}
		})
	}
	if _, err := canonicalOf([]byte(strings.Repeat("[", maxDepth) + strings.Repeat("]", maxDepth))); err != nil {
		t.Errorf("at the greatest depth: %v", err)
	}
}

// FuzzCanonical compares with encoding/json: accepted text is valid JSON with the
// same meaning, and its canonical form is a fixed point.
func FuzzCanonical(f *testing.F) {
	for _, seed := range []string{`{"b":[1,2.5e3,-0],"a":"\u00e9\ud83d\ude00\n"}`, `{"a":1,"a":2}`, `"\ud800"`, `[[[]]]`, `9007199254740993`, `1e-7`, "\"\x80\""} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		out, err := canonicalOf(in)
		if err != nil {
			return
		}
		again, err := canonicalOf(out)
		if err != nil || !bytes.Equal(again, out) {
			t.Fatalf("%q: %q is not a fixed point: %q, %v", in, out, again, err)
		}
		if bytes.ContainsAny(out, "\n\r\x00") {
			t.Fatalf("%q: control character in %q", in, out)
		}
		var a, b any
		if err := json.Unmarshal(in, &a); err != nil {
			t.Fatalf("%q is accepted, encoding/json says %v", in, err)
		}
		if err := json.Unmarshal(out, &b); err != nil {
			t.Fatalf("%q is not JSON: %v", out, err)
		}
		aa, errA := json.Marshal(a)
		bb, errB := json.Marshal(b)
		// encoding/json keeps -0, ECMAScript does not.
		same := bytes.Equal(bytes.ReplaceAll(aa, []byte("-0"), []byte("0")), bytes.ReplaceAll(bb, []byte("-0"), []byte("0")))
		if errA != nil || errB != nil || !same {
			t.Fatalf("%q means %s, %q means %s", in, aa, out, bb)
		}
	})
}

// TestAppendDepth: what Append accepts, Verify accepts: the entry is one level around the body.
func TestAppendDepth(t *testing.T) {
	nested := func(deep int) json.RawMessage {
		return json.RawMessage(strings.Repeat("[", deep) + strings.Repeat("]", deep))
	}
	l := create(t)
	if _, err := l.Append("decision", nested(maxDepth-1)); err != nil {
		t.Fatal(err)
	}
	if sum, err := Verify(bytes.NewReader(read(t, l.Path())), Trust{Key: l.Key()}); err != nil || sum.Entries != 1 {
		t.Errorf("%+v, %v", sum, err)
	}
	_, err := l.Append("decision", nested(maxDepth))
	wantStop(t, err, "audit.entry")
}

// canonicalOf returns the canonical form of one JSON value.
func canonicalOf(data []byte) ([]byte, error) {
	c := canonicaler{in: data}
	return c.writeAll(nil)
}
