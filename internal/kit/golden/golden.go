// SPDX-License-Identifier: Apache-2.0

// Package golden compares what tests make with files. It is for tests only: it defines
// the flag -update, which writes the files instead.
package golden

import (
	"encoding/json"
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"
)

// Update is whether files are written.
var Update = flag.Bool("update", false, "rewrite golden files")

// Compare compares got with the file at path, or writes it there with -update.
func Compare(t testing.TB, path string, got []byte) {
	t.Helper()
	if *Update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(string(Read(t, path)), string(got)); diff != "" {
		t.Errorf("%s differs (-want +got); -update rewrites it:\n%s", path, diff)
	}
}

// Read reads a file.
func Read(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// ReadSchema reads and resolves a JSON Schema.
func ReadSchema(t testing.TB, path string) *jsonschema.Resolved {
	t.Helper()
	var s jsonschema.Schema
	if err := json.Unmarshal(Read(t, path), &s); err != nil {
		t.Fatalf("cannot read schema: %v", err)
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		t.Fatalf("cannot resolve schema: %v", err)
	}
	return resolved
}
