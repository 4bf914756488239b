package archive

import (
	"archive/tar"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// maxPadding is more than tar writes after an archive's end to fill its last record.
const maxPadding = 1 << 20

// Unpack writes the named file or folder of an archive to local. The parent folder of local must exist. limit bounds the total
// size of files, in bytes; 0 means none. report may be nil.
func Unpack(ctx context.Context, from io.Reader, name, local string, limit int64, report func(Progress)) error {
	reader := tar.NewReader(from)
	local = filepath.Clean(local) // without a slash at the end: filepath.Dir("out/") is "out"
	u := &unpacker{ctx: ctx, name: name, local: local, limit: limit, meter: meter{report: report}}
	defer u.close()
	for {
		header, err := reader.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return fmt.Errorf("read the archive: %w", err)
		}
		if err := u.unpack(header, reader); err != nil {
			return entryError(header.Name, err)
		}
	}
	// Read to the end: otherwise tar would be ended before it can report missing files.
	padding, err := io.CopyN(io.Discard, from, maxPadding)
	if padding == maxPadding {
		return errors.New("there is more behind the archive's end")
	}
	if !errors.Is(err, io.EOF) {
		return err
	}
	return u.finish()
}

// unpacker writes the entries of an archive.
type unpacker struct {
	ctx         context.Context
	name, local string
	meter       meter
	limit       int64

	root     *os.Root // local if it is a folder, else its parent; nil before the first entry
	isFolder bool
	folders  []folderEntry
}

type folderEntry struct {
	name   string
	header *tar.Header
}

func (u *unpacker) unpack(header *tar.Header, content io.Reader) error {
	if header.Typeflag == tar.TypeXGlobalHeader {
		return nil
	}
	below, err := u.relativeName(header.Name)
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
		return errUnsupported
	}
}

// relativeName returns an entry's validated name relative to the copied root.
func (u *unpacker) relativeName(name string) (string, error) {
	if strings.HasPrefix(name, "/") {
		return "", errors.New("the archive holds an absolute name")
	}
	if slices.Contains(strings.Split(name, "/"), "..") {
		return "", errors.New("the archive holds .. in a name")
	}
	below := path.Clean(name)
	inside := true
	if u.name != "." {
		if below == u.name {
			below = "."
		} else {
			below, inside = strings.CutPrefix(below, u.name+"/")
		}
	}
	if !inside || !filepath.IsLocal(filepath.FromSlash(below)) {
		return "", errors.New("the archive holds a name that was not requested")
	}
	return below, nil
}

// place returns the name below root to write an entry to, and creates its parent folders. The first entry determines root.
func (u *unpacker) place(below string, header *tar.Header) (string, error) {
	if u.root == nil {
		if err := u.openRoot(below, header); err != nil {
			return "", err
		}
	} else if !u.isFolder || below == "." {
		return "", errors.New("the archive holds more than the requested file")
	}
	if !u.isFolder {
		return filepath.Base(u.local), nil
	}
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

func (u *unpacker) openRoot(below string, header *tar.Header) (err error) {
	if below != "." {
		return errors.New("the archive does not begin with the requested path")
	}
	u.isFolder = header.Typeflag == tar.TypeDir
	at := filepath.Dir(u.local)
	if u.isFolder {
		at = u.local
		if err := os.Mkdir(at, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	u.root, err = os.OpenRoot(at)
	return err
}

func (u *unpacker) makeFolder(name string, header *tar.Header) error {
	u.folders = append(u.folders, folderEntry{name, header})
	if name == "." {
		return nil
	}
	err := u.root.Mkdir(name, 0o700)
	if errors.Is(err, fs.ErrExist) {
		if info, statErr := u.root.Lstat(name); statErr == nil && info.IsDir() {
			return nil
		}
	}
	return err
}

// remove removes a file or link in an entry's place, so that nothing is written through a link. A folder stays, and makes
// creating the entry fail.
func (u *unpacker) remove(name string) error {
	info, err := u.root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) || (err == nil && info.IsDir()) {
		return nil
	}
	if err != nil {
		return err
	}
	return u.root.Remove(name)
}

func (u *unpacker) makeFile(name string, header *tar.Header, content io.Reader) error {
	if u.limit > 0 && header.Size > u.limit-u.meter.now.Total {
		return fmt.Errorf("with it the files are larger than MaxSize, %d bytes", u.limit)
	}
	if err := u.remove(name); err != nil {
		return err
	}
	file, err := u.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	err = u.writeContent(file, header, content)
	if err == nil {
		err = file.Chmod(header.FileInfo().Mode().Perm())
	}
	if err = cmp.Or(err, file.Close()); err != nil {
		return err
	}
	return u.root.Chtimes(name, header.ModTime, header.ModTime)
}

func (u *unpacker) writeContent(file *os.File, header *tar.Header, content io.Reader) error {
	var to io.Writer = file
	sparse := isSparse(header)
	if sparse {
		to = &sparseWriter{ctx: u.ctx, file: file}
	}
	_, err := io.Copy(io.MultiWriter(to, &u.meter), content)
	if err == nil && sparse {
		err = file.Truncate(header.Size) // a hole at its end was skipped
	}
	return err
}

func (u *unpacker) makeSymlink(name, target string) error {
	if !u.isFolder {
		return fmt.Errorf("it is a symbolic link to %s: copy that, or end the path with a slash to copy the folder that it leads to",
			quoted(target))
	}
	if !staysInside(target, strings.Count(filepath.ToSlash(name), "/")) {
		return fmt.Errorf("it is a link to %s, outside of the copied folder", quoted(target))
	}
	if err := u.remove(name); err != nil {
		return err
	}
	return u.root.Symlink(filepath.FromSlash(target), name)
}

// staysInside reports whether a link's target climbs at most depth folders, and only at its beginning.
func staysInside(target string, depth int) bool {
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

func (u *unpacker) makeLink(name, target string) error {
	below, err := u.relativeName(target)
	if err == nil && !u.isFolder {
		err = errors.New("it is a link to another file")
	}
	if err != nil {
		return err
	}
	for at := below; at != "."; at = path.Dir(at) {
		info, err := u.root.Lstat(filepath.FromSlash(at))
		if err != nil {
			return err
		}
		if at == below && !info.Mode().IsRegular() || at != below && !info.IsDir() {
			return fmt.Errorf("it is a link to %s, and the archive has no such file", quoted(target))
		}
	}
	first := filepath.FromSlash(below)
	if first == name {
		return nil
	}
	if err := u.remove(name); err != nil {
		return err
	}
	return u.root.Link(first, name)
}

// finish sets the permissions and times of folders, innermost first.
func (u *unpacker) finish() error {
	if u.root == nil {
		return ErrEmpty
	}
	for _, folder := range slices.Backward(u.folders) {
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

func (u *unpacker) close() {
	if u.root != nil {
		_ = u.root.Close()
	}
}
