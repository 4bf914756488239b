package stream

import (
	"archive/tar"
	"bufio"
	"bytes"
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

// unpackFolder makes the folder that it is given, and unpacks its input there: with the archive's permissions, as files
// of the user that it runs as. These options are also those of busybox.
const unpackFolder = `mkdir -p -- "$1" && exec tar -C "$1" -xopf -`

// unpackFile does so with a file. It first says whether the file's path is that of a folder, and then unpacks there.
const unpackFile = `if [ -d "$1/$2" ]; then echo folder && exec tar -C "$1/$2" -xopf -; fi; echo file && ` + unpackFolder

func copyTo(ctx context.Context, target Target, pod, local, remote string, opts *CopyOptions) error {
	folder, name := path.Split(remote)
	if name == "" || name == "." || name == ".." {
		return fmt.Errorf("the path %q must be the copy's own: give it a name at its end, such as %s",
			remote, path.Join(remote, filepath.Base(local)))
	}
	info, err := os.Lstat(local)
	if err != nil {
		return err
	}
	if folder == "" {
		folder = "."
	}
	script := unpackFolder
	if !info.IsDir() {
		script = unpackFile
	}
	cmd := Command(ctx, target, pod, "sh", "-c", script, "sh", folder, name)
	stderr, answer := &tail{}, &firstLine{line: make(chan string, 1)}
	cmd.Container, cmd.Stdout, cmd.Stderr = opts.Container, answer, stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	if !info.IsDir() && answer.wait(cmd.ended) == "folder" {
		name = filepath.Base(local)
	}
	failed := pack(stdin, local, name, opts)
	_ = stdin.Close() // where the archive is not whole, tar finds out
	return firstError(failed, toldBy(stderr, cmd.Wait()))
}

// firstLine passes on the first line of what is written to it, if that is short, and drops the rest.
type firstLine struct {
	line chan string
	text []byte
	done bool
}

// Write implements io.Writer.
func (f *firstLine) Write(text []byte) (int, error) {
	if !f.done {
		f.text = append(f.text, text[:min(len(text), 64)]...)
		line, _, whole := bytes.Cut(f.text, []byte("\n"))
		if f.done = whole || len(f.text) > 64; f.done {
			f.line <- string(line)
		}
	}
	return len(text), nil
}

// wait returns the line, or "" if it does not come before the end.
func (f *firstLine) wait(ended <-chan struct{}) string {
	select {
	case line := <-f.line:
		return line
	case <-ended:
		return ""
	}
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
	if opened, err := file.Stat(); err != nil {
		return err
	} else if !os.SameFile(info, opened) {
		return errors.New("it was replaced while it was copied")
	}
	written, err := io.Copy(io.MultiWriter(archive, count), io.LimitReader(file, header.Size))
	if err == nil && written < header.Size {
		err = errors.New("it became shorter while it was copied")
	}
	return err
}

// splitRemote returns the folder that a path is packed from, and the name that its entries then begin with. To change
// into a path that ends with a slash follows links.
func splitRemote(remote string) (folder, name string) {
	cleaned := path.Clean(remote)
	folder, name = path.Split(cleaned)
	if name == "" || name == "." || name == ".." {
		return cleaned, "."
	}
	if strings.HasSuffix(remote, "/") {
		return cleaned + "/", "."
	}
	if folder == "" {
		folder = "."
	}
	return folder, strings.TrimPrefix(name, "/")
}
