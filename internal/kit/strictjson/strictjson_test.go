// SPDX-License-Identifier: Apache-2.0

package strictjson

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestDecode(t *testing.T) {
	type inner struct {
		Key string `json:"key"`
	}
	for _, tt := range []struct{ text, want string }{
		{`{"id":"a","list":[{"key":"1"},{"key":"2"}]}`, ""},
		{` {"id":"a"} ` + "\n", ""},
		{`{"id":"a","id":"b"}`, `the field "id" is repeated, before byte 14`},
		{`{"id":"a","ID":"b"}`, `the field "ID" is repeated`},
		{`{"id":"a","\u0069d":"b"}`, `the field "id" is repeated`},
		{`{"list":[{"key":"1","` + "\u212a" + `ey":"2"}]}`, `is repeated`}, // the Kelvin sign
		{`{"other":1}`, `unknown field "other", before byte`},
		{`{"id":1}`, `cannot unmarshal number`},
		{`{"id":"a"}{}`, "data after the JSON value, at byte 1"},
		{`{"id":"a"} x`, "data after the JSON value"},
		{`{"id":`, "not JSON: unexpected EOF"},
		{`{"id":]`, "not JSON: invalid character ']' looking for beginning of value, at byte 7"},
		{``, "not JSON: EOF"},
		{strings.Repeat("[", 20000), "exceeded max depth, at byte 10001"},
	} {
		var v struct {
			ID   string  `json:"id"`
			List []inner `json:"list"`
		}
		err := Decode([]byte(tt.text), &v)
		if got := ""; (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			if err != nil {
				got = err.Error()
			}
			t.Errorf("%.60s: %q, want %q", tt.text, got, tt.want)
		}
	}
}

// What is accepted is what encoding/json decodes, and decoding its own encoding changes nothing.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"a":[1,{"b":null}],"B":"x"}`))
	f.Add([]byte(`{"a":1,"A":2}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var v any
		if Decode(data, &v) != nil {
			return
		}
		var plain any
		if err := json.Unmarshal(data, &plain); err != nil {
			t.Fatal(err)
		}
		again, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if err := CheckNames(again); err != nil {
			t.Errorf("%s: %v", again, err)
		}
	})
}
