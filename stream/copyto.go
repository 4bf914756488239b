package stream

import (
	"archive/tar"
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// unpack makes the folder that it is given, and unpacks its input there: with the archive's permissions, as files of
// the user that it runs as. These options are also those of busybox.
const unpack = `mkdir -p -- "$1" && exec tar -C "$1" -xopf -`

func copyTo(ctx context.Context, target Target, pod, local, remote string, opts *CopyOptions) error {
	folder, name := path.Split(remote)
	if name == "" || name == "." || name == ".." {
		return fmt.Errorf("the path %q must be the copy's own: give it a name at its end, such as %s",
			remote, path.Join(remote, filepath.Base(local)))
	}
	if _, err := os.Lstat(local); err != nil {
		return err
	}
	if folder == "" {
		folder = "."
	}
	cmd := Command(ctx, target, pod, "sh", "-c", unpack, "sh", folder)
	stderr := &tail{}
	cmd.Container, cmd.Stderr = opts.Container, stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	failed := pack(stdin, local, name, opts)
	_ = stdin.Close() // where the archive is not whole, tar finds out
	return firstError(failed, toldBy(stderr, cmd.Wait()))
}

// pack writes the archive of what is at local, under another name.
func pack(to io.Writer, local, name string, opts *CopyOptions) error {
	buffered := bufio.NewWriterSize(to, messageSize)
	archive := tar.NewWriter(buffered)
	count := &meter{report: opts.Progress}
	err := filepath.WalkDir(local, func(at string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		below, err := filepath.Rel(local, at)
		if err != nil {
			return err
		}
		below = filepath.ToSlash(below)
		if err := packOne(archive, at, path.Join(name, below), below, entry, count); err != nil {
			return entryError(at, err)
		}
		return nil
	})
	if err == nil {
		err = archive.Close()
	}
	if err == nil {
		err = buffered.Flush()
	}
	return err
}

func packOne(archive *tar.Writer, at, name, below string, entry fs.DirEntry, count *meter) error {
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
		return errNotCopied
	}
	header, err := tar.FileInfoHeader(info, filepath.ToSlash(target))
	if err != nil {
		return err
	}
	header.Name, header.ModTime = name, header.ModTime.Truncate(time.Second)
	if info.IsDir() {
		header.Name += "/"
	}
	// Who owns it here says nothing there.
	header.Uid, header.Gid, header.Uname, header.Gname = 0, 0, "", ""
	if err := archive.WriteHeader(header); err != nil {
		return err
	}
	count.begin(below, header.Size)
	if !info.Mode().IsRegular() {
		return nil
	}
	file, err := os.Open(at)
	if err != nil {
		return err
	}
	defer file.Close()
	written, err := io.Copy(io.MultiWriter(archive, count), io.LimitReader(file, header.Size))
	if err == nil && written < header.Size {
		err = errors.New("it became shorter while it was copied")
	}
	return err
}

// splitRemote gives the folder that a path is packed from, and the name that its entries then begin with.
func splitRemote(remote string) (folder, name string) {
	cleaned := path.Clean(remote)
	folder, name = path.Split(cleaned)
	if name == "" || name == "." || name == ".." {
		return cleaned, "."
	}
	if folder == "" {
		folder = "."
	}
	return folder, strings.TrimPrefix(name, "/")
}
