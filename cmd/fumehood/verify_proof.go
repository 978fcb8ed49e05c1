// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/fumehood/fumehood/pkg/audit"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// verifyProof checks the proof in the file at path against the trusted key.
func (c *call) verifyProof(path string, trust audit.Trust, asJSON bool) int {
	data, err := readProof(path)
	if err != nil {
		return c.stopped(err)
	}
	proved, err := audit.CheckProof(data, trust.Key)
	if err == nil && trust.Checkpoint != "" && proved.Checkpoint != trust.Checkpoint {
		err = errors.New("invalid proof: it is for another checkpoint")
	}
	if printErr := c.printProved(proved, err, asJSON); printErr != nil {
		return c.stopped(printErr)
	}
	if err != nil {
		return exitRefused
	}
	return exitOK
}

// readProof reads one byte more than a proof may have, so that CheckProof refuses
// what is too large and we never hold more.
func readProof(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err == nil {
		defer f.Close()
		var data []byte
		if data, err = io.ReadAll(io.LimitReader(f, audit.MaxProof+1)); err == nil {
			return data, nil
		}
	}
	return nil, &proposal.StopError{Code: "audit.not-readable", Message: fmt.Sprintf("cannot read proof %q", path),
		Hint: "name a file that fumehood prove wrote", Err: err}
}

func (c *call) printProved(p audit.Proved, wrong error, asJSON bool) error {
	var err error
	switch {
	case asJSON && wrong != nil:
		err = json.NewEncoder(c.stdout).Encode(map[string]string{"error": wrong.Error()})
	case asJSON:
		err = json.NewEncoder(c.stdout).Encode(provedJSON{N: p.Entry.N, Origin: p.Origin, Size: p.Size, Sealed: p.Sealed, Entry: p.Entry.Leaf})
	case wrong != nil:
		_, err = fmt.Fprintln(c.stdout, printable(wrong.Error()))
	default:
		_, err = fmt.Fprintf(c.stdout, "valid proof: entry %d is in the log %q of %d entries, %s\n%s\n",
			p.Entry.N, p.Origin, p.Size, sealedWord(p.Sealed), printable(string(p.Entry.Leaf)))
	}
	return err
}

// provedJSON is what verify --proof --json prints.
type provedJSON struct {
	N      int64           `json:"n"`
	Origin string          `json:"origin"`
	Size   int64           `json:"size"` // entries that the log had at least
	Sealed bool            `json:"sealed"`
	Entry  json.RawMessage `json:"entry"`
}

func sealedWord(sealed bool) string {
	if sealed {
		return "sealed"
	}
	return "not sealed"
}
