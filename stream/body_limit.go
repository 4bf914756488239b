package stream

import (
	"fmt"
	"io"

	"github.com/anykind/anykind/internal/retry"
)

// Limits of what is held in memory whole, in bytes. The API server accepts objects of a few MiB.
const (
	maxObject = 32 << 20
	maxPage   = 256 << 20 // a page of a list: up to listPage objects
)

// limitedReader fails once more than left bytes have been read, where io.LimitedReader would end.
type limitedReader struct {
	io.Reader

	what  string
	limit int
	left  int
}

func newLimitedReader(body io.Reader, what string, limit int) *limitedReader {
	return &limitedReader{Reader: body, what: what, limit: limit, left: limit}
}

// Read implements io.Reader.
func (l *limitedReader) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, retry.Terminal(fmt.Errorf("%s is larger than %d MiB", l.what, l.limit>>20))
	}
	n, err := l.Reader.Read(p[:min(len(p), l.left)])
	l.left -= n
	return n, err
}

// reset begins to count anew.
func (l *limitedReader) reset() { l.left = l.limit }
