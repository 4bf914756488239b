package stream

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
)

// padding is more than tar writes behind an archive's end, to fill up its last record.
const padding = 1 << 20

func copyFrom(ctx context.Context, target Target, pod, remote, local string, opts *CopyOptions) error {
	if remote == "" || local == "" {
		return errors.New("a path is empty")
	}
	folder, name := splitRemote(remote)
	cmd := Command(ctx, target, pod, "tar", "-C", folder, "-cf", "-", "./"+name)
	stderr := &tail{}
	cmd.Container, cmd.Stderr = opts.Container, stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	failed := unpackAll(ctx, stdout, name, local, opts)
	_ = stdout.Close() // ends tar, where it has not ended
	return firstError(failed, toldBy(stderr, cmd.Wait()))
}

// unpackAll unpacks an archive of what is named name to local.
func unpackAll(ctx context.Context, from io.Reader, name, local string, opts *CopyOptions) error {
	archive := tar.NewReader(from)
	into := &unpacking{ctx: ctx, name: name, local: local, limit: opts.MaxSize, meter: meter{report: opts.Progress}}
	defer into.close()
	for {
		header, err := archive.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return fmt.Errorf("read the archive: %w", err)
		}
		if err := into.entry(header, archive); err != nil {
			return entryError(header.Name, err)
		}
	}
	// To its end, lest tar be ended before it can say what it did not find.
	rest, err := io.CopyN(io.Discard, from, padding)
	if rest == padding {
		return errors.New("there is more behind the archive's end")
	}
	if !errors.Is(err, io.EOF) {
		return err
	}
	return into.finish()
}
