// SPDX-License-Identifier: Apache-2.0

package checkout

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/internal/kit/text"
)

const (
	lfsType   = "application/vnd.git-lfs+json"
	maxLarge  = 1000 // large files of one repository
	maxBatch  = 100  // objects of one request
	maxAnswer = 4 << 20
)

var pointerRE = pattern.New(`^version https://git-lfs\.github\.com/spec/v1\noid sha256:([0-9a-f]{64})\nsize (0|[1-9][0-9]{0,14})\n$`)

// A largeFile is a pointer in the commit.
type largeFile struct {
	left Left
	OID  string `json:"oid"`
	Size int64  `json:"size"`
}

// fetchLargeFiles replaces the pointers of one repository by their files.
func (x *extras) fetchLargeFiles(ctx context.Context, s *Store, tree *Tree, root *os.Root) error {
	var files []largeFile
	listed := tree.Left
	tree.Left = nil
	for _, left := range listed {
		f, why := largeFile{left: left}, "not a large file"
		if left.Why == LargeFile {
			why = f.readPointer(root, x.room, len(files))
		}
		if why != "" {
			if left.Why == LargeFile {
				left.Detail = why
			}
			tree.Left = append(tree.Left, left)
			continue
		}
		x.room.Bytes -= f.Size
		files = append(files, f)
	}
	for len(files) > 0 {
		n := min(len(files), maxBatch)
		if err := s.largeBatch(ctx, files[:n], tree, root); err != nil {
			return err
		}
		files = files[n:]
	}
	return nil
}

// readPointer reads the pointer at f's path, and returns why it is refused, or "".
func (f *largeFile) readPointer(root *os.Root, room Limits, number int) (why string) {
	data, err := root.ReadFile(f.left.Path) // a regular file of at most maxPointer bytes, as Write found
	match := pointerRE.FindSubmatch(data)
	if err != nil || match == nil {
		return "the pointer has an unsupported form"
	}
	f.OID = string(match[1])
	fmt.Sscan(string(match[2]), &f.Size)
	switch {
	case f.Size > room.File || f.Size > room.Bytes:
		return fmt.Sprintf("its %d bytes are more than the checkout's limit", f.Size)
	case number >= maxLarge:
		return fmt.Sprintf("more than %d large files", maxLarge)
	}
	return ""
}

// A lfsAction is where and how the server lets an object be downloaded.
type lfsAction struct {
	Href   string            `json:"href"`
	Header map[string]string `json:"header"`
}

// largeBatch requests where the files are, and downloads each of them.
func (s *Store) largeBatch(ctx context.Context, files []largeFile, tree *Tree, root *os.Root) error {
	client, err := s.remote.newClient()
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	actions, err := s.askLarge(ctx, client, files)
	for _, f := range files {
		failed := err
		if failed == nil {
			failed = s.writeLarge(ctx, client, f, actions[f.OID], root)
		}
		switch {
		case failed == nil:
			tree.Bytes += f.Size
			s.replaced = append(s.replaced, f.left.Path)
		case ctx.Err() != nil:
			return stopOrContextError(ctx, failed)
		default:
			f.left.Detail = s.remote.redactToken(text.Inline(failed.Error(), 200))
			tree.Left = append(tree.Left, f.left)
		}
	}
	return nil
}

// newClient follows no redirect, because a request may hold the token, and uses the process's
// proxy for https alone.
func (r remote) newClient() (*http.Client, error) {
	transport := &http.Transport{MaxResponseHeaderBytes: 1 << 20, Proxy: func(q *http.Request) (*url.URL, error) {
		if q.URL.Scheme != "https" {
			return nil, nil
		}
		return http.ProxyFromEnvironment(q)
	}}
	if r.ca != "" {
		pem, err := os.ReadFile(r.ca)
		if err != nil {
			return nil, newStopError(CodeSource, "", err, "cannot read the server's certificates")
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: x509.NewCertPool()}
		transport.TLSClientConfig.RootCAs.AppendCertsFromPEM(pem)
	}
	return &http.Client{Transport: transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}, nil
}

// askLarge asks the LFS server of the repository for the objects, by its batch API.
func (s *Store) askLarge(ctx context.Context, client *http.Client, files []largeFile) (map[string]lfsAction, error) {
	body, err := json.Marshal(map[string]any{"operation": "download", "transfers": []string{"basic"},
		"hash_algo": "sha256", "objects": files})
	if err != nil {
		return nil, err
	}
	address := strings.TrimSuffix(s.remote.url, ".git") + ".git/info/lfs/objects/batch"
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header = http.Header{"Accept": {lfsType}, "Content-Type": {lfsType}}
	if name, value, found := strings.Cut(s.remote.header, ": "); found {
		req.Header.Set(name, value)
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil || resp.StatusCode != http.StatusOK {
		return nil, errors.Join(fmt.Errorf("the LFS server answered %d", resp.StatusCode), err)
	}
	var answer struct {
		Objects []struct {
			OID     string               `json:"oid"`
			Actions map[string]lfsAction `json:"actions"`
		} `json:"objects"`
	}
	if err := json.Unmarshal(data, &answer); err != nil {
		return nil, errors.New("the LFS server's answer cannot be read")
	}
	actions := map[string]lfsAction{}
	for _, o := range answer.Objects {
		actions[o.OID] = o.Actions["download"]
	}
	return actions, nil
}

// writeLarge downloads a file, and writes it if its size and hash are the pointer's.
func (s *Store) writeLarge(ctx context.Context, client *http.Client, f largeFile, from lfsAction, root *os.Root) error {
	if from.Href == "" {
		return errors.New("the LFS server does not have it")
	}
	own, err := url.Parse(s.remote.url)
	if err != nil {
		return err
	}
	if u, err := url.Parse(from.Href); err != nil || u.User != nil ||
		u.Scheme != "https" && (u.Scheme != "http" || own.Scheme != "http" || !strings.EqualFold(u.Host, own.Host)) {
		return errors.New("the LFS server names an address that is not https")
	}
	temp, err := os.CreateTemp(s.dir, "large-")
	if err != nil {
		return newStopError(CodeWrite, "", err, "cannot make a temporary file")
	}
	defer os.Remove(temp.Name())
	defer temp.Close()
	if err := downloadLargeFile(ctx, client, from, f, temp); err != nil {
		return err
	}
	if _, err := temp.Seek(0, io.SeekStart); err != nil {
		return err
	}
	out, err := root.OpenFile(f.left.Path, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return cannotWrite(f.left.Path, err)
	}
	_, err = io.Copy(out, temp)
	return errors.Join(err, out.Close())
}

func downloadLargeFile(ctx context.Context, client *http.Client, from lfsAction, f largeFile, to io.Writer) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, from.Href, nil)
	if err != nil {
		return errors.New("the LFS server names an address that cannot be read")
	}
	for name, value := range from.Header {
		req.Header.Set(name, value)
	}
	resp, err := client.Do(req)
	if err != nil {
		return errors.New("the download failed") // the address can hold a credential
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("the download was answered with %d", resp.StatusCode)
	}
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(to, sum), io.LimitReader(resp.Body, f.Size+1))
	if err != nil || n != f.Size || hex.EncodeToString(sum.Sum(nil)) != f.OID {
		return errors.New("what was downloaded does not match the pointer's size and hash")
	}
	return nil
}
