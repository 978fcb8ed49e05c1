// SPDX-License-Identifier: Apache-2.0

package results

import (
	"errors"
	"fmt"
	"io"

	"github.com/fumehood/fumehood/internal/kit/exchange"
)

// An Exchange is a directory that other users may write to, such as one that a runner restored
// from a cache. Each entry is a file KEY.result.
type Exchange struct {
	dir  string
	left int64 // bytes that Put may still write
}

// OpenExchange returns the Exchange in dir, which need not exist for Get. Put writes at most
// MaxStore bytes.
func OpenExchange(dir string) *Exchange { return &Exchange{dir, MaxStore} }

// Get is Cache.Get. The entry is as untrusted as the directory.
func (x *Exchange) Get(key string) (Entry, error) {
	if !KeyGrammar.MatchString(key) {
		return Entry{}, fmt.Errorf("invalid key %q", key)
	}
	d, err := exchange.Open(x.dir)
	if err != nil {
		return Entry{}, err
	}
	defer d.Close()
	f, err := d.Open(key + exchanged)
	if err != nil {
		return Entry{}, err
	}
	defer f.Close()
	return readEntry(f)
}

const exchanged = ".result"

// Put leaves e in the directory, for its owner.
func (x *Exchange) Put(e Entry) error {
	data, err := e.encodeEntry()
	if err != nil {
		return err
	}
	if x.left -= int64(len(data)); x.left < 0 {
		return errors.New("the results of this run are too large")
	}
	d, err := exchange.Open(x.dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Put(e.Key+exchanged, func(w io.Writer) error { _, err := w.Write(data); return err })
}

// Close does nothing.
func (x *Exchange) Close() error { return nil }
