// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bytes"
	"slices"
	"testing"
)

// Only a line that checkpointLine can write is one: what else fails is reported as no checkpoint,
// not as one with a wrong signature.
func TestCutCheckpointLine(t *testing.T) {
	const signed = "o\n1\nroot\n\n— k sig\n"
	if got, ok := cutCheckpointLine(checkpointLine(signed)); got != signed || !ok {
		t.Errorf("its own line is %q, %t", got, ok)
	}
	for name, line := range map[string]string{
		"no beginning":       `{"checkpoin":"o\n1\n"}`,
		"no end":             `{"checkpoint":"o\n1\n"`,
		"neither":            `o\n1\n`,
		"another field":      `{"checkpoint":"o\n1\n","a":"b"}`,
		"another escape":     `{"checkpoint":"o\t1\n"}`,
		"an escaped newline": `{"checkpoint":"o\\n1\n"}`,
		"a newline":          "{\"checkpoint\":\"o\n1\"}",
	} {
		if got, ok := cutCheckpointLine([]byte(line)); ok {
			t.Errorf("%s: %q is a checkpoint, %q", name, line, got)
		}
	}
	log := logOf(t, 1, true)
	key := testSigner(t, "test.example").Key()
	lines := rows(log)
	for _, inner := range []string{`","a":"`, `\t`} {
		changed := slices.Clone(lines)
		changed[4] = bytes.Replace(lines[4], []byte(`\n`), []byte(inner), 1)
		_, err := Verify(bytes.NewReader(slices.Concat(changed...)), Trust{Key: key})
		wantVerify(t, err, codeCheckpoint, 5, -1)
	}
}

// The seal of another log with as many entries is no seal that came too early: the entry before it
// is not the one that was signed.
func TestSealOfAnotherLog(t *testing.T) {
	const name, origin = "test.example", "vectors.example/log"
	one, two := vectorBodies()[:2], slices.Clone(vectorBodies()[:2])
	two[1] = vectorBodies()[2]
	log, other := rows(memoryLog(t, name, origin, one, false)), rows(memoryLog(t, name, origin, two, true))
	log[5] = other[6]
	_, err := Verify(bytes.NewReader(slices.Concat(log...)), Trust{Key: testSigner(t, name).Key()})
	wantVerify(t, err, codeChanged, 5, 1)
}
