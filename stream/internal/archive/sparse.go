package archive

import (
	"archive/tar"
	"bytes"
	"context"
	"io"
	"os"
	"strings"

	"github.com/anykind/anykind/internal/retry"
)

// isSparse reports whether the archive holds a file without its holes. Then a few bytes of it may stand for any size.
func isSparse(header *tar.Header) bool {
	for name := range header.PAXRecords {
		if strings.HasPrefix(name, "GNU.sparse.") {
			return true
		}
	}
	return header.Typeflag == tar.TypeGNUSparse
}

// sparseWriter skips blocks of zeros.
type sparseWriter struct {
	file  *os.File
	zeros [4096]byte
}

func (s *sparseWriter) Write(p []byte) (written int, err error) {
	for written < len(p) {
		block := p[written:min(len(p), written+len(s.zeros))]
		if bytes.Equal(block, s.zeros[:len(block)]) {
			_, err = s.file.Seek(int64(len(block)), io.SeekCurrent)
		} else {
			_, err = s.file.Write(block)
		}
		if err != nil {
			return written, err
		}
		written += len(block)
	}
	return written, nil
}

// contextReader fails when ctx ends: the holes of a sparse file are not read from the connection.
type contextReader struct {
	ctx context.Context
	io.Reader
}

func (r *contextReader) Read(p []byte) (int, error) {
	if err := retry.ContextError(r.ctx); err != nil {
		return 0, err
	}
	return r.Reader.Read(p)
}
