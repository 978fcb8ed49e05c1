// SPDX-License-Identifier: Apache-2.0

package interpreter

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
)

// MaxMessage is the size in bytes of the longest line that is read.
const MaxMessage = 16 << 20

const (
	maxForms = 32  // of one result
	maxName  = 256 // bytes of a MIME type, an error's name, a version
)

// A message is a line of the interpreter.
type message struct {
	Nonce        string            `json:"nonce"`
	Kind         Kind              `json:"kind"`
	Text         string            `json:"text"`
	Late         bool              `json:"late"`
	Omitted      int64             `json:"omitted"`
	Data         map[string]string `json:"data"`
	FormsOmitted map[string]int64  `json:"forms_omitted"`
	Name         string            `json:"name"`
	Value        string            `json:"value"`
	Traceback    string            `json:"traceback"`
	MS           float64           `json:"ms"`
	Protocol     int               `json:"protocol"`
	Language     Language          `json:"language"`
	Version      string            `json:"version"`

	status int  // of a shell's cell
	stream bool // read from a shell's stdout or stderr, which belongs to the running cell
}

const (
	kindHello Kind = "hello"
	kindBegan Kind = "began"
	kindDone  Kind = "done"
)

var kinds = map[Kind]bool{kindHello: true, kindBegan: true, kindDone: true, Stdout: true, Stderr: true, Display: true,
	Result: true, Exception: true}

// decodeMessage reads a line, which is untrusted.
func decodeMessage(line []byte) (message, error) {
	var m message
	if err := json.Unmarshal(line, &m); err != nil {
		return message{}, err
	}
	if err := m.checkFields(); err != nil {
		return message{}, err
	}
	return m, nil
}

func (m *message) checkFields() error {
	switch {
	case !kinds[m.Kind]:
		return errors.New("unknown kind")
	case len(m.Name) > maxName || len(m.Version) > maxName:
		return errors.New("name or version is too long")
	case m.Omitted < 0 || m.MS < 0 || m.MS > math.MaxInt32:
		return errors.New("number out of range")
	case len(m.Data) > maxForms || len(m.FormsOmitted) > maxForms:
		return errors.New("too many forms")
	}
	for mime := range m.FormsOmitted {
		if len(mime) > maxName {
			return errors.New("type is too long")
		}
	}
	for mime, text := range m.Data {
		if err := checkForm(mime, text); err != nil {
			return err
		}
	}
	return nil
}

// checkForm makes sure that a form is what its type says, as far as readers rely on it.
func checkForm(mime, text string) error {
	switch {
	case len(mime) > maxName:
		return errors.New("type is too long")
	case strings.HasSuffix(mime, "json") && !json.Valid([]byte(text)):
		return fmt.Errorf("%s is not JSON", mime)
	case mime == "image/png" || mime == "image/jpeg":
		if _, err := base64.StdEncoding.DecodeString(text); err != nil {
			return fmt.Errorf("%s is not base64", mime)
		}
	}
	return nil
}

// readLine returns the next line. Of one that is longer than max it returns nothing, and
// never holds more than max bytes.
func readLine(r *bufio.Reader, max int) ([]byte, error) {
	var line []byte
	long := false
	for {
		part, err := r.ReadSlice('\n')
		if long = long || len(line)+len(part) > max; long {
			line = nil
		} else {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return bytes.TrimSuffix(line, []byte("\n")), err
		}
	}
}

// request is what this end sends. The fields keep their order.
type request struct {
	Op    string            `json:"op"`
	Nonce string            `json:"nonce"`
	Code  string            `json:"code"`
	Env   map[string]string `json:"env,omitempty"`
	// Reseed asks for new seeds of random generators: other copies of the process have the same.
	Reseed bool `json:"reseed,omitempty"`
}

func (r request) encodeLine() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(r)
	return b.Bytes(), err
}
