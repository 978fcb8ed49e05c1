// SPDX-License-Identifier: Apache-2.0

package guest

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/fumehood/fumehood/internal/kit/listing"
)

// The trees of a layer, as directories of its image: HomeTree has the commands' HOME, and
// TreeOf(i) what was written over the overlay with the number i.
const HomeTree = "home"

// TreeOf returns the directory of an overlay in a layer.
func TreeOf(overlay int) string { return strconv.Itoa(overlay) }

// Merged is where the workspace is mounted with the layer and without what commands write.
const Merged = Private + "/merged"

// lowerDirs returns the directories below what commands write to an overlay, the highest first.
// A layer that has nothing for the tree is left out.
func (c Config) lowerDirs(tree, lower string) string {
	layer := Layer + "/" + tree
	if info, err := os.Lstat(layer); !c.Layer || err != nil || !info.IsDir() {
		return lower
	}
	if lower == "" {
		return layer
	}
	return layer + ":" + lower
}

// mountMerged mounts the workspace as it was before any command, for comparisons, and returns
// where.
func mountMerged(c Config) (string, error) {
	lower := c.Overlays[0].Lower
	both := c.lowerDirs(TreeOf(0), lower)
	if both == lower {
		return lower, nil
	}
	if err := syscall.Mount("overlay", Merged, "overlay", syscall.MS_NOSUID|syscall.MS_NODEV|syscall.MS_RDONLY,
		"lowerdir="+both); err != nil {
		return "", fmt.Errorf("cannot mount the layer: %v", err)
	}
	return Merged, nil
}

// mountHome mounts HOME over the layer's.
func mountHome(c Config) error {
	lower := c.lowerDirs(HomeTree, "")
	if lower == "" {
		return mountScratch("home", Home, 0o700, c)
	}
	upper := Upper + "/home"
	if err := errors.Join(os.Mkdir(upper, 0o700), os.Chown(upper, c.UID, c.GID)); err != nil {
		return err
	}
	options := "lowerdir=" + lower + ",upperdir=" + upper
	if err := syscall.Mount("overlay", Home, "overlay", syscall.MS_NOSUID|syscall.MS_NODEV, options); err != nil {
		return fmt.Errorf("cannot mount overlay on %q: %v", Home, err)
	}
	return nil
}

// An exporter sends what was written so far.
type exporter struct {
	c       Config
	w       *bufio.Writer
	left    int               // entries
	bytes   int64             // left
	skipped map[string]bool   // paths on the upper layer
	linked  map[uint64]string // the first name of a file with several, by inode
}

// sendLayer answers the request for all that commands have written to the overlays and HOME.
// Files that fumehood itself has put into HOME are left out.
func (s *server) sendLayer(rest string, w *bufio.Writer) error {
	files, rest, err := cutNumber(rest)
	if err != nil {
		return err
	}
	bytes, _, err := cutNumber(rest)
	if err != nil {
		return err
	}
	e := &exporter{c: s.config, w: w, left: int(files), bytes: bytes, skipped: map[string]bool{},
		linked: map[uint64]string{}}
	for name := range s.config.Home {
		e.skipped[Upper+"/home/"+name] = true
	}
	for i, o := range s.config.Overlays {
		if err := e.sendTree(upperOf(i), o.Lower, TreeOf(i)); err != nil {
			return err
		}
	}
	if err := e.sendTree(Upper+"/home", "", HomeTree); err != nil {
		return err
	}
	fmt.Fprintln(w, "ok 0")
	return nil
}

// sendTree sends what is on one upper directory. That something below was removed is an error: a
// layer could say so only by hiding what another workspace has there.
func (e *exporter) sendTree(upper, lower, name string) error {
	return filepath.WalkDir(upper, func(path string, d fs.DirEntry, err error) error {
		if err != nil || e.skipped[path] {
			return err
		}
		var st syscall.Stat_t
		if err := syscall.Lstat(path, &st); err != nil {
			return err
		}
		rel := strings.TrimPrefix(path, upper)
		if kind := listing.KindOf(st.Mode, st.Rdev); kind == 'w' || kind == 'd' && rel != "" && isOpaque(path) {
			if _, err := os.Lstat(lower + rel); lower != "" && err == nil {
				return fmt.Errorf("set-up removed %q of the tree below, which a layer cannot say", name+rel)
			}
			if kind == 'w' {
				return nil // of a file that set-up itself had made
			}
		}
		return e.sendEntry(path, name+rel, st)
	})
}

// sendEntry sends one entry.
func (e *exporter) sendEntry(path, name string, st syscall.Stat_t) error {
	if e.left--; e.left < 0 {
		return errors.New("set-up left too many files")
	}
	kind, size, target := listing.KindOf(st.Mode, st.Rdev), int64(0), ""
	var err error
	switch {
	case kind == 'l':
		if target, err = os.Readlink(path); err != nil {
			return err
		}
	case kind == 'f' && st.Nlink > 1 && e.linked[st.Ino] != "":
		kind, target = 'h', e.linked[st.Ino]
	case kind == 'f':
		if size = st.Size; st.Nlink > 1 {
			e.linked[st.Ino] = name
		}
	case kind != 'd':
		return nil // a socket or FIFO is of no use without its process
	}
	if e.bytes -= size; e.bytes < 0 {
		return errors.New("set-up left too many bytes")
	}
	header := fmt.Sprintf("node %c %o %d %d %d %d %q %q\n", kind, st.Mode&0o1777, st.Uid, st.Gid, st.Mtim.Nano(), size,
		name, target)
	if kind != 'f' {
		_, err = e.w.WriteString(header)
		return err
	}
	return e.sendContent(path, header, size)
}

func (e *exporter) sendContent(path, header string, size int64) error {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := e.w.WriteString(header); err != nil {
		return err
	}
	return copyPadded(f, size, e.w)
}
