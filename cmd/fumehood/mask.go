// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/outlet"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// maxMasks bounds the document of values that fumehood action hands over.
const maxMasks = 8 << 20

// readMasks reads the values to mask from the beginning of standard input, on which
// fumehood action hands them over: neither its environment nor its command line is
// anybody's but its own.
func readMasks(r io.Reader) ([]outlet.Mask, error) {
	var masks []outlet.Mask
	if err := json.NewDecoder(io.LimitReader(r, maxMasks)).Decode(&masks); err != nil {
		return nil, maskError("the values to mask cannot be read from standard input")
	}
	return masks, nil
}

// readMasks learns what must not be told before anything is.
func (s *setup) readMasks(stdin io.Reader) (err error) {
	if s.maskStdin {
		if s.handed, err = readMasks(stdin); err != nil {
			return err
		}
	}
	o, err := s.secrets()
	if err == nil {
		s.early, err = gate.NewRedactor(o)
	}
	return err
}

// maskOf reads the variable that --mask names. It is refused where it is not set: who
// misspells a name must not believe that its value is masked.
func maskOf(name string) (outlet.Mask, error) {
	if !variableName.MatchString(name) {
		return outlet.Mask{}, maskError("a value of --mask is no name of a variable: name the variable, never its value")
	}
	value := os.Getenv(name)
	if strings.TrimSpace(value) == "" {
		return outlet.Mask{}, maskError(fmt.Sprintf("--mask names the variable %s, which is not set, or empty", name))
	}
	return outlet.Mask{Name: name, Value: value}, nil
}

func maskError(message string) error {
	return &proposal.StopError{Code: "output.mask", Message: message,
		Hint: "for example --mask NPM_TOKEN with NPM_TOKEN in the environment; sudo drops variables without --preserve-env"}
}

// masked are the values of --mask, and what was handed over.
func (s *setup) masked() ([]outlet.Mask, error) {
	masks := s.handed
	for _, name := range s.masks {
		m, err := maskOf(name)
		if err != nil {
			return nil, err
		}
		masks = append(masks, m)
	}
	return masks, nil
}

// secrets are the options of what must never be printed.
func (s *setup) secrets() (o gate.Options, err error) {
	if o.Masks, err = s.masked(); err != nil {
		return o, err
	}
	for _, text := range s.credentials {
		c, err := credentialOf(text)
		if err != nil {
			return o, err
		}
		o.Credentials = append(o.Credentials, c)
	}
	return o, nil
}

// fit is err as it may be told: what stopped a run may speak of what it held.
func (s *setup) fit(err error) error {
	f := proposal.FailureOf(err)
	if f == nil || s.early == nil {
		return err
	}
	clean := s.early.Failure(f)
	if *clean == *f {
		return err
	}
	return &proposal.StopError{Code: clean.Code, Message: clean.Message, Hint: clean.Hint}
}
