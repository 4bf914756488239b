package dynamic

import (
	"errors"
	"io"
)

// maxDecodeFailures is how many streams may break at one resourceVersion because of what they contain: another one would
// not do better.
const maxDecodeFailures = 3

// decodeFailures counts streams from one resourceVersion that brought something other than an event: bytes that cannot
// be decoded, or the error of a server that cannot decode what it stored.
type decodeFailures struct {
	version string
	count   int
}

// note counts the stream from version if it ended with such an error, and reports whether to relist.
func (d *decodeFailures) note(version string, err error) bool {
	var noEvent *noEventError
	if version == "" || !errors.As(err, &noEvent) {
		return false
	}
	if d.version != version {
		*d = decodeFailures{version: version}
	}
	d.count++
	return d.count >= maxDecodeFailures
}

// noEventError is the error of a stream that was received whole but contains something other than an event.
type noEventError struct{ error }

func (e *noEventError) Unwrap() error { return e.error }

// witness records whether reading failed.
type witness struct {
	io.Reader
	failed error
}

func (w *witness) Read(p []byte) (int, error) {
	n, err := w.Reader.Read(p)
	if err != nil {
		w.failed = err
	}
	return n, err
}

// clears reports whether err, of decoding what was read, was not caused by the connection.
func (w *witness) clears(err error) bool {
	return !errors.Is(err, io.ErrUnexpectedEOF) && (w.failed == nil || !errors.Is(err, w.failed))
}
