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

// isSparse reports whether the archive omits the holes of a file. A few bytes of the archive may then stand for any size.
func isSparse(header *tar.Header) bool {
	for name := range header.PAXRecords {
		if strings.HasPrefix(name, "GNU.sparse.") {
			return true
		}
	}
	return header.Typeflag == tar.TypeGNUSparse
}

// sparseWriter skips blocks of zeros. It checks ctx because holes are not read from the connection and its end.
type sparseWriter struct {
	ctx   context.Context
	file  *os.File
	zeros [4096]byte
}

func (s *sparseWriter) Write(p []byte) (written int, err error) {
	if err := retry.ContextError(s.ctx); err != nil {
		return 0, err
	}
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
