package archive

import (
	"archive/tar"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"time"
)

// Pack writes the archive of a local file or folder under the given name. report may be nil.
func Pack(to io.Writer, local, name string, report func(Progress)) error {
	p := packer{writer: tar.NewWriter(to), meter: meter{report: report}}
	err := filepath.WalkDir(local, func(at string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		below, err := filepath.Rel(local, at)
		if err != nil {
			return err
		}
		below = filepath.ToSlash(below)
		if err := p.pack(at, path.Join(name, below), below, entry); err != nil {
			return entryError(at, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return p.writer.Close()
}

type packer struct {
	writer *tar.Writer
	meter  meter
}

func (p *packer) pack(at, name, below string, entry fs.DirEntry) error {
	info, err := entry.Info()
	if err != nil {
		return err
	}
	target := ""
	switch info.Mode().Type() {
	case 0, fs.ModeDir:
	case fs.ModeSymlink:
		if target, err = os.Readlink(at); err != nil {
			return err
		}
	default:
		return errUnsupported
	}
	header, err := tar.FileInfoHeader(info, filepath.ToSlash(target))
	if err != nil {
		return err
	}
	header.Name = name
	header.ModTime = header.ModTime.Truncate(time.Second)
	if info.IsDir() {
		header.Name += "/"
	}
	// Local owners mean nothing in the container.
	header.Uid = 0
	header.Gid = 0
	header.Uname = ""
	header.Gname = ""
	if err := p.writer.WriteHeader(header); err != nil {
		return err
	}
	p.meter.begin(below, header.Size)
	if !info.Mode().IsRegular() {
		return nil
	}
	return p.packContent(at, info, header.Size)
}

func (p *packer) packContent(at string, info fs.FileInfo, size int64) error {
	file, err := os.Open(at)
	if err != nil {
		return err
	}
	defer file.Close()
	if opened, err := file.Stat(); err != nil {
		return err
	} else if !os.SameFile(info, opened) {
		return errors.New("it was replaced while it was copied")
	}
	written, err := io.Copy(io.MultiWriter(p.writer, &p.meter), io.LimitReader(file, size))
	if err == nil && written < size {
		err = errors.New("it became shorter while it was copied")
	}
	return err
}
