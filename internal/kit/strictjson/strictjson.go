// SPDX-License-Identifier: Apache-2.0

// Package strictjson decodes JSON (RFC 8259) of which every reader must understand the same.
// encoding/json by itself takes the last of two fields with the same name, matches names in any
// case, ignores fields that it does not know, and stops behind the first value.
package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"
)

// Decode decodes the one value of data into v, as encoding/json does. It refuses a field that v does
// not have, a repeated one, whatever its case, and anything but white space behind the value. The
// error gives the byte. After an error, v must not be used. The caller limits the size.
func Decode(data []byte, v any) error {
	if err := CheckNames(data); err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return fmt.Errorf("%s, before byte %d", strings.TrimPrefix(err.Error(), "json: "), d.InputOffset())
	}
	return nil
}

// CheckNames refuses data that is not one JSON value, or in which an object has two names that are
// equal in lower case.
func CheckNames(data []byte) error {
	var whole json.RawMessage
	d := json.NewDecoder(bytes.NewReader(data))
	if err := d.Decode(&whole); err != nil { // also limits the depth
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return fmt.Errorf("not JSON: %w, at byte %d", err, syntax.Offset)
		}
		return fmt.Errorf("not JSON: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("data after the JSON value, at byte %d", d.InputOffset())
	}
	d = json.NewDecoder(bytes.NewReader(whole))
	d.UseNumber()
	return checkValue(d)
}

// checkValue reads one value, which is known to be JSON.
func checkValue(d *json.Decoder) error {
	token, err := d.Token()
	if err != nil {
		return err
	}
	delim, ok := token.(json.Delim)
	if !ok {
		return nil
	}
	seen := map[string]bool{}
	for d.More() {
		if delim == '{' {
			name, err := d.Token()
			if err != nil {
				return err
			}
			folded := strings.Map(foldCase, name.(string))
			if seen[folded] {
				return fmt.Errorf("the field %q is repeated, before byte %d", name, d.InputOffset())
			}
			seen[folded] = true
		}
		if err := checkValue(d); err != nil {
			return err
		}
	}
	_, err = d.Token()
	return err
}

// fold returns the smallest of the characters that encoding/json takes for r in a field's name.
func foldCase(r rune) rune {
	least := r
	for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
		least = min(least, next)
	}
	return least
}
