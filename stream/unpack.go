package stream

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// unpacking writes an archive that is not trusted. All goes through an os.Root, so that no link, not even one that
// another program makes meanwhile, leads out of local. The rules beyond that keep links that lead out from being made:
// nothing is written through a link, and a link climbs no higher than its own depth, and does so before all else. So
// every link ends within local, and so does one that goes through others.
type unpacking struct {
	ctx         context.Context
	name, local string
	meter       meter
	limit       int64 // of all files' sizes; 0 means none
	size        int64

	root    *os.Root // local where that is a folder, else the folder that it is in
	folder  bool
	begun   bool
	folders []folderEntry // whose permissions are set last: they may forbid writing
}

type folderEntry struct {
	name   string
	header *tar.Header
}

// errEmpty is an archive of nothing, which tar leaves where it found nothing.
var errEmpty = errors.New("the archive is empty")

// entry writes one entry.
func (u *unpacking) entry(header *tar.Header, content io.Reader) error {
	if header.Typeflag == tar.TypeXGlobalHeader {
		return nil
	}
	below, err := u.below(header.Name)
	if err != nil {
		return err
	}
	name, err := u.place(below, header)
	if err != nil {
		return err
	}
	u.meter.begin(below, header.Size)
	switch header.Typeflag {
	case tar.TypeDir:
		return u.makeFolder(name, header)
	case tar.TypeReg, tar.TypeGNUSparse:
		return u.makeFile(name, header, content)
	case tar.TypeSymlink:
		return u.makeSymlink(name, header.Linkname)
	case tar.TypeLink:
		return u.makeLink(name, header.Linkname)
	default:
		return errNotCopied
	}
}

// below is an entry's path below what is copied, checked.
func (u *unpacking) below(name string) (string, error) {
	if strings.HasPrefix(name, "/") {
		return "", errors.New("the archive holds an absolute name")
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == ".." {
			return "", errors.New("the archive holds .. in a name")
		}
	}
	below, inside := path.Clean(name), true
	if u.name != "." {
		if below == u.name {
			below = "."
		} else {
			below, inside = strings.CutPrefix(below, u.name+"/")
		}
	}
	if !inside || !filepath.IsLocal(filepath.FromSlash(below)) {
		return "", errors.New("the archive holds a name that was not asked for")
	}
	return below, nil
}

// place is where an entry is written, below the root; the first entry decides what that is.
func (u *unpacking) place(below string, header *tar.Header) (string, error) {
	if !u.begun {
		if err := u.begin(below, header); err != nil {
			return "", err
		}
	} else if !u.folder || below == "." {
		return "", errors.New("the archive holds it beside or after the file that was asked for")
	}
	if !u.folder {
		return filepath.Base(u.local), nil
	}
	// No part of the way may be a link.
	for at := path.Dir(below); at != "."; at = path.Dir(at) {
		info, err := u.root.Lstat(filepath.FromSlash(at))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return "", err
		}
		if !info.IsDir() {
			return "", fmt.Errorf("it leads through %s, which is no folder", quoted(at))
		}
	}
	if err := u.root.MkdirAll(filepath.FromSlash(path.Dir(below)), 0o755); err != nil {
		return "", err
	}
	return filepath.FromSlash(below), nil
}

func (u *unpacking) begin(below string, header *tar.Header) (err error) {
	if below != "." {
		return errors.New("the archive does not begin with what was asked for")
	}
	u.begun = true
	u.folder = header.Typeflag == tar.TypeDir
	at := filepath.Dir(u.local)
	if u.folder {
		at = u.local
		if err := os.Mkdir(at, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	u.root, err = os.OpenRoot(at)
	return err
}

func (u *unpacking) makeFolder(name string, header *tar.Header) error {
	u.folders = append(u.folders, folderEntry{name, header})
	if name == "." {
		return nil
	}
	err := u.root.Mkdir(name, 0o700)
	if errors.Is(err, fs.ErrExist) {
		info, statErr := u.root.Lstat(name)
		if statErr == nil && info.IsDir() {
			return nil
		}
	}
	return err
}

// vacate removes what is in an entry's place, so that it is not written through a link. A folder stays, and is an error
// of what comes next.
func (u *unpacking) vacate(name string) error {
	info, err := u.root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) || (err == nil && info.IsDir()) {
		return nil
	}
	if err != nil {
		return err
	}
	return u.root.Remove(name)
}

func (u *unpacking) makeFile(name string, header *tar.Header, content io.Reader) error {
	if u.limit > 0 && header.Size > u.limit-u.size {
		return fmt.Errorf("with it the files are larger than MaxSize, %d bytes", u.limit)
	}
	u.size += header.Size
	if err := u.vacate(name); err != nil {
		return err
	}
	file, err := u.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	err = u.fill(file, header, content)
	if err == nil {
		err = file.Chmod(header.FileInfo().Mode().Perm())
	}
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	return u.root.Chtimes(name, header.ModTime, header.ModTime)
}

func (u *unpacking) makeSymlink(name, target string) error {
	if !u.folder {
		return fmt.Errorf("it is a symbolic link to %s: copy that, or end the path with a slash to copy the folder that it leads to",
			quoted(target))
	}
	if !staysWithin(target, strings.Count(filepath.ToSlash(name), "/")) {
		return fmt.Errorf("it is a link to %s, out of what is copied", quoted(target))
	}
	if err := u.vacate(name); err != nil {
		return err
	}
	return u.root.Symlink(filepath.FromSlash(target), name)
}

// staysWithin says whether a link's target climbs at most so many folders, and only at its beginning.
func staysWithin(target string, depth int) bool {
	if target == "" || path.IsAbs(target) || filepath.IsAbs(target) || filepath.VolumeName(target) != "" {
		return false
	}
	climbing := true
	for part := range strings.SplitSeq(filepath.ToSlash(target), "/") {
		switch part {
		case "..":
			depth--
			if !climbing || depth < 0 {
				return false
			}
		case "", ".":
		default:
			climbing = false
		}
	}
	return true
}

// makeLink makes a second name for a file of the archive.
func (u *unpacking) makeLink(name, target string) error {
	below, err := u.below(target)
	if err == nil && !u.folder {
		err = errors.New("it is a link to another file")
	}
	if err != nil {
		return err
	}
	first := filepath.FromSlash(below)
	for at := below; at != "."; at = path.Dir(at) {
		info, err := u.root.Lstat(filepath.FromSlash(at))
		if err != nil {
			return err
		}
		if at == below && !info.Mode().IsRegular() || at != below && !info.IsDir() {
			return fmt.Errorf("it is a link to %s, which is no file of the archive", quoted(target))
		}
	}
	if first == name {
		return nil
	}
	if err := u.vacate(name); err != nil {
		return err
	}
	return u.root.Link(first, name)
}

// finish sets the permissions of folders, the innermost first.
func (u *unpacking) finish() error {
	if !u.begun {
		return errEmpty
	}
	for i := len(u.folders) - 1; i >= 0; i-- {
		folder := u.folders[i]
		err := u.root.Chmod(folder.name, folder.header.FileInfo().Mode().Perm())
		if err == nil {
			err = u.root.Chtimes(folder.name, folder.header.ModTime, folder.header.ModTime)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (u *unpacking) close() {
	if u.root != nil {
		_ = u.root.Close()
	}
}
