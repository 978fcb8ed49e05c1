// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"golang.org/x/sys/unix"

	dirs "github.com/fumehood/fumehood/internal/kit/store"
	"github.com/fumehood/fumehood/internal/sandbox/image"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// Options configure Open.
type Options struct {
	Dir    string         // of the store; made with mode 0700 if it is missing
	Keys   authn.Keychain // credentials for registries; nil means those of docker login
	Limits Limits
	Notice func(string) // called before long work; may be nil
}

// An Image is a verified image file.
type Image struct {
	Path      string    `json:"-"`        // of the image file, until Close
	Reference Reference `json:"-"`        // with its digest
	Key       string    `json:"key"`      // in the store
	File      string    `json:"file"`     // digest of the image file
	Size      int64     `json:"size"`     // of the image file
	Manifest  string    `json:"manifest"` // digest of this platform's manifest
	Platform  string    `json:"platform"` // "linux/amd64"
	Settings  Settings  `json:"settings"` // data only
	Dropped   Dropped   `json:"dropped"`  // what was left out
	held      *os.File  // locks the entry against removal
}

// String returns the reference, the platform and, if the reference's digest is that of an
// index, the digest of the platform's manifest.
func (i Image) String() string {
	text := i.Reference.String() + " " + i.Platform
	if i.Manifest != i.Reference.Digest {
		text += " " + i.Manifest
	}
	return text
}

// Close lets other processes remove the image file from the store.
func (i Image) Close() error {
	if i.held == nil {
		return nil
	}
	return i.held.Close()
}

// Open returns the image that value refers to (see Parse), from the store if it is there, and
// otherwise pulled and made, which takes seconds to minutes. The content of the image file is
// verified each time. Its error is a *proposal.StopError with a code of this package or of
// package image.
func Open(ctx context.Context, value string, o Options) (Image, error) {
	if o.Keys == nil {
		o.Keys = authn.DefaultKeychain
	}
	o.Limits = o.Limits.orDefault()
	r, err := Parse(value)
	var unpinned *proposal.StopError
	if errors.As(err, &unpinned) && unpinned.Code == CodeUnpinned {
		if digest := r.askDigest(ctx, o.Keys); digest != "" {
			unpinned.Hint = "its digest is now " + digest + ": use " + Registry + r.Target + "@" + digest
		}
	}
	if err != nil {
		return Image{}, err
	}
	if r.Kind != Registry && r.Digest == "" {
		_, complete, done, err := newSource(ctx, r, o.Keys)
		if done != nil {
			done()
		}
		if err != nil {
			return Image{}, err
		}
		r = complete
	}
	s, err := openStore(o)
	if err != nil {
		return Image{}, err
	}
	return s.getEntry(ctx, r)
}

// A store is the directory of image files.
type store struct {
	o Options
}

func openStore(o Options) (store, error) {
	if err := os.MkdirAll(filepath.Dir(o.Dir), 0o755); err != nil {
		return store{}, onDisk(err)
	}
	if _, err := dirs.MakeDir(o.Dir); err != nil {
		return store{}, onDisk(err)
	}
	return store{o}, nil
}

func entryKey(r Reference) string {
	sum := sha256.Sum256([]byte("fumehood image " + version + "\n" + r.Digest + "\n" + Platform() + "\n"))
	return hex.EncodeToString(sum[:])
}

const (
	imageSuffix = ".erofs"
	noteSuffix  = ".json"
	newPrefix   = ".new-"
	maxNote     = 8 << 20
)

// getEntry returns the entry of r. Only one process makes an entry; others wait for it.
func (s store) getEntry(ctx context.Context, r Reference) (Image, error) {
	if i, err := s.findVerified(r); err == nil {
		return i, nil
	}
	lock, err := s.lockStore(ctx)
	if err != nil {
		return Image{}, err
	}
	defer lock.Close()
	i, err := s.findVerified(r) // another process may have made it
	if err == nil {
		return i, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		s.sendNotice(fmt.Sprintf("warning: making the image %s again: %v", r, err))
	}
	s.removeUnused(entryKey(r))
	if err := s.makeEntry(ctx, r); err != nil {
		return Image{}, onDisk(err)
	}
	if i, err = s.findVerified(r); err != nil {
		return i, onDisk(err)
	}
	s.removeUnused("") // not i, which is held
	return i, nil
}

func (s store) sendNotice(text string) {
	if s.o.Notice != nil {
		s.o.Notice(text)
	}
}

// lockStore waits for the store's lock, which the kernel releases when a process dies.
func (s store) lockStore(ctx context.Context) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(s.o.Dir, "lock"), os.O_CREATE|os.O_RDWR|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, onDisk(err)
	}
	for waiting := false; ; waiting = true {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			return nil, errors.Join(onDisk(err), f.Close())
		}
		if !waiting {
			s.sendNotice("waiting for another process that makes an image")
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(cannotPull("the store", ctx.Err()), f.Close())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// findVerified returns a verified entry. While Image.held is open, clean does not remove it.
func (s store) findVerified(r Reference) (i Image, err error) {
	at := filepath.Join(s.o.Dir, entryKey(r))
	held, err := os.OpenFile(at+imageSuffix, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return i, err
	}
	defer func() {
		if err != nil {
			held.Close()
		}
	}()
	if err := unix.Flock(int(held.Fd()), unix.LOCK_SH|unix.LOCK_NB); err != nil {
		return i, err
	}
	note, err := os.OpenFile(at+noteSuffix, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return i, err
	}
	defer note.Close()
	data, err := io.ReadAll(io.LimitReader(note, maxNote))
	if err != nil {
		return i, err
	}
	if err := json.Unmarshal(data, &i); err != nil || i.Key != entryKey(r) || i.Platform != Platform() {
		return i, errors.New("its description is of another image")
	}
	i.Path, i.Reference, i.held = at+imageSuffix, r, held
	if err := image.Verify(i.Path, i.File); err != nil {
		return i, err
	}
	now := time.Now()
	return i, os.Chtimes(i.Path, now, now) // the last use
}

// removeUnused removes the entry with the key unwanted, what killed processes left, and the entries
// that were used least recently, as far as the store is too large. The caller has the lock.
func (s store) removeUnused(unwanted string) {
	list, _ := os.ReadDir(s.o.Dir)
	type entry struct {
		name string
		size int64
		used time.Time
	}
	var entries []entry
	for _, e := range list {
		name, isImage := strings.CutSuffix(e.Name(), imageSuffix)
		info, err := e.Info()
		switch {
		case strings.HasPrefix(e.Name(), newPrefix) || name == unwanted:
			_ = os.RemoveAll(filepath.Join(s.o.Dir, e.Name()))
		case err == nil && isImage:
			entries = append(entries, entry{name, info.Size(), info.ModTime()})
		}
	}
	slices.SortFunc(entries, func(a,
		b entry) int {
		return cmp.Or(b.used.Compare(a.used), cmp.Compare(a.name, b.name))
	})
	total := int64(0)
	for _, e := range entries {
		if total += e.size; total > s.o.Limits.Kept {
			s.removeEntry(e.name)
		}
	}
}

// removeEntry removes an entry that no process uses.
func (s store) removeEntry(name string) {
	at := filepath.Join(s.o.Dir, name)
	f, err := os.OpenFile(at+imageSuffix, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return
	}
	defer f.Close()
	if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
		_ = errors.Join(os.Remove(at+imageSuffix), os.Remove(at+noteSuffix))
	}
}

// makeEntry pulls r and makes its entry: the description first, so that an image file always has
// one.
func (s store) makeEntry(ctx context.Context, r Reference) error {
	s.sendNotice("making the image " + r.String() + "; it is kept for later runs")
	i, err := s.buildImage(ctx, r)
	if err != nil {
		return err
	}
	data, err := json.Marshal(i)
	if err != nil {
		return err
	}
	at := filepath.Join(s.o.Dir, i.Key)
	note := filepath.Join(s.o.Dir, newPrefix+i.Key+noteSuffix)
	if err := writeSynced(note, data); err != nil {
		return errors.Join(err, os.Remove(i.Path))
	}
	return errors.Join(os.Rename(note, at+noteSuffix), os.Rename(i.Path, at+imageSuffix))
}

func writeSynced(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		_ = os.Remove(path)
	}
	return err
}

// buildImage pulls r into a new image file.
func (s store) buildImage(ctx context.Context, r Reference) (i Image, err error) {
	from, r, done, err := newSource(ctx, r, s.o.Keys)
	if done != nil {
		defer done()
	}
	if err != nil {
		return i, err
	}
	f, err := resolveManifest(ctx, from, r, s.o.Limits)
	if err != nil {
		return i, err
	}
	spool, err := createUnnamed(s.o.Dir)
	if err != nil {
		return i, err
	}
	defer spool.Close()
	b := newBuilder(s.o.Limits, spool)
	for n, d := range f.layers {
		b.layer = n + 1
		if err := b.applyLayer(ctx, from, d, f.diffs[n]); err != nil {
			return i, err
		}
	}
	i = Image{Key: entryKey(r), Manifest: f.manifest.String(), Platform: Platform(), Settings: f.settings,
		Dropped: b.dropped}
	i.Path = filepath.Join(s.o.Dir, newPrefix+i.Key+imageSuffix)
	w, err := image.Create(i.Path, image.Options{MaxFiles: s.o.Limits.Files + 1, MaxBytes: s.o.Limits.Bytes})
	if err != nil {
		return i, err
	}
	if err := b.writeTree(w); err != nil {
		w.Abort()
		return i, err
	}
	i.File, i.Size, err = w.Close()
	return i, err
}

// createUnnamed makes a file that is gone when this process is.
func createUnnamed(dir string) (*os.File, error) {
	f, err := os.CreateTemp(dir, newPrefix)
	if err != nil {
		return nil, err
	}
	return f, os.Remove(f.Name())
}
